"""Messages to elements: each is a document of RDF, or a JSON object that a map makes an element of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements
from cqels_py.connections.location import Options
from cqels_py.errors import DataError, Place, UsageError
from cqels_py.formats.encodings import BYTE_ORDER_MARK
from cqels_py.formats.jelly import jelly_documents, require_pyjelly
from cqels_py.formats.joined_documents import Joined
from cqels_py.formats.kernel_calls import calls_to_read
from cqels_py.formats.lines import Malformed
from cqels_py.formats.ndjson import DocumentReader, Statements, within_context
from cqels_py.formats.ntriples import Reading, StatementCheck
from cqels_py.formats.turtle import PARSER_ERRORS, json_error, statements_of, syntax_error, turtle_quads
from cqels_py.formats.turtle_text import FORMS
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.kernels.text.tokenizer import BY_LINE
from cqels_py.mappings.context import MessageContext
from cqels_py.mappings.mapping import TIME, Mapping
from cqels_py.sources.files import handling
from cqels_py.sources.live import MessageColumns
from cqels_py.sources.protocol import Opening

MOST_BYTES = 16 << 20
"""The bytes of the longest message that is read; a longer one is malformed."""
TOPIC = "topic"
"""The variable of a map that is the origin of a message which has no such member."""

_LINES = ("nq", "nt")
"""Formats that the tokenizer judges, as in files; the library reads what is well-formed."""
_JSON, _JELLY = "jsonld", "jelly"
FORMATS = ("auto", *_LINES, "trig", "ttl", _JSON, _JELLY)
_KINDS = {
    "application/x-jelly-rdf": _JELLY,
    "application/n-quads": "nq",
    "application/n-triples": "nt",
    "application/trig": "trig",
    "text/turtle": "ttl",
    "application/ld+json": "jsonld",
    "application/json": "jsonld",
}
_OWN, _ARRIVAL = "own", "arrival"


class MessageFormat:
    """How messages are read: `format`, None: by their media type, then by their first byte. `arrival`: those without a time get
    that of their arrival."""

    def __init__(self, format: str | None, arrival: bool) -> None:
        self.format = format
        self.arrival = arrival

    @classmethod
    def of(cls, options: Options) -> MessageFormat:
        """The options `format` and `time`."""
        format_ = options.choice("format", FORMATS, "auto")
        time = options.choice("time", (_OWN, _ARRIVAL), _OWN)
        return cls(None if format_ == "auto" else format_, time == _ARRIVAL)


class MessageDecoder:
    """Makes the elements of messages, in their order. Malformed ones are raised or reported, with the message's number."""

    def __init__(self, opening: Opening, source: str, how: MessageFormat) -> None:
        self._opening = opening
        self._source = source
        self._how = how
        self._json_ld = opening.json_ld
        self._malformed = handling(opening.on_error, opening.report)
        self._count = 0
        self._checks: dict[str, StatementCheck] = {}
        reading = opening.reading(source, BY_LINE, per_element=True)
        if isinstance(opening.map, Mapping) and how.format not in (None, _JSON):
            raise UsageError(f"{source}: a map reads JSON objects, not {how.format}: leave format= out")
        if how.format == _JELLY:
            require_pyjelly(source)
        prepare(calls_to_read("ndjson"))
        self._rows = None if not isinstance(opening.map, Mapping) else MappedMessages(opening.map, opening, reading)
        self._documents = DocumentReader(opening.dictionary, reading, self._malformed)

    def elements(self, messages: MessageColumns, numbers: Sequence[int] | None = None) -> ElementBatch:
        """The elements of the next messages. `numbers`: rising, by which errors name them; without, they are counted from 1."""
        if numbers is None:
            numbers = range(self._count + 1, self._count + 1 + len(messages))
            self._count += len(messages)
        all_readable = _are_readable(messages.bodies)
        if not all_readable:
            messages = replace(messages, bodies=[body.removeprefix(BYTE_ORDER_MARK) for body in messages.bodies])
        if self._rows is None:
            arrived = zip(numbers, messages.arrived, strict=True) if self._how.arrival else ()
            arrivals = {number: time for number, time in arrived if time is not None}
            return concatenate_elements(
                list(self._documents.read(self._parsed(messages, numbers, all_readable), arrivals))
            )
        if not all_readable:
            right = [place for place, number in enumerate(numbers) if self._is_readable(number, messages.bodies[place])]
            messages, numbers = messages.at(right), [numbers[place] for place in right]
        return concatenate_elements(self._rows.read(messages, numbers, self._how.arrival, self._malformed))

    def joined(self, messages: MessageColumns, ends: Sequence[int]) -> Joined:
        """The elements of documents of several messages. `ends`: how many messages there are up to the end of each document."""
        numbers = range(1, len(messages) + 1)
        if self._rows is not None:
            batch = self.elements(messages, numbers)
            return Joined(batch, np.searchsorted(self._rows.numbers, np.array(ends), side="right").tolist())
        parts = [
            self.elements(messages.at(range(start, end)), numbers[start:end]) for start, end in pairwise([0, *ends])
        ]
        return Joined(concatenate_elements(parts), list(accumulate(map(len, parts))))

    def _is_readable(self, number: int, body: bytes, *, binary: bool = False) -> bool:
        if len(body) > MOST_BYTES:
            self._malformed(DataError(f"a message longer than {MOST_BYTES >> 20} MiB", self._place(number)))
            return False
        if binary:
            return True
        try:
            body.decode()
        except UnicodeDecodeError as error:
            wrong = DataError(f"the byte 0x{body[error.start]:02x} of the message is not UTF-8", self._place(number))
            self._malformed(wrong.about(body.decode("utf-8", "backslashreplace")))
            return False
        return True

    def _place(self, number: int) -> Place:
        return Place(number, None, self._source)

    def _parsed(
        self, messages: MessageColumns, numbers: Sequence[int], all_readable: bool
    ) -> Iterator[tuple[int, Statements]]:
        for number, body, kind in zip(numbers, messages.bodies, messages.kinds, strict=True):
            form = self._form(body, kind)
            if not all_readable and not self._is_readable(number, body, binary=form == _JELLY):
                continue
            try:
                if form == _JELLY:
                    for document in jelly_documents(body, self._source):
                        yield number, document
                    continue
                if form == _JSON:
                    if isinstance(self._opening.map, MessageContext):
                        body = within_context(self._opening.map.context, body, self._source, number)
                    yield number, self._json_ld.statements(body, self._source, number)
                elif form in FORMS:
                    yield number, self._turtle(form, body, number)
                else:
                    self._check(form, body, number)
                    yield number, statements_of(body, form, self._source, number, lenient=True)
            except DataError as error:
                if error.place is None:
                    # As of Jelly, which has no lines.
                    error = DataError(error.message.removeprefix(f"{self._source}: "), self._place(number))
                self._malformed(error.about(body.decode("utf-8", "backslashreplace")))
            except PARSER_ERRORS as error:
                told = (
                    json_error(error, body, self._source, number)
                    if form == _JSON
                    else syntax_error(error, self._source)
                )
                told.place = self._place(number)
                self._malformed(told.about(body.decode()))

    def _check(self, form: str, body: bytes, number: int) -> None:
        """DataError for N-Triples or N-Quads that a file could not have."""
        check = self._checks.get(form)
        if check is None:
            check = self._checks[form] = StatementCheck(self._opening.dictionary, form == "nq", self._source)
        try:
            check.check(body)
        except DataError as error:
            raise self._within(number, error) from None

    def _turtle(self, form: str, body: bytes, number: int) -> list[Any]:
        """The statements of a message of Turtle or TriG. DataError for the first error."""
        try:
            return turtle_quads(body, form, self._source)
        except DataError as error:
            raise self._within(number, error) from None

    def _within(self, number: int, error: DataError) -> DataError:
        """An error of a message's text, with its place in the message."""
        where = "" if error.place is None else f"line {error.place.line}, column {error.place.column} of the message: "
        return DataError(f"{where}{error.message}", self._place(number))

    def _form(self, body: bytes, kind: str | None) -> str:
        if isinstance(self._opening.map, MessageContext):
            return _JSON
        if self._how.format is not None:
            return self._how.format
        known = _KINDS.get((kind or "").partition(";")[0].strip().lower())
        return known or (_JSON if body.lstrip()[:1] in (b"{", b"[") else "nq")


def _are_readable(bodies: Sequence[bytes]) -> bool:
    """Are all of them short enough, and UTF-8? False may be wrong."""
    return not bodies or (max(map(len, bodies)) <= MOST_BYTES and b"".join(bodies).isascii())


class MappedMessages:
    """JSON objects through a mapping, a column at a time for all messages of a poll.

    ?time, if neither the message nor the mapping has it, may be that of the arrival; ?topic is then the message's origin.
    """

    def __init__(self, mapping: Mapping, opening: Opening, reading: Reading) -> None:
        # A mapping needs pyarrow.
        from cqels_py.mappings.elements import MappedElements

        self._mapping = mapping
        self._dictionary = opening.dictionary
        self._source = reading.source
        self._reading = reading
        self.numbers = np.empty(0, np.int64)
        """Of the messages that became the elements of the last `read`, one each."""
        self._elements: Any = MappedElements(
            mapping, opening.dictionary, reading, handling(opening.on_error, opening.report)
        )

    def read(
        self, messages: MessageColumns, numbers: Sequence[int], arrival: bool, malformed: Malformed
    ) -> list[ElementBatch]:
        """The elements of messages with these numbers."""
        from cqels_py.mappings.json_rows import json_rows

        if not len(messages):
            self.numbers = np.empty(0, np.int64)
            return []
        lines = b"\n".join(messages.bodies)
        if lines.count(b"\n") >= len(messages):
            # In JSON, a newline is never part of a text.
            lines = b"\n".join([body.replace(b"\n", b" ") for body in messages.bodies])

        def named(error: DataError) -> None:
            # Lines have the places of the messages, whose numbers may have gaps.
            assert error.place is not None
            told = DataError(error.message, replace(error.place, line=numbers[error.place.line]))
            told.element = error.element
            malformed(told)

        def text(number: int) -> str:
            return lines.split(b"\n")[bisect_left(numbers, number)].decode()

        parts = []
        for rows in json_rows([(lines, 0)], self._mapping.columns, self._dictionary, self._source, named):
            if rows is None:
                continue
            columns = dict(rows.columns)
            if arrival and TIME in columns:
                columns[TIME] = self._filled(columns[TIME], rows.lines, messages.arrived, _integer)
            if TOPIC in columns:
                columns[TOPIC] = self._filled(columns[TOPIC], rows.lines, messages.origins, _literal)
            parts.append(type(rows)(columns, np.array(numbers, np.int64)[rows.lines], text))
        found = [(batch, self._elements.lines) for batch in self._elements.read(parts)]
        self.numbers = np.concatenate([np.empty(0, np.int64), *(lines for _, lines in found)])
        return [batch for batch, _ in found]

    def _filled(self, ids: Ids, at: Ids, values: Sequence[Any], term: Callable[[Any], str]) -> Ids:
        """The column, whose rows are those `at` these places, with the terms of `values` where it is unbound; None is no value."""
        empty = np.flatnonzero(ids == 0)
        if not len(empty):
            return ids
        found = ids.copy()
        given = [values[place] for place in at[empty].tolist()]
        terms = {value: None if value is None else term(value) for value in dict.fromkeys(given)}
        found[empty] = self._dictionary.encode([terms[value] for value in given])
        return found


def _integer(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
