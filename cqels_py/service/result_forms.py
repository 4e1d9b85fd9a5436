"""The forms of results that are sent as they come: server-sent events, lines of JSON, and Jelly."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any, Protocol

import pyoxigraph

from cqels_py.formats.times import GENERATED_AT
from cqels_py.service.following import Cut
from cqels_py.terms.layout import XSD

EVENTS, LINES, JELLY = "text/event-stream", "application/x-ndjson", "application/x-jelly-rdf"


class Form(Protocol):
    """Writes the results of one subscriber. `takes_long`: so long that others need not wait for it."""

    content_type: str
    takes_long: bool

    def begin(self) -> bytes:
        """The first bytes."""
        ...

    def results(self, number: int, lines: Sequence[bytes]) -> bytes:
        """Results, the first of which has the number; or, as a sign of life, none."""
        ...

    def end(self, cut: Cut) -> bytes:
        """The last bytes."""
        ...


class Events:
    """Server-sent events, with comments as signs of life."""

    content_type = f"{EVENTS}; charset=utf-8"
    takes_long = False

    def begin(self) -> bytes:
        return b":\n\n"

    def results(self, number: int, lines: Sequence[bytes]) -> bytes:
        if not lines:
            return b":\n\n"
        return b"".join([b"id: %d\ndata: %b\n\n" % (at, line) for at, line in enumerate(lines, number)])

    def end(self, cut: Cut) -> bytes:
        return b"event: end\ndata: %b\n\n" % _told(cut)


class Lines:
    """Lines of JSON, with empty ones as signs of life."""

    content_type = f"{LINES}; charset=utf-8"
    takes_long = False

    def begin(self) -> bytes:
        return b"\n"

    def results(self, number: int, lines: Sequence[bytes]) -> bytes:
        return b"\n".join(lines) + b"\n"

    def end(self, cut: Cut) -> bytes:
        return b'{"end":%b}\n' % _told(cut)


class JellyGraphs:
    """The results of CONSTRUCT in frames of Jelly, with empty ones as signs of life.

    A frame is a graph with a name that has the number of its result, after its time in the default graph, as of
    `cqels run --format jelly`. Retracted results are left out, and those of a former text of the query that is no CONSTRUCT.
    MissingExtra where pyjelly is missing.
    """

    content_type = JELLY
    takes_long = True

    def __init__(self) -> None:
        from cqels_py.formats.jelly_graphs import JellyFrames

        self._bytes = io.BytesIO()
        self._frames = JellyFrames(self._bytes)

    def begin(self) -> bytes:
        self._frames.begin()
        return self._written()

    def results(self, number: int, lines: Sequence[bytes]) -> bytes:
        for line in lines:
            result = json.loads(line)
            if result["sign"] == "+" and "triples" in result:
                self._frames.write(_quads(result))
        # The length of a frame without content.
        return self._written() or b"\0"

    def end(self, cut: Cut) -> bytes:
        return b""

    def _written(self) -> bytes:
        found = self._bytes.getvalue()
        self._bytes.seek(0)
        self._bytes.truncate()
        return found


def form_of(kind: str) -> Form:
    """The form with a media type, for one subscriber."""
    return Events() if kind == EVENTS else Lines() if kind == LINES else JellyGraphs()


def _quads(result: dict[str, Any]) -> list[Any]:
    name = pyoxigraph.NamedNode(f"urn:cqels:result:{result['number']}")
    at = pyoxigraph.Literal(result["time"], datatype=pyoxigraph.NamedNode(f"{XSD}dateTime"))
    time = pyoxigraph.Quad(name, pyoxigraph.NamedNode(GENERATED_AT[1:-1]), at, pyoxigraph.DefaultGraph())
    # The terms are those that the dictionary has accepted.
    triples = pyoxigraph.parse(result["triples"].encode(), format=pyoxigraph.RdfFormat.N_TRIPLES, lenient=True)
    return [time, *(pyoxigraph.Quad(each.subject, each.predicate, each.object, name) for each in triples)]


def _told(cut: Cut) -> bytes:
    return json.dumps({"last": cut.last, "reason": cut.reason}, ensure_ascii=False).encode()
