"""Responses that are RDF, and RDF in messages: the elements are those of the same text in a file."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, RunError
from cqels_py.mappings.mapping import Mapping
from cqels_py.sources.live import Message, MessageColumns
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening
from cqels_py.sources.urls import source_of
from tests.support.http_server import Request, served
from tests.support.servers import needed_module

STREAM = "http://example.org/readings"
V, GENERATED = "http://example.org/v", "http://www.w3.org/ns/prov#generatedAtTime"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@pytest.fixture(autouse=True)
def packages() -> None:
    needed_module("httpx", "http")


def quads(numbers: Iterable[int]) -> bytes:
    """Each number is an element, of two triples."""
    lines = (
        f'<http://example.org/g{n}> <{GENERATED}> "{n}"^^<{INTEGER}> .\n'
        f'<http://example.org/s{n}> <{V}> "{n}"^^<{INTEGER}> <http://example.org/g{n}> .\n'
        f'<http://example.org/s{n}> <{V}> "ü" <http://example.org/g{n}> .\n'
        for n in numbers
    )
    return "".join(lines).encode()


def trig(numbers: Iterable[int]) -> bytes:
    lines = (f'<g{n}> <{GENERATED}> {n} .\n<g{n}> {{ <s{n}> <{V}> {n}, "ü" }}\n' for n in numbers)
    return ("@base <http://example.org/> .\n" + "".join(lines)).encode()


def triples(numbers: Iterable[int]) -> bytes:
    lines = (
        f'<http://example.org/s{n}> <{GENERATED}> "{n}"^^<{INTEGER}> .\n<http://example.org/s{n}> <{V}> "{n}"^^<{INTEGER}> .\n'
        f'<http://example.org/s{n}> <{V}> "ü" .\n'
        for n in numbers
    )
    return "".join(lines).encode()


def turtle(numbers: Iterable[int]) -> bytes:
    lines = (f'<s{n}> <{GENERATED}> {n} ; <{V}> {n}, "ü" .\n' for n in numbers)
    return ("@base <http://example.org/> .\n" + "".join(lines)).encode()


def jelly(numbers: Iterable[int], logical: str = "NAMED_GRAPHS") -> bytes:
    needed_module("pyjelly", "jelly")
    from pyjelly import jelly as pb
    from pyjelly.integrations.generic.generic_sink import IRI, DefaultGraph, GenericStatementSink, Literal, Quad
    from pyjelly.integrations.generic.serialize import grouped_stream_to_file
    from pyjelly.options import StreamParameters
    from pyjelly.serialize.flows import flow_for_type
    from pyjelly.serialize.streams import SerializerOptions

    def frames() -> Iterator[GenericStatementSink]:
        for n in numbers:
            sink = GenericStatementSink()
            name, value, subject = (
                IRI(f"http://example.org/g{n}"),
                Literal(str(n), datatype=INTEGER),
                IRI(f"http://example.org/s{n}"),
            )
            sink.add(Quad(name, IRI(GENERATED), value, DefaultGraph))
            sink.add(Quad(subject, IRI(V), value, name))
            sink.add(Quad(subject, IRI(V), Literal("ü"), name))
            yield sink

    kind = getattr(pb, f"LOGICAL_STREAM_TYPE_{logical}")
    how = SerializerOptions(
        flow=flow_for_type(kind)(logical_type=kind),
        logical_type=kind,
        params=StreamParameters(generalized_statements=False, rdf_star=False),
    )
    out = io.BytesIO()
    grouped_stream_to_file(frames(), out, options=how)
    return out.getvalue()


BODIES: dict[str, tuple[str, Callable[[Iterable[int]], bytes]]] = {
    "nq": ("application/n-quads", quads),
    "trig": ("application/trig; charset=utf-8", trig),
    "nt": ("application/n-triples", triples),
    "ttl": ("text/turtle", turtle),
    "jelly": ("application/x-jelly-rdf", jelly),
    "timestamped jelly": ("application/x-jelly-rdf", lambda numbers: jelly(numbers, "TIMESTAMPED_NAMED_GRAPHS")),
}


class Reading:
    """The elements of a source: their times, after a look at their triples."""

    def __init__(self, url: str, name: str, **opening: Any) -> None:
        self.dictionary = Dictionary()
        self.found: list[int] = []
        self.ended = False
        predicate = GENERATED if name in ("nt", "ttl") else None
        self._own = predicate is not None
        self.source: Any = source_of(url).open(
            Opening(stream=STREAM, number=0, dictionary=self.dictionary, time_predicate=predicate, **opening)
        )

    def until(self, done: Callable[[], bool]) -> list[int]:
        end = time.monotonic() + 60
        while not done():
            assert time.monotonic() < end, f"{self.found}, and no more"
            batch = self.source.poll()
            if batch is None:
                self.ended = True
                continue
            for at, moment in enumerate(batch.time.tolist()):
                rows = slice(batch.first[at], batch.first[at + 1])
                objects = {str(term) for term in self.dictionary.decode(batch.object[rows])}
                assert objects == {f'"{moment}"^^<{INTEGER}>', '"ü"'}
                self.found.append(moment)
        return self.found

    def to_end(self) -> list[int]:
        self.until(lambda: self.ended)
        self.source.close()
        return self.found


@pytest.mark.parametrize("name", BODIES)
def test_the_elements_of_a_body_whatever_its_pieces(name: str) -> None:
    kind, made = BODIES[name]
    body = made(range(1, 30))
    random = Random(name)

    def answer(request: Request) -> None:
        request.send(kind=kind)
        at = 0
        while at < len(body):
            size = random.choice([1, 7, 100, 2000])
            request.write(body[at : at + size])
            at += size

    with served(answer) as url:
        assert Reading(url, name).to_end() == list(range(1, 30))
    with served(lambda request: request.send(kind="text/plain", body=body)) as url:
        assert Reading(f"{url}#format={name.rpartition(' ')[2]}", name).to_end() == list(range(1, 30))


@pytest.mark.parametrize("name", BODIES)
def test_elements_come_before_the_response_ends(name: str) -> None:
    """None is held back until the next one comes."""
    kind, made = BODIES[name]
    go_on = threading.Event()

    def answer(request: Request) -> None:
        request.send(kind=kind, body=made([1, 2, 3]))
        go_on.wait(60)

    with served(answer) as url:
        reading = Reading(url, name)
        assert reading.until(lambda: len(reading.found) == 3) == [1, 2, 3]
        assert not go_on.is_set()
        go_on.set()
        assert reading.to_end() == [1, 2, 3]


@pytest.mark.parametrize("name", BODIES)
def test_what_had_begun_when_a_body_broke_off_is_left_out(name: str) -> None:
    """The next response begins anew."""
    kind, made = BODIES[name]
    body = made([1, 2, 3])
    responses = []

    def answer(request: Request) -> None:
        responses.append(request)
        if len(responses) == 1:
            # Within the third element, before its last triple.
            cut = body.rindex(b"\n", 0, body.rindex("ü".encode())) + 1 if name in ("nq", "nt") else len(body) - 4
            request.send(kind=kind, body=body[:cut], content_length=str(len(body)))
        else:
            request.send(kind=kind, body=body)

    with served(answer) as url:
        assert Reading(url, name).to_end() == [1, 2, 1, 2, 3]


@pytest.mark.parametrize("name", BODIES)
def test_damaged_bodies_are_told(name: str) -> None:
    kind, made = BODIES[name]
    damaged = made([1]) + b"\x07nonsense\n"
    with served(lambda request: request.send(kind=kind, body=damaged)) as url:
        with pytest.raises(DataError):
            Reading(url, name).to_end()
        told: list[DataError] = []
        Reading(url, name, on_error="skip", report=told.append).to_end()
        assert told


@pytest.mark.parametrize(
    ("options", "more", "said"),
    [
        ("#time=arrival", {}, "answers with RDF whose elements have their own times: leave time= out"),
        ("", {"map": Mapping.of("CONSTRUCT { ?s ?s ?v } WHERE { BIND(IRI(?sensor) AS ?s) }")}, "leave the map out"),
    ],
)
def test_what_does_not_fit_is_refused(options: str, more: dict[str, Any], said: str) -> None:
    with (
        served(lambda request: request.send(kind="text/turtle", body=turtle([1]))) as url,
        pytest.raises(RunError, match=said),
    ):
        Reading(f"{url}{options}", "ttl", **more).to_end()


@pytest.mark.parametrize("asked", [None, "jelly"])
def test_a_message_of_jelly_is_a_document(asked: str | None) -> None:
    dictionary = Dictionary()
    told: list[DataError] = []
    opening = Opening(stream=STREAM, number=0, dictionary=dictionary, on_error="skip", report=told.append)
    decoder = MessageDecoder(opening, "mqtt://b/t", MessageFormat(asked, False))
    kind = None if asked else "application/x-jelly-rdf"
    bodies = [jelly([1, 2]), b"\xffnonsense", jelly([3], "TIMESTAMPED_NAMED_GRAPHS")]
    batch = decoder.elements(MessageColumns.of([Message(body, "t", kind, 0) for body in bodies]))
    assert batch.time.tolist() == [1, 2, 3]
    assert len(told) == 1
    assert "is not valid Jelly" in str(told[0])
