"""A registered query as text: windows, operators, the keys that joins probe, and the state of each operator."""

from __future__ import annotations

from collections.abc import Iterator

from cqels_py.dataflow.counted_join import CountedJoinScan
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.delta_sources import (
    ChangelogInput,
    Constant,
    DataflowNode,
    DeltaSource,
    OperatorNode,
    SharedOutput,
)
from cqels_py.dataflow.event_rows import EventRowsScan
from cqels_py.dataflow.explain_events import counted_join_text, event_rows_text
from cqels_py.dataflow.explain_match import match_lines, within_text
from cqels_py.dataflow.explain_rules import rule_lines, state_text
from cqels_py.dataflow.match_scan import MatchScan
from cqels_py.dataflow.scans import Scan
from cqels_py.dataflow.state_scan import StateScan
from cqels_py.event_time.windows import Measure
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.plan import nodes as plan
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import Plan, PlannedWindow
from cqels_py.plan.order import expires_fifo
from cqels_py.plan.traverse import nodes_of

_RATE = 1_000
"""The number of matching elements a second of a stream that estimates assume."""
_WORD = 8
_PAIR = 44
"""Bytes of a pair in a transitive closure: its record, its places in the table of pairs and in the lists of work."""


def explain(dataflow: Dataflow) -> str:
    """The plan of a query as text, with estimates of state."""
    query = dataflow.plan
    lines = [headline(query), "", "windows"]
    matches = [node for node in nodes_of(query.root) if isinstance(node, plan.MatchRows)]
    owners = {number: node for node in matches for number in node.windows}
    for number, window in enumerate(query.windows):
        lines.append(f"  {_window_line(query, window, owners.get(number))}")
    if query.rules is not None:
        lines += ["", "rules", *(f"  {line}" for line in rule_lines(query))]
    lines += ["", "plan"]
    lines += [f"  {line}" for line, _ in tree(dataflow, dataflow.root)]
    if query.warnings:
        lines += ["", "warnings", *(f"  {warning}" for warning in query.warnings)]
    return "\n".join(lines) + "\n"


def headline(query: Plan) -> str:
    """The form of a query, its variables, and how its results are delivered."""
    what = " ".join(f"?{name}" for name in query.variables) if query.form == "SELECT" else ""
    name = f" {query.name}" if query.name else ""
    in_order = ""
    if query.order is not None:
        in_order = f", each report in order by {_order(query.order.keys)}: keeps all results in order"
    return f"{query.form}{' ' + what if what else ''}, delivered as {query.output}{name}{in_order}{_added(query)}"


def _added(query: Plan) -> str:
    """The columns that are evaluated with the results, as hidden ones are not."""
    columns = [f"?{added.variable}" for added in query.added if not added.variable.startswith("_:")]
    return f", {' '.join(columns)} evaluated for each result when it is delivered" if columns else ""


def _window_line(query: Plan, window: PlannedWindow, owner: plan.MatchRows | None) -> str:
    """A window's line. `owner`: the MATCH that it belongs to."""
    predicate = query.time_predicates[window.stream]
    clock = f", event time from <{predicate}>" if predicate else ""
    stream = query.streams[window.stream]
    if owner is not None:
        return f"MATCH {within_text(owner)} on <{stream}>{clock}"
    return f"<{window.name}> on <{stream}> {window.text}, changes {_changes(window)}{clock}{_partition(window)}"


def _changes(window: PlannedWindow) -> str:
    bounds = window.bounds
    if not bounds.eager:
        return "at its boundaries"
    if bounds.measure is Measure.SESSION:
        return "at every arrival and when a session ends"
    if bounds.measure is not Measure.TIME:
        return "at every arrival"
    return "at every arrival and expiry" if bounds.delay == 0 else "at every entry and expiry"


def _partition(window: PlannedWindow) -> str:
    partition = window.partition
    if partition is None:
        return ""
    alternatives = [" . ".join(map(_pattern, patterns)) for patterns in partition.alternatives]
    patterns = " or ".join(f"{{ {patterns} }}" for patterns in alternatives)
    size, unit = window.bounds.size or 0, window.bounds.measure.value
    if window.bounds.measure is Measure.SESSION:
        return f"; values by {patterns}; keeps, for every ({_names(partition.variables)}), the numbers of its session's elements"
    which = f"the numbers of the last {size:,} {unit}" if size > 1 else f"the number of the last of its {unit}"
    return f"; values by {patterns}; keeps, for every ({_names(partition.variables)}) ever seen, {which}"


def tree(
    dataflow: Dataflow, source: DeltaSource, visited: set[int] | None = None
) -> Iterator[tuple[str, DataflowNode | None]]:
    """The lines of a plan below a source, each with the source that it describes; None: a line before describes it."""
    visited = set() if visited is None else visited
    if isinstance(source, SharedOutput):
        yield from _shared(dataflow, source, visited)
        return
    if isinstance(source, MatchScan):
        first, *others = match_lines(dataflow.plan, source.node)
        yield first, source
        yield from ((line, None) for line in others)
        return
    yield _describe(dataflow, source), source
    children = source.inputs if isinstance(source, OperatorNode) else ()
    for place, child in enumerate(children):
        last = place == len(children) - 1
        for number, (line, described) in enumerate(tree(dataflow, child, visited)):
            lead = ("└─ " if last else "├─ ") if number == 0 else ("   " if last else "│  ")
            yield lead + line, described


def _shared(dataflow: Dataflow, source: SharedOutput, visited: set[int]) -> Iterator[tuple[str, DataflowNode | None]]:
    """A sub-plan that several operators read: in full at its first reader."""
    number = source.node.number
    if number in visited:
        yield f"the same as ({number})", None
        return
    visited.add(number)
    (first, described), *others = tree(dataflow, source.source, visited)
    yield f"({number}) {first}", described
    yield from others


def _describe(dataflow: Dataflow, source: DataflowNode) -> str:
    if isinstance(source, Scan):
        return _scan(dataflow.plan, source.node)
    if isinstance(source, CountedJoinScan):
        return counted_join_text(dataflow.plan, source.node)
    if isinstance(source, EventRowsScan):
        return event_rows_text(dataflow.plan, source.node)
    if isinstance(source, StateScan):
        return state_text(source.node)
    if isinstance(source, ChangelogInput):
        return f"changes of ({_names(source.node.variables)}) from another stage; keeps nothing"
    if isinstance(source, Constant):
        return _constant(source)
    assert isinstance(source, OperatorNode)
    node, operator = source.node, source.operator
    match node:
        case plan.JoinAll() if isinstance(operator, MultiwayJoin):
            return _join(node, operator)
        case plan.FilterRows(inner, condition):
            return f"filter {condition}; {_keeps_for(condition, inner)}"
        case plan.ExtendRows(inner, variable, expression):
            return f"bind ?{variable} := {expression}; {_keeps_for(expression, inner)}"
        case plan.ProjectRows(_, variables):
            return f"project {_names(variables)}; keeps nothing"
        case plan.UnionRows():
            return "union; keeps nothing"
        case plan.DistinctRowsOf(inner, reason):
            return f"distinct ({reason}); keeps a counter for each different ({_names(inner.variables)})"
        case plan.ClosureRows():
            return _closure(node)
        case plan.Negate(_, _, key, _, exists, word):
            by = f"by {_names(key)}" if key else "without a key"
            return f"{'semi' if exists else 'anti'}-join ({word}) {by}; keeps left mappings in rings by key, and right keys"
        case plan.NumberRows(_, of):
            return f"number each different ({_names(of)}); keeps a counter for each"
        case plan.GroupRows(inner, keys, aggregates):
            what = ", ".join(_aggregate(a) for a in aggregates)
            by = f"by {_names(keys)}" if keys else "as one group"
            return f"group {by}: {what}; keeps a row of accumulators for each group{_bags(aggregates, expires_fifo(inner))}"
        case plan.FactorisedGroups():
            return _factorised(node)
        case plan.TopRows(_, order, offset, limit, by):
            which = "all" if limit is None else f"first {limit}"
            skip = f" after {offset}" if offset else ""
            each = f" for each {_names(by)}" if by else ""
            kept = "keeps all rows in order, delivers rows that enter or leave the slice"
            return f"{which}{skip}{each} by {_order(order)}; {kept}"
    raise AssertionError(node)


def _order(order: tuple[tuple[str, bool], ...]) -> str:
    by = ", ".join(f"?{name}{' descending' if descending else ''}" for name, descending in order)
    return by or "all columns in term order"


def _keeps_for(program: ExpressionProgram, inner: plan.Node) -> str:
    if program.deterministic:
        return "keeps nothing"
    return f"keeps a counter for each different ({_names(inner.variables)}): all of them are evaluated at every tick, for NOW()"


def _scan(query: Plan, scan: plan.Scan) -> str:
    window = query.windows[scan.window]
    tested = "".join(f" filter {condition}" for condition in scan.conditions)
    place = " and ids" if scan.keep_ids or _waits(window) else ""
    kept = "nothing" if window.bounds.size is None else f"a timestamp{place} for each mapping"
    return f"scan {window.text} {{ {_pattern(scan.pattern)} }}{tested}; keeps {kept}{_estimate(window, scan)}"


def _pattern(pattern: plan.PatternText) -> str:
    triple = " ".join(pattern[: plan.GRAPH])
    return f"GRAPH {pattern[plan.GRAPH]} {{ {triple} }}" if len(pattern) > plan.GRAPH else triple


def _waits(window: PlannedWindow) -> bool:
    """Mappings wait for a boundary or for their time, and are kept until then."""
    return not window.bounds.eager or window.bounds.delay > 0


def _estimate(window: PlannedWindow, scan: plan.Scan) -> str:
    size, measure = window.bounds.size, window.bounds.measure
    if size is None or measure is Measure.SESSION or window.partition is not None:
        return ""
    leaves, at = size, ""
    if measure is Measure.TIME:
        leaves, at = max(1, (size + window.bounds.delay) * _RATE // 1_000_000), f" ({_RATE:,} a second)"
    own = _WORD * (1 + (len(scan.variables) if scan.keep_ids or _waits(window) else 0))
    return f", about {size_text(leaves * own)} for {leaves:,} mappings{at}"


def _constant(constant: Constant) -> str:
    rows = constant.columns.shape[1]
    match constant.node:
        case plan.Once(inner):
            patterns = " . ".join(_static_patterns(inner))
            if not patterns:
                return f"constants {_names(inner.variables)}: {rows:,} mappings"
            return f"static {{ {patterns} }}: answered once, {rows:,} mappings"
        case node:
            return f"inline data {_names(node.variables)}: {rows:,} mappings"


def _static_patterns(node: plan.Node) -> Iterator[str]:
    if isinstance(node, plan.StaticScan):
        yield " ".join(node.pattern)
    if isinstance(node, plan.GraphNames):
        yield f"GRAPH {node.graph} {{}}"
    for child in plan.inputs_of(node):
        yield from _static_patterns(child)


def _join(node: plan.JoinAll, operator: MultiwayJoin) -> str:
    indexes = []
    for number, child in enumerate(node.inputs, 1):
        keys = [_names(child.variables[c] for c in columns) for columns in operator.layout.probed(number - 1)]
        indexes.append(f"input {number} by " + (" or ".join(f"({key})" for key in keys) if keys else "(nothing)"))
    results = "; expired results are found by the same indexes" if node.retract else ""
    compared = f"; {_names(sorted(node.maybe_unbound))} compared, as it may be unbound" if node.maybe_unbound else ""
    return (
        f"join of {len(node.inputs)}, probing the input with the fewest matches first; ring indexes: "
        f"{', '.join(indexes)}{compared}; keeps leaf mappings{results}"
    )


def _closure(node: plan.ClosureRows) -> str:
    sources, trees = "from each node", "a tree for each node"
    if node.source is not None:
        sources, trees = f"from {node.source} alone", "the tree of that node"
    within = " within each graph" if len(node.edge) == 3 else ""
    return (
        f"transitive closure {_names(node.variables)} over the edges {_names(node.edge)}{within}, {sources}; keeps the edges and "
        f"{trees}, about {size_text(_PAIR)} for each reachable pair: "
        "a change costs as much as the pairs that it connects or separates"
    )


def _names(names: object) -> str:
    return " ".join(f"?{name}" for name in names)  # type: ignore[attr-defined]


def _aggregate(aggregate: plan.PlannedAggregate) -> str:
    if aggregate.argument is None:
        return f"{aggregate.function} as ?{aggregate.variable}"
    distinct = "DISTINCT " if aggregate.distinct else ""
    separator = f"; separator {aggregate.separator!r}" if aggregate.separator != " " else ""
    return f"{aggregate.function}({distinct}?{aggregate.argument}{separator}) as ?{aggregate.variable}"


def _bags(aggregates: tuple[plan.PlannedAggregate, ...], in_order: bool) -> str:
    extra = []
    extremes = [name for name in ("MIN", "MAX", "SAMPLE") if any(a.function == name for a in aggregates)]
    if extremes:
        kept = "those of the group's values that may still be the first" if in_order else "the group's values as a bag"
        extra.append(f"{kept} for {' and '.join(extremes)}")
    if any(a.function == "GROUP_CONCAT" for a in aggregates):
        extra.append(
            "the group's values in order for GROUP_CONCAT, whose text is built once a tick for groups that change"
        )
    if any(a.distinct for a in aggregates):
        extra.append("a counter for each different value of DISTINCT")
    return "".join(f", {text}" for text in extra)


def _factorised(node: plan.FactorisedGroups) -> str:
    what = ", ".join(_aggregate(a) for a in node.aggregates)
    by = f"by {_names(node.keys)}" if node.keys else "as one group"
    kept = []
    for number in range(len(node.inputs)):
        own = f" and ({_names(node.own)})" if number == node.carrier and node.own else ""
        mine = [a for a in node.aggregates if a.argument is not None and node.source(a) == number]
        accumulators = dict.fromkeys(f"{a.function} of ?{a.argument}" for a in mine)
        kept.append(f"of input {number + 1}{own} {' and '.join(['a counter', *accumulators])}")
    groups = "the keys are the groups" if node.by_key else "keeps a row of accumulators for each group"
    return (
        f"group {by}: {what or 'nothing'}; aggregates below the join: kept per key ({_names(node.key)}) {', '.join(kept)}; "
        f"{groups}; no result of the join is made"
    )


def size_text(size: int) -> str:
    """A number of bytes in the unit in which it has at most four digits."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 10_000:
            return f"{size:,} {unit}"
        size //= 1_000
    return f"{size:,} TB"
