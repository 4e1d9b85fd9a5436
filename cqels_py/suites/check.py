"""Checks the answer against re-evaluation: pyoxigraph answers the query over the content of the windows at some
instants.

The engine delivers changes. Summed up to an instant, they are its answer there, which holds until the next tick. This
is compared with pyoxigraph's answer at the ends of instants spread over the whole stream: at arrivals, at expiries and
boundaries, and at the last element. Where pyoxigraph has another meaning:

* Its graphs are sets. If a CQELS-QL window holds a triple twice, the rows are compared as a set. Under aggregates
  they may differ; such an instant is not compared.
* SPARQL does not say which of the rows that ORDER BY leaves equal are within LIMIT. In this case the rows must be
  among those without LIMIT, and have the same values in ORDER BY's variables.
* Numbers have its precision (`answers`). `reason_not_to_compare` lists everything that cannot be compared at all.
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
from cqels_py.suites.contents import Contents, Element, elements_of
from cqels_py.suites.peer import Peer
from cqels_py.suites.peer_query import PeerQuery, aggregates, order, peer_query, reason_not_to_compare
from cqels_py.suites.running import ready
from cqels_py.suites.task import Measured, Task

if TYPE_CHECKING:
    from cqels_py.runners.spark.session import Session

INSTANTS = 16
SECONDS = 20.0
"""Seconds of pyoxigraph's work after which only the last instant is still compared."""
_UNSUMMED = 200_000

Ids = npt.NDArray[np.int64]
Tell = Callable[[str, int], None]
Answers = dict[int, Counter[Row]]


def check(task: Task, measured: Measured, session: Session | None, tell: Tell) -> None:
    """Compare the answer, and fill in the outcome."""
    question = peer_query(task.text)
    measured.note = reason_not_to_compare(question.query)
    if measured.note is not None:
        return
    instants = chosen_instants(question.query, task.marks)
    if not instants:
        measured.note = "no instant could be compared: no tick lies before it"
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
    """The instants to compare at, in order: times of elements, of expiries and boundaries, and that of the last
    element.

    Nothing expires after the last element, and there is no answer before the first boundary.
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
    """The first boundary at or after `time`."""
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
        """All results before the last element's instant have been taken; more results of this instant may follow."""
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
        """The current answer is that of the next instant. Its terms are decoded while the dictionary still has them."""
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
    question: PeerQuery, contents: Contents, elements: Iterable[Element], answers: Answers, peer: Peer, tell: Tell
) -> tuple[int, bool | None, str | None]:
    """The number of instants compared, whether all were equal, and a note.

    The second half of the stream is given to the peer.
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
        if wrong is not None and _counts_a_triple_twice(question, contents) and aggregates(question.query):
            left_out += 1
            continue
        compared += 1
        if wrong is not None:
            return compared, False, f"at {instant} µs: {wrong}"
    note = (
        f"at {left_out} other instants a window held a triple twice, which counts once in a graph" if left_out else None
    )
    return compared, True if compared else None, note


def _wrong(question: PeerQuery, contents: Contents, ours: Counter[Row]) -> str | None:
    """A description of the difference; None if the answers are equal."""
    theirs = _answer(question, contents)
    if _counts_a_triple_twice(question, contents) and not aggregates(question.query):
        ours, theirs = Counter(dict.fromkeys(ours, 1)), Counter(dict.fromkeys(theirs, 1))
    only_ours, only_theirs = difference(ours, theirs)
    if not only_ours and not only_theirs:
        return None
    if question.unlimited is not None and _differs_only_by_limit(question, contents, ours, theirs):
        return None
    shown = " and ".join(
        f"{len(rows):,} rows only {whose}, such as {rows[0]}"
        for whose, rows in (("in the answer", only_ours), ("in pyoxigraph's", only_theirs))
        if rows
    )
    return f"of {ours.total():,} rows, {shown}"


def _counts_a_triple_twice(question: PeerQuery, contents: Contents) -> bool:
    """Whether a window holds a triple twice, in a query for which this matters."""
    return contents.repeated and question.query.bag_windows


def _differs_only_by_limit(question: PeerQuery, contents: Contents, ours: Counter[Row], theirs: Counter[Row]) -> bool:
    """Whether the rows differ only in the choice of LIMIT among equal rows."""
    all_rows = _answer(question, contents, unlimited=True)
    places = [question.columns.index(name) for name in order(question.query)]
    keys = [_restricted(bag, places) for bag in (ours, theirs)]
    return ours.total() == theirs.total() and not difference(ours, all_rows)[0] and not any(difference(*keys))


def _restricted(rows: Counter[Row], places: Sequence[int]) -> Counter[Row]:
    return Counter(tuple(row[at] for at in places) for row in rows.elements())


def _answer(question: PeerQuery, contents: Contents, *, unlimited: bool = False) -> Counter[Row]:
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
