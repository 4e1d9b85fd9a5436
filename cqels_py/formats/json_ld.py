"""JSON-LD to statements: what makes no statement is told, and numbers are those of the types that contexts give them.

The library parses without judging terms, so that it drops nothing; statements with terms that are none are left out here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, cast

import pyoxigraph

from cqels_py.formats.contexts import Contexts, inlined
from cqels_py.formats.depth import at_most, check_depth
from cqels_py.formats.omissions import Omissions, logged_omissions
from cqels_py.terms.layout import XSD
from cqels_py.terms.values import double_text

_DOUBLE = XSD + "double"
_FLOATS = frozenset((_DOUBLE, XSD + "float"))
_EXACT = frozenset(
    XSD + name
    for name in (
        *("decimal", "integer", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("long", "int", "short", "byte", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_CANONICAL = re.compile(r"-?\d\.\d+E-?\d{1,3}", re.ASCII)
"""The text that the library gives to a number with a fraction, and to any one that a context makes a double."""
_LEAST_DOUBLE = 10**21
"""JSON-LD's bound: numbers without a fraction below it are integers. The library has a lower one."""
_MENTIONED = b"double"
_LABEL = re.compile(r"\w+", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)
_DIRECTED = 'the "@direction" of a text is left out, as RDF 1.1 has none'
_MOST_REMEMBERED = 1 << 16
_SHOWN = 200


def file_iri(path: Path) -> str:
    """The IRI of a file, which is the base of the documents in it."""
    return path.absolute().as_uri()


@dataclass(frozen=True, slots=True)
class JsonLd:
    """How documents of JSON-LD are read.

    `contexts`: those that they may name by IRI. `omissions`: is told what has no place in RDF. `base`: the IRI of the place of the
    documents, for relative ones; None: they have no place.
    """

    contexts: Contexts = field(default_factory=dict)
    omissions: Omissions = field(default_factory=logged_omissions)
    base: str | None = None

    def quads(self, document: bytes, source: str, line: int | None = None, *, rename: bool = False) -> list[Any]:
        """The statements of a document. `rename`: its blank nodes are those of no other one.

        DataError for a context that was not supplied, and beyond limits; PARSER_ERRORS of `turtle` for other input that cannot be
        read.
        """
        document = inlined(document, self.contexts, source, line)
        check_depth(document, "jsonld", source, line)
        judge = Judge(self.omissions)
        judge.look(document)
        return judge.statements(at_most(self.parser(document, rename=rename), source, line))

    def parser(self, document: bytes | IO[bytes], *, rename: bool = False) -> Iterator[Any]:
        """The library's parser, whose statements are to be judged."""
        return cast(
            "Iterator[Any]",
            pyoxigraph.parse(
                document,
                pyoxigraph.RdfFormat.JSON_LD,
                base_iri=self.base,
                rename_blank_nodes=rename,
                lenient=True,
            ),
        )


class Judge:
    """Leaves out the statements of a document that RDF has not, tells them, and gives numbers their texts."""

    def __init__(self, omissions: Omissions) -> None:
        self._omissions = omissions
        self._has_doubles = False
        self._right: set[str] = set()

    def look(self, text: bytes) -> None:
        """See a part of the document, before its statements."""
        self._has_doubles = self._has_doubles or _MENTIONED in text

    def watched(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks of a document, seen before they are parsed."""
        last = b""
        for chunk in chunks:
            self.look(last + chunk[: len(_MENTIONED)])
            self.look(chunk)
            last = chunk[-len(_MENTIONED) :]
            yield chunk

    def statements(self, quads: Iterable[Any]) -> list[Any]:
        """Those of the statements that RDF has."""
        found = []
        for quad in quads:
            subject, predicate, object_, graph = quad
            if not (self._is_property(predicate.value) and self._is_node(subject) and self._is_node(graph)):
                continue
            if isinstance(object_, pyoxigraph.Literal):
                if not self._is_literal(object_):
                    continue
                if object_.direction is not None:
                    self._omissions.left_out(_DIRECTED)
                    object_ = pyoxigraph.Literal(object_.value, language=object_.language)
                    quad = pyoxigraph.Quad(subject, predicate, object_, graph)
                if _CANONICAL.fullmatch(object_.value) is not None:
                    number = _number_of(object_.value, object_.datatype.value, self._has_doubles)
                    quad = pyoxigraph.Quad(subject, predicate, number or object_, graph)
            elif not self._is_node(object_):
                continue
            found.append(quad)
        return found

    def _is_property(self, iri: str) -> bool:
        return iri in self._right or self._is_right(iri, _of_property)

    def _is_node(self, term: Any) -> bool:
        if isinstance(term, pyoxigraph.NamedNode):
            return term.value in self._right or self._is_right(term.value, _of_node)
        if not isinstance(term, pyoxigraph.BlankNode) or _LABEL.fullmatch(term.value):
            return True
        try:
            pyoxigraph.BlankNode(term.value)
        except ValueError:
            self._omissions.left_out(f"{_shown('_:' + term.value)} is no blank node: what has it is left out")
            return False
        return True

    def _is_literal(self, literal: Any) -> bool:
        datatype, tag = literal.datatype.value, literal.language
        if tag is None or tag in self._right:
            return datatype in self._right or self._is_right(datatype, _of_datatype)
        try:
            pyoxigraph.Literal("", language=tag)
        except ValueError:
            self._omissions.left_out(
                f'{_shown(tag)} is no language tag, such as "en" or "de-AT": texts that have it are left out'
            )
            return False
        self._remember(tag)
        return True

    def _is_right(self, iri: str, message: Callable[[str], str]) -> bool:
        try:
            pyoxigraph.NamedNode(iri)
        except ValueError:
            self._omissions.left_out(message(iri))
            return False
        self._remember(iri)
        return True

    def _remember(self, text: str) -> None:
        if len(self._right) == _MOST_REMEMBERED:
            self._right.clear()
        self._right.add(text)


@lru_cache(maxsize=1 << 12)
def _number_of(text: str, datatype: str, has_doubles: bool) -> Any:
    """A number in the library's text as a literal of the datatype; None for other datatypes, of which it may be any text.

    `has_doubles`: the document may ask for doubles. In one that does not, a double without a fraction below the bound is an integer.

    >>> _number_of("2.15E1", XSD + "decimal", False).value, _number_of("1.0E0", XSD + "double", True).value
    ('21.5', '1')
    """
    exact = format(Decimal(text), "f")
    exact = exact.rstrip("0").removesuffix(".") if "." in exact else exact
    if datatype in _EXACT:
        text = exact
    elif datatype == _DOUBLE and not has_doubles and "." not in exact and abs(int(exact)) < _LEAST_DOUBLE:
        text, datatype = exact, XSD + "integer"
    elif datatype in _FLOATS:
        text = double_text(float(text))
    else:
        return None
    return pyoxigraph.Literal(text, datatype=pyoxigraph.NamedNode(datatype))


def _of_property(iri: str) -> str:
    if iri.startswith("_:"):
        return f"the member {_shown(iri)} is left out, as a property has an IRI and is no blank node"
    if _SCHEME.match(iri) is None:
        return (
            f"the member {_shown(iri)} is left out, as no context gives it an IRI: define it, such as "
            f'"@context": {{{_shown(iri)}: "http://ex.org/value"}}, or give all members one by "@vocab"'
        )
    member = iri[max(iri.rfind("/"), iri.rfind("#")) + 1 :]
    return (
        f"a member is left out, as its name makes no IRI: {_shown(iri)}; define it in the context, such as "
        f'{_shown(member)}: "http://ex.org/value"'
    )


def _of_node(iri: str) -> str:
    if _SCHEME.match(iri) is None:
        return (
            f"{_shown(iri)} is a relative IRI, and the document has no base: what has it is left out; give it one, such as "
            '"@context": {"@base": "http://ex.org/"}'
        )
    return f"{_shown(iri)} is no IRI: what has it is left out; in an IRI a blank is written %20, and a percent sign %25"


def _of_datatype(iri: str) -> str:
    return f"{_shown(iri)} is no IRI of a datatype: values that have it are left out"


def _shown(text: str) -> str:
    return json.dumps(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…", ensure_ascii=False)
