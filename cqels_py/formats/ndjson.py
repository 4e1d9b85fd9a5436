"""Streams of JSON-LD: each line is an object, and an element.

The element's time is the value of the time predicate, or of prov:generatedAtTime if none is given, in the object. An
object with "@graph" and "@id" is a named graph: its own property gives the time, and its other properties are in the
default graph. Where several named graphs of a line have times of their own, each is an element; otherwise each keeps its triples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import pyoxigraph

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, Place
from cqels_py.formats.depth import check_depth
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.lines import Malformed
from cqels_py.formats.ntriples import TIME_OF_LINE, ElementReader, Reading
from cqels_py.formats.times import GENERATED_AT
from cqels_py.formats.turtle import PARSER_ERRORS, BlankNames, json_error, to_nquads
from cqels_py.kernels.text.tokenizer import BY_GRAPH, BY_LINE

Statements: TypeAlias = bytes | list[Any]
"""Those of a document: as a text of N-Quads where none is of a named graph, or as quads."""
NO_ARRIVALS: Final[Mapping[int, int]] = MappingProxyType({})
_DEFAULT = pyoxigraph.DefaultGraph()
_TIME_OF_LINE = pyoxigraph.NamedNode(TIME_OF_LINE[1:-1])


def json_elements(
    blocks: Iterable[tuple[bytes, int]],
    dictionary: Dictionary,
    reading: Reading,
    malformed: Malformed,
    json_ld: JsonLd,
    context: bytes | None = None,
) -> Iterator[ElementBatch]:
    """The elements of blocks of whole lines. Each line is a document with blank nodes of its own.

    `context`: a JSON value that is the context of all lines, which then have none.
    """
    documents = _documents(blocks, reading.source, malformed, json_ld, context=context)
    return DocumentReader(dictionary, reading, malformed).read(documents)


class DocumentReader:
    """Makes an element of each document, or one of each named graph in it, as `_Document` says."""

    def __init__(self, dictionary: Dictionary, reading: Reading, malformed: Malformed) -> None:
        self._predicate = reading.time_predicate or GENERATED_AT
        self._has_time = re.compile(rb"^\S+ %b " % re.escape(self._predicate.encode()), re.MULTILINE).search
        self._source = reading.source
        self._malformed = malformed
        self._omissions = reading.omissions
        reading = replace(reading, form=BY_LINE, time_predicate=self._predicate, per_element=True)
        self._reader = ElementReader(dictionary, reading, malformed)

    def read(
        self, documents: Iterable[tuple[int, Statements | None]], arrivals: Mapping[int, int] = NO_ARRIVALS
    ) -> Iterator[ElementBatch]:
        """The elements of documents, parsed and with their numbers; an empty batch where there is None.

        `arrivals`: times, by number, of those that have none.
        """
        return self._reader.read(self._as_nquads(documents, arrivals), line_step=0)

    def _as_nquads(
        self, documents: Iterable[tuple[int, Statements | None]], arrivals: Mapping[int, int]
    ) -> Iterator[tuple[bytes, int]]:
        """Each document as N-Quads, preceded by its time if the time stands beside its graphs, or is that of its arrival.

        The reader is told how it forms elements. It is empty where there is no document for now.
        """
        time = pyoxigraph.NamedNode(self._predicate[1:-1])
        names = BlankNames()
        for number, quads in documents:
            if quads is None:
                yield b"", number
                continue
            if not quads:
                self._omissions.empty()
                continue
            if isinstance(quads, bytes):
                self._reader.read_by(BY_LINE)
                yield names.rename(self._arrived(quads, arrivals.get(number))), number
                continue
            document = _Document(quads, time)
            if not document.inside:
                self._omissions.empty()
                continue
            if document.has_two_times:
                error = DataError("the object has two different times", Place(number, None, self._source))
                self._malformed(error.about(to_nquads(quads).decode()))
                continue
            self._reader.read_by(BY_GRAPH if document.is_divided else BY_LINE)
            yield names.rename(to_nquads(document.statements(arrivals.get(number)))), number

    def _arrived(self, text: bytes, arrival: int | None) -> bytes:
        """Statements preceded by the time of their arrival if they have none."""
        if arrival is None or self._has_time(text):
            return text
        return to_nquads([_time_of_line(_TIME_OF_LINE, _literal(arrival))]) + text


class _Document:
    """The statements of a document, and the elements that they form.

    Each of its named graphs is an element where two or more have times of their own: beside them, as subjects, or inside. Otherwise
    the document is an element. `inside`: its statements without the times beside named graphs.
    """

    def __init__(self, quads: list[Any], time: Any) -> None:
        self._time = time
        self._graphs = [graph for graph in dict.fromkeys(quad.graph_name for quad in quads) if graph != _DEFAULT]
        names = set(self._graphs)
        self._beside = list[Any]()
        self.inside = list[Any]()
        self._timed = set[Any]()
        for quad in quads:
            if quad.predicate != time:
                self.inside.append(quad)
            elif quad.graph_name != _DEFAULT:
                self.inside.append(quad)
                self._timed.add(quad.graph_name)
            elif quad.subject in names:
                self._beside.append(quad)
                self._timed.add(quad.subject)
            else:
                self.inside.append(quad)

    @property
    def is_divided(self) -> bool:
        return len(self._timed) > 1

    @property
    def has_two_times(self) -> bool:
        """Are there two times beside the same graph?"""
        return len({(q.subject, q.object) for q in self._beside}) > len({q.subject for q in self._beside})

    def statements(self, arrival: int | None) -> list[Any]:
        """The statements with their times, in the order in which they are read. `arrival`: the time of elements that have none."""
        beside = self._beside
        if self.is_divided:
            if arrival is not None:
                untimed = [graph for graph in self._graphs if graph not in self._timed]
                beside = beside + [pyoxigraph.Quad(graph, self._time, _literal(arrival)) for graph in untimed]
            # A graph stands in one place, behind all that is said of it.
            place = {graph: number for number, graph in enumerate([_DEFAULT, *self._graphs])}
            return beside + sorted(self.inside, key=lambda quad: place[quad.graph_name])
        times = [_time_of_line(quad.subject, quad.object) for quad in beside[:1]]
        if not times and arrival is not None and all(quad.predicate != self._time for quad in self.inside):
            times = [_time_of_line(_TIME_OF_LINE, _literal(arrival))]
        return times + self.inside


def _time_of_line(subject: Any, time: Any) -> Any:
    return pyoxigraph.Quad(subject, _TIME_OF_LINE, time)


def _literal(number: int) -> Any:
    return pyoxigraph.Literal(number)


def json_statements(
    blocks: Iterable[tuple[bytes, int]], source: str, malformed: Malformed, json_ld: JsonLd
) -> Iterator[tuple[bytes, int]]:
    """All lines as N-Quads, with their numbers. Each line has blank nodes of its own."""
    names = BlankNames()
    for number, quads in _documents(blocks, source, malformed, json_ld, rename=True):
        if quads is not None:
            yield names.rename(quads if isinstance(quads, bytes) else to_nquads(quads)), number


def _documents(
    blocks: Iterable[tuple[bytes, int]],
    source: str,
    malformed: Malformed,
    json_ld: JsonLd,
    *,
    rename: bool = False,
    context: bytes | None = None,
) -> Iterator[tuple[int, Statements | None]]:
    """The non-empty lines, parsed; None where a block is empty: nothing comes for now.

    `rename`: make the blank nodes of different lines distinct. `context`: of all lines.
    """
    for text, first in blocks:
        if not text:
            yield first, None
            continue
        for number, line in enumerate(text.split(b"\n"), first):
            if not line.strip():
                continue
            try:
                whole = line if context is None else within_context(context, line, source, number)
                quads = json_ld.statements(whole, source, number, rename=rename)
            except DataError as error:
                malformed(error.about(line.decode()))
            except PARSER_ERRORS as error:
                malformed(json_error(error, line, source, number).about(line.decode()))
            else:
                yield number, quads


def within_context(context: bytes, line: bytes, source: str, number: int) -> bytes:
    """An object with the context; text that is no JSON as it is, for the parser to report. DataError for other JSON."""
    check_depth(line, "json", source, number)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(found, dict):
        raise DataError(
            'expected one JSON object a line, such as {"sensor": "s1", "value": 21.5}', Place(number, 1, source)
        )
    if "@context" in found:
        raise DataError(
            "the object has a context of its own: read this source without a map", Place(number, None, source)
        )
    members = line.lstrip()[1:]
    return b'{"@context": %b%b%b' % (context, b", " if found else b"", members)
