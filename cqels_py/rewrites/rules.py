"""The rewrites of the algebra, in order: functions from pattern to pattern that leave a query's answers as they are.

The planner depends on the required ones: afterwards only basic graph patterns and paths are over windows and graphs. Without
the optional ones plans are larger or slower.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from cqels_py.algebra.nodes import ContinuousQuery, Pattern
from cqels_py.rewrites.absent_graphs import absent_graphs
from cqels_py.rewrites.flatten_joins import flatten_joins
from cqels_py.rewrites.graph_by_graph import graph_by_graph
from cqels_py.rewrites.join_events import join_events
from cqels_py.rewrites.push_filters import push_filters
from cqels_py.rewrites.push_windows import push_windows
from cqels_py.rewrites.window_variables import expand_window_variables

Rule = Callable[[Pattern], Pattern]

REQUIRED: tuple[Rule, ...] = (join_events, expand_window_variables, graph_by_graph, absent_graphs, push_windows)
OPTIONAL: tuple[Rule, ...] = (flatten_joins, push_filters)


def rewrite(query: ContinuousQuery, without: Collection[str] = ()) -> ContinuousQuery:
    """Apply the rules to a query's pattern, `without` the optional ones of these names."""
    pattern = query.pattern
    for rule in (*REQUIRED, *OPTIONAL):
        if rule in REQUIRED or rule.__name__ not in without:
            pattern = rule(pattern)
    return replace(query, pattern=pattern)
