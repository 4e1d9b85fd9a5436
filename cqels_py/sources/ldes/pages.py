"""A page of a Linked Data Event Stream: its members, and the promises of its relations about other pages.

Of TREE the subset is read that orders pages by time: relations greater or less than a time, equal to it or in a part of time, on
the stream's `ldes:timestampPath`. Others say only that there is a page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias
from urllib.parse import urldefrag

import pyoxigraph

from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, QueryError, RunError
from cqels_py.formats.endings import ENDINGS
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.ntriples import StatementCheck
from cqels_py.formats.times import NO_TIME, time_of_text
from cqels_py.formats.turtle import PARSER_ERRORS, json_error, statements_of, syntax_error, turtle_quads, xml_nquads
from cqels_py.parser.times import duration_of
from cqels_py.sources.ldes.bounds import FIRST, LAST, TREE, bounds

_LDES = "https://w3id.org/ldes#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_FORMATS: Final = {
    "application/n-quads": "nq",
    "application/n-triples": "nt",
    "application/trig": "trig",
    "text/turtle": "ttl",
    "application/ld+json": "jsonld",
    "application/json": "jsonld",
    "application/rdf+xml": "rdf",
}
_BY_ENDING: Final = {
    "nq": "application/n-quads",
    "nt": "application/n-triples",
    "trig": "application/trig",
    "ttl": "text/turtle",
    "jsonld": "application/ld+json",
    "json": "application/ld+json",
    "rdf": "application/rdf+xml",
}
_UNTOLD: Final = ("", "application/octet-stream", "text/plain")
"""Content types that say nothing: those of servers of files that do not know the ending."""
ACCEPT: Final = "application/trig, application/n-quads;q=0.9, text/turtle;q=0.8, application/ld+json;q=0.7, */*;q=0.1"

_MOST_STEPS: Final = 10_000
"""The length of the longest RDF list, and the number of predicates of the longest path."""

Path: TypeAlias = tuple[str, ...]
"""A property, or several in sequence."""
Triple: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Relation:
    """A page `url`, and its members' times, from `low` to `high`, both included; FIRST and LAST where there is no promise."""

    url: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Member:
    """A member: its IRI, its triples in N-Triples syntax, and its time in microseconds."""

    iri: str
    triples: tuple[Triple, ...]
    time: int


@dataclass(frozen=True, slots=True)
class Page:
    """The content of a page. `wrong`: members that cannot be read, by IRI. `path`: to the times of members. `keeps`: µs for
    which the server keeps members, if it says so.
    """

    members: tuple[Member, ...]
    wrong: Mapping[str, DataError]
    relations: tuple[Relation, ...]
    views: tuple[str, ...]
    immutable: bool
    path: Path | None
    keeps: int | None


def media_type(kind: str, url: str) -> str:
    """The media type of a page, by its content type, or by its ending where that says nothing. RunError for one that is not read."""
    found = kind.partition(";")[0].strip().lower()
    if found in _UNTOLD:
        ending = "." + urldefrag(url).url.partition("?")[0].rpartition(".")[2].lower()
        found = _BY_ENDING.get(ENDINGS.get(ending, ""), found)
    if found not in _FORMATS:
        raise RunError(f"{url} answers with {found or 'no content type'}; pages are read in {', '.join(_FORMATS)}")
    return found


def read_page(body: bytes, kind: str, url: str, json_ld: JsonLd, path: Path | None) -> Page:
    """The page of this media type from `url`. `path`: to the times, if it is known; otherwise the page has to say it, if it has
    members. DataError for a text that is not of the type, RunError for a stream without times.
    """
    return _Reading(_parsed(body, kind, url, json_ld), url).page(path)


def _parsed(body: bytes, kind: str, url: str, json_ld: JsonLd) -> list[Any]:
    form = _FORMATS[kind]
    is_json = form == "jsonld"
    try:
        if is_json:
            return replace(json_ld, base=url).quads(body, url, 1)
        if form == "rdf":
            body, form = xml_nquads(body, url, url), "nq"
        if form in ("nq", "nt"):
            StatementCheck(Dictionary(), form == "nq", url).check(body)
            return statements_of(body, form, url, lenient=True)
        return turtle_quads(body, form, url, url)
    except PARSER_ERRORS as error:
        raise (json_error(error, body, url) if is_json else syntax_error(error, url)) from None


class _Reading:
    """The statements of a page, by subject and by graph."""

    def __init__(self, quads: list[Any], url: str) -> None:
        self._url = url
        self._of: defaultdict[Any, list[Any]] = defaultdict(list)
        self._in_graph: defaultdict[Any, list[Any]] = defaultdict(list)
        self._by_predicate: defaultdict[str, list[Any]] = defaultdict(list)
        for quad in quads:
            if isinstance(quad.graph_name, pyoxigraph.DefaultGraph):
                self._of[quad.subject].append(quad)
                self._by_predicate[quad.predicate.value].append(quad)
            else:
                self._in_graph[quad.graph_name].append(quad)

    def page(self, path: Path | None) -> Page:
        names = list(dict.fromkeys(quad.object for quad in self._by_predicate[TREE + "member"]))
        path = path or self._timestamp_path()
        if path is None and names:
            raise RunError(
                f"{self._url}: the stream does not say where its members have their times (ldes:timestampPath): name the property "
                "as time predicate"
            )
        members, wrong = [], {}
        for name in names:
            found = self._member(name, path or ())
            if isinstance(found, Member):
                members.append(found)
            else:
                wrong[_text(name)] = found
        return Page(
            tuple(members),
            wrong,
            tuple(self._relations(path)),
            tuple(dict.fromkeys(_page_url(quad.object) for quad in self._by_predicate[TREE + "view"])),
            any(
                self._is_here(quad.subject) and quad.object.value == "true"
                for quad in self._by_predicate[_LDES + "immutable"]
            ),
            path,
            self._keeps(),
        )

    def _objects(self, subject: Any, predicate: str) -> list[Any]:
        return [quad.object for quad in self._of.get(subject, ()) if quad.predicate.value == predicate]

    def _one(self, subject: Any, predicate: str) -> Any:
        return next(iter(self._objects(subject, predicate)), None)

    def _timestamp_path(self) -> Path | None:
        found = {self._path(quad.object) for quad in self._by_predicate[_LDES + "timestampPath"]}
        if len(found) > 1 or None in found:
            raise RunError(
                f"{self._url}: ldes:timestampPath is one property, or a list of such; name the property as time predicate"
            )
        return next(iter(found), None)

    def _path(self, node: Any) -> Path | None:
        """A property, or a list of properties; None for another path."""
        if isinstance(node, pyoxigraph.NamedNode):
            return (node.value,)
        steps: list[str] = []
        while node is not None and len(steps) < _MOST_STEPS:
            if isinstance(node, pyoxigraph.NamedNode) and node.value == _RDF + "nil":
                return tuple(steps)
            step, node = self._one(node, _RDF + "first"), self._one(node, _RDF + "rest")
            if not isinstance(step, pyoxigraph.NamedNode):
                return None
            steps.append(step.value)
        return None

    # --- members ------------------------------------------------------------------------------------------------------

    def _member(self, name: Any, path: Path) -> Member | DataError:
        quads = self._description(name)
        if not quads:
            return DataError(f"{self._url}: the page has no triples of its member {_text(name)}")
        values = {name}
        for step in path:
            values = {quad.object for quad in quads if quad.subject in values and quad.predicate.value == step}
        times = {time_of_text(value.value) if isinstance(value, pyoxigraph.Literal) else NO_TIME for value in values}
        if len(times) != 1 or NO_TIME in times:
            found = ", ".join(sorted(map(str, values))) or "none"
            return DataError(
                f"{self._url}: the member {_text(name)} needs one time at {' / '.join(path)}, and has {found}"
            )
        return Member(_text(name), tuple(_texts(quads)), times.pop())

    def _description(self, name: Any) -> list[Any]:
        """The triples of the member, and of blank nodes in them; those of the graph that has its name."""
        found: list[Any] = []
        waiting, known = [name], {name}
        while waiting:
            for quad in self._of.get(waiting.pop(), ()):
                found.append(quad)
                if isinstance(quad.object, pyoxigraph.BlankNode) and quad.object not in known:
                    known.add(quad.object)
                    waiting.append(quad.object)
        return found + self._in_graph.get(name, [])

    # --- pages --------------------------------------------------------------------------------------------------------

    def _is_here(self, node: Any) -> bool:
        return isinstance(node, pyoxigraph.NamedNode) and _page_url(node) == urldefrag(self._url).url

    def _relations(self, path: Path | None) -> Iterator[Relation]:
        """The pages that follow from this one. A server behind another name calls its page by its own."""
        stated = self._by_predicate[TREE + "relation"]
        found: dict[str, tuple[int, int]] = {}
        for quad in [quad for quad in stated if self._is_here(quad.subject)] or stated:
            for node in self._objects(quad.object, TREE + "node"):
                if isinstance(node, pyoxigraph.NamedNode):
                    low, high = self._bounds(quad.object, path)
                    known = found.get(_page_url(node), (FIRST, LAST))
                    found[_page_url(node)] = max(low, known[0]), min(high, known[1])
        for url, (low, high) in found.items():
            yield Relation(url, low, high)

    def _bounds(self, relation: Any, path: Path | None) -> tuple[int, int]:
        """The times of its members; no bounds where it is of another path."""
        paths = {self._path(of) for of in self._objects(relation, TREE + "path")}
        values = self._objects(relation, TREE + "value")
        if path is None or paths != {path} or not all(isinstance(value, pyoxigraph.Literal) for value in values):
            return FIRST, LAST
        return bounds({kind.value for kind in self._objects(relation, _RDF + "type")}, values)

    def _keeps(self) -> int | None:
        """The duration of the retention policy that is for all members; None if there is none, or another policy."""
        for quad in self._by_predicate[_LDES + "retentionPolicy"]:
            kind, value = self._one(quad.object, _RDF + "type"), self._one(quad.object, TREE + "value")
            if kind is not None and kind.value == _LDES + "DurationAgoPolicy" and value is not None:
                try:
                    return duration_of(value.value)
                except QueryError:
                    # Years and months have no length of their own.
                    return None
        return None


def _page_url(node: Any) -> str:
    return urldefrag(str(node.value)).url


def _text(node: Any) -> str:
    return str(node)


def _texts(quads: list[Any]) -> Iterator[Triple]:
    """The triples as texts. The library's labels of blank nodes are random: here they are numbered as they appear."""
    labels: dict[Any, str] = {}
    for quad in dict.fromkeys((quad.subject, quad.predicate, quad.object) for quad in quads):
        subject, predicate, object_ = (
            labels.setdefault(term, f"_:b{len(labels)}") if isinstance(term, pyoxigraph.BlankNode) else str(term)
            for term in quad
        )
        yield subject, predicate, object_
