"""The analyses of a query, in the order of their messages. Each is a function from the algebra to messages for the user."""

from __future__ import annotations

from collections.abc import Callable

from cqels_py.algebra.nodes import ContinuousQuery
from cqels_py.analysis.late_comparisons import late_comparisons
from cqels_py.analysis.regexes import invalid_regexes
from cqels_py.analysis.rule_mistakes import points_that_should_last, unknown_states
from cqels_py.analysis.stray_graphs import stray_graphs
from cqels_py.analysis.unbound import unbound_variables
from cqels_py.analysis.unseen_aliases import unseen_aliases

ANALYSES: tuple[Callable[[ContinuousQuery], tuple[str, ...]], ...] = (
    unbound_variables,
    unseen_aliases,
    stray_graphs,
    invalid_regexes,
    late_comparisons,
    unknown_states,
    points_that_should_last,
)
