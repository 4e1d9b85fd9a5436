"""Documents that come together are taken in as if each came alone."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cqels_py import Engine
from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import slice_elements
from cqels_py.checkpoints.log import look
from cqels_py.dictionary import Dictionary
from cqels_py.engine import clocks, documents
from cqels_py.engine.documents import Document, Once, OnceKeys, Taken
from cqels_py.engine.durable.records import Kind
from cqels_py.errors import DataError
from cqels_py.formats.scopes import ELEMENT, SOURCE
from cqels_py.mappings.context import MessageContext
from cqels_py.mappings.mapping import Mapping
from cqels_py.sources.documents import document_elements, joined_elements
from cqels_py.sources.protocol import Opening
from tests.engine.test_clocks_of_queries import NoThread, SetClock

EX = "http://ex.org/"
READINGS = f"{EX}readings"
TIME = f"{EX}time"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
DATE = "<http://www.w3.org/2001/XMLSchema#dateTime>"
ARRIVAL = 1_000_000_000
MAP = Mapping.of(
    f"PREFIX : <{EX}> CONSTRUCT {{ ?s :p ?p }} {{ BIND(IRI(?id) AS ?s) FILTER(?p != 'no') FILTER(?time >= 0) }}",
    "<map>",
)
CONTEXT = MessageContext.inline({"@vocab": EX, "id": "@id", "time": None})
HOT = f"PREFIX : <{EX}> SELECT ?s ?o {{ STREAM :readings [RANGE 5us] {{ ?s :p ?o }} }}"

Element = tuple[int, list[tuple[str, ...]]]


def _time(micros: int) -> str:
    return f'"1970-01-01T00:00:00.{micros:06}Z"^^{DATE}'


def _line(draw: random.Random, format: str, blanks: float) -> str:
    if draw.random() < 0.05:
        return draw.choice(
            ["# a comment", "", "  ", f'<{EX}a> <{EX}p> "caf\\u00e9" .', f"<{EX}a> <{TIME}> {_time(5)} ."]
        )
    subject = "_:" + draw.choice("mn") if draw.random() < blanks else f"<{EX}{draw.choice('abc')}>"
    object_ = draw.choice([f"<{EX}{draw.choice('abc')}>", '"é"', f'"{draw.randrange(9)}"', "_:m", "_:n"])
    graph = f" <{EX}{draw.choice('gh')}>" if format == "nq" and draw.random() < 0.9 else ""
    if format == "nq" and draw.random() < 0.2:
        return f"<{EX}{draw.choice('gh')}> {AT} {_time(draw.choice((3, 4)))} ."
    return f"{subject} <{EX}{draw.choice('pq')}> {object_}{graph} ."


def _body(draw: random.Random, format: str, blanks: float) -> bytes:
    lines = [_line(draw, format, blanks) for _ in range(draw.choice((0, 1, 1, 1, 2, 3, 5)))]
    if draw.random() < 0.02:
        lines.append("<urn:a> oops")
    ending = draw.choice(("\n", "\n", "\r\n"))
    text = ending.join(lines) + draw.choice(("", ending))
    return draw.choice((b"", b"", b"", b"\xef\xbb\xbf")) + text.encode()


def _opening(dictionary: Dictionary, **options: Any) -> Opening:
    return Opening(stream=READINGS, number=3, dictionary=dictionary, on_error="stop", report=_raise, **options)


def _raise(error: DataError) -> None:
    raise error


def _texts(dictionary: Dictionary, batch: ElementBatch) -> list[Element]:
    """Times and triples; blank nodes by the order in which they appear in these elements."""
    names: dict[str, str] = {}

    def told(term: str | None) -> str:
        text = term or ""
        return names.setdefault(text, f"_:{len(names)}") if text.startswith("_:") else text

    columns = [dictionary.decode(column) for column in batch.positions if len(column) == batch.triples]
    rows = [tuple(told(term) for term in row) for row in zip(*columns, strict=True)]
    counted = np.diff(batch.first) if batch.counted is None else batch.counted
    return [
        (time, [(str(count),), *rows[start:end]])
        for time, count, start, end in zip(
            batch.time.tolist(), counted.tolist(), batch.first[:-1].tolist(), batch.first[1:].tolist(), strict=True
        )
    ]


@pytest.mark.parametrize("format", ["nt", "nq"])
@pytest.mark.parametrize("blanks", [0, 0.2])
def test_reading_together_gives_the_elements_of_each(format: str, blanks: float) -> None:
    outcomes = {"read": 0, "wrong": 0, "alone": 0}
    for seed in range(150):
        draw = random.Random(seed)
        bodies = [_body(draw, format, blanks) for _ in range(draw.randint(1, 6))]
        options = {
            "time_predicate": TIME if draw.random() < 0.2 else None,
            "blank_nodes": draw.choice((SOURCE, ELEMENT)),
            "graphs": draw.random() < 0.5,
        }
        alone, dictionary = [list[Element]()], Dictionary()
        wrong = False
        for body in bodies:
            try:
                batch = document_elements(
                    body, format, _opening(dictionary, **options), source="<body>", arrival=ARRIVAL
                )
            except DataError:
                wrong = True
            else:
                alone.append(_texts(dictionary, batch))
        dictionary = Dictionary()
        try:
            joined = joined_elements(bodies, format, _opening(dictionary, **options), source="<body>", arrival=ARRIVAL)
        except DataError:
            # An N-Quads document of triples alone is read as N-Triples, if it comes alone.
            assert wrong or format == "nq"
            outcomes["wrong"] += 1
            continue
        assert not wrong
        if joined is None:
            assert blanks and format == "nt"
            outcomes["alone"] += 1
            continue
        bounds = [0, *joined.ends]
        found = [_texts(dictionary, slice_elements(joined.batch, start, end)) for start, end in pairwise(bounds)]
        assert [[], *found] == alone, bodies
        outcomes["read"] += 1
    assert outcomes["read"] > 20 and outcomes["wrong"] > 5, outcomes
    assert (outcomes["alone"] > 5) == (format == "nt" and blanks > 0), outcomes


def test_blank_nodes_of_two_documents_are_two() -> None:
    dictionary = Dictionary()
    bodies = [b"<urn:a> <urn:p> _:x .\n", b"<urn:a> <urn:p> _:x .\n"]
    for scope in (SOURCE, ELEMENT):
        opening = _opening(dictionary, blank_nodes=scope)
        joined = joined_elements(bodies, "nt", opening, source="<body>", arrival=ARRIVAL)
        assert joined is not None and joined.ends == [1, 2]
        assert len(set(joined.batch.object.tolist())) == 2


def _documents(draw: random.Random) -> list[tuple[str, Document]]:
    """With times of their own or not, some of them late, some with a key, some wrong, some of JSON."""
    found = []
    for number in range(draw.randint(2, 7)):
        kind = draw.choice(("arrival", "arrival", "timed", "keyed", "wrong", "json", "json"))
        if kind == "json":
            key = draw.choice((None, f"k{number}", f"k{number}"))
            found += [(draw.choice((READINGS, READINGS, f"{EX}unread")), _json(draw, number, key))] * draw.choice(
                (1, 1, 2)
            )
            continue
        subject = f"<{EX}s{number}>"
        if kind == "timed":
            at = draw.choice((1, 2, 8, 20))
            text = f'<{EX}g> {AT} {_time(at)} .\n{subject} <{EX}p> "{number}" <{EX}g> .\n'
            found.append((READINGS, Document(text.encode(), "nq")))
            continue
        text = f'{subject} <{EX}p> "{number}" .\n' * draw.choice((1, 1, 2)) + ("oops" if kind == "wrong" else "")
        if draw.random() < 0.3:
            text += f'<{EX}other> <{EX}p> "{number}" .\n'
        key = str(number) if kind == "keyed" else None
        document = draw.choice((READINGS, READINGS, f"{EX}unread")), Document(text.encode(), "nt", key=key)
        found += [document] * (2 if key else 1)
    return found


def _json(draw: random.Random, number: int, key: str | None) -> Document:
    """Of a few objects, of which a map leaves some out, or of none; with times of their own or not; some are wrong."""
    format = draw.choice(("json", "json", "ndjson", "jsonld"))
    map = None if format == "jsonld" else draw.choice((MAP, MAP, CONTEXT))
    times = draw.random() < 0.2
    objects = []
    for place in range(1 if format == "jsonld" else draw.choice((0, 1, 2, 3))):
        object: dict[str, Any] = {"id": f"{EX}s{number}", "p": f"{number}.{place}"}
        if times:
            object["time"] = draw.choice((1, 2, 8, 20))
        objects.append(object if map is not MAP or draw.random() < 0.8 else object | {"p": "no"})
    if format == "jsonld":
        text = json.dumps({"@id": f"{EX}s{number}", f"{EX}p": str(number)})
    elif format == "ndjson":
        text = "\n\n".join(json.dumps(each) for each in objects)
    else:
        text = json.dumps(objects if draw.random() < 0.9 else {"id": f"{EX}s{number}", "p": "x", "time": "?"})
    return Document((text + ("oops" if draw.random() < 0.05 else "")).encode(), format, map, key)


def _outcome(
    monkeypatch: pytest.MonkeyPatch, groups: Sequence[Sequence[tuple[str, Document]]], **options: Any
) -> list[Any]:
    """The answers, and then the results."""
    clock = SetClock()
    clock.time = 2
    monkeypatch.setattr(clocks, "WallClock", lambda delay: clock)
    monkeypatch.setattr(clocks, "ClockThread", NoThread)
    engine = Engine(on_unread="ignore", report=lambda _: None, **options)
    query = engine.register(HOT, changelog=True)
    found = [str(each) for group in groups for each in engine.push_documents(group)]
    clock.time = 30
    engine._follow_clock()
    engine.advance(30)
    return [*found, *((str(result.bindings), result.sign) for result in query.results())]


def test_the_engine_takes_them_in_as_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = []
    for seed in range(60):
        draw = random.Random(seed)
        documents = _documents(draw)
        options = {"clock": draw.choice(("wall", "events")), "lateness": draw.choice((0, 3))}
        together = _outcome(monkeypatch, [documents], **options)
        assert together == _outcome(monkeypatch, [[each] for each in documents], **options), (documents, options)
        outcomes.append(str(together))
    for kind in ("late=1", "late=2", "unread=True", "repeated=True", "oops"):
        assert any(kind in outcome for outcome in outcomes), kind


@pytest.mark.parametrize("map", [MAP, CONTEXT, None])
def test_json_that_is_read_together_has_the_elements_of_each(map: Mapping | MessageContext | None) -> None:
    outcomes = {"read": 0, "wrong": 0}
    for seed in range(40):
        draw = random.Random(seed)
        documents = [document for document in (_json(draw, n, None) for n in range(40)) if document.map is map]
        format = draw.choice(documents).format
        bodies = [each.body for each in documents if each.format == format][:4]
        dictionary, alone = Dictionary(), list[list[Element]]()
        opening = _opening(dictionary, map=map)
        try:
            alone = [
                _texts(dictionary, document_elements(body, format, opening, source="<body>", arrival=ARRIVAL))
                for body in bodies
            ]
        except DataError:
            with pytest.raises(DataError):
                joined_elements(bodies, format, opening, source="<body>", arrival=ARRIVAL)
            outcomes["wrong"] += 1
            continue
        joined = joined_elements(bodies, format, opening, source="<body>", arrival=ARRIVAL)
        assert joined is not None
        bounds = pairwise([0, *joined.ends])
        assert [_texts(dictionary, slice_elements(joined.batch, start, end)) for start, end in bounds] == alone
        outcomes["read"] += 1
    assert outcomes["read"] > 10 and outcomes["wrong"] > 2, outcomes


def test_bodies_with_keys_share_a_step_and_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SetClock()
    clock.time = 2
    monkeypatch.setattr(clocks, "WallClock", lambda delay: clock)
    monkeypatch.setattr(clocks, "ClockThread", NoThread)
    documents = [(READINGS, Document(f'<{EX}s{n}> <{EX}p> "{n}" .'.encode(), "nt", key=f"key{n}")) for n in range(4, 9)]
    documents += [(READINGS, Document(b"oops", "nt", key="wrong"))]
    with Engine(checkpoint=tmp_path / "c", clock="wall") as engine:
        query = engine.register(HOT)
        *taken, wrong = engine.push_documents(documents)
        assert [str(each) for each in taken] == [str(Taken(1))] * 5 and isinstance(wrong, DataError)
        kinds = [record.kind for record in look(tmp_path / "c", 0)]
        assert kinds.count(Kind.ONCE) == 1
        assert len(list(query.results())) == 5
    with Engine(checkpoint=tmp_path / "c", clock="wall") as engine:
        *again, wrong = engine.push_documents(documents)
        assert [str(each) for each in again] == [str(Taken(1, repeated=True))] * 5 and isinstance(wrong, DataError)


def test_a_key_that_comes_again_after_its_time_is_forgotten_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_KEYS", 3)
    monkeypatch.setattr("time.time", lambda: 90_003.0)
    keys = OnceKeys()
    for key, at in (("again", 0), ("old", 80_000), ("again", 90_000), ("c", 90_001), ("d", 90_002)):
        keys.add(Once("s", key, "digest", at, 1))
    assert [once["key"] for once in keys.plain()] == ["again", "c", "d"]
    assert keys.found("s", "again", "digest") is not None
