"""Jelly: RDF in binary frames.

Where the stream's logical type is grouped a frame is an element; otherwise elements are those of N-Quads or N-Triples. Those of
N-Quads are also those of named graphs with timestamps, as their times are in the default graph.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

import pyoxigraph

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, MissingExtra
from cqels_py.formats.depth import at_most
from cqels_py.formats.lines import Malformed
from cqels_py.formats.ndjson import DocumentReader
from cqels_py.formats.ntriples import ElementReader, Reading
from cqels_py.formats.turtle import graphs_last, to_nquads
from cqels_py.kernels.text.tokenizer import BY_GRAPH, BY_SUBJECT

MOST_BYTES: Final = 64 << 20
"""The longest frame that is read."""
DOCUMENTS, TRIPLES, QUADS = "documents", "nt", "nq"
"""Kinds of streams; flat ones by the format of lines that has the same elements."""
_DEFAULT = pyoxigraph.DefaultGraph()
_NODES = ("IRI", "BlankNode")


def jelly_elements(
    chunks: Iterator[bytes], dictionary: Dictionary, reading: Reading, malformed: Malformed
) -> Iterator[ElementBatch]:
    """The elements of a stream of frames. DataError for bytes that are no Jelly, after the elements before it.

    Of a grouped stream each frame is a document, whose named graphs are an element each, or all of it is one. In flat streams, and
    in those of named graphs with timestamps, quads are grouped by graph, and triples by subject. MissingExtra where pyjelly is
    missing.
    """
    require_pyjelly(reading.source)
    return _elements(chunks, dictionary, replace(reading, numbered=False), malformed)


def _elements(
    chunks: Iterator[bytes], dictionary: Dictionary, reading: Reading, malformed: Malformed
) -> Iterator[ElementBatch]:
    stream = _stream(chunks, reading.source)
    if stream is None:
        return
    if stream.kind == DOCUMENTS:
        numbered = ((number, frame) for number, frame in enumerate(stream.frames, 1) if frame)
        yield from DocumentReader(dictionary, replace(reading, numbered=True), malformed).read(numbered)
        return
    by = BY_SUBJECT if stream.kind == TRIPLES else BY_GRAPH
    texts = ((to_nquads(frame), 0) for frame in stream.frames if frame)
    how = replace(reading, form=by, graphs=reading.graphs and by == BY_GRAPH)
    yield from ElementReader(dictionary, how, malformed).read(texts, line_step=0)


def jelly_texts(chunks: Iterator[bytes], source: str) -> Iterator[tuple[str, bytes]]:
    """Frames as N-Quads, each with the stream's kind: DOCUMENTS (also of named graphs with timestamps), TRIPLES or QUADS.

    Errors as of `jelly_elements`.
    """
    require_pyjelly(source)
    stream = _stream(chunks, source)
    if stream is not None:
        kind = DOCUMENTS if stream.timestamped else stream.kind
        yield from ((kind, to_nquads(frame)) for frame in stream.frames if frame)


def jelly_documents(body: bytes, source: str) -> list[list[Any]]:
    """The statements of a message: of each frame where the stream is grouped, else of all. Errors as of `jelly_elements`."""
    require_pyjelly(source)
    stream = _stream(iter((body,)), source)
    frames = [] if stream is None else [frame for frame in stream.frames if frame]
    if stream is not None and (stream.timestamped or stream.kind == DOCUMENTS):
        return frames
    return [[quad for frame in frames for quad in frame]]


def require_pyjelly(use: str) -> None:
    """MissingExtra where pyjelly is missing. `use`: the feature that needs it."""
    try:
        import_module("pyjelly.jelly")
    except ImportError:
        raise MissingExtra(f"{use} needs the package pyjelly: pip install 'cqels_py[jelly]'") from None


@dataclass(frozen=True, slots=True)
class _Stream:
    """`kind`: each frame is a document, or they go on with triples, or quads. `frames`: their statements.

    `timestamped`: quads whose frames are named graphs with their times.
    """

    kind: str
    timestamped: bool
    frames: Iterator[list[Any]]


def _stream(chunks: Iterator[bytes], source: str) -> _Stream | None:
    """The stream in these bytes; None if there are none, which is no error, as in other formats."""
    jelly, parse = import_module("pyjelly.jelly"), import_module("pyjelly.integrations.generic.parse")
    file = _Chunks(chunks)
    stream = _Frames(file)
    try:
        first = stream.read(1)
        if not first and file.error is None:
            return None
        stream.seek(-len(first), io.SEEK_CUR)
        options, frames = parse.get_options_and_frames(stream)
    except Exception as error:
        raise file.error or _unreadable(error, source) from None
    kinds = options.stream_types
    of_triples = kinds.physical_type == jelly.PHYSICAL_STREAM_TYPE_TRIPLES
    read = parse.parse_triples_stream if of_triples else parse.parse_quads_stream
    quads = _frames(read(frames=frames, options=options), file, source)
    timestamped = kinds.logical_type == jelly.LOGICAL_STREAM_TYPE_TIMESTAMPED_NAMED_GRAPHS
    if timestamped:
        # The time may stand behind its graph.
        quads = map(graphs_last, quads)
    elif kinds.logical_type != jelly.LOGICAL_STREAM_TYPE_UNSPECIFIED and not kinds.flat:
        return _Stream(DOCUMENTS, False, quads)
    return _Stream(TRIPLES if of_triples else QUADS, timestamped, quads)


def _frames(frames: Iterator[Any], file: _Chunks, source: str) -> Iterator[list[Any]]:
    """The statements of each frame. The library's exceptions for damaged input become a DataError."""
    number = 0
    while True:
        number += 1
        try:
            frame = next(frames, None)
            found = None if frame is None else at_most(_quads(frame))
        except DataError as error:
            raise DataError(f"{source}: frame {number}: {error.message}") from None
        except Exception as error:
            # Those of the library and of protobuf, which have no class in common.
            raise file.error or _unreadable(error, source, number) from None
        if found is None:
            if file.error is not None:
                raise file.error
            return
        yield found


def _quads(frame: Iterable[Any]) -> Iterator[Any]:
    return (_quad(each) for each in frame if type(each).__name__ != "Prefix")


def _unreadable(error: Exception, source: str, frame: int = 1) -> DataError:
    said = " ".join(str(error).split()) or type(error).__name__
    return DataError(f"{source}: frame {frame} is not valid Jelly: {said}")


def _quad(statement: Any) -> Any:
    """A statement of pyjelly, of three or four terms."""
    subject, predicate, object_, *graph = statement
    name = _graph(graph[0]) if graph else _DEFAULT
    try:
        return pyoxigraph.Quad(_term(subject), _term(predicate), _term(object_), name)
    except TypeError:
        place, term = ("predicate", predicate) if type(subject).__name__ in _NODES else ("subject", subject)
        raise _generalized(place, term) from None


def _graph(term: Any) -> Any:
    if type(term).__name__ in _NODES:
        return _term(term)
    if type(term).__name__ == "Literal":
        raise _generalized("graph", term)
    return _DEFAULT


def _generalized(place: str, term: Any) -> ValueError:
    return ValueError(
        f"the {place} of a statement is {term}: generalized statements are not supported; a subject and a graph are IRIs or blank "
        "nodes, and a predicate is an IRI"
    )


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
    raise ValueError("a term is a triple itself, of RDF 1.2, which is not supported yet")


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
