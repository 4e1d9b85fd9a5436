"""Jelly: RDF in binary frames.

Where the stream's logical type is grouped a frame is an element; otherwise elements are those of N-Quads or N-Triples. Those of
N-Quads are also those of named graphs with timestamps, as their times are in the default graph.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

import pyoxigraph

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, MissingExtra
from cqels_py.formats.lines import Malformed
from cqels_py.formats.ndjson import DocumentReader
from cqels_py.formats.ntriples import ElementReader, Reading
from cqels_py.formats.turtle import to_nquads
from cqels_py.kernels.text.tokenizer import BY_GRAPH, BY_SUBJECT

MOST_BYTES: Final = 64 << 20
"""The longest frame that is read."""
_DEFAULT = pyoxigraph.DefaultGraph()


def jelly_elements(
    chunks: Iterator[bytes], dictionary: Dictionary, reading: Reading, malformed: Malformed
) -> Iterator[ElementBatch]:
    """The elements of a stream of frames. DataError for bytes that are no Jelly, after the elements before it.

    Of a grouped stream each frame is a document, whose named graphs are an element each, or all of it is one. In flat streams, and
    in those of named graphs with timestamps, quads are grouped by graph, and triples by subject. MissingExtra where pyjelly is
    missing.
    """
    try:
        jelly, parse = import_module("pyjelly.jelly"), import_module("pyjelly.integrations.generic.parse")
    except ImportError:
        raise MissingExtra(f"{reading.source} needs the package pyjelly: pip install 'cqels_py[jelly]'") from None
    return _elements(parse, jelly, chunks, dictionary, replace(reading, numbered=False), malformed)


def _elements(
    parse: Any, jelly: Any, chunks: Iterator[bytes], dictionary: Dictionary, reading: Reading, malformed: Malformed
) -> Iterator[ElementBatch]:
    file = _Chunks(chunks)
    stream = _Frames(file)
    try:
        first = stream.read(1)
        if not first and file.error is None:
            # An empty file has no elements, as in other formats.
            return
        stream.seek(-len(first), io.SEEK_CUR)
        options, frames = parse.get_options_and_frames(stream)
    except Exception as error:
        raise file.error or _unreadable(error, reading) from None
    kinds = options.stream_types
    of_triples = kinds.physical_type == jelly.PHYSICAL_STREAM_TYPE_TRIPLES
    read = parse.parse_triples_stream if of_triples else parse.parse_quads_stream
    quads = _frames(read(frames=frames, options=options), file, reading)
    timestamped = kinds.logical_type == jelly.LOGICAL_STREAM_TYPE_TIMESTAMPED_NAMED_GRAPHS
    if timestamped:
        # The time may stand behind its graph.
        quads = (sorted(frame, key=_in_named_graph) for frame in quads)
    elif kinds.logical_type != jelly.LOGICAL_STREAM_TYPE_UNSPECIFIED and not kinds.flat:
        numbered = ((number, frame) for number, frame in enumerate(quads, 1) if frame)
        yield from DocumentReader(dictionary, replace(reading, numbered=True), malformed).read(numbered)
        return
    by = BY_SUBJECT if of_triples else BY_GRAPH
    texts = ((to_nquads(frame), 0) for frame in quads if frame)
    how = replace(reading, form=by, graphs=reading.graphs and by == BY_GRAPH)
    yield from ElementReader(dictionary, how, malformed).read(texts, line_step=0)


def _in_named_graph(quad: Any) -> bool:
    return bool(quad.graph_name != _DEFAULT)


def _frames(frames: Iterator[Any], file: _Chunks, reading: Reading) -> Iterator[list[Any]]:
    """The statements of each frame. What the library raises for damaged input is told as DataError."""
    number = 0
    while True:
        number += 1
        try:
            frame = next(frames, None)
            found = None if frame is None else [_quad(each) for each in frame if type(each).__name__ != "Prefix"]
        except Exception as error:
            # Those of the library and of protobuf, which have no class in common.
            raise file.error or _unreadable(error, reading, number) from None
        if found is None:
            if file.error is not None:
                raise file.error
            return
        yield found


def _unreadable(error: Exception, reading: Reading, frame: int = 1) -> DataError:
    said = " ".join(str(error).split()) or type(error).__name__
    return DataError(f"{reading.source}: frame {frame} is not valid Jelly: {said}")


def _quad(statement: Any) -> Any:
    """A statement of pyjelly, of three or four terms."""
    subject, predicate, object_, *graph = statement
    name = _graph(graph[0]) if graph else _DEFAULT
    return pyoxigraph.Quad(_term(subject), _term(predicate), _term(object_), name)


def _graph(term: Any) -> Any:
    return _term(term) if type(term).__name__ in ("IRI", "BlankNode") else _DEFAULT


def _term(term: Any) -> Any:
    match type(term).__name__:
        case "IRI":
            return pyoxigraph.NamedNode(str(term._iri))
        case "BlankNode":
            return pyoxigraph.BlankNode(str(term._identifier))
        case "Literal":
            if term._langtag:
                return pyoxigraph.Literal(term._lex, language=term._langtag)
            datatype = pyoxigraph.NamedNode(term._datatype) if term._datatype else None
            return pyoxigraph.Literal(term._lex, datatype=datatype)
    raise ValueError("a term is a triple itself, which is not supported")


class _Frames:
    """A file of which no frame is too long, and in which the library can go back by the bytes that it has read last."""

    def __init__(self, file: io.RawIOBase) -> None:
        self._file = io.BufferedReader(file)
        self._last = self._again = b""

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        assert whence == io.SEEK_CUR
        assert -len(self._last) <= offset <= 0
        self._again = self._last[len(self._last) + offset :] + self._again
        return 0

    def read(self, size: int = -1, /) -> bytes:
        """All that is left, if no size is given: a file may be a single frame without its length."""
        most = MOST_BYTES + 1 if size < 0 else size
        if size > MOST_BYTES:
            raise _too_long()
        again, self._again = self._again[:most], self._again[most:]
        self._last = again + self._file.read(most - len(again))
        if len(self._last) > MOST_BYTES:
            raise _too_long()
        return self._last


def _too_long() -> ValueError:
    return ValueError(f"it is longer than {MOST_BYTES >> 20} MiB")


class _Chunks(io.RawIOBase):
    """Chunks as a file. An error of theirs ends the data, and is kept."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")
        self.error: DataError | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        into = memoryview(buffer)
        while not self._rest:
            try:
                found = next(self._chunks, None)
            except DataError as error:
                self.error, found = error, None
            if found is None:
                return 0
            self._rest = memoryview(found)
        size = min(len(into), len(self._rest))
        into[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
