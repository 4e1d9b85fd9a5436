"""Filters, and columns computed from others."""

from __future__ import annotations

from dataclasses import replace

from cqels_py.algebra.nodes import Exists, Expression, Extend, Pattern
from cqels_py.algebra.variables import expression_variables, has_exists
from cqels_py.errors import UnsupportedQuery
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import ExtendRows, FilterRows, Node, Scan
from cqels_py.planner.expressions import compile_expression
from cqels_py.planner.negation import exists_filter
from cqels_py.planner.planning import Needed, Planning


def program_of(expression: Expression) -> ExpressionProgram:
    program = compile_expression(expression)
    if not program.deterministic:
        raise UnsupportedQuery("NOW() changes at every tick; it is not supported yet: use the event time in the data")
    return program


def filter_rows(planner: Planning, inner: Pattern, condition: Expression, needed: Needed) -> Node:
    if isinstance(condition, Exists):
        return exists_filter(planner, inner, condition, needed)
    if has_exists(condition):
        raise UnsupportedQuery(
            "EXISTS inside a larger expression is not supported yet: write FILTER EXISTS {…} or "
            "FILTER NOT EXISTS {…} by itself, or joined by &&"
        )
    node = planner.plan(inner, needed | expression_variables(condition))
    program = program_of(condition)
    if isinstance(node, Scan):
        return replace(node, conditions=(*node.conditions, program))
    return FilterRows(node, program)


def extended(planner: Planning, extend: Extend, needed: Needed) -> Node:
    if has_exists(extend.expression):
        raise UnsupportedQuery("EXISTS in BIND or in a projected expression is not supported yet")
    if extend.variable not in needed:
        return planner.plan(extend.pattern, needed)
    inner = (needed - {extend.variable}) | expression_variables(extend.expression)
    return ExtendRows(planner.plan(extend.pattern, inner), str(extend.variable), program_of(extend.expression))
