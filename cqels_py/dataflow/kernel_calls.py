"""The kernels that a plan can call, whatever its data: all that its operators and windows call.

Kernels of operators that the plan does not have are left out. Everything else in the manifest is taken, so a caller
that is not listed here costs time at the first use of a machine, and never a compilation while elements are processed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cqels_py.event_time.windows import Measure
from cqels_py.kernels.compiler.manifest import KernelCall, manifest
from cqels_py.operators.r2r.join import layout_of
from cqels_py.plan import nodes as plan
from cqels_py.plan.nodes import WITHOUT_TERMS, Node, Plan
from cqels_py.plan.traverse import nodes_of

_BESIDE: Final = ("cqels_py.formats.", "cqels_py.checkpoints.")
"""Callers of which a plan knows nothing: see `formats.kernel_calls` and `checkpoints.kernel_calls`."""

_PUSH: Final = "text.triples.encode_triples"
"""The kernel that takes the terms of elements that are pushed one by one."""

_ONLY_FOR: Final[Mapping[str, tuple[type[Node], ...]]] = {
    "cqels_py.automata.evaluation": (),
    "cqels_py.dataflow.match_scan": (plan.MatchRows, plan.EventRows, plan.CountedJoin),
    "cqels_py.dataflow.places": (plan.CountedJoin,),
    "cqels_py.operators.r2r.aggregate": (plan.GroupRows, plan.FactorisedGroups),
    "cqels_py.operators.r2r.distinct": (plan.DistinctRowsOf,),
    "cqels_py.operators.r2r.factorised": (plan.FactorisedGroups,),
    "cqels_py.operators.r2r.join": (plan.JoinAll,),
    "cqels_py.operators.r2r.joined_rows": (plan.FactorisedGroups,),
    "cqels_py.operators.r2r.leaf_join": (plan.JoinAll, plan.Negate),
    "cqels_py.operators.r2r.numbering": (plan.NumberRows,),
    "cqels_py.operators.r2r.semi_anti_join": (plan.Negate,),
    "cqels_py.operators.r2r.top": (plan.TopRows,),
    "cqels_py.operators.r2r.transitive_closure": (plan.ClosureRows,),
    "cqels_py.state.counted_state": (plan.CountedJoin,),
    "cqels_py.state.match_state": (plan.MatchRows,),
    "cqels_py.state.reach_trees": (plan.ClosureRows,),
    "cqels_py.state.term_runs": (plan.GroupRows, plan.FactorisedGroups),
    "cqels_py.state.temporal_rules": (plan.StateRows,),
}
"""Callers whose kernels only plans with one of these nodes call."""

_STEPS_ONLY_FOR: Final[Mapping[str, tuple[type[Node], ...]]] = {
    "steps.events.count": (plan.CountedJoin,),
    "steps.events.deliver": (plan.EventRows,),
    "steps.groups.group": (plan.GroupRows,),
    "steps.joins.negate": (plan.Negate,),
    "steps.matches.take_in": (plan.MatchRows,),
    "steps.rows.distinct": (plan.DistinctRowsOf,),
    "steps.rows.extend_rows": (plan.ExtendRows,),
    "steps.rows.filter_rows": (plan.FilterRows,),
    "steps.rules.tell_changes": (plan.StateRows,),
    "steps.rules.tell_time": (plan.StateRows,),
    "steps.top.top": (plan.TopRows,),
}
"""Entries of programs that only plans with one of these nodes have."""

_ADDED_BY_ENTAILMENT: Final = (plan.JoinAll, plan.DistinctRowsOf, plan.Negate, plan.ClosureRows)

_GROUP, _OPEN, _PUT = "aggregates.group_by.group", "aggregates.group_by.open_group", "aggregates.factorised.put_"
_BELOW = "steps.joined_groups.group_"
"""The beginnings of the largest kernels' names, which have an entry for each kind of aggregation."""

_STAR, _MULTIWAY = ("joins.star.step", "steps.joins.join"), ("joins.multiway.step", "steps.joins.join_blocks")
_JOINS = (*_STAR, *_MULTIWAY)


def calls_of(query: Plan, *, pushed: bool = True, rewritten: bool = False) -> list[KernelCall]:
    """The part of the manifest that is compiled before the query runs.

    `pushed`: elements may be pushed. `rewritten`: the query will be rewritten for entailment, which adds operators.
    """
    nodes = list(nodes_of(query.root))
    kinds = {type(node) for node in nodes}
    if rewritten:
        kinds.update(_ADDED_BY_ENTAILMENT)
    unused = {caller for caller, those in _ONLY_FOR.items() if kinds.isdisjoint(those)}
    unused_steps = {entry for entry, those in _STEPS_ONLY_FOR.items() if kinds.isdisjoint(those)}
    unused_steps.update(_unused_scans(query))
    if query.order is None and not any(map(_orders, nodes)):
        unused.add("cqels_py.state.ordered_rows")
    if not (rewritten or query.added or any(map(_evaluates, nodes))):
        unused.add("cqels_py.operators.r2r.expressions")
    if all(window.partition is None for window in query.windows):
        unused_steps.add("steps.partitions.take")
        unused.update(("cqels_py.state.last_by_value", "cqels_py.state.sessions_by_value"))
    entries = {entry for node in nodes for entry in (*_aggregation(node), *_join(node))}
    if rewritten:
        entries.update(_JOINS)
    return [
        call
        for call in manifest()
        if call.caller not in unused
        and call.kernel not in unused_steps
        and not call.caller.startswith(_BESIDE)
        and (pushed or call.kernel != _PUSH)
        and (call.kernel in entries or not call.kernel.startswith((_GROUP, _OPEN, _PUT, _BELOW, *_JOINS)))
    ]


def _unused_scans(query: Plan) -> Iterator[str]:
    """The entries of scans over windows that the plan does not have."""
    bounds = [window.bounds for window in query.windows if window.partition is None]
    if all(each.size is not None for each in bounds):
        yield "steps.scan.keep"
    sessions = [each for each in bounds if each.measure is Measure.SESSION and each.eager]
    if not sessions:
        yield "steps.scan.take_session"
    if all(each.size is None or each in sessions or (each.eager and not each.delay) for each in bounds):
        yield "steps.scan.wait"


def _join(node: Node) -> Iterator[str]:
    """The kernel of a join and its entry in programs: stars have ones of their own."""
    if isinstance(node, plan.JoinAll):
        layout = layout_of([child.variables for child in node.inputs], node.expires_fifo, node.maybe_unbound)
        yield from _STAR if layout.star else _MULTIWAY


def _aggregation(node: Node) -> Iterator[str]:
    """The entries that an operator of aggregation calls."""
    if not isinstance(node, plan.GroupRows | plan.FactorisedGroups):
        return
    of_terms = [a.function not in WITHOUT_TERMS for a in node.aggregates]
    keeping = "_terms" if any(of_terms) else ""
    if not node.keys:
        yield _OPEN
    if isinstance(node, plan.GroupRows):
        yield f"{_GROUP}{keeping}"
    elif node.by_key:
        yield from (f"{_GROUP}_joined{keeping}", f"{_BELOW}by_key")
    else:
        yield f"{_BELOW}carried"
        yield f"{_GROUP}_differences{keeping}"
        # Joins of two inputs have an entry of their own; the operator chooses by the widths of its tables.
        if all(of_terms):
            yield from (f"{_PUT}extremes", f"{_PUT}extreme_of_two")
        elif any(of_terms):
            yield f"{_PUT}all"
        else:
            yield from (f"{_PUT}sums", f"{_PUT}sum_of_two")


def _orders(node: Node) -> bool:
    """Does the node order rows? MATCH does so to choose between matches of the same elements."""
    return isinstance(node, plan.TopRows) or (isinstance(node, plan.MatchRows) and node.policy != "ALL")


def _evaluates(node: Node) -> bool:
    """Does the node evaluate expressions?"""
    if isinstance(node, plan.Scan):
        return bool(node.conditions)
    return isinstance(
        node,
        plan.FilterRows
        | plan.ExtendRows
        | plan.MatchRows
        | plan.StateRows
        | plan.EventRows
        | plan.CountedJoin
        | plan.StaticScan
        | plan.Rows,
    )
