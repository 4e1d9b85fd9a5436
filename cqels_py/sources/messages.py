"""Messages to elements: each is a document of RDF, or a JSON object that a map makes an element of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyoxigraph

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements
from cqels_py.connections.location import Options
from cqels_py.errors import DataError, Place, UsageError
from cqels_py.formats.contexts import inlined
from cqels_py.formats.kernel_calls import calls_to_read
from cqels_py.formats.ndjson import DocumentReader, within_context
from cqels_py.formats.ntriples import Reading
from cqels_py.formats.turtle import PARSER_ERRORS, json_error, syntax_error
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.kernels.text.tokenizer import BY_LINE
from cqels_py.mappings.context import MessageContext
from cqels_py.mappings.mapping import TIME, Mapping
from cqels_py.sources.files import handling
from cqels_py.sources.live import Message
from cqels_py.sources.protocol import Opening

MOST_BYTES = 16 << 20
"""The bytes of the longest message that is read; a longer one is malformed."""
TOPIC = "topic"
"""The variable of a map that is the origin of a message which has no such member."""

_FORMATS = {
    "nq": pyoxigraph.RdfFormat.N_QUADS,
    "nt": pyoxigraph.RdfFormat.N_TRIPLES,
    "trig": pyoxigraph.RdfFormat.TRIG,
    "ttl": pyoxigraph.RdfFormat.TURTLE,
    "jsonld": pyoxigraph.RdfFormat.JSON_LD,
}
_KINDS = {
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
        format_ = options.choice("format", ("auto", *_FORMATS), "auto")
        time = options.choice("time", (_OWN, _ARRIVAL), _OWN)
        return cls(None if format_ == "auto" else format_, time == _ARRIVAL)


class MessageDecoder:
    """Makes the elements of messages, in their order. Malformed ones are raised or reported, with the message's number."""

    def __init__(self, opening: Opening, source: str, how: MessageFormat) -> None:
        self._opening = opening
        self._source = source
        self._how = how
        self._malformed = handling(opening.on_error, opening.report)
        self._count = 0
        predicate = None if opening.time_predicate is None else f"<{opening.time_predicate.strip('<>')}>"
        reading = Reading(
            BY_LINE,
            opening.number,
            predicate,
            source,
            per_element=True,
            graphs=opening.graphs,
            on_questionable_time=opening.on_questionable_time,
        )
        if isinstance(opening.map, Mapping) and how.format not in (None, "jsonld"):
            raise UsageError(f"{source}: a map reads JSON objects, not {how.format}: leave format= out")
        prepare(calls_to_read("ndjson"))
        self._rows = None if not isinstance(opening.map, Mapping) else MappedMessages(opening.map, opening, reading)
        self._documents = DocumentReader(opening.dictionary, reading, self._malformed)

    def elements(self, messages: Sequence[Message]) -> ElementBatch:
        """The elements of the next messages."""
        numbered = [(self._count + n, message) for n, message in enumerate(messages, 1)]
        self._count += len(messages)
        if self._rows is not None:
            right = [(number, message) for number, message in numbered if self._is_readable(number, message)]
            batches = self._rows.read(right, self._how.arrival, self._malformed)
        else:
            arrivals = {number: message.arrived for number, message in numbered} if self._how.arrival else {}
            batches = list(self._documents.read(self._parsed(numbered), arrivals))
        return concatenate_elements(batches)

    def _is_readable(self, number: int, message: Message) -> bool:
        if len(message.body) > MOST_BYTES:
            self._malformed(DataError(f"a message longer than {MOST_BYTES >> 20} MiB", self._place(number)))
            return False
        try:
            message.body.isascii() or message.body.decode()
        except UnicodeDecodeError as error:
            wrong = DataError(
                f"the byte 0x{message.body[error.start]:02x} of the message is not UTF-8", self._place(number)
            )
            self._malformed(wrong.about(message.body.decode("utf-8", "backslashreplace")))
            return False
        return True

    def _place(self, number: int) -> Place:
        return Place(number, None, self._source)

    def _parsed(self, messages: Sequence[tuple[int, Message]]) -> Iterator[tuple[int, list[Any]]]:
        for number, message in messages:
            if not self._is_readable(number, message):
                continue
            body = message.body
            form = self._form(message)
            try:
                if form == "jsonld":
                    if isinstance(self._opening.map, MessageContext):
                        body = within_context(self._opening.map.context, body, self._source, number)
                    body = inlined(body, self._opening.contexts, self._source, number)
                yield number, list(pyoxigraph.parse(body, format=_FORMATS[form]))
            except DataError as error:
                self._malformed(error.about(message.body.decode()))
            except PARSER_ERRORS as error:
                told = (
                    json_error(error, body, self._source, number)
                    if form == "jsonld"
                    else syntax_error(error, self._source)
                )
                told.place = self._place(number)
                self._malformed(told.about(message.body.decode()))

    def _form(self, message: Message) -> str:
        if isinstance(self._opening.map, MessageContext):
            return "jsonld"
        if self._how.format is not None:
            return self._how.format
        kind = (message.kind or "").partition(";")[0].strip().lower()
        return _KINDS.get(kind) or ("jsonld" if message.body.lstrip()[:1] in (b"{", b"[") else "nq")


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
        self._elements: Any = MappedElements(
            mapping, opening.dictionary, reading, handling(opening.on_error, opening.report)
        )

    def read(self, messages: Sequence[tuple[int, Message]], arrival: bool, malformed: Any) -> list[ElementBatch]:
        """The elements of messages with their numbers."""
        from cqels_py.mappings.json_rows import json_rows

        if not messages:
            return []
        # In JSON, a newline is never part of a text.
        lines = b"\n".join(message.body.replace(b"\n", b" ") for _, message in messages)
        by_line = [message for _, message in messages]
        numbers = [number for number, _ in messages]
        first = numbers[0]
        parts = []
        for rows in json_rows([(lines, first)], self._mapping.columns, self._dictionary, self._source, malformed):
            if rows is None:
                continue
            at = rows.lines - first
            columns = dict(rows.columns)
            given = [by_line[place] for place in at.tolist()]
            if arrival and TIME in columns:
                columns[TIME] = self._filled(columns[TIME], [_integer(message.arrived) for message in given])
            if TOPIC in columns:
                columns[TOPIC] = self._filled(columns[TOPIC], [_literal(message.origin) for message in given])
            parts.append(
                type(rows)(columns, np.array(numbers, np.int64)[at], lambda n: lines.split(b"\n")[n - first].decode())
            )
        return list(self._elements.read(parts))

    def _filled(self, ids: Any, terms: Sequence[str]) -> Any:
        """The column with these terms where it is unbound."""
        empty = np.flatnonzero(ids == 0)
        if not len(empty):
            return ids
        found = ids.copy()
        found[empty] = self._dictionary.encode([terms[row] for row in empty.tolist()])
        return found


def _integer(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
