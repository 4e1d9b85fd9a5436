"""A plan in stages of parts, each with its own piece of the state.

The first stage reads the streams, partitioned by shares of variables. Where an operator combines mappings of several parts, the
plan is cut: the operators from there on are another stage, which reads the changelog of the stage before, partitioned by its own
group keys or columns, or in one part. Changes are reduced before they are exchanged where that is possible: partial counts, each
part's first rows.

>>> from cqels_py.plan.nodes import GroupRows, PlannedAggregate, ChangelogRead
>>> group = GroupRows(ChangelogRead(("room", "t")), ("room",), (PlannedAggregate("n", "COUNT", "t", False),))
>>> before, after = thinned(group)
>>> after.aggregates[0].function, after.input.variables
('SUM', ('room', 'n'))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cqels_py.distribution.heavy_values import Block, HeavyValue
from cqels_py.distribution.hypercube import HypercubeShares, shares_for
from cqels_py.distribution.partitioning import follows_changes, global_window, obstacle, variables_of
from cqels_py.distribution.rule_keys import fact_patterns
from cqels_py.errors import UnsupportedQuery, UsageError
from cqels_py.event_time.windows import Measure
from cqels_py.plan.nodes import (
    ChangelogRead,
    CountedJoin,
    DistinctRowsOf,
    ExtendRows,
    FactorisedGroups,
    FilterRows,
    GraphNames,
    GroupRows,
    JoinAll,
    Node,
    NumberRows,
    Plan,
    PlannedAggregate,
    ProjectRows,
    Rows,
    Scan,
    StaticScan,
    TopRows,
    VolatileColumn,
    inputs_of,
)
from cqels_py.plan.order import expires_fifo, is_timed
from cqels_py.plan.traverse import nodes_of, scans_of, states_of
from cqels_py.planner.rows import without_ids

_Unary: TypeAlias = FilterRows | ExtendRows | ProjectRows | DistinctRowsOf | GroupRows | TopRows | NumberRows
_Chain: TypeAlias = tuple[_Unary, ...]
Aggregates: TypeAlias = tuple[PlannedAggregate, ...]
_MERGED = {"COUNT(*)": "SUM", "COUNT": "SUM", "MIN": "MIN", "MAX": "MAX", "SAMPLE": "SAMPLE"}
"""Aggregates with partial aggregates, and the function that merges these.

SUM and AVG are not among them: sums are exact and rounded once, at the end; a partial sum of doubles would be rounded already.
Where every arrival is a tick, partial sums save nothing either: they change with every row.
"""
_GRAPHS = "the results of a tick are one element of a stream"


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One stage: all of its parts run the plan's node `root`, which reads the streams or the changelog of the stage before.

    It is partitioned by `shares` of variables of the triple patterns, and by `blocks` of further parts for heavy values, or by the
    columns `by` of the changelog. `reason`: why there is only one part.
    """

    root: Node
    parts: int
    shares: HypercubeShares | None = None
    by: tuple[str, ...] = ()
    reason: str = ""
    blocks: tuple[Block, ...] = ()


def stages_of(
    plan: Plan, partitions: int, heavy: Sequence[HeavyValue] = (), *, graphs: bool = False
) -> tuple[PlannedStage, ...]:
    """The stages of a plan on up to `partitions` parts, in the order in which rows pass them.

    `heavy`: values of variables that divide the first stage, each of which gets a block of up to as many parts. `graphs`: results
    are elements of a stream, each made of all results of a tick, so that the last stage has one part. UnsupportedQuery if results
    are not reproducible, UsageError for heavy values that cannot be divided.
    """
    if plan.added:
        names = " ".join(dict.fromkeys(each.function for each in plan.added if isinstance(each, VolatileColumn)))
        raise UnsupportedQuery(
            f"{names}: another value each time, and Spark, which repeats a micro-batch after a failure, could not deliver the same "
            "results again: run the query without Spark, or give each result a name of its terms, as IRI(CONCAT(…))"
        )
    reason = global_window(plan) or _unread(plan) or _with_ticks_of_its_own(plan)
    if partitions == 1 or reason:
        return _in_one_part(plan, reason, heavy)
    cuts = [cut for cut in _cuts(plan, partitions, graphs) if cut.shares.axes]
    if not cuts:
        return _in_one_part(plan, _undivided(plan), heavy)
    cuts = [cut for cut in cuts if cut.divides(heavy)] or cuts
    best = min(cuts, key=lambda cut: cut.cost(heavy))
    blocks = best.blocks(plan, heavy)
    parts = best.shares.cells + sum(each.shares.cells for each in blocks)
    first = PlannedStage(best.below, parts, best.shares, blocks=blocks)
    return (first,) if best.above is None else (first, *_later(plan, best.above, partitions, graphs))


def _in_one_part(plan: Plan, reason: str, heavy: Sequence[HeavyValue]) -> tuple[PlannedStage, ...]:
    if heavy:
        raise UsageError(f"heavy values cannot be divided: {reason or 'there is one partition'}")
    return (PlannedStage(plan.root, 1, reason=reason),)


def _unread(plan: Plan) -> str:
    return "" if any(scans_of(plan.root)) or states_of(plan.root) else "no triple pattern is over a stream"


def _with_ticks_of_its_own(plan: Plan) -> str:
    """Why parts whose rules say something at instants of their own would have other results; empty: they would not."""
    if plan.rules is None:
        return ""
    if any(map(is_timed, nodes_of(plan.root))):
        return "NOW is evaluated whenever the rules of any part say something"
    if not follows_changes(plan.root):
        return "results that no STATE is needed for come with the first of all parts"
    return ""


def reports_at_boundaries(plan: Plan) -> bool:
    """Is each boundary of a window with STEP a tick, even where nothing changes?"""
    return plan.output == "RSTREAM" or any(map(is_timed, nodes_of(plan.root)))


def keeps_to_own_elements(plan: Plan, stages: Sequence[PlannedStage]) -> bool:
    """Do the parts of a plan give their results without the elements that have no triple of theirs, but for the first and the last
    one and those of their times?

    They do where all changes follow from their own elements and from time: for windows of time. Windows that count elements or have
    sessions, and event patterns and rules need more. Where windows change at once, ticks of other parts must not be seen. Ticks of
    parts are combined if those of an instant are of one kind: windows all change at once, or at the boundaries of a STEP.
    """
    leaves = [each for each in nodes_of(plan.root) if not inputs_of(each)]
    eager = {window.bounds.eager for window in plan.windows}
    return (
        stages[0].shares is not None
        and plan.rules is None
        and (eager == {False} or not reports_at_boundaries(plan))
        and (len(eager) == 1 or len(stages) == 1)
        and all(window.bounds.measure is Measure.TIME for window in plan.windows)
        and all(isinstance(each, Scan | StaticScan | Rows | GraphNames) for each in leaves)
        and not any(isinstance(each, CountedJoin) for each in nodes_of(plan.root))
        and follows_changes(plan.root)
    )


# --- the first stage --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Division:
    """Variables by which mappings of some patterns (the variables of each) may be divided, the preferred ones first."""

    patterns: tuple[frozenset[str], ...]
    usable: tuple[str, ...]

    def shares(self, partitions: int) -> HypercubeShares:
        return shares_for(self.patterns, partitions, self.usable)

    def shares_of(self, value: HeavyValue) -> HypercubeShares:
        """Of the mappings with a value of a variable, by the others."""
        patterns = [pattern - {value.variable} for pattern in self.patterns]
        names = [name for name in self.usable if name != value.variable]
        shares = HypercubeShares((), tuple(patterns))
        for parts in value.parts:
            shares = shares_for(patterns, parts, names, dict(shares.axes))
        return shares


@dataclass(frozen=True, slots=True)
class _Cut:
    """The plan `below` is partitioned by the shares; `above` reads its changelog (None: it delivers the results).

    `reduced`: does `below` hand out less than the rows that are compared above?
    """

    division: _Division
    shares: HypercubeShares
    below: Node
    above: Node | None
    reduced: bool = True

    def divides(self, heavy: Sequence[HeavyValue]) -> bool:
        """Do all the variables of the values have a share?"""
        return {each.variable for each in heavy} <= dict(self.shares.axes).keys()

    def cost(self, heavy: Sequence[HeavyValue]) -> float:
        """Without heavy values the fraction of the triples that each part has."""
        if not heavy:
            return float(self.shares.load)
        loads = [float(self.division.shares_of(each).load) for each in heavy]
        # One part of the next stage would have all rows of a value.
        return float(self.shares.load) + max(loads) + (not self.reduced)

    def blocks(self, plan: Plan, heavy: Sequence[HeavyValue]) -> tuple[Block, ...]:
        """The parts of heavy values, behind all others. UsageError for a value that more parts would not relieve."""
        found: list[Block] = []
        first = self.shares.cells
        axes = [name for name, _ in self.shares.axes]
        for each in heavy:
            if plan.rules is not None:
                raise UsageError("heavy values of queries with RULES cannot be divided")
            if each.variable not in axes:
                names = " and ".join(f"?{name}" for name in axes)
                raise UsageError(f"?{each.variable} has no heavy values, as it does not divide the state: {names} does")
            shares = self.division.shares_of(each)
            if not shares.axes:
                raise UsageError(f"{each.text} cannot be divided: {self._undivided(plan, each.variable)}")
            found.append(Block(each, shares, first))
            first += shares.cells
        return tuple(found)

    def _undivided(self, plan: Plan, variable: str) -> str:
        others = dict.fromkeys(name for pattern in self.division.patterns for name in sorted(pattern - {variable}))
        if not others:
            return f"its patterns have no variable but ?{variable}"
        reasons = (obstacle(self.below, name, plan.rules) or f"results do not have ?{name}" for name in others)
        return "; ".join(dict.fromkeys(reasons))


def _cuts(plan: Plan, partitions: int, graphs: bool) -> Iterator[_Cut]:
    """Where the plan might be cut, from its root down."""
    if not graphs and (reach := _delivered(plan)) is not None and not _needs_common_ticks(plan):
        division = _division(plan, plan.root, reach)
        yield _Cut(division, division.shares(partitions), plan.root, None)
    chain, bottom = _chain(plan.root)
    for length in range(len(chain) + 1):
        above, below = chain[:length], _rebuilt(chain[length:], bottom)
        if not _has_numbers(below):
            yield _cut(plan, above, below, partitions)
    if isinstance(bottom, FactorisedGroups):
        partly = _partly(bottom.aggregates)
        if partly is None:
            opened = joined(bottom)
            chain = (*chain, GroupRows(opened, bottom.keys, bottom.aggregates))
            yield _cut(plan, chain, opened, partitions)
        else:
            below = replace(bottom, aggregates=partly)
            merging = GroupRows(ChangelogRead(below.variables), bottom.keys, _merging(bottom.aggregates))
            division = _division(plan, joined(bottom))
            yield _Cut(division, division.shares(partitions), below, _rebuilt(chain, merging))


def _cut(plan: Plan, above: _Chain, below: Node, partitions: int) -> _Cut:
    division = _division(plan, below)
    before, after = _exchanged(plan, above, below)
    return _Cut(division, division.shares(partitions), before, after, before != below)


def _exchanged(plan: Plan, above: _Chain, below: Node) -> tuple[Node, Node]:
    """The plans below and above a cut, with changes reduced before the exchange if possible."""
    if above:
        before, after = thinned(replace(above[-1], input=below))
        return before, _rebuilt(above[:-1], after)
    if plan.form == "ASK":
        below = DistinctRowsOf(below, "ASK asks whether there is any")
    return below, ChangelogRead(below.variables)


def _division(plan: Plan, node: Node, among: frozenset[str] | None = None) -> _Division:
    """The variables that partition the node's mappings (`among` these)."""
    patterns = list(dict.fromkeys((plan.windows[s.window].stream, s.pattern, variables_of(s)) for s in scans_of(node)))
    states = states_of(node)
    names = dict.fromkeys(name[1:] for _, pattern, _ in patterns for name in pattern if name[0] == "?")
    names |= dict.fromkeys(name for state in states for name in state.variables)
    usable = [name for name in names if (among is None or name in among) and obstacle(node, name, plan.rules) is None]
    # Preferred: variables of the results, as equal results are then in one part and need no other stage.
    usable.sort(key=lambda name: name not in plan.variables)
    facts = [each.variables for each in fact_patterns(plan.rules, states, usable)]
    return _Division((*(variables for _, _, variables in patterns), *facts), tuple(usable))


def _delivered(plan: Plan) -> frozenset[str] | None:
    """The variables by which the root may be partitioned and still deliver the results; None: none.

    A mapping that leaves one part and enters another at the same tick would be two changes instead of none. That cannot happen if
    results differ in the variable, or are whole answers instead of changes.
    """
    if plan.form == "ASK" or plan.order is not None:
        return None
    if plan.output == "RSTREAM":
        return frozenset(plan.variables).union(*(variables_of(scan) for scan in scans_of(plan.root)))
    return frozenset(plan.variables)


def _needs_common_ticks(plan: Plan) -> bool:
    """Are results told, or ordered, by ticks of other parts, too? Parts of rules have ticks of their own, where these say something;
    a later stage has those of all parts."""
    return plan.rules is not None and (plan.output == "RSTREAM" or bool(plan.windows))


def _undivided(plan: Plan) -> str:
    """Why a plan's state is in one part: the obstacles to partitioning by the variables of most patterns."""
    _, bottom = _chain(plan.root)
    patterns = [variables_of(scan) for scan in scans_of(bottom)]
    patterns += [frozenset(state.variables) for state in states_of(bottom)]
    names = dict.fromkeys(name for pattern in patterns for name in sorted(pattern))
    most = max((sum(name in pattern for pattern in patterns) for name in names), default=0)
    first = [name for name in names if sum(name in pattern for pattern in patterns) == most]
    node = joined(bottom) if isinstance(bottom, FactorisedGroups) else bottom
    reasons = [obstacle(node, name, plan.rules) for name in first]
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason)) or "its patterns have no variables"


# --- later stages -----------------------------------------------------------------------------------------------------


def _later(plan: Plan, root: Node, partitions: int, graphs: bool) -> Iterator[PlannedStage]:
    """The stages of a plan over the changelog of the stage before."""
    chain, leaf = _chain(root)
    reach = None if graphs else _delivered(plan)
    by = () if reach is None else tuple(name for name in _dividing(root, leaf) if name in reach)
    if by:
        yield PlannedStage(root, partitions, by=by)
        return
    for length in range(1, len(chain)):
        # Only GROUP BY and DISTINCT are worth a stage of their own.
        below = _rebuilt(chain[length:], leaf)
        if (by := _dividing(below, leaf)) and any(isinstance(n, GroupRows | DistinctRowsOf) for n in chain[length:]):
            before, above = _exchanged(plan, chain[:length], below)
            yield PlannedStage(before, partitions, by=by)
            yield from _later(plan, above, partitions, graphs)
            return
    yield PlannedStage(root, 1, reason=_GRAPHS if graphs else _together(plan, root, leaf))


def _dividing(root: Node, leaf: Node) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(leaf.variables) if obstacle(root, name) is None)


def _together(plan: Plan, root: Node, leaf: Node) -> str:
    if plan.form == "ASK":
        return "ASK has one answer about everything"
    if plan.order is not None:
        return "ORDER BY puts results of all values in one order"
    chain, _ = _chain(root)
    if any(isinstance(each, GroupRows) and not each.keys for each in chain):
        return "without GROUP BY all is one group"
    reasons = [reason for name in leaf.variables if (reason := obstacle(root, name))]
    return reasons[0] if reasons else "its rows have no variables"


def received_by(root: Node) -> ChangelogRead:
    """The changelog that a later stage reads."""
    _, leaf = _chain(root)
    assert isinstance(leaf, ChangelogRead)
    return leaf


# --- cutting ----------------------------------------------------------------------------------------------------------


def _chain(node: Node) -> tuple[_Chain, Node]:
    """The operators with one input from the root down, and the input of the last of them."""
    chain: list[_Unary] = []
    while isinstance(node, _Unary):
        chain.append(node)
        node = node.input
    return tuple(chain), node


def _rebuilt(chain: Sequence[_Unary], bottom: Node) -> Node:
    for node in reversed(chain):
        bottom = replace(node, input=bottom)
    return bottom


def _has_numbers(node: Node) -> bool:
    """Do a node's mappings have numbers (NumberRows) that are only meaningful within their part?"""
    chain, _ = _chain(node)
    return any(isinstance(each, NumberRows) and each.variable in node.variables for each in chain)


def thinned(node: _Unary) -> tuple[Node, Node]:
    """An operator in two: a partial one over each part's mappings, and one that merges the partial results."""
    below = node.input
    received = ChangelogRead(below.variables)
    match node:
        case DistinctRowsOf():
            return node, replace(node, input=received)
        case TopRows(_, _, offset, limit) if limit is not None:
            return replace(node, offset=0, limit=offset + limit), replace(node, input=received)
        case GroupRows(_, keys, aggregates) if (partly := _partly(aggregates)) is not None:
            before = GroupRows(below, keys, partly)
            return before, GroupRows(ChangelogRead(before.variables), keys, _merging(aggregates))
        case _:
            return below, replace(node, input=received)


def _partly(aggregates: Aggregates) -> Aggregates | None:
    """The partial aggregates, under the aggregates' names; None where an aggregate needs all values in one part."""
    return None if any(a.distinct or a.function not in _MERGED for a in aggregates) else aggregates


def _merging(aggregates: Aggregates) -> Aggregates:
    return tuple(replace(a, function=_MERGED[a.function], argument=a.variable) for a in aggregates)


def joined(node: FactorisedGroups) -> JoinAll:
    """The join whose results the node aggregates."""
    wanted = dict.fromkeys([*node.keys, *(a.argument for a in node.aggregates if a.argument is not None)])
    inputs = tuple(without_ids(each) for each in node.inputs)
    return JoinAll(inputs, tuple(wanted), tuple(map(expires_fifo, inputs)))
