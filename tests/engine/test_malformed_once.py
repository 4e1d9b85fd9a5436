"""Malformed input of sources that can begin at a position is told once, and never lost, wherever a process ends."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cqels_py.engine.durable import logged
from cqels_py.engine.engine import Engine
from cqels_py.errors import DataError
from tests.engine.test_engine import OTHER, PREFIX, STREAM
from tests.engine.test_positions import Queue, Topic
from tests.support.faults import Crash, Failing, crashed

QUERY = PREFIX + "SELECT ?v ?w { STREAM :s [RANGE 3us] { ?s :v ?v } OPTIONAL { STREAM :t [COUNT 2] { ?s :v ?w } } }"
NO_IRI = "no iri"


@pytest.mark.parametrize("kind", ["queue", "partitions"])
@pytest.mark.parametrize("seed", range(4))
def test_each_piece_is_told_once(seed: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr(logged, "LEAST", random.choice([400, 1 << 20]))
    monkeypatch.setattr(logged, "APART", 0.0)
    times = sorted(random.sample(range(200), 60))
    subjects = [random.choice(["a", "b", NO_IRI]) for _ in times]
    messages = [
        [(time, subject, time) for time, subject in list(zip(times, subjects, strict=True))[at::2]] for at in (0, 1)
    ]

    def sources() -> dict[str, Any]:
        by_stream = zip((STREAM, OTHER), messages, strict=True)
        if kind == "partitions":
            return {iri: Topic(each, random) for iri, each in by_stream}
        return {iri: Queue(each, lambda: random.randrange(4)) for iri, each in by_stream}

    def run(checkpoint: Path | None, rejects: Path, **more: Any) -> Engine:
        engine = Engine(checkpoint=checkpoint, rejects=rejects, on_error="skip", report=lambda _: None, **more)
        try:
            engine.register(QUERY, changelog=True, name="q").subscribe(lambda _: None)
            engine.run(sources())
            engine.close()
        except Crash:
            crashed(engine)
            raise
        return engine

    whole = run(None, tmp_path / "whole.rejects")
    engine = Failing(monkeypatch).completed(
        random, lambda: run(tmp_path / "c", tmp_path / "c.rejects", batch=random.choice([None, 1, 2]))
    )
    assert engine.statistics.elements == whole.statistics.elements == 60 - subjects.count(NO_IRI)
    assert engine.statistics.malformed == whole.statistics.malformed == subjects.count(NO_IRI)
    assert told(tmp_path / "c.rejects") == told(tmp_path / "whole.rejects")


def told(file: Path) -> list[str]:
    return sorted(json.dumps(json.loads(line)) for line in file.read_text().splitlines())


def test_pieces_of_a_run_that_fails_come_again_with_the_next(tmp_path: Path) -> None:
    polls = iter([2, 2])

    def most() -> int:
        if (found := next(polls, None)) is None:
            raise DataError("the connection broke")
        return found

    messages = [(1, "a", 1), (2, NO_IRI, 2), (3, "b", 3), (4, NO_IRI, 4), (5, NO_IRI, 5), (6, "a", 6)]
    reports: list[str] = []
    engine = Engine(checkpoint=tmp_path, on_error="skip", report=lambda error: reports.append(str(error)))
    engine.register(PREFIX + "SELECT ?v { STREAM :s [NOW] { ?s :v ?v } }")
    with pytest.raises(DataError, match="broke"):
        engine.run({STREAM: Queue(messages, most)})
    assert len(reports) == 2
    engine.run({STREAM: Queue(messages, lambda: 2)})
    assert len(reports) == engine.statistics.malformed == 3
    assert engine.statistics.elements == 3
    engine.close()
