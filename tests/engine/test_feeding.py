"""Feeds under a checkpoint: each element is taken in once, and malformed input is told once, wherever a process ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from cqels_py.checkpoints.log import look
from cqels_py.engine import feeding
from cqels_py.engine.durable import logged
from cqels_py.engine.durable.records import Kind
from cqels_py.engine.engine import Engine
from cqels_py.errors import DataError
from tests.engine.test_engine import PREFIX, STREAM, texts
from tests.engine.test_malformed_once import NO_IRI, told
from tests.engine.test_positions import Queue
from tests.support.faults import Crash, Failing, crashed

QUERY = PREFIX + "SELECT ?v { STREAM :s [RANGE 3us] { ?s :v ?v } }"
URL = "test://queue"


def _feed_all(engine: Engine, reports: list[str]) -> None:
    feed = engine.feed(STREAM, URL, report=lambda error: reports.append(str(error)))
    while feed.step() is not None:
        pass


@pytest.mark.parametrize("seed", range(6))
def test_each_piece_is_told_once(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr(logged, "LEAST", random.choice([400, 1 << 20]))
    monkeypatch.setattr(logged, "APART", 0.0)
    messages = [(time, random.choice(["a", "b", NO_IRI]), time) for time in sorted(random.sample(range(200), 50))]
    monkeypatch.setattr(feeding, "source_of", lambda url: Queue(messages, lambda: random.randrange(4)))

    def run(checkpoint: Path | None, rejects: Path) -> Engine:
        engine = Engine(checkpoint=checkpoint, rejects=rejects, on_error="skip", report=lambda _: None)
        try:
            engine.register(QUERY, name="q").subscribe(lambda _: None)
            _feed_all(engine, [])
            engine.close()
        except Crash:
            crashed(engine)
            raise
        return engine

    whole = run(None, tmp_path / "whole.rejects")
    engine = Failing(monkeypatch).completed(random, lambda: run(tmp_path / "c", tmp_path / "c.rejects"))
    wrong = sum(subject == NO_IRI for _, subject, _ in messages)
    assert engine.statistics.elements == whole.statistics.elements == len(messages) - wrong
    assert engine.statistics.malformed == whole.statistics.malformed == wrong
    assert told(tmp_path / "c.rejects") == told(tmp_path / "whole.rejects")


def _kinds(folder: Path) -> list[int]:
    return [record.kind for record in look(folder, 0)]


def test_the_position_of_polls_without_elements_is_logged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue([(1, "a", 1), (2, NO_IRI, 2), (3, NO_IRI, 3)], lambda: 1)
    monkeypatch.setattr(feeding, "source_of", lambda url: queue)
    reports: list[str] = []
    engine = Engine(checkpoint=tmp_path)
    engine.register(QUERY, name="q")
    _feed_all(engine, reports)
    assert _kinds(tmp_path)[-3:] == [Kind.FED, Kind.FED_PASSED, Kind.FED_PASSED]
    assert queue.committed[-1] == (("partition", 3),) and len(reports) == 2
    crashed(engine)
    again = Engine(checkpoint=tmp_path)
    again.register(QUERY, name="q")
    _feed_all(again, reports)
    assert len(reports) == again.statistics.malformed == 2
    assert again.statistics.rejected == {(STREAM, "malformed"): 2}
    again.close()


@pytest.mark.parametrize(("position", "malformed"), [(lambda: None, 2), (lambda: 0, 0)])
def test_pieces_of_a_poll_that_fails_are_told_where_they_do_not_come_again(
    position: Callable[[], object], malformed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue([(1, NO_IRI, 1), (2, NO_IRI, 2)], lambda: 2)

    def poll() -> None:
        Queue.poll(queue)
        raise DataError("the connection broke")

    monkeypatch.setattr(queue, "poll", poll)
    monkeypatch.setattr(queue, "position", position)
    monkeypatch.setattr(feeding, "source_of", lambda url: queue)
    engine = Engine(checkpoint=tmp_path)
    engine.register(QUERY, name="q")
    feed = engine.feed(STREAM, URL)
    with pytest.raises(DataError, match="broke"):
        feed.step()
    feed.close()
    assert engine.statistics.malformed == malformed
    engine.close()


def test_a_feed_whose_only_query_has_gone_is_not_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "source_of", lambda url: Queue([(1, "a", 1)], lambda: 1))
    monkeypatch.setattr(feeding, "is_paused", lambda engine, stream: True)
    with Engine() as engine:
        query = engine.register(QUERY)
        feed = engine.feed(STREAM, URL)
        assert feed.step() == 0 and feed.paused
        engine.unregister(query)
        assert feed.step() == 0 and not feed.paused


def test_a_poll_that_fails_leaves_results_and_reports_of_pushed_elements_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue([], lambda: 1)

    def poll() -> None:
        raise DataError("the connection broke")

    monkeypatch.setattr(queue, "poll", poll)
    monkeypatch.setattr(feeding, "source_of", lambda url: queue)

    def pushed(on_error: str, report: Callable[[Exception], object]) -> tuple[Engine, list[int]]:
        engine, numbers = Engine(batch=100, on_error=on_error, report=report), list[int]()
        engine.register(QUERY).subscribe(lambda result: numbers.append(result.number))
        for time, subject in enumerate(("a", NO_IRI)):
            engine.push(STREAM, [texts(subject, time)], time=time)
        assert not numbers
        return engine, numbers

    reports: list[str] = []
    engine, numbers = pushed("skip", lambda error: reports.append(str(error)))
    with pytest.raises(DataError, match="broke"):
        engine.feed(STREAM, URL).step()
    assert numbers == [1] and len(reports) == engine.statistics.malformed == 1
    engine, numbers = pushed("stop", lambda error: None)
    with pytest.raises(DataError, match="broke") as raised:
        engine.feed(STREAM, URL).step()
    assert numbers == [1] and len(raised.value.__notes__) == 1
