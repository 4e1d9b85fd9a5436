"""Sources of one `run` that do not keep pace: queries wait for the streams that they read, and for no others."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.engine.engine import Engine, Query
from cqels_py.sources.protocol import Opening, Source

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}>\n"
A, B, C = (EX + name for name in "abc")
READS_A = "SELECT ?s ?o { STREAM :a [RANGE 5us] { ?s :p ?o } }"
COUNTS_B = "SELECT (COUNT(*) AS ?n) { STREAM :b [RANGE 6us STEP 2us] { ?s :p ?o } }"
READS_AB = "SELECT ?s ?o ?q { STREAM :a [RANGE 5us] { ?s :p ?o } STREAM :b [RANGE 9us] { ?s :p ?q } }"
READS_BC = "SELECT ?s ?q ?r { STREAM :b [RANGE 4us] { ?s :p ?q } STREAM :c [ROWS 2] { ?s :p ?r } }"
QUERIES = (READS_A, COUNTS_B, READS_AB, READS_BC)
Poll = Sequence[tuple[int, str]]
Rows = list[tuple[int, int, str]]


class Scripted:
    """A live stream: what each poll finds, perhaps nothing. `seen` is called before each poll with its number."""

    def __init__(self, polls: Sequence[Poll], seen: Callable[[int], object] = lambda _: None) -> None:
        self._polls = list(polls)
        self._at = 0
        self._seen = seen
        self.idle = False

    @property
    def ended(self) -> bool:
        return self._at == len(self._polls)

    def open(self, opening: Opening) -> Source:
        self._opening = opening
        return self

    def poll(self) -> ElementBatch | None:
        self._seen(self._at)
        if self._at == len(self._polls):
            return None
        found = self._polls[self._at]
        self._at += 1
        return self._opening.elements((time, [(f"<{EX}{name}>", f"<{EX}p>", f'"{time}"')]) for time, name in found)

    def position(self) -> None: ...

    def commit(self, position: object) -> None: ...

    def close(self) -> None: ...


def rows(query: Query) -> Rows:
    return [(each.time, each.sign, str(sorted(each.bindings.items()))) for each in query.results()]


def results(polls: dict[str, Sequence[Poll]], texts: Sequence[str], **options: int) -> tuple[list[Rows], Engine]:
    engine = Engine(report=lambda _: None, **options)
    queries = [engine.register(PREFIX + text, changelog=True) for text in texts]
    streams = {stream for query in queries for stream in query.streams}
    engine.run({stream: Scripted(each) for stream, each in polls.items() if stream in streams})
    return [rows(query) for query in queries], engine


def drawn(draw: random.Random, *, often_empty: bool) -> list[Poll]:
    """Polls of a stream in order of time, some of which find nothing."""
    polls: list[Poll] = []
    now = draw.randrange(30)
    for _ in range(draw.randrange(10, 30)):
        poll = []
        for _ in range(0 if often_empty and draw.random() < 0.6 else draw.randrange(5)):
            now += draw.choice((0, 1, 1, 2, 5))
            poll.append((now, draw.choice("xyz")))
        polls.append(poll)
    return polls


def whole(polls: Sequence[Poll]) -> list[Poll]:
    """The same elements, all found by the first poll."""
    return [[each for poll in polls for each in poll]]


@pytest.mark.parametrize("seed", range(30))
def test_results_do_not_depend_on_which_source_lags(seed: int) -> None:
    draw = random.Random(seed)
    polls = {stream: drawn(draw, often_empty=draw.random() < 0.5) for stream in (A, B, C)}
    found, engine = results(polls, QUERIES, lateness=draw.choice((0, 3)), batch=draw.choice((1, 3, 1000)))
    assert engine.statistics.late == 0
    assert engine.statistics.elements == sum(len(poll) for each in polls.values() for poll in each)
    for text, of_query in zip(QUERIES, found, strict=True):
        (alone,), _ = results({stream: whole(each) for stream, each in polls.items()}, (text,))
        assert sorted(of_query) == sorted(alone), text
        assert [row[0] for row in of_query] == [row[0] for row in alone], text


def first_results(query: Query, at: list[int]) -> Callable[[int], object]:
    """Notes at which polls of a source a query has had results."""

    def seen(poll: int) -> None:
        if list(query.results()):
            at.append(poll)

    return seen


def test_a_stream_that_lags_holds_up_no_query_that_does_not_read_it() -> None:
    engine = Engine()
    apart, both = (engine.register(PREFIX + text) for text in (READS_A, READS_AB))
    live = [[(100 + at, "x")] for at in range(20)]
    lagging: list[Poll] = [[(1, "x")], *([[]] * 10), *([(90 + at, "x")] for at in range(20))]
    noted: list[int] = []
    engine.run({A: Scripted(live), B: Scripted(lagging, first_results(apart, noted))})
    assert min(noted) < 5
    assert len([*both.results()]) > 0
    assert engine.statistics.late == 0


def test_a_backlog_holds_up_no_live_stream() -> None:
    """It has elements at each poll, all of them old."""
    engine = Engine()
    apart, both = (engine.register(PREFIX + text) for text in (READS_A, READS_AB))
    live: list[Poll] = [[], *([(1000 + at, "x")] for at in range(20))]
    backlog = [[(900 + at, "x")] for at in range(100)]
    noted: list[int] = []
    engine.run({A: Scripted(live), B: Scripted(backlog, first_results(apart, noted))})
    assert min(noted) < 5
    assert next(each.time for each in both.results()) == 1000
    assert engine.statistics.late == 0


def test_queries_over_the_same_streams_leave_the_order_to_the_merge() -> None:
    """Then a source is not read while its elements would only wait."""
    engine = Engine()
    engine.register(PREFIX + READS_AB)
    engine.register(PREFIX + READS_AB.replace("9us", "8us"))
    polled: list[int] = []
    live = [[(100 + at, "x")] for at in range(20)]
    lagging: list[Poll] = [[(1, "x")], *([[]] * 10), [(200, "x")]]
    until: list[int] = []
    engine.run({A: Scripted(live, polled.append), B: Scripted(lagging, lambda at: until.append(len(polled)))})
    assert until[10] <= 3


def test_elements_after_a_run_are_not_held() -> None:
    engine = Engine()
    engine.register(PREFIX + READS_A)
    both = engine.register(PREFIX + READS_AB)
    engine.run({A: Scripted([[(1, "x")], [], [(5, "x")]]), B: Scripted([[], [(2, "x")], []])}, more=True)
    list(both.results())
    engine.push(A, [(f"<{EX}x>", f"<{EX}p>", '"6"')], time=6)
    assert [each.time for each in both.results()] == [6]


def polls_of(counts: Sequence[int]) -> Iterator[Poll]:
    yield from ([(at, "x")] for at in counts)


def test_what_waits_for_other_streams_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cqels_py.runners.local._MOST_EARLY", 10)
    engine = Engine()
    engine.register(PREFIX + READS_A)
    engine.register(PREFIX + READS_AB)
    polled: list[int] = []
    lagging: list[Poll] = [[(1, "x")], *([[]] * 50), [(300, "x")]]
    until: list[int] = []
    source = Scripted([*polls_of(range(100, 200))], polled.append)
    engine.run({A: source, B: Scripted(lagging, lambda at: until.append(len(polled)))})
    assert 8 <= until[50] <= 14
    assert engine.statistics.late == 0
    assert engine.statistics.elements == 102


class Stopped(Exception):
    """Ends the reading of sources."""


@pytest.mark.parametrize("seed", range(12))
def test_elements_that_wait_for_a_stream_still_do_so_after_a_restart(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    polls = {stream: drawn(draw, often_empty=stream == B or draw.random() < 0.5) for stream in (A, B)}
    texts = (READS_A, READS_AB)
    wanted, _ = results(polls, texts)
    sources = {stream: Scripted(each) for stream, each in polls.items()}
    found: list[dict[int, tuple[int, int, str]]] = [{}, {}]
    stops = iter([draw.randrange(3, 12), draw.randrange(3, 12), 1000])
    while any(not each.ended for each in sources.values()):
        left = next(stops)

        def progress(_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Stopped

        engine = Engine(checkpoint=tmp_path / "checkpoint", report=lambda _: None)
        queries = [engine.register(PREFIX + text, changelog=True, name=text) for text in texts]
        with suppress(Stopped):
            engine.run(sources, progress=progress)
        if draw.random() < 0.5:
            engine.checkpoint()
        for query, rows_of_query in zip(queries, found, strict=True):
            for each in query.results():
                rows_of_query[each.number] = (each.time, each.sign, str(sorted(each.bindings.items())))
        engine.close()
    assert engine.statistics.late == 0
    assert [[rows[number] for number in sorted(rows)] for rows in found] == wanted


def test_time_follows_the_clock_where_sources_have_caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source with a backlog holds up its own queries only: the silence of another stream is told meanwhile."""
    now = 2_000
    monkeypatch.setattr("cqels_py.event_time.wall_clock.WallClock._read", lambda _: (now / 1_000_000, 0.0))
    engine = Engine(clock="wall", clock_delay=0)
    # Time is not to go on before the run.
    engine._inputs.expects_run = True
    silent, both = (
        engine.register(PREFIX + text, changelog=True)
        for text in ("SELECT ?s { STREAM :a [RANGE 5us] { ?s :p ?o } }", READS_AB)
    )
    noted: list[int] = []

    def seen(poll: int) -> None:
        nonlocal now
        now = 2_000 + 10 * poll
        noted.extend(poll for each in silent.results() if each.sign < 0)

    quiet: list[Poll] = [[(2_001, "x")], *([[]] * 40)]
    backlog = [[(1_000 + at, "x")] for at in range(30)]
    engine.run({A: Scripted(quiet), B: Scripted(backlog, seen)})
    assert noted
    assert min(noted) < 10
    assert engine.statistics.late == 0
    list(both.results())
    engine.close()


class Pausing(Scripted):
    """A live stream that notes how long a poll may wait."""

    def open(self, opening: Opening) -> Source:
        self.pause = opening.pause
        return super().open(opening)


def test_all_live_sources_are_asked_within_one_interval() -> None:
    engine = Engine()
    engine.register(PREFIX + READS_A)
    sources = {A: Pausing([[(1, "x")]])}
    engine.run(sources)
    alone = sources[A].pause
    engine.register(PREFIX + READS_BC)
    several = {stream: Pausing([[(2, "x")]]) for stream in (A, B, C)}
    engine.run(several)
    assert [each.pause for each in several.values()] == [pytest.approx(alone / 3)] * 3
