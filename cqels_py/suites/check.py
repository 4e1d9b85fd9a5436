"""Is the answer that of re-evaluation? pyoxigraph is asked the rest of the query over the windows' contents, at some instants.

The engine delivers its changes; summed up to an instant they are its answer there, which holds until the next tick. That is compared
with pyoxigraph's at the ends of instants spread over the whole stream: at arrivals, at expiries and boundaries, and at the last
element. Where pyoxigraph has another meaning:

* Its graphs are sets. Where a CQELS-QL window holds a triple twice, the rows are compared as a set; under aggregates they may
  differ, and such an instant then says nothing.
* Which of the rows that ORDER BY leaves equal are within LIMIT is free: then the rows must be among those without LIMIT, and
  have the same values in ORDER BY's variables.
* Numbers have its precision (`answers`). What cannot be compared at all, `asked.reason_not_to` names.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from cqels_py.algebra import nodes
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.runners.statistics import Statistics
from cqels_py.suites.answers import Row, cell, difference, read_terms
from cqels_py.suites.asked import Asked, aggregates, asked, order, reason_not_to
from cqels_py.suites.contents import Contents, Element, elements_of
from cqels_py.suites.peer import Peer
from cqels_py.suites.running import ready
from cqels_py.suites.task import Measured, Task

if TYPE_CHECKING:
    from cqels_py.runners.spark.session import Session

INSTANTS = 16
SECONDS = 20.0
"""When pyoxigraph has needed so long, only the last instant is still compared."""
_UNSUMMED = 200_000

Ids = npt.NDArray[np.int64]
Tell = Callable[[str, int], None]
Answers = dict[int, Counter[Row]]


def check(task: Task, measured: Measured, session: Session | None, tell: Tell) -> None:
    """Fill in whether the answer is right."""
    question = asked(task.text)
    measured.note = reason_not_to(question.query)
    if measured.note is not None:
        return
    instants = chosen_instants(question.query, task.marks)
    if not instants:
        measured.note = "no tick is old enough to be compared"
        return
    recorder = Recorder(instants)

    def look(statistics: Statistics) -> None:
        recorder.look(statistics)
        tell("checking", statistics.triples)

    with ready(task, session, changelog=True) as run:
        recorder.decode_with(run.dictionary)
        run.run(recorder.take, look)
    answers = recorder.finish()
    contents = Contents(question.query.windows, task.static)
    elements = elements_of({iri: task.streams[iri] for iri in run.plan.streams})
    peer = Peer(question, contents)
    measured.compared, measured.equal, measured.note = compare(question, contents, elements, answers, peer, tell)
    measured.peer_triples_per_second = peer.rate
    if peer.rate is not None and measured.triples_per_second is not None:
        measured.peer_ratio = measured.triples_per_second / peer.rate
    if question.query.output is nodes.Output.ISTREAM and measured.equal and recorder.insertions != measured.results:
        measured.equal = False
        measured.note = f"{recorder.insertions:,} rows became true, and {measured.results:,} were delivered"


def chosen_instants(query: nodes.ContinuousQuery, marks: Mapping[str, Sequence[int]]) -> list[int]:
    """Instants to compare at, in order: elements' times, times of expiries and boundaries, and the last element's.

    Behind the last element nothing expires any more, and ahead of the first boundary there is no answer yet.
    """
    mine = sorted({mark for window in query.windows for mark in marks[str(window.stream)]})
    if not mine:
        return []
    first, last = mine[0], mine[-1]
    ranges = [window.extent for window in query.windows if isinstance(window.extent, nodes.TimeRange)]
    found = {last}
    for number, at in enumerate(np.linspace(0, len(mine) - 1, INSTANTS, dtype=int)):
        extent = ranges[number % len(ranges)] if ranges and number % 2 else None
        if extent is None:
            found.add(mine[at])
        elif extent.step is None:
            found.add(mine[at] + extent.delay + extent.width)
        else:
            found.add(_boundary(extent, extent.step, mine[at]))
    begin = first
    for each in (window.extent for window in query.windows):
        if isinstance(each, nodes.TimeRange | nodes.Session) and each.step is not None:
            begin = max(begin, _boundary(each, each.step, first))
        elif isinstance(each, nodes.ElementCount | nodes.TripleCount) and each.step is not None:
            begin = max(begin, mine[len(mine) // 8])
    return sorted(instant for instant in found if begin <= instant <= last)


def _boundary(extent: nodes.TimeRange | nodes.Session, step: int, time: int) -> int:
    """The first one that is not ahead of `time`."""
    return extent.start - (extent.start - time) // step * step


class Recorder:
    """Sums up changes, and keeps the answers at the ends of the instants."""

    def __init__(self, instants: Sequence[int]) -> None:
        self._waiting = list(reversed(instants))
        self._dictionary: Dictionary | None = None
        self._rows: Ids | None = None
        self._counts: Ids = np.empty(0, np.int64)
        self._changes: list[tuple[Ids, Ids]] = []
        self._unsummed = 0
        self.insertions = 0
        self.answers: Answers = {}

    def decode_with(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary

    def take(self, batch: ResultBatch) -> None:
        self.insertions += int(np.count_nonzero(batch.sign > 0))
        rows = np.stack(batch.columns, axis=1) if batch.columns else np.empty((len(batch), 0), np.int64)
        start = 0
        while self._waiting and start < len(batch) and batch.time[-1] > self._waiting[-1]:
            cut = int(np.searchsorted(batch.time, self._waiting[-1], side="right"))
            self._add(rows[start:cut], batch.sign[start:cut])
            self._keep()
            start = cut
        self._add(rows[start:], batch.sign[start:])

    def look(self, statistics: Statistics) -> None:
        """All results up to the last element's instant have been taken; those of this instant may go on."""
        while self._waiting and statistics.event_time is not None and statistics.event_time > self._waiting[-1]:
            self._keep()

    def finish(self) -> Answers:
        while self._waiting:
            self._keep()
        return self.answers

    def _add(self, rows: Ids, signs: npt.NDArray[np.int8]) -> None:
        self._changes.append((rows, signs.astype(np.int64)))
        self._unsummed += len(rows)
        if self._unsummed > _UNSUMMED:
            self._sum()

    def _sum(self) -> None:
        known = [] if self._rows is None else [(self._rows, self._counts)]
        parts = [*known, *self._changes]
        if not parts:
            return
        rows = np.concatenate([part[0] for part in parts])
        signs = np.concatenate([part[1] for part in parts])
        self._changes, self._unsummed = [], 0
        if rows.shape[1] == 0:
            self._rows, self._counts = rows[:1], np.array([signs.sum()])
            return
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        counts = np.zeros(len(distinct), np.int64)
        np.add.at(counts, place.ravel(), signs)
        self._rows, self._counts = distinct[counts != 0], counts[counts != 0]

    def _keep(self) -> None:
        """The answer as it is now is that of the next instant; its terms are decoded as long as they are known."""
        assert self._dictionary is not None
        self._sum()
        instant = self._waiting.pop()
        if self._rows is None:
            self.answers[instant] = Counter()
            return
        ids, place = np.unique(self._rows, return_inverse=True)
        cells = read_terms(self._dictionary.decode(ids))
        places = cast(list[list[int]], place.reshape(self._rows.shape).tolist())
        summed: Counter[Row] = Counter()
        for row, count in zip(places, self._counts.tolist(), strict=True):
            summed[tuple(cells[at] for at in row)] += count
        self.answers[instant] = +summed


def compare(
    question: Asked, contents: Contents, elements: Iterable[Element], answers: Answers, peer: Peer, tell: Tell
) -> tuple[int, bool | None, str | None]:
    """At how many instants was compared, were all equal, and what is to be said about it.

    The second half of the stream goes to the peer.
    """
    needed = 0.0
    compared, left_out = 0, 0
    arrivals = _Arrivals(elements)
    instants = sorted(answers)
    for number, instant in enumerate(instants):
        for element in arrivals.through(instant):
            peer.take(element)
        if number == len(instants) // 2:
            peer.start(instant)
        if needed > SECONDS and number < len(instants) - 1:
            continue
        contents.move(instant)
        tell("checking", 0)
        started = time.perf_counter()
        wrong = _wrong(question, contents, answers[instant])
        needed += time.perf_counter() - started
        if wrong is not None and _counts_otherwise(question, contents) and aggregates(question.query):
            left_out += 1
            continue
        compared += 1
        if wrong is not None:
            return compared, False, f"at {instant} µs: {wrong}"
    note = (
        f"at {left_out} other instants a window held a triple twice, which counts once in a graph" if left_out else None
    )
    return compared, True if compared else None, note


def _wrong(question: Asked, contents: Contents, ours: Counter[Row]) -> str | None:
    """What is different, or None."""
    theirs = _answer(question, contents)
    if _counts_otherwise(question, contents) and not aggregates(question.query):
        ours, theirs = Counter(dict.fromkeys(ours, 1)), Counter(dict.fromkeys(theirs, 1))
    only_ours, only_theirs = difference(ours, theirs)
    if not only_ours and not only_theirs:
        return None
    if question.unlimited is not None and _chosen_otherwise(question, contents, ours, theirs):
        return None
    shown = " and ".join(
        f"{len(rows):,} rows only {whose}, such as {rows[0]}"
        for whose, rows in (("in the answer", only_ours), ("in pyoxigraph's", only_theirs))
        if rows
    )
    return f"of {ours.total():,} rows, {shown}"


def _counts_otherwise(question: Asked, contents: Contents) -> bool:
    """Does a window hold a triple twice, where that makes a difference?"""
    return contents.repeated and question.query.bag_windows


def _chosen_otherwise(question: Asked, contents: Contents, ours: Counter[Row], theirs: Counter[Row]) -> bool:
    """Did LIMIT only choose other rows among equal ones?"""
    all_rows = _answer(question, contents, unlimited=True)
    places = [question.columns.index(name) for name in order(question.query)]
    keys = [_restricted(bag, places) for bag in (ours, theirs)]
    return ours.total() == theirs.total() and not difference(ours, all_rows)[0] and not any(difference(*keys))


def _restricted(rows: Counter[Row], places: Sequence[int]) -> Counter[Row]:
    return Counter(tuple(row[at] for at in places) for row in rows.elements())


def _answer(question: Asked, contents: Contents, *, unlimited: bool = False) -> Counter[Row]:
    return Counter(tuple(map(cell, row)) for row in question.rows(contents.store, unlimited=unlimited))


class _Arrivals:
    """Elements in order, up to one instant and then to the next."""

    def __init__(self, elements: Iterable[Element]) -> None:
        self._elements = iter(elements)
        self._next = next(self._elements, None)

    def through(self, instant: int) -> Iterator[Element]:
        while self._next is not None and self._next.time <= instant:
            yield self._next
            self._next = next(self._elements, None)
