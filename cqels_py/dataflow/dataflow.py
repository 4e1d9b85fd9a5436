"""The running form of a plan, and one step of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import TypeVar

import numpy as np

from cqels_py.batches.delta import Delta, empty
from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.build_operator import make_output
from cqels_py.dataflow.builder import DataflowBuilder
from cqels_py.dataflow.counted_join import CountedJoinScan
from cqels_py.dataflow.delta_sources import (
    ChangelogInput,
    Constant,
    DeltaSource,
    OperatorNode,
    SharedOutput,
    sources_below,
    unwrap,
)
from cqels_py.dataflow.event_rows import EventRowsScan
from cqels_py.dataflow.expressions import EvaluatorBuilder
from cqels_py.dataflow.match_scan import MatchScan
from cqels_py.dataflow.moving import Move, can_move
from cqels_py.dataflow.ownership import Condition
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.saved_state import DataflowState, load, save, stateful_parts
from cqels_py.dataflow.scans import PartitionedScan, Scan
from cqels_py.dataflow.shared_scans import SharedScans, SharedScansPool, SharedSource
from cqels_py.dataflow.state_scan import StateScan
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dataflow.step_program import StepProgram, program_of
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dataflow.turnover import plan_key
from cqels_py.dataflow.work import Work, taken_in
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.event_time.clock import ClockedWindow, Ticks
from cqels_py.event_time.timers import EventTimers
from cqels_py.functions.limits import NO_REPORTS, Limits
from cqels_py.operators.r2s.ask import Ask
from cqels_py.operators.r2s.changelog_output import (
    Changelog,
    ChangelogOutput,
    KeptChanges,
    Output,
    ResultsAndChangelog,
)
from cqels_py.operators.r2s.streams import Changes
from cqels_py.plan import nodes as plan
from cqels_py.plan.nodes import Node, Plan, inputs_of
from cqels_py.plan.order import is_monotone, is_timed
from cqels_py.state.named_values import shrink, values_of
from cqels_py.state.stop import Wanting

Shared = TypeVar("Shared", bound=SharedSource)


class Dataflow:
    """The running form of a plan.

    Feed it with `step`, `advance` and `finish` where it is alone on its scans, else with their steps: `process`; and with
    `update_static`. Each yields the results that follow. `static` is the static data that the query sees: its static sub-plans are
    answered here, and again when the data is replaced.

    One part of several keeps to its `cell`. A part whose changes another dataflow reads hands them to a `changelog`, and has no
    results; one that reads such changes is fed with `receive`. `every_boundary`: see `TickClock`. `pool`: where it may share scans
    with other queries, and then reads the sources that these have already. `limits`: of the texts that expressions make.
    `timers`: those that its operators set, or that `queue` does. `seed`: of UUID, RAND and the like; none: they are random.
    `by_clock`: its time follows the clock, so it shares no scans with queries whose time does not.
    """

    def __init__(
        self,
        query: Plan,
        dictionary: Dictionary,
        static: StaticData,
        *,
        cell: Sequence[Condition] = (),
        changelog: ChangelogOutput | None = None,
        every_boundary: bool = False,
        pool: SharedScansPool | None = None,
        limits: Limits = NO_REPORTS,
        timers: EventTimers | None = None,
        seed: str = "",
        by_clock: bool = False,
    ) -> None:
        self.plan = query
        self.by_clock = by_clock
        self._limits = limits
        self._seed = seed
        self.dictionary = dictionary
        self.static = static
        self._values = DictionaryValues(dictionary, limits)
        self._cell = tuple(cell)
        if query.rules is not None:
            assert timers is None, "rules set timers of their own"
            timers = EventTimers(None)
        self._timers = timers
        # Something happens at ticks without changes, too. A dataflow that reads the changelog is given all ticks.
        every_boundary = every_boundary or query.output == "RSTREAM" or _asks_for_now(query.root)
        self._is_apart = changelog is not None or timers is not None
        # Rules have told all changes when they set timers.
        told = self._is_apart and changelog is None and query.rules is not None
        self._every_tick = every_boundary or (self._is_apart and not told)
        # A query that feeds others, or sets timers, has steps that others have not. One without a name feeds none until it is
        # connected: see `apart`.
        feeds = query.form == "CONSTRUCT" and query.name is not None
        alone = pool is None or feeds or timers is not None
        self.shared_scans = (pool or SharedScansPool()).join(
            [ClockedWindow(w.stream, w.bounds, w.partition is not None) for w in query.windows],
            query.streams,
            dictionary,
            every_boundary=every_boundary,
            alone=alone,
            timers=timers,
            apart=by_clock,
        )
        self._shares = not alone
        self.root = self._builder().build(query.root)
        self._know_sources()
        self._keep_to(self._cell)
        self._ticks: Ticks | None = None
        self._is_monotone = is_monotone(query.root) and not self._changelog_inputs
        self._evaluators = EvaluatorBuilder(dictionary, limits)
        self._output: Output = changelog or make_output(query, dictionary, self._values, self, self._evaluators, seed)
        self.results = Work()
        self._ticked = False
        self._detached = False
        self._program: StepProgram | None = None
        self._without_program = False
        self._origin: Hashable = None
        self._follows = False
        # That of the dataflow that is followed, which counts results for this one, too, from that number on.
        self._counted: Work | None = None
        self._counted_from = 0
        self.reader = self.shared_scans.attach(self._scans)

    def _know_sources(self) -> None:
        """The sources at and below the root."""
        below = list(sources_below(self.root))
        self._operators = [source for source in below if isinstance(source, OperatorNode)]
        self._scans = [
            source
            for source in below
            if isinstance(source, Scan | MatchScan | EventRowsScan | CountedJoinScan | StateScan)
        ]
        self._partitions = [scan.partition for scan in self._scans if isinstance(scan, PartitionedScan)]
        self._constants = [source for source in below if isinstance(source, Constant)]
        self._changelog_inputs = [source for source in below if isinstance(source, ChangelogInput)]

    def _builder(self) -> DataflowBuilder:
        return DataflowBuilder(
            self.plan,
            self.dictionary,
            self._values,
            self.static,
            self.shared_scans,
            shares=self._shares,
            limits=self._limits,
        )

    def _keep_to(self, cell: Sequence[Condition]) -> None:
        """This dataflow is one part of several: it leaves mappings alone that belong to others."""
        if not cell:
            return
        for scan in self._scans:
            scan.keep_to(cell)
        for constant in self._constants:
            constant.columns = self._owned(constant.node, constant.columns)

    def _owned(self, node: Node, columns: Ids) -> Ids:
        for coordinate in self._cell:
            if coordinate.variable in node.variables:
                columns = columns[:, coordinate.mine(columns[node.variables.index(coordinate.variable)])]
        return columns

    # --- running ------------------------------------------------------------------------------------------------

    def ask_to_stop(self, wanting: Wanting) -> None:
        """Have a step that evaluates a source end soon with the error Stopped, if nobody wants its results. For any thread."""
        for source in self._below():
            if not isinstance(source, SharedOutput):
                for stop in source.stops:
                    stop.ask(wanting, source)

    def reads(self, source: object) -> bool:
        """Is this source, or part of one, among those at and below the root?"""
        return any(source is each for each in (*self._below(), *self._partitions))

    def step(self, batch: ElementBatch) -> Iterator[ResultBatch]:
        """Take in elements of the query's streams, in order; `batch.stream` are positions in the plan's streams."""
        return self._process_alone(self.shared_scans.step(batch))

    def advance(self, time: int) -> Iterator[ResultBatch]:
        """No element before `time` (microseconds) will come any more."""
        return self._process_alone(self.shared_scans.advance(time))

    def finish(self) -> Iterator[ResultBatch]:
        """The streams have ended."""
        return self._process_alone(self.shared_scans.finish())

    @property
    def program(self) -> StepProgram | None:
        """Does the step of a single element as one call, if it can: made after the first tick, when this is first asked."""
        if not self.shared_scans.single_reader:
            return None
        if self._program is None and not self._without_program and self._ticked:
            self._program = program_of(
                self.root, self._output, self.shared_scans, self.dictionary, every_tick=self._every_tick
            )
            self._without_program = self._program is None
        return self._program

    def settle_counts(self) -> None:
        """Between two steps: the operators have the counts of the rows that programs have made."""
        if (counted := self._counted) is not None:
            self.results.rows_out += counted.rows_out - self._counted_from
            self._counted_from = counted.rows_out
        if self._program is not None:
            self._program.counts.settle()
        for programs in (self.shared_scans.program, self.shared_scans.batch_programs):
            if programs is not None:
                programs.settle()

    @property
    def changes_output(self) -> Changes | None:
        """The operator that makes results, if it does so from changes, and only where there are some."""
        return self._output if isinstance(self._output, Changes) and not self._every_tick else None

    @property
    def acts_at_every_tick(self) -> bool:
        """May there be results at ticks without changes?"""
        return self._every_tick

    def results_of(self, ticks: Ticks, changes: Iterable[Delta]) -> Iterable[ResultBatch]:
        """The results at these ticks, at which a program has made the changes of the answer."""
        self._ticks = ticks
        return self._output.process(ticks, changes)

    def _process_alone(self, routed: RoutedBatch) -> Iterator[ResultBatch]:
        yield from self.process(routed)
        self.shared_scans.end_step()

    def process(self, routed: RoutedBatch) -> Iterable[ResultBatch]:
        """Take part in a step of the shared scans."""
        if self._detached:
            return ()
        ticks = routed.step.ticks
        changed, timer = 0, self.shared_scans.timer
        if timer is not None:
            changed = timer.take(self._scans, routed)
        else:
            for scan in self._scans:
                changed += taken_in(scan, routed)
        if len(ticks.time) and (changed or self._every_tick or not self._ticked):
            if not self._ticked:
                if not ticks.first:
                    raise UsageError(
                        f"the state of {self.plan.title} was not restored, that of a query on its scans was"
                    )
                self._begin()
            return self._tick(ticks)
        return ()

    @property
    def has_ticked(self) -> bool:
        """Has there been a tick yet?"""
        return self._ticked

    @property
    def can_move(self) -> bool:
        """May it take part in the steps of scans on which time began earlier? See `moving`."""
        return not (self._is_apart or self._cell) and self.shared_scans.can_move and can_move(self._below())

    def waits_to_move(self, scans: SharedScans) -> bool:
        """May it take part in the steps of these scans later, beside which its own stand, but not yet?"""
        return not self.shared_scans.has_ticks_of(scans, every=self._every_tick)

    @property
    def origin(self) -> Hashable:
        """On one scans, the windows of dataflows with equal origins have seen the same elements."""
        return self.shared_scans.origin if self._origin is None else self._origin

    def _below(self) -> list[DeltaSource]:
        return [*self._operators, *self._scans, *self._constants, *self._changelog_inputs]

    def move(self, move: Move) -> None:
        """From now on take part in the steps of the scans to which the sources are moved. Between two steps, after the first tick.

        Nothing takes part in steps of the former scans any more.
        """
        self._origin = self.origin
        self.settle_counts()
        self._program, self._without_program = None, False
        root, self.root = self.root, move.moved(self.root)
        self.root.acquire()
        root.release()
        self._know_sources()
        self.shared_scans = move.scans
        self.reader = self.shared_scans.attach(self._scans)
        if self._follows:
            self.shared_scans.readers.detach(self.reader)
            return
        if not self._every_tick:
            self.shared_scans.readers.park(self.reader)
        self.shared_scans.readers.resume(self.reader)

    def apart(self) -> Dataflow:
        """Between two steps: a dataflow that goes on from here on scans of its own."""
        made = Dataflow(
            self.plan, self.dictionary, self.static, limits=self._limits, seed=self._seed, by_clock=self.by_clock
        )
        made.restore(
            {part: {name: deepcopy(value) for name, value in each.items()} for part, each in self.state().items()}
        )
        return made

    @property
    def results_key(self) -> Hashable:
        """On one scans, dataflows with equal keys have equal results from now on, between two steps. None: no other one has them."""
        output, query = self._output, self.plan
        if not self._ticked or self._every_tick or self._cell or not isinstance(output, Ask | Changes):
            return None
        state = tuple(values_of(output).items())
        return id(unwrap(self.root)), query.form, query.output, query.variables, state

    @property
    def contents_key(self) -> Hashable:
        """As `results_key`, for dataflows whose windows have turned over since the last of them was registered."""
        key = self.results_key if self.can_move else None
        plan = None if key is None else plan_key(self.root)
        return None if plan is None or not isinstance(key, tuple) else (plan, *key[1:])

    def follow(self, other: Dataflow) -> None:
        """From now on the results are those of another dataflow with an equal key: this one takes part in no steps."""
        self._follows = True
        self.count_with(other)
        self.shared_scans.readers.detach(self.reader)
        self._read(other.root)
        self._origin = other.origin
        if isinstance(other._output, Ask):
            # That of `Changes` has no state, and asks its own dataflow for signs.
            self._output = other._output

    def _read(self, root: DeltaSource) -> None:
        """Have the state of these sources instead of its own: their contents are equal."""
        former = self.root
        if unwrap(former) is not unwrap(root):
            self._program, self._without_program = None, False
            self.root = root
            root.acquire()
            former.release()
            self._know_sources()

    def count_with(self, other: Dataflow | None) -> None:
        """From now on the results of another dataflow are those of this one, too."""
        self.settle_counts()
        self._counted = None if other is None else other.results
        self._counted_from = 0 if other is None else other.results.rows_out

    def take_over(self, other: Dataflow) -> None:
        """Take part in steps in the place of another dataflow, which is followed until now."""
        self._follows = False
        self.count_with(None)
        self.reader, other.reader = other.reader, self.reader

    def changes(self, routed: RoutedBatch) -> Iterator[Delta]:
        """As `process`, but for the changes of the answer themselves instead of results."""
        output, kept = self._output, KeptChanges()
        self._output = kept
        try:
            for _ in self.process(routed):
                pass
        finally:
            self._output = output
        yield from kept.deltas

    def changes_of_a_tick(self) -> Iterator[Delta]:
        """As `changes`, at one more tick at the current time, at which nothing arrives."""
        now = self.shared_scans.now
        assert now is not None
        yield from self.root.deltas(Ticks(np.array([now], np.int64), first=False))
        self.shared_scans.end_step()

    def expire_partitions(self) -> None:
        """See `KeptUnits.expire_all`, for all windows with PARTITION BY."""
        for partition in set(self._partitions):
            partition.expire_all()

    def _begin(self) -> None:
        """Called at the first tick, or after a restore from a later state."""
        self._ticked = True
        if not self._every_tick:
            self.shared_scans.readers.park(self.reader)

    def detach(self) -> None:
        """The query has been unregistered: release its state. It takes part in no more steps."""
        if not self._detached:
            self._detached = True
            self.shared_scans.readers.detach(self.reader)
            self.root.release()

    def receive(self, ticks: Ticks, delta: Delta) -> Iterator[ResultBatch]:
        """Take in the changes at these ticks of the changelog that the query reads."""
        (changelog,) = self._changelog_inputs
        if len(ticks):
            changelog.current = delta
            yield from self._tick(ticks)
            changelog.current = empty(len(changelog.node.variables))
            self.shared_scans.end_step()

    def publish(self) -> ChangelogOutput:
        """Write all changes to a changelog, too. Call it before the first step; the dataflow must be alone on its scans."""
        changelog = ChangelogOutput(len(self.plan.root.variables))
        self._output = ResultsAndChangelog(self._output, changelog)
        return changelog

    def queue(self, changes: Changelog, name: str = "") -> None:
        """Changes of the changelog of this name, which are read at the ends of their instants.

        The dataflow needs timers that are set between two steps: `EventTimers(None)`.
        """
        assert self._timers is not None
        assert self._timers.least_delay is None
        for each in self._changelog_inputs:
            if each.node.name == name:
                each.queue(changes)
        for instant in np.unique(changes.ticks.time[changes.delta.tick]).tolist():
            self._timers.set(instant)

    def update_static(self, static: StaticData) -> Iterator[ResultBatch]:
        """Replace the static data that the query sees.

        This is a tick of its own at the current time; the windows' contents are those of the last tick. Before the first tick there
        is none: the first one then sees the new data.
        """
        if self.plan.rules is not None:
            raise UsageError(
                f"{self.plan.title} has rules, for which static data holds always: it cannot be replaced; register the query again"
            )
        self.static = static
        builder = self._builder()
        for constant in self._constants:
            if isinstance(constant.node, plan.Once):
                constant.replace(self._owned(constant.node, builder.answer(constant.node)))
        now = self.shared_scans.now
        if self._ticked and now is not None:
            yield from self._tick(Ticks(np.array([now], np.int64), first=False))
            self.shared_scans.end_step()
        for constant in self._constants:
            constant.settle()

    def _tick(self, ticks: Ticks) -> Iterable[ResultBatch]:
        self._ticks = ticks
        timer = self.shared_scans.timer
        deltas = self.root.deltas(ticks)
        if timer is not None:
            return timer.results(self.results, self._output, ticks, deltas)
        return self._output.process(ticks, deltas)

    def has_one_sign(self, tick: int) -> bool:
        """Have all changes of the answer at this tick of the current step one sign? Only True is certain."""
        if not self._is_monotone or self._ticks is None:
            return False
        signs: set[int] = set()
        sources: list[Scan | MatchScan | EventRowsScan | CountedJoinScan | StateScan | Constant] = [
            *self._scans,
            *self._constants,
        ]
        for source in sources:
            if isinstance(source, CountedJoinScan):
                signs.add(1)
                continue
            for delta in source.deltas(self._ticks):
                first, last = np.searchsorted(delta.tick, [tick, tick + 1])
                signs.update(np.unique(delta.sign[first:last]).tolist())
        return len(signs) < 2

    # --- state --------------------------------------------------------------------------------------------------

    def state(self) -> DataflowState:
        """The state between two steps, as described in saved_state. Arrays are not copies: write them before the next step.

        UsageError if the state of a part cannot be taken out.
        """
        return save(self.plan, self._parts(), ticked=self._ticked)

    def shrink(self) -> bool:
        """Give back the room that the state needs no more, between two steps; has it become smaller?"""
        before = self.nbytes
        for part in {id(part): part for part in self._parts().values()}.values():
            shrink(part)
        return self.nbytes < before

    def restore(self, state: DataflowState) -> None:
        """Continue from the state of a dataflow of the same plan, with the same static data and a restored dictionary.

        Call it before the first step, for all queries on the same scans or for none. UsageError if the state does not fit; the
        dataflow cannot be used then.
        """
        if self._ticked:
            raise UsageError("a state is restored before the first element")
        if load(self.plan, self._parts(), state):
            self._begin()
        self.shared_scans.restored()
        self.shared_scans.readers.resume(self.reader)

    def _parts(self) -> dict[str, object]:
        shared = self.shared_scans.stateful_parts()
        return {**shared, **dict(stateful_parts(self.root)), "output": self._output, "reports": self._values}

    def live_ids(self, visited: set[int] | None = None) -> Iterator[Ids]:
        """Arrays with every id that this query may still refer to, but for those of the sources in `visited`, which grows."""
        visited = set() if visited is None else visited
        yield self.static.live_ids()
        for scan in _not_in(visited, self._scans):
            yield from scan.live_ids()
        for partition in _not_in(visited, self._partitions):
            yield partition.live_ids()
        for constant in _not_in(visited, self._constants):
            yield constant.columns.reshape(-1)
        for changelog in _not_in(visited, self._changelog_inputs):
            yield changelog.columns.reshape(-1)
        for operator in _not_in(visited, self._operators):
            yield from operator.operator.live_ids()
        yield from self._output.live_ids()

    def forget_evaluations(self) -> None:
        """The dictionary has released terms: values that are remembered by id are void."""
        evaluators = [
            *self._evaluators.built,
            *(evaluator for operator in self._operators for evaluator in operator.evaluators),
            *(condition for scan in self._scans for condition in scan.conditions),
        ]
        for evaluator in evaluators:
            evaluator.clear()

    @property
    def output_bytes(self) -> int:
        """Size of the state of the operator that makes results, in bytes."""
        return self._output.nbytes

    @property
    def nbytes(self) -> int:
        """Size of the state in bytes, with that of the sources that it shares with other queries."""
        return (
            sum(scan.nbytes for scan in self._scans)
            + sum(partition.nbytes for partition in set(self._partitions))
            + sum(operator.operator.nbytes for operator in self._operators)
            + self._output.nbytes
        )


def _not_in(visited: set[int], sources: Iterable[Shared]) -> Iterator[Shared]:
    """The sources that have not been visited; they have been then."""
    for source in sources:
        if id(source) not in visited:
            visited.add(id(source))
            yield source


def _asks_for_now(root: Node) -> bool:
    """Does an expression of the plan depend on the time of the tick?"""
    waiting, visited = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if is_timed(node):
            return True
        if isinstance(node, plan.Shared):
            if node.number in visited:
                continue
            visited.add(node.number)
        waiting.extend(inputs_of(node))
    return False
