"""The kernels that a plan can call, whatever its data: all that its operators and windows call.

Kernels of operators that the plan does not have are left out. Everything else in the manifest is taken, so a caller
that is not listed here costs time at the first use of a machine, and never a compilation while elements are processed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cqels_py.kernels.compiler.manifest import KernelCall, manifest
from cqels_py.plan import nodes as plan
from cqels_py.plan.nodes import Node, Plan
from cqels_py.plan.traverse import nodes_of

_FILES: Final = ("cqels_py.formats.", "cqels_py.sources.", "cqels_py.sinks.")
"""Callers that read and write files, of which a plan knows nothing."""

_ONLY_FOR: Final[Mapping[str, tuple[type[Node], ...]]] = {
    "cqels_py.dataflow.match_scan": (plan.MatchRows,),
    "cqels_py.operators.r2r.aggregate": (plan.GroupRows, plan.FactorisedGroups),
    "cqels_py.operators.r2r.distinct": (plan.DistinctRowsOf,),
    "cqels_py.operators.r2r.factorised": (plan.FactorisedGroups,),
    "cqels_py.operators.r2r.join": (plan.JoinAll, plan.Negate),
    "cqels_py.operators.r2r.joined_rows": (plan.FactorisedGroups,),
    "cqels_py.operators.r2r.numbering": (plan.NumberRows,),
    "cqels_py.operators.r2r.semi_anti_join": (plan.Negate,),
    "cqels_py.operators.r2r.top": (plan.TopRows,),
    "cqels_py.operators.r2r.transitive_closure": (plan.ClosureRows,),
    "cqels_py.state.match_state": (plan.MatchRows,),
    "cqels_py.state.reach_trees": (plan.ClosureRows,),
}
"""Callers whose kernels only plans with one of these nodes call."""


_WITH_VARIANTS: Final = (
    "aggregates.factorised.put_all",
    "aggregates.factorised.put_extreme_of_two",
    "aggregates.factorised.put_extremes",
    "aggregates.factorised.put_sum_of_two",
    "aggregates.factorised.put_sums",
    "aggregates.group_by.group",
    "aggregates.group_by.group_differences",
    "aggregates.group_by.group_differences_terms",
    "aggregates.group_by.group_joined",
    "aggregates.group_by.group_joined_terms",
    "aggregates.group_by.group_terms",
    "aggregates.group_by.open_group",
)
"""The largest kernels, in several entries. A query needs one or two of these, which only the operators know."""


def calls_of(query: Plan) -> list[KernelCall]:
    """The part of the manifest that is compiled before the query runs."""
    return [call for call in _calls_of(query) if call.kernel not in _WITH_VARIANTS]


def variants_of(query: Plan) -> list[KernelCall]:
    """Kernels of which the query needs some variants, if there are any: `cqels compile` compiles all."""
    return [call for call in _calls_of(query) if call.kernel in _WITH_VARIANTS]


def _calls_of(query: Plan) -> list[KernelCall]:
    nodes = list(nodes_of(query.root))
    kinds = {type(node) for node in nodes}
    unused = {caller for caller, those in _ONLY_FOR.items() if kinds.isdisjoint(those)}
    if query.order is None and not any(map(_orders, nodes)):
        unused.add("cqels_py.state.ordered_rows")
    if not query.added and not any(map(_evaluates, nodes)):
        unused.add("cqels_py.operators.r2r.expressions")
    if all(window.partition is None for window in query.windows):
        unused.update(("cqels_py.state.last_by_value", "cqels_py.state.sessions_by_value"))
    return [call for call in manifest() if call.caller not in unused and not call.caller.startswith(_FILES)]


def _orders(node: Node) -> bool:
    """Does the node order rows? MATCH does so to choose between matches of the same elements."""
    return isinstance(node, plan.TopRows) or (isinstance(node, plan.MatchRows) and node.policy != "ALL")


def _evaluates(node: Node) -> bool:
    """Does the node evaluate expressions?"""
    if isinstance(node, plan.Scan):
        return bool(node.conditions)
    return isinstance(node, plan.FilterRows | plan.ExtendRows | plan.MatchRows | plan.StaticScan | plan.Rows)
