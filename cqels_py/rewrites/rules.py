"""The rewrites, in order. Each is a function from pattern to pattern; the answer of a query is the same without any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cqels_py.algebra.nodes import ContinuousQuery, Pattern
from cqels_py.rewrites.flatten_joins import flatten_joins
from cqels_py.rewrites.push_filters import push_filters
from cqels_py.rewrites.push_windows import push_windows
from cqels_py.rewrites.window_variables import expand_window_variables

RULES: tuple[Callable[[Pattern], Pattern], ...] = (push_windows, flatten_joins, push_filters)


def optimize(query: ContinuousQuery) -> ContinuousQuery:
    """Apply the rules to a query's pattern."""
    pattern = expand_window_variables(query.pattern, [window.name for window in query.windows])
    for rule in RULES:
        pattern = rule(pattern)
    return replace(query, pattern=pattern)
