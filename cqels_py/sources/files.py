"""Streams from files and standard input, by format.

One element is one event graph. `.nq`, `.trig`, `.jsonld` with named graphs: the graph's name names it, and the triple
`<graph> prov:generatedAtTime "…"` of the default graph, ahead of it, gives its time; other triples of the default graph about it
belong to the element. `.nt`, `.ttl`, `.rdf`, other `.jsonld`: consecutive triples of one subject, and of the blank nodes nested in
it, with the time in one of them. Tables: see tabular.py. `.ndjson`: see ndjson.py. With a time predicate, the time is always that
property of the element. Elements come in the order of the source; the engine deals with elements that are out of order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.compression import CHUNK_BYTES, local_path, read_chunks
from cqels_py.formats.encodings import kind_of_json
from cqels_py.formats.endings import STREAMS, compression_of, format_of
from cqels_py.formats.json_ld import JsonLd, file_iri
from cqels_py.formats.kernel_calls import calls_to_read
from cqels_py.formats.lines import Malformed, line_blocks
from cqels_py.formats.marks import Marks
from cqels_py.formats.ndjson import json_elements
from cqels_py.formats.ntriples import ElementReader, Reading
from cqels_py.formats.turtle import ends_in_a_graph, nquads_blocks
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.kernels.text.tokenizer import BY_GRAPH, BY_SUBJECT
from cqels_py.sources.protocol import Opening
from cqels_py.sources.stdin import STANDARD_INPUT, standard_input_chunks

_BY_SUBJECT = ("nt", "ttl", "rdf")
_MAY_PAUSE = ("nq", "nt", "ndjson", "csv", "tsv")
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def open_source(
    location: str, opening: Opening, *, scope: int | None = None, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[ElementBatch]:
    """The elements of a source, in batches as they become available.

    `location`: a path (also compressed: .gz, .zst) or "-" for standard input, which is N-Quads. `scope`: that of its blank nodes, or
    the first of those of its elements; None: a new one. UsageError for a file that is not there or whose format is not known;
    DataError for malformed input, after the elements before it, unless the opening takes it. An element that lost a malformed line
    keeps its other triples. Where standard input or a pipe whose elements are lines has nothing when the opening's `wait` ends,
    batches are empty, and an element that has begun is complete.
    """
    if opening.on_error not in ("stop", "skip"):
        raise UsageError(f"on_error is 'stop' or 'skip', not {opening.on_error!r}")
    from_stdin = location == STANDARD_INPUT
    if not from_stdin:
        opening = replace(opening, base=file_iri(local_path(location)))
    form = "nq" if from_stdin else format_of(location, STREAMS)
    prepare(calls_to_read(form))
    malformed = handling(opening.on_error, opening.report)
    if from_stdin:
        malformed = _naming_the_form(malformed)
    dictionary, reading = opening.dictionary, opening.reading("<stdin>" if from_stdin else location, scope=scope)
    if form == "parquet":
        from cqels_py.formats.tabular import parquet_elements

        return parquet_elements(str(local_path(location)), dictionary, reading, malformed)
    if form == "arrow":
        from cqels_py.formats.tabular import ipc_elements

        return ipc_elements(str(local_path(location)), dictionary, reading, malformed)
    wait = opening.wait if form in _MAY_PAUSE else None
    chunks = standard_input_chunks(chunk_bytes, wait) if from_stdin else read_chunks(location, chunk_bytes, wait)
    if form == "json":
        return _json(chunks, dictionary, reading, malformed, opening.json_ld)
    return elements_of_document(form, chunks, dictionary, reading, malformed, opening.json_ld)


def elements_of_document(
    form: str,
    chunks: Iterator[bytes],
    dictionary: Dictionary,
    reading: Reading,
    malformed: Malformed,
    json_ld: JsonLd,
    *,
    by_subject: bool = False,
) -> Iterator[ElementBatch]:
    """The elements of a text in any of RDF's formats or in CSV, or of Jelly. `by_subject`: those of N-Quads and TriG
    too are formed by subject, so that a statement of a named graph is malformed.
    """
    if form == "jelly":
        from cqels_py.formats.jelly import jelly_elements

        return jelly_elements(chunks, dictionary, reading, malformed)
    return _elements(form, chunks, dictionary, reading, malformed, json_ld, by_subject=by_subject)


def elements_of_chunks(
    form: str, chunks: Iterator[bytes], opening: Opening, source: str, marks: Marks | None = None
) -> Iterator[ElementBatch]:
    """The elements of lines of nq, nt, ndjson, csv or tsv as they come; where a chunk is empty, so is a batch.

    The opening's `wait` says when an element that has begun is complete. `source`: for messages. `marks`: of N-Quads.
    """
    prepare(calls_to_read(form))
    reading = replace(opening.reading(source), marks=marks)
    malformed = handling(opening.on_error, opening.report)
    return _elements(form, chunks, opening.dictionary, reading, malformed, opening.json_ld)


def may_pause(location: str) -> bool:
    """Is it standard input or a pipe whose reader returns when nothing comes, as its format is one of lines?"""
    if location == STANDARD_INPUT:
        return True
    path = Path(location)
    return compression_of(location) is None and path.suffix[1:] in _MAY_PAUSE and path.is_fifo()


def _json(
    chunks: Iterator[bytes], dictionary: Dictionary, reading: Reading, malformed: Malformed, json_ld: JsonLd
) -> Iterator[ElementBatch]:
    """JSON-LD or NDJSON, which the first bytes decide."""
    form, chunks = kind_of_json(chunks)
    yield from _elements(form, chunks, dictionary, reading, malformed, json_ld)


def _elements(
    form: str,
    chunks: Iterator[bytes],
    dictionary: Dictionary,
    reading: Reading,
    malformed: Malformed,
    json_ld: JsonLd,
    *,
    by_subject: bool = False,
) -> Iterator[ElementBatch]:
    numbered = form in ("nt", "nq", "csv", "tsv", "ndjson")
    by = BY_SUBJECT if by_subject or form in _BY_SUBJECT else BY_GRAPH
    reading = replace(reading, numbered=numbered)
    if form == "jsonld":
        return _of_json_document(chunks, dictionary, reading, malformed, json_ld)
    reading = _grouped(reading, by)
    if not numbered:
        texts = nquads_blocks(chunks, form, reading.source, malformed, json_ld)
        return ElementReader(dictionary, reading, malformed).read(((text, 0) for text in texts), line_step=0)
    blocks = line_blocks(chunks, reading.source, malformed, 1 if reading.marks is None else reading.marks.begin.line)
    if form in _DELIMITERS:
        from cqels_py.formats.tabular import delimited_elements

        return delimited_elements(blocks, _DELIMITERS[form], dictionary, reading, malformed)
    if form == "ndjson":
        return json_elements(blocks, dictionary, reading, malformed, json_ld)
    return ElementReader(dictionary, reading, malformed).read(blocks)


def _grouped(reading: Reading, by: int) -> Reading:
    return replace(reading, form=by, graphs=reading.graphs and by == BY_GRAPH)


def _of_json_document(
    chunks: Iterator[bytes], dictionary: Dictionary, reading: Reading, malformed: Malformed, json_ld: JsonLd
) -> Iterator[ElementBatch]:
    """The elements of a document of JSON-LD: of its named graphs, if it has some, otherwise of its subjects."""
    texts = nquads_blocks(chunks, "jsonld", reading.source, malformed, json_ld)
    first = next(texts, b"")
    how = _grouped(reading, BY_GRAPH if ends_in_a_graph(first) else BY_SUBJECT)
    blocks = ((text, 0) for text in chain([first], texts) if text)
    yield from ElementReader(dictionary, how, malformed).read(blocks, line_step=0)


def _naming_the_form(malformed: Malformed) -> Malformed:
    """Add a hint to an error in the first line: standard input has no ending, so it may have another format."""

    def name_it(error: DataError) -> None:
        if error.place is not None and error.place.line == 1:
            hint = "standard input (-) is read as N-Quads, other forms from files or named pipes, by their endings"
            element, error = error.element, DataError(f"{error.message}; {hint}", error.place)
            error.element = element
        malformed(error)

    return name_it


def handling(on_error: str, report: Callable[[DataError], None] | None) -> Malformed:
    """The handler of malformed input: "stop" raises it, "skip" gives it to `report` where there is one."""
    return _stop if on_error == "stop" else report or _pass_over


def _stop(error: DataError) -> None:
    raise error


def _pass_over(error: DataError) -> None:
    """Ignore the error: no `report` was given."""
