"""Queries that run: their dataflows, the receivers of their results, and the steps that they take together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import slice_elements
from cqels_py.batches.results import ResultBatch, copied
from cqels_py.dataflow import Dataflow
from cqels_py.dataflow.batch_programs import BatchPrograms, batch_programs_of
from cqels_py.dataflow.moving import Move
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.shared_program import SharedProgram, shared_program_of
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dataflow.step_program import Outcome, StepProgram
from cqels_py.dataflow.turnover import Turnover
from cqels_py.errors import RunError
from cqels_py.runners.chaining import last_time
from cqels_py.runners.stream_views import NO_ARRIVALS, NOTHING, ElementTicks, StepElements, StreamView
from cqels_py.state.stop import Stopped, Wanting

BEFORE_ALL = np.iinfo(np.int64).min
_FEW = 4
"""So many elements are taken in one by one where programs do it, as each step by calls takes longer, with however few elements."""


class ResultReceiver(Protocol):
    """The receiver of a query's results."""

    def deliver(self, batch: ResultBatch) -> None:
        """Results of the current step, in order."""
        ...

    def share(self, batch: ResultBatch, others: Sequence[Any]) -> Sequence[Any]:
        """Have results of the current step, which are to be given here, delivered to other receivers (`ResultBatch.others`).

        `others`: the same object while they are the same. Returns those to which the results have to be given.
        """
        ...

    def fail(self, error: RunError) -> None:
        """The query has lost its state, and is detached: no more results follow."""
        ...


class Feed(Protocol):
    """The output of a query that other queries read later in the same step.

    `streams`: those that it constructs. `watched`: the streams that advance its event time.
    """

    streams: tuple[int, ...]
    watched: frozenset[int]

    def take(self, results: ResultBatch, view: StreamView, element_tick: ElementTicks) -> None:
        """Results of the current step, which follow from the elements of `view`."""
        ...

    def merged_into(self, elements: ElementBatch) -> ElementBatch:
        """The step's elements, with those that this query has constructed."""
        ...


class RunningQuery:
    """A dataflow, the engine's numbers of its streams, and the receiver of its results.

    Of queries with equal results one takes part in steps, and `followers` get its results. `by_clock`: whether its time follows the
    clock, if it says so; None: its streams decide.
    """

    def __init__(
        self, dataflow: Dataflow, streams: Sequence[int], receiver: ResultReceiver, *, by_clock: bool | None = None
    ) -> None:
        self.by_clock = by_clock
        self.dataflow = dataflow
        self.streams = tuple(streams)
        self._receiver = receiver
        self._detached = False
        self.is_stopping = False
        """Has somebody asked to evaluate it no further?"""
        self.feed: Feed | None = None
        self.followers: tuple[RunningQuery, ...] = ()
        # The followers when their receivers were collected.
        self._told: tuple[RunningQuery, ...] = ()
        self._receivers: tuple[ResultReceiver, ...] = ()
        self._leader: RunningQuery | None = None
        # Once it is detached: the one of its followers that takes part in steps in its place.
        self._successor: RunningQuery | None = None

    @property
    def follows(self) -> bool:
        """Does it get the results of another query?"""
        return self._leader is not None

    @property
    def acting(self) -> RunningQuery:
        """The query that takes part in steps in its place, once it is detached, or itself."""
        return self if self._successor is None else self._successor.acting

    def follow(self, leader: RunningQuery) -> None:
        """From now on, between two steps, get the results of another query that has the same ones, and so do its own followers."""
        joined, self.followers = (self, *self.followers), ()
        leader.followers = (*leader.followers, *joined)
        for each in joined:
            each._leader = leader
            each.dataflow.follow(leader.dataflow)

    def detach(self) -> None:
        """Unregister the query. If its own receiver causes this, it gets no more results of the current step."""
        self._detached = True
        self._successor = self._leave()
        self.dataflow.detach()

    def stop(self, wanting: Wanting) -> None:
        """Evaluate it no further: a step that does so ends soon for it. For any thread. `wanting`: who else there is."""
        self.is_stopping = True
        self.dataflow.ask_to_stop(wanting)

    def part(self) -> None:
        """From now on, between two steps, take part in steps on scans of its own."""
        former = self.dataflow
        if former.shared_scans.key is not None:
            self._leave()
            self.dataflow = former.apart()
            former.detach()

    def _leave(self) -> RunningQuery | None:
        """Have the same results as others no longer; returns the follower that takes part in steps in its place, if one does."""
        if self._leader is not None:
            self._leader.followers = tuple([each for each in self._leader.followers if each is not self])
            self._leader = None
            self.dataflow.count_with(None)
        if not self.followers:
            return None
        first, *rest = self.followers
        self.followers, first.followers, first._leader = (), tuple(rest), None
        for each in rest:
            each._leader = first
        first.dataflow.take_over(self.dataflow)
        for each in rest:
            each.dataflow.count_with(first.dataflow)
        return first

    @property
    def feeds(self) -> bool:
        """Do other queries read the triples that it constructs, or its changelog?"""
        # Links between changelogs construct no streams, but are read.
        return self.feed is not None and bool(self.feed.streams or self.feed.watched)

    @property
    def is_detached(self) -> bool:
        """Does it take part in no more steps?"""
        return self._detached

    def stop_beyond(self, most: int) -> None:
        """Detach the query if its state has more bytes than `most`: no more results follow."""
        size = self.dataflow.nbytes
        if size > most and not self._detached:
            self.detach()
            self._receiver.fail(
                RunError(
                    f"{self.dataflow.plan.title} has been stopped: its state has {size:,} bytes, and max_state allows {most:,}; a "
                    "smaller window keeps less, and explain shows its memory"
                )
            )

    def process(self, routed: RoutedBatch, view: StreamView) -> int:
        """Take part in a step of the elements of `view`; returns the number of results."""
        if self._successor is not None:
            return self._successor.process(routed, view)
        try:
            results = self.dataflow.process(routed)
        except Exception as error:
            self.lose(error)
            return 0
        return self._deliver(results, view, routed.step.element_tick, self.followers)

    def process_by(self, programs: BatchPrograms, routed: RoutedBatch, view: StreamView) -> int:
        """As `process`, by the query's program, if it has one."""
        if self._successor is not None:
            return self._successor.process_by(programs, routed, view)
        try:
            results = programs.run(self.dataflow)
        except Exception as error:
            self.lose(error)
            return 0
        if results is None:
            return self.process(routed, view)
        return self._deliver(results, view, routed.step.element_tick, self.followers) if results else 0

    def update_static(self, static: StaticData) -> int:
        """Replace the static data; returns the number of results."""
        return self._deliver(self.dataflow.update_static(static), _NO_ELEMENTS, NO_ARRIVALS)

    def _deliver(
        self,
        results: Iterable[ResultBatch],
        view: StreamView,
        element_tick: ElementTicks,
        followers: tuple[RunningQuery, ...] = (),
    ) -> int:
        count = 0
        try:
            for batch in results:
                if self.is_stopping and all(each.is_stopping for each in followers):
                    raise Stopped("it was asked for")
                if not len(batch.time):
                    continue
                if self.feed is not None:
                    self.feed.take(batch, view, element_tick)
                apart = self._share(followers, batch) if followers else ()
                rows = len(batch.time)
                self.dataflow.results.rows_out += rows
                if not self._detached:
                    self._receiver.deliver(batch)
                    count += rows
                for each in apart:
                    each._receiver.deliver(copied(batch))
                count += len(followers) * rows
                if self._detached and not followers:
                    break
        except Exception as error:
            self.lose(error)
        return count

    def _share(self, followers: tuple[RunningQuery, ...], batch: ResultBatch) -> Sequence[RunningQuery]:
        """Have results that are about to be delivered delivered to followers together; returns the others of these."""
        batch.made = {}
        if self._detached:
            return [each for each in followers if not each._detached]
        if followers is not self._told:
            self._told, self._receivers = followers, tuple([each._receiver for each in followers])
        apart = self._receiver.share(batch, self._receivers)
        return [each for each in followers if each._receiver in apart and not each._detached] if apart else ()

    def deliver(self, results: ResultBatch) -> int:
        """Results of the current step; returns how many."""
        count = len(results.time)
        self.dataflow.results.rows_out += count
        self._receiver.deliver(results)
        return count

    def deliver_to_all(self, results: ResultBatch) -> int:
        """Results of the step of one element, also to the queries that follow this one; returns how many."""
        return self._deliver((results,), _NO_ELEMENTS, NO_ARRIVALS, self.followers)

    def lose(self, error: Exception) -> None:
        """A step of this query has raised an error: it is detached, and so are those that follow it, as their state is lost.

        Others go on, but for those that read the source that has failed: see `QueriesOnScans`.
        """
        lost = (self, *self.followers)
        for each in reversed(lost):
            if not each._detached:
                each.detach()
                each._receiver.fail(failure_of(each.dataflow.plan.title, error))


class QueriesOnScans:
    """The queries on the same shared scans, which take part in their steps together. One that feeds others is alone on its scans."""

    def __init__(self, queries: Sequence[RunningQuery]) -> None:
        self._queries = {query.dataflow.reader.number: query for query in queries}
        self._shared_scans = queries[0].dataflow.shared_scans
        self.key = self._shared_scans.key
        """Queries on scans of equal keys may share them; None: these do not."""
        self._streams = queries[0].streams
        self._numbers = {stream: number for number, stream in enumerate(self._streams)}
        # A query that feeds others is alone on its scans.
        self.feed = queries[0].feed if queries[0].feeds else None
        # May some of them have equal results, and not know it yet?
        self._divided = len(queries) > 1
        self._shared: SharedProgram | None = None
        self._batches: BatchPrograms | None = None
        # Those that the windows have not turned over for since they came; those that came lately.
        self._turning: list[tuple[Turnover, list[RunningQuery]]] = []
        self._new = list(queries)
        # Those whose windows do not tell when they came.
        self._settled: set[RunningQuery] = set()
        self._know_alone()

    def _know_alone(self) -> None:
        """Is there a single query, which has a program of its own? Others share one."""
        queries = [*self._queries.values()]
        alone = len(queries) == 1 and self._shared_scans.single_reader
        self._alone = queries[0] if alone and queries[0].feed is None else None
        if alone or any(query.feeds for query in queries):
            self._shared = None
        else:
            self._shared = shared_program_of(self._shared_scans, queries[0].dataflow.dictionary)
        if self._shared is not None:
            self._shared.keep_to(self._queries.keys())
        self._batches = batch_programs_of(self._shared_scans, queries[0].dataflow.dictionary)
        if self._batches is not None:
            self._batches.keep_to(self._queries.keys())

    def __contains__(self, query: RunningQuery) -> bool:
        return query in self._queries.values()

    def are_on(self, scans: SharedScans) -> bool:
        """Are these the queries on the scans?"""
        return self._shared_scans is scans

    def add(self, query: RunningQuery) -> None:
        """One query more on these scans."""
        self._queries[query.dataflow.reader.number] = query
        self._new.append(query)
        self._know_alone()
        self._divided = True

    @property
    def can_move(self) -> bool:
        """May they move to the scans of earlier queries?"""
        return all(query.dataflow.can_move for query in self._queries.values())

    def number_as(self, others: QueriesOnScans) -> None:
        """Unless time has begun here, elements get the numbers that they have on scans of the same key."""
        if self._shared_scans.now is None:
            self._shared_scans.number_as(others._shared_scans)

    @property
    def has_ticked(self) -> bool:
        """Have all queries had a tick?"""
        return all(query.dataflow.has_ticked for query in self._queries.values() if not query.is_detached)

    def waits_for(self, others: QueriesOnScans) -> bool:
        """Will their steps be those of others, with the same key, beside which they stand, but only later?"""
        scans = others._shared_scans
        return self._shared_scans.stands_with(scans) and any(
            query.dataflow.waits_to_move(scans) for query in self._queries.values() if not query.is_detached
        )

    def join(self, others: QueriesOnScans) -> bool:
        """Move to the scans of others, with the same key, and go on as part of them. False if steps there are other ones."""
        scans = others._shared_scans
        if not self._shared_scans.stands_with(scans):
            return False
        move = Move(self._shared_scans, scans)
        for query in [query for query in self._queries.values() if not query.is_detached]:
            query.dataflow.move(move)
            others.add(query)
        return True

    def push(self, elements: StepElements) -> int:
        """Take in the elements of their streams; returns the number of results."""
        try:
            results = self._take(elements)
            if self.feed is not None:
                # The readers' streams advance this query's event time too.
                time = last_time(elements.elements, self.feed.watched)
                if time is not None:
                    results += self._advance(elements, time)
        except Exception as error:
            return self._lose_all(error)
        return results

    def number_of(self, stream: int) -> int:
        """The number of a stream among those that these queries read, by the engine's."""
        return self._numbers[stream]

    def push_one(self, stream: int, time: int, lines: bytes, triples: int, scope: int) -> int | None:
        """Take in an element without a graph that is not earlier than those before it, as one call.

        `stream`: as of `number_of`. `lines`, `triples`, `scope`: see `StepProgram.step`. Returns the number of results; None if
        nothing has happened, as the element has to be pushed.
        """
        if (shared := self._shared) is not None:
            try:
                return self._take_part(shared) if shared.take(stream, time, lines, triples, scope) else None
            except Exception as error:
                return self._lose_all(error)
        alone = self._alone
        if alone is None or alone._detached or (program := alone.dataflow.program) is None:
            return None
        try:
            outcome = program.step(stream, time, lines, triples, scope)
            if outcome is Outcome.COMPLETE:
                if (results := program.results()) is None:
                    return 0
                count = len(results.time)
                alone.dataflow.results.rows_out += count
                alone._receiver.deliver(results)
                return count
            return self._results_of(program, outcome)
        except Exception as error:
            return self._lose_all(error)

    def encode_one(self, stream: int, time: int, lines: bytes, triples: int, scope: int) -> bool:
        """The first part of `push_one`: the element's terms have ids, and nothing else has happened yet. `push_encoded` is to follow
        at once. False: the element has to be pushed.
        """
        program = self._program if self._shared is None else self._shared
        return program is not None and program.encode(stream, time, lines, triples, scope)

    def push_encoded(self, stream: int, time: int, triples: int) -> int:
        """The rest of `push_one`, after `encode_one`; returns the number of results."""
        program = self._program
        try:
            if (shared := self._shared) is not None:
                shared.take_encoded(stream, time, triples)
                return self._take_part(shared)
            assert program is not None
            results = self._results_of(program, program.step_encoded(stream, time, triples))
        except Exception as error:
            return self._lose_all(error)
        assert results is not None
        return results

    @property
    def _program(self) -> StepProgram | None:
        """That of the only query."""
        alone = self._alone
        return None if alone is None or alone.is_detached else alone.dataflow.program

    def _results_of(self, program: StepProgram, outcome: Outcome) -> int | None:
        """Complete the step of a program, and deliver its results; None if nothing has happened."""
        assert self._alone is not None
        if outcome is Outcome.COMPLETE:
            results = program.results()
            return 0 if results is None else self._alone.deliver(results)
        if outcome is Outcome.REFUSED:
            return None
        batch, routed = program.resume()
        return self._process_by_calls(routed, StreamView(batch, batch))

    @property
    def takes_singly(self) -> bool:
        """May elements that could wait be steps of their own? A program of the only query does them to their end, and whether there
        is one does not decide the order of results."""
        program = self._program if self._shared is None else None
        return program is not None and program.is_whole and self._shared_scans.may_divide

    @property
    def _has_program(self) -> bool:
        return self._shared is not None or self._program is not None

    def _take_part(self, program: SharedProgram) -> int:
        """Let the queries take part that the element affects, which the program has taken in."""
        results = 0
        for reader in program.affected():
            query = self._queries[reader.number].acting
            try:
                outcome = program.run(query.dataflow)
            except Exception as error:
                query.lose(error)
                continue
            if outcome is Outcome.COMPLETE:
                made = program.results()
                results += 0 if made is None else query.deliver_to_all(made)
            else:
                batch = program.routed.batch
                results += query.process(program.routed, StreamView(batch, batch))
        self._end_step()
        return results

    def _lose_all(self, error: Exception) -> int:
        """A step that these queries have in common has raised an error."""
        for query in list(self._queries.values()):
            query.lose(error)
        self._shared_scans.broken.clear()
        return 0

    def _lose_readers(self) -> None:
        """Sources have failed in this step: the queries that read them stop, and others go on."""
        scans = self._shared_scans
        while scans.broken:
            source, error = scans.broken.popitem()
            for query in list(self._queries.values()):
                if not query.is_detached and query.dataflow.reads(source):
                    query.lose(error)

    def advance(self, elements: StepElements, time: int, *, begin: bool = False) -> int:
        """No element before `time` (microseconds) will come after these; returns the number of results.

        `begin`: the time of queries that have had no element begins there.
        """
        try:
            return self._take(elements) + self._advance(elements, time, begin=begin)
        except Exception as error:
            return self._lose_all(error)

    def finish(self, elements: StepElements) -> int:
        """The streams end with these elements; returns the number of results."""
        try:
            results = self._take(elements)
            return results + self._process(self._shared_scans.finish(), StreamView(elements.elements, NOTHING))
        except Exception as error:
            return self._lose_all(error)

    @property
    def now(self) -> int | None:
        """The event time of these queries; None before the first element."""
        return self._shared_scans.now

    @property
    def next_instant(self) -> int:
        """The first instant at which something changes without another element; any, if it is not known, or time can begin."""
        scans = self._shared_scans
        return BEFORE_ALL if scans.may_begin or scans.may_change else scans.next_instant()

    def feed_into(self, elements: StepElements) -> StepElements:
        """The elements with the graphs that these queries have constructed from them."""
        return elements if self.feed is None else StepElements(self.feed.merged_into(elements.elements))

    def _take(self, elements: StepElements) -> int:
        view = elements.view(self._streams)
        batch = view.batch
        count = len(batch.time)
        if not count:
            return 0
        few = _FEW if self._shared_scans.may_divide else 1
        if count <= few and batch.graph is None and batch.counted is None and self._has_program:
            if count == 1:
                return self._take_one(view)
            parts = [slice_elements(batch, at, at + 1) for at in range(count)]
            return sum([self._take_one(StreamView(part, part)) for part in parts])
        return self._process(self._shared_scans.step(batch), view)

    def _take_one(self, view: StreamView) -> int:
        """Take in an element of the only query's streams, as one call if that is possible."""
        if (shared := self._shared) is not None:
            if shared.take_of(view.batch):
                return self._take_part(shared)
        elif (program := self._program) is not None:
            results = self._results_of(program, program.step_of(view.batch))
            if results is not None:
                return results
        return self._process(self._shared_scans.step(view.batch), view)

    def _advance(self, elements: StepElements, time: int, *, begin: bool = False) -> int:
        routed = self._shared_scans.advance(time, begin=begin)
        return self._process(routed, StreamView(elements.elements, NOTHING))

    def _process(self, routed: RoutedBatch, view: StreamView) -> int:
        results, programs = 0, self._batches
        if programs is None or not programs.begin(routed):
            return self._process_by_calls(routed, view)
        for reader in self._shared_scans.affected(routed):
            results += self._queries[reader.number].process_by(programs, routed, view)
        programs.end()
        self._end_step()
        return results

    def _process_by_calls(self, routed: RoutedBatch, view: StreamView) -> int:
        results = 0
        for reader in self._shared_scans.affected(routed):
            results += self._queries[reader.number].process(routed, view)
        self._end_step()
        return results

    def _end_step(self) -> None:
        if self._shared_scans.broken:
            self._lose_readers()
        self._shared_scans.end_step()
        if len(self._queries) > 1:
            if self._new or self._turning:
                self._settle()
            if self._divided and self.has_ticked:
                self._unite()

    def _settle(self) -> None:
        """Find the queries whose windows have turned over since they came."""
        if self._new and self._shared_scans.now is not None and self.has_ticked:
            turnover = Turnover(self._shared_scans, self._new[0].dataflow.plan.windows)
            if turnover.comes:
                self._turning.append((turnover, self._new))
            self._new = []
        while self._turning and self._turning[0][0].is_complete:
            # Those that came first are the first.
            self._settled.update(self._turning.pop(0)[1])
            self._divided = True

    def _unite(self) -> None:
        """Queries with equal results follow the first of them from now on: between two steps."""
        self._divided = False
        leaders: dict[Hashable, RunningQuery] = {}
        self._settled = {query for query in self._settled if not query.is_detached}
        for query in list(self._queries.values()):
            if query.is_detached or query.follows or query.feeds:
                continue
            keys = [query.dataflow.results_key]
            if query in self._settled:
                keys.append(query.dataflow.contents_key)
            found = [key for key in keys if key is not None]
            leader = next((leaders[key] for key in found if key in leaders), None)
            if leader is None:
                leaders |= dict.fromkeys(found, query)
            else:
                query.follow(leader)
        leading = [number for number, query in self._queries.items() if not query.follows]
        for programs in (self._shared, self._batches):
            if programs is not None:
                programs.keep_to(leading)


def failure_of(title: str, error: Exception) -> RunError:
    """The reason for which a query stops whose step has raised an error."""
    if isinstance(error, Stopped):
        reason = "has been stopped: it was asked for"
    elif isinstance(error, MemoryError):
        reason = "has run out of memory, and gets no more results"
    else:
        reason = f"has been stopped: an error in its evaluation ({type(error).__name__}: {error}); other queries go on"
    failure = RunError(f"{title} {reason}")
    failure.__cause__ = error
    return failure


_NO_ELEMENTS = StreamView(NOTHING, NOTHING)
