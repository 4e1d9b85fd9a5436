"""Results of CONSTRUCT as Jelly, RDF in binary frames: a frame for each tick, which is a timestamped named graph."""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib import import_module
from typing import IO, Any, Final, cast

import pyoxigraph

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.formats.construction import Template
from cqels_py.formats.graphs import GraphSink
from cqels_py.formats.jelly import require_pyjelly
from cqels_py.formats.rendering import TextOutput

_DEFAULT: Final = pyoxigraph.DefaultGraph()


class JellySink(TextOutput):
    """Jelly of the logical type TIMESTAMPED_NAMED_GRAPHS, whose frames hold the quads that N-Quads has as lines: the triple
    `<graph> prov:generatedAtTime "…"` in the default graph, then those of the graph.

    `file`: binary, or a text file above a binary one. UsageError for a file in memory that takes text only, MissingExtra where
    pyjelly is missing.
    """

    STATE = ("_lines", "_frames")

    def __init__(self, file: IO[str] | IO[bytes], dictionary: Dictionary, template: Template) -> None:
        super().__init__(cast(IO[str], file))
        self._frames = JellyFrames(_binary(file))
        self._bytes = io.BytesIO()
        self._lines = GraphSink(io.TextIOWrapper(self._bytes, encoding="utf-8"), dictionary, "nquads", template)

    def write(self, batch: ResultBatch) -> None:
        """Write a frame for each tick."""
        self._lines.write(batch)
        text = self._bytes.getvalue()
        self._bytes.seek(0)
        self._bytes.truncate()
        # The terms are those that the dictionary has accepted.
        for graph in _graphs(pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.N_QUADS, lenient=True)):
            self._frames.write(graph)


def _binary(file: IO[str] | IO[bytes]) -> IO[bytes]:
    if not isinstance(file, io.TextIOBase):
        return cast(IO[bytes], file)
    buffer = getattr(file, "buffer", None)
    if buffer is None:
        raise UsageError('jelly is binary, and this file takes text only: give a file such as open("out.jelly", "wb")')
    return cast(IO[bytes], buffer)


def _graphs(quads: Iterator[Any]) -> Iterator[list[Any]]:
    """The quads of each graph, the first of which is its time, in the default graph."""
    graph: list[Any] = []
    for quad in quads:
        if graph and quad.graph_name == _DEFAULT:
            yield graph
            graph = []
        graph.append(quad)
    if graph:
        yield graph


class JellyFrames:
    """A stream of frames, which refer to the terms of those before them. `tables`: to these terms, as plain data."""

    STATE = ("tables",)

    def __init__(self, file: IO[bytes]) -> None:
        require_pyjelly("the format jelly")
        jelly, options = import_module("pyjelly.jelly"), import_module("pyjelly.options")
        streams, generic = (
            import_module("pyjelly.serialize.streams"),
            import_module("pyjelly.integrations.generic.serialize"),
        )
        self._terms = import_module("pyjelly.integrations.generic.generic_sink")
        self._put = import_module("pyjelly.serialize.ioutils").write_delimited
        self._file = file
        how = streams.SerializerOptions(
            logical_type=jelly.LOGICAL_STREAM_TYPE_TIMESTAMPED_NAMED_GRAPHS,
            params=options.StreamParameters(generalized_statements=False, rdf_star=False),
        )
        encoder = generic.GenericSinkTermEncoder(lookup_preset=how.lookup_preset)
        self._stream = streams.QuadStream(encoder=encoder, options=how)
        self._lookups = encoder.names, encoder.prefixes, encoder.datatypes
        self._last: Any = None

    @property
    def tables(self) -> list[Any]:
        """Has it begun; the last statement; the tables of names, prefixes and datatypes."""
        last = "" if self._last is None else f"{self._last} ."
        return [self._stream.enrolled, last, [_entries(each) for each in self._lookups]]

    @tables.setter
    def tables(self, tables: list[Any]) -> None:
        self._stream.enrolled, last, lookups = tables
        for lookup, entries in zip(self._lookups, lookups, strict=True):
            _fill(lookup, *entries)
        for quad in pyoxigraph.parse(last, format=pyoxigraph.RdfFormat.N_QUADS, lenient=True):
            # Terms that are those of the statement before are left out.
            self._last = quad
            self._stream.repeated_terms[:] = self._terms_of(quad)

    def begin(self) -> None:
        """Write a frame that says how the others are written; otherwise the first one does."""
        self._stream.enroll()
        self._put(self._stream.flow.to_stream_frame(), self._file)

    def write(self, quads: list[Any]) -> None:
        """Write a frame with the quads."""
        self._stream.enroll()
        for quad in quads:
            self._stream.quad(self._terms_of(quad))
        self._last = quads[-1]
        self._put(self._stream.flow.to_stream_frame(), self._file)

    def _terms_of(self, quad: Any) -> tuple[Any, ...]:
        name = quad.graph_name
        graph = self._terms.DefaultGraph if name == _DEFAULT else self._term(name)
        return self._term(quad.subject), self._term(quad.predicate), self._term(quad.object), graph

    def _term(self, term: Any) -> Any:
        if isinstance(term, pyoxigraph.NamedNode):
            return self._terms.IRI(term.value)
        if isinstance(term, pyoxigraph.BlankNode):
            return self._terms.BlankNode(term.value)
        if term.language:
            return self._terms.Literal(term.value, langtag=term.language)
        return self._terms.Literal(term.value, datatype=term.datatype.value)


def _entries(lookup: Any) -> list[Any]:
    """A table of pyjelly's encoder: its texts by number, their numbers from the least recently used one on, and the last numbers."""
    numbers = dict(lookup.lookup.data)
    return [
        sorted(numbers, key=numbers.__getitem__),
        list(numbers.values()),
        lookup.last_assigned_index,
        lookup.last_reused_index,
    ]


def _fill(lookup: Any, texts: list[str], used: list[int], last_assigned: int, last_reused: int) -> None:
    """Fill an empty table with entries."""
    for text in texts:
        lookup.lookup.insert(text)
    for number in used:
        lookup.lookup.make_last_to_evict(texts[number - 1])
    lookup.last_assigned_index, lookup.last_reused_index = last_assigned, last_reused
