"""Static data: the data that a query sees beside its windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import unquote, urlsplit

import numpy as np
from rdflib import RDF, RDFS

from cqels_py.connections.tables import is_table
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UnsupportedQuery, UsageError
from cqels_py.formats.compression import is_file
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.static import load_static, load_static_text
from cqels_py.formats.triples import Triple, static_triples
from cqels_py.plan.nodes import Plan
from cqels_py.rewrites.entailment import SCHEMA, Ontology
from cqels_py.sources.static_tables import StaticTable
from cqels_py.terms.layout import TAG_BLANK, TAG_SHIFT
from cqels_py.terms.rdf import to_rdflib
from cqels_py.validation import by_iri

StaticSource: TypeAlias = "str | Path | bytes | Iterable[Triple]"
"""A file of any RDF format, the URL of a table, N-Triples or N-Quads as bytes, or triples (an rdflib Graph is such)."""

_Quads: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_STATIC_DATA = "a file, the URL of a table, N-Triples as bytes, triples, or an rdflib Graph"


def load_static_data(
    plan: Plan,
    static: Iterable[StaticSource] | StaticSource,
    graphs: Mapping[str, StaticSource] | None,
    dictionary: Dictionary,
    json_ld: JsonLd | None = None,
) -> StaticData:
    """`static` and the graphs of FROM by default; those of FROM NAMED (or, without FROM clauses, all given) by name.

    Raises UsageError for data that is missing, of no known kind, or not asked for,
    DataError for malformed data.
    """
    single = isinstance(static, str | Path | bytes) or hasattr(static, "triples")
    if not single and not isinstance(static, Iterable):
        raise UsageError(f"static is data, or a list of such, not {static!r}: {_STATIC_DATA}")
    given = graphs_by_name(graphs)
    quads = [
        _load(each, None, dictionary, json_ld)
        for each in cast("Iterable[StaticSource]", [static] if single else static)
    ]
    quads += [_load(_named(iri, given, "FROM"), None, dictionary, json_ld) for iri in plan.static_default]
    described = (*plan.static_default, *plan.static_named)
    quads += [
        _load(_named(iri, given, "FROM NAMED"), iri, dictionary, json_ld)
        for iri in (plan.static_named if described else tuple(given))
    ]
    for iri in given:
        if described and iri not in described:
            raise UsageError(f"data was given for the graph <{iri}>, but the query's FROM clauses leave it out")
    names = plan.static_named if described else tuple(given)
    return StaticData(quads, [dictionary.encode_one(f"<{iri}>") for iri in names])


def graphs_by_name(given: Mapping[str, StaticSource] | None) -> dict[str, StaticSource]:
    """The data of named graphs by their IRIs; UsageError for an argument that does not name them."""
    return {} if given is None else by_iri(given, "static_graphs", "data")


def ontology_of(data: StaticData, dictionary: Dictionary) -> Ontology:
    """The classes and properties of the static default graph, with their hierarchies."""
    _check_anonymous(data, dictionary)
    schema = dictionary.encode([f"<{iri}>" for iri in SCHEMA])
    quads = data.quads[:, (data.quads[3] == 0) & np.isin(data.quads[1], schema)]
    subjects, predicates, objects = (
        [to_rdflib(text) for text in dictionary.decode(column) if text is not None] for column in quads[:3]
    )
    return Ontology.of(zip(subjects, predicates, objects, strict=True))


def _check_anonymous(data: StaticData, dictionary: Dictionary) -> None:
    """UnsupportedQuery for instances of a class that has others above it and no name by which a pattern could ask for them."""
    sub_class, type_ = dictionary.encode([f"<{RDFS.subClassOf}>", f"<{RDF.type}>"])
    subjects, predicates, objects, graphs = data.quads
    below = subjects[(graphs == 0) & (predicates == sub_class) & ((subjects >> TAG_SHIFT) & 15 == TAG_BLANK)]
    if np.isin(objects[predicates == type_], below).any():
        raise UnsupportedQuery(
            "the static data has an instance of a class without a name (a blank node), from which others are entailed: give the "
            "class a name"
        )


def _load(data: StaticSource, graph: str | None, dictionary: Dictionary, json_ld: JsonLd | None) -> _Quads:
    scope = -dictionary.next_document()
    if is_table(data):
        subject, predicate, object_ = StaticTable.of(data).triples(dictionary)
        named = np.zeros(len(subject), np.int64)
    elif isinstance(data, str | Path):
        subject, predicate, object_, named = load_static(str(data), dictionary, scope, json_ld)
    elif isinstance(data, bytes):
        subject, predicate, object_, named = load_static_text(data, dictionary, scope)
    elif isinstance(data, Iterable):
        subject, predicate, object_ = static_triples(data, dictionary, scope)
        named = np.zeros(len(subject), np.int64)
    else:
        raise UsageError(f"{data!r} is not static data: {_STATIC_DATA}")
    if graph is not None:
        named = np.full(len(subject), dictionary.encode_one(f"<{graph}>"), np.int64)
    return np.stack([subject, predicate, object_, named])


def absent_graphs(names: Iterable[str], given: Mapping[str, StaticSource]) -> list[str]:
    """Those of a query's graphs (FROM, FROM NAMED) of which there is no data, neither given nor in a file of that name."""
    return [iri for iri in dict.fromkeys(names) if iri not in given and _file_of(iri) is None]


def _named(iri: str, given: Mapping[str, StaticSource], clause: str) -> StaticSource:
    """Where the data of a graph is: as given, or in the file that its IRI names."""
    if iri in given:
        return given[iri]
    path = _file_of(iri)
    if path is not None:
        return path
    raise UsageError(
        f"the query reads {clause} <{iri}>, and no data was given for it: "
        f"use --static-graph {iri}=FILE, or static_graphs={{{iri!r}: …}}"
    )


def _file_of(iri: str) -> Path | None:
    path = Path(unquote(urlsplit(iri).path)) if iri.startswith("file:") else None
    return path if path is not None and is_file(path) else None
