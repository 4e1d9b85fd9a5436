"""An element given as one dict of JSON-LD, whose values may be any that `terms.values` takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import pyoxigraph
from rdflib import BNode, Literal, URIRef

from cqels_py.errors import DataError, UsageError
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.times import EXPECTED, GENERATED_AT, NO_TIME, time_of_text
from cqels_py.formats.turtle import PARSER_ERRORS, json_error
from cqels_py.terms.rdf import to_rdflib
from cqels_py.terms.values import text_of

_EXAMPLE = '{"@id": "http://ex.org/s1", "http://ex.org/temperature": 21.5}'
_DEFAULT = pyoxigraph.DefaultGraph()
_SOURCE = "the dict"


@dataclass(frozen=True, slots=True)
class ObjectElement:
    """`texts`: the terms of its triples (3 n) in N-Triples syntax. `graph`: the name of its graph, if it has one. `time`: in
    microseconds, that of its property prov:generatedAtTime, if it has one."""

    texts: list[bytes]
    graph: bytes | None
    time: int | None


def element_of_object(given: Mapping[Any, Any], json_ld: JsonLd) -> ObjectElement | None:
    """The element that a dict describes; None for one without triples.

    UsageError for a dict that is no JSON-LD, or has members that are no properties; DataError for malformed terms.
    """
    if "@context" not in given:
        _check_members(given)
    try:
        document = json.dumps(_json(given), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"push takes triples, or a dict of JSON-LD such as {_EXAMPLE}: {error}") from None
    try:
        quads = json_ld.quads(document, _SOURCE)
    except PARSER_ERRORS as error:
        raise json_error(error, document, _SOURCE) from None
    graphs = {quad.graph_name for quad in quads} - {_DEFAULT}
    times = [quad for quad in quads if str(quad.predicate) == GENERATED_AT]
    # That of the graph stands beside it.
    inside = [quad for quad in quads if not (quad in times and quad.graph_name == _DEFAULT and quad.subject in graphs)]
    if not inside:
        json_ld.omissions.empty()
        return None
    if len({quad.graph_name for quad in inside}) > 1:
        raise DataError("the dict has several graphs, and an element has one: push each by itself")
    texts = [str(part).encode() for quad in inside for part in (quad.subject, quad.predicate, quad.object)]
    name = inside[0].graph_name
    return ObjectElement(texts, None if name == _DEFAULT else str(name).encode(), _time(times))


def _time(times: list[Any]) -> int | None:
    values = list(dict.fromkeys(quad.object for quad in times))
    if not values:
        return None
    if len(values) > 1:
        raise DataError("the dict has two different times")
    found = time_of_text(values[0].value) if isinstance(values[0], pyoxigraph.Literal) else NO_TIME
    if found == NO_TIME:
        raise DataError(f"the dict has the time {values[0]}; {EXPECTED}")
    return found


def _check_members(given: Mapping[Any, Any]) -> None:
    """UsageError for a name that JSON-LD would pass over, as no context defines it."""
    for key, value in given.items():
        if not isinstance(key, str) or not (key.startswith("@") or ":" in key):
            raise UsageError(
                f"{key!r} is no property: write its IRI, as in {_EXAMPLE}, or add a context, such as "
                '"@context": {"@vocab": "http://ex.org/"}'
            )
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, Mapping) and "@context" not in each:
                _check_members(each)


def _json(value: Any) -> Any:
    """The value with all that JSON has not as JSON-LD's typed values."""
    if isinstance(value, Mapping):
        return {str(key): each if key in ("@context", "@value") else _json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    if isinstance(value, np.number):
        value = value.item()
    if value is None or type(value) in (str, bool, int) or (type(value) is float and isfinite(value)):
        return value
    term = value if isinstance(value, URIRef | Literal | BNode) else None
    if term is None and isinstance(value, str):
        return str(value)
    return _of_term(to_rdflib(text_of(value)) if term is None else term)


def _of_term(term: URIRef | Literal | BNode) -> dict[str, str]:
    if isinstance(term, Literal):
        if term.language:
            return {"@value": str(term), "@language": term.language}
        return {"@value": str(term), **({} if term.datatype is None else {"@type": str(term.datatype)})}
    return {"@id": f"_:{term}" if isinstance(term, BNode) else str(term)}
