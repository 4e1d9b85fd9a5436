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
from cqels_py.languages import is_tag
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
_TAGGED = frozenset(f"http://www.w3.org/1999/02/22-rdf-syntax-ns#{name}" for name in ("langString", "dirLangString"))
"""The datatypes of texts with a language, whose tags are judged each time."""
_NUMERIC = _FLOATS | _EXACT
_MISTAKEN = "E20"
"""JSON-LD's bound, below which numbers without a fraction are integers, is 10^21; that of the library is 10^20."""
_DEFAULT_GRAPH = pyoxigraph.DefaultGraph()
_MENTIONED = b"double"
_LABEL = re.compile(r"\w+", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)
_DIRECTED = 'the "@direction" of a text is left out, as RDF 1.1 has none'
_MOST_REMEMBERED = 1 << 16
_RIGHT: set[str] = set()
"""IRIs and language tags that have been judged right, of all documents."""
_ALLOWED = rb"[A-Za-z0-9._~:/?@!$&'()*+,;=-]*+"
_CHARACTERS = rb"%b(?:%%[0-9A-Fa-f]{2}%b)*+" % (_ALLOWED, _ALLOWED)
_IRI = rb"<[A-Za-z][A-Za-z0-9+.-]*+:(?://[A-Za-z0-9._~-]*+(?::[0-9]*+)?+(?=[/?#>])|(?!//))%b(?:#%b)?+>" % (
    _CHARACTERS,
    _CHARACTERS,
)
_NODE = rb"(?:%b|_:[0-9A-Za-z_]++)" % _IRI
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_DATATYPE = rb"\^\^(?:<%b\w++>|(?!<[^<>]*angString>)%b)" % (re.escape(XSD.encode()), _IRI)
_LITERAL = rb"%b(?:@[A-Za-z]{2,3}(?:-[A-Za-z]{4})?+(?:-[A-Za-z]{2})?+|%b)?+" % (_TEXT, _DATATYPE)
_SURELY_RIGHT = re.compile(rb"(?:%b %b (?:%b|%b)(?: (%b))?+ \.\n)*+" % (_NODE, _IRI, _LITERAL, _NODE, _NODE))
"""N-Quads whose terms are right beyond doubt, as most are. One with angle brackets in IRIs may look like such. Group 1: a graph."""
_NUMBER = re.compile(rb' "(-?[0-9]\.[0-9]+E-?[0-9]{1,3})"\^\^<([^<>]*)>')
_BRACKET, _AS_ESCAPE = b">", b"\\u003"
"""A document of which an IRI may have an angle bracket has one of these."""
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

    def quads(self, document: bytes, source: str, line: int | None = None) -> list[Any]:
        """The statements of a document.

        DataError for a context that was not supplied, and beyond limits; PARSER_ERRORS of `turtle` for other input that cannot be
        read.
        """
        judge, quads = self._parsed(document, source, line)
        return judge.statements(quads)

    def statements(self, document: bytes, source: str, line: int | None, *, rename: bool = False) -> bytes | list[Any]:
        """As `quads`, or a text of N-Quads without named graphs. `rename`: its blank nodes are those of no other document."""
        judge, quads = self._parsed(document, source, line, rename=rename)
        in_a_graph = quads and quads[-1].graph_name != _DEFAULT_GRAPH
        text = None if in_a_graph else judge.text(quads, may_have_graphs=False)
        return judge.statements(quads) if text is None else text

    def _parsed(
        self, document: bytes, source: str, line: int | None, *, rename: bool = False
    ) -> tuple[Judge, list[Any]]:
        document = inlined(document, self.contexts, source, line)
        check_depth(document, "jsonld", source, line)
        judge = Judge(self.omissions)
        judge.look(document)
        return judge, at_most(self.parser(document, rename=rename), source, line)

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
        self._may_close = False

    def look(self, text: bytes) -> None:
        """See a part of the document, before its statements."""
        self._has_doubles = self._has_doubles or _MENTIONED in text
        self._may_close = self._may_close or _BRACKET in text or _AS_ESCAPE in text

    def watched(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks of a document, seen before they are parsed."""
        last = b""
        for chunk in chunks:
            self.look(last + chunk[: len(_MENTIONED)])
            self.look(chunk)
            last = chunk[-len(_MENTIONED) :]
            yield chunk

    def nquads(self, quads: list[Any]) -> bytes:
        """Those of the statements that RDF has, as a text."""
        text = self.text(quads)
        return _serialized(self.statements(quads)) if text is None else text

    def text(self, quads: list[Any], *, may_have_graphs: bool = True) -> bytes | None:
        """The statements as a text; None: they have to be judged one by one, or may have no graphs, and have some."""
        if self._may_close:
            return None
        text = _serialized(quads)
        right = _SURELY_RIGHT.fullmatch(text)
        if right is None or not (may_have_graphs or right[1] is None):
            return None
        return _NUMBER.sub(self._renumbered, text)

    def _renumbered(self, match: re.Match[bytes]) -> bytes:
        return _number_in_text(match[0], self._has_doubles)

    def statements(self, quads: Iterable[Any]) -> list[Any]:
        """Those of the statements that RDF has."""
        found, right = [], _RIGHT
        for quad in quads:
            subject, predicate, object_, graph = quad
            if predicate.value not in right and not self._is_right(predicate.value, _of_property):
                continue
            if not self._is_node(subject) or (graph != _DEFAULT_GRAPH and not self._is_node(graph)):
                continue
            if type(object_) is not pyoxigraph.Literal:
                if not self._is_node(object_):
                    continue
            else:
                datatype = object_.datatype.value
                if datatype not in right or datatype in _TAGGED:
                    if not self._is_literal(object_, datatype):
                        continue
                    quad = self._undirected(quad)
                if datatype in _NUMERIC and _CANONICAL.fullmatch(object_.value) is not None:
                    number = _number_of(object_.value, datatype, self._has_doubles)
                    quad = pyoxigraph.Quad(subject, predicate, number, graph)
            found.append(quad)
        return found

    def _is_node(self, term: Any) -> bool:
        text = term.value
        if type(term) is pyoxigraph.NamedNode:
            return text in _RIGHT or self._is_right(text, _of_node)
        if _LABEL.fullmatch(text):
            return True
        try:
            pyoxigraph.BlankNode(text)
        except ValueError:
            self._omissions.left_out(f"{_shown('_:' + text)} is no blank node: what has it is left out")
            return False
        return True

    def _undirected(self, quad: Any) -> Any:
        """The statement without the direction of its text."""
        if quad.object.direction is None:
            return quad
        self._omissions.left_out(_DIRECTED)
        text = pyoxigraph.Literal(quad.object.value, language=quad.object.language)
        return pyoxigraph.Quad(quad.subject, quad.predicate, text, quad.graph_name)

    def _is_literal(self, literal: Any, datatype: str) -> bool:
        tag = literal.language
        if tag is None and datatype in _TAGGED:
            self._omissions.left_out(f"texts of the type {_shown(datatype)} without a language are left out")
            return False
        if tag is None:
            return self._is_right(datatype, _of_datatype)
        if tag in _RIGHT:
            return True
        if not is_tag(tag):
            self._omissions.left_out(
                f'{_shown(tag)} is no language tag, such as "en" or "de-AT": texts that have it are left out'
            )
            return False
        _remember(tag)
        return True

    def _is_right(self, iri: str, message: Callable[[str], str]) -> bool:
        try:
            pyoxigraph.NamedNode(iri)
        except ValueError:
            self._omissions.left_out(message(iri))
            return False
        _remember(iri)
        return True


def _serialized(quads: list[Any]) -> bytes:
    return cast(bytes, pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.N_QUADS))


def _remember(text: str) -> None:
    if len(_RIGHT) >= _MOST_REMEMBERED:
        _RIGHT.clear()
    _RIGHT.add(text)


@lru_cache(maxsize=1 << 12)
def _number_of(text: str, datatype: str, has_doubles: bool) -> Any:
    """A number in the library's text as a literal of the datatype, one of _NUMERIC.

    `has_doubles`: the document may ask for doubles. In one that does not, an integer from 10^20 on is a double of the library.

    >>> _number_of("2.15E1", XSD + "decimal", False).value, _number_of("1.0E0", XSD + "double", True).value
    ('21.5', '1')
    """
    if datatype in _FLOATS:
        if not (text.endswith(_MISTAKEN) and datatype == _DOUBLE and not has_doubles and "." not in _plain(text)):
            return pyoxigraph.Literal(double_text(float(text)), datatype=pyoxigraph.NamedNode(datatype))
        datatype = XSD + "integer"
    return pyoxigraph.Literal(_plain(text), datatype=pyoxigraph.NamedNode(datatype))


@lru_cache(maxsize=1 << 12)
def _number_in_text(found: bytes, has_doubles: bool) -> bytes:
    """A match of _NUMBER as it is written."""
    text, datatype = found.decode()[2:-1].split('"^^<')
    return b" %b" % str(_number_of(text, datatype, has_doubles)).encode() if datatype in _NUMERIC else found


def _plain(number: str) -> str:
    """All digits of a number, without an exponent."""
    text = format(Decimal(number), "f")
    return text.rstrip("0").removesuffix(".") if "." in text else text


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
