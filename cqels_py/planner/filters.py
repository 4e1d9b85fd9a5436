"""Filters, and columns computed from others."""

from __future__ import annotations

from dataclasses import replace

from cqels_py.algebra.nodes import Exists, Expression, Extend, Pattern
from cqels_py.algebra.variables import expression_variables
from cqels_py.plan.nodes import ExtendRows, FilterRows, Node, Scan
from cqels_py.planner.expressions import compile_expression
from cqels_py.planner.negation import exists_filter, with_exists_values
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import project, with_columns


def filter_rows(planner: Planning, inner: Pattern, condition: Expression, needed: Needed) -> Node:
    if isinstance(condition, Exists):
        return exists_filter(planner, inner, condition, needed)
    inner, condition = with_exists_values(planner, inner, condition, needed)
    found = planner.plan(inner, needed | expression_variables(condition))
    program = compile_expression(condition)
    node = with_columns(found, program.inputs)
    if isinstance(node, Scan) and program.deterministic:
        return replace(node, conditions=(*node.conditions, program))
    # Columns of variables that are out of scope here must not be joined with variables of that name elsewhere.
    return project(FilterRows(node, program), found.variables)


def extended(planner: Planning, extend: Extend, needed: Needed) -> Node:
    if extend.variable not in needed:
        return planner.plan(extend.pattern, needed)
    needed -= {extend.variable}
    pattern, expression = with_exists_values(planner, extend.pattern, extend.expression, needed)
    program = compile_expression(expression)
    found = planner.plan(pattern, needed | expression_variables(expression))
    name = str(extend.variable)
    # In its own expression the variable is unbound: it is read from another column than the new one.
    program = replace(program, inputs=tuple(f"{each} before" if each == name else each for each in program.inputs))
    return project(ExtendRows(with_columns(found, program.inputs), name, program), (*found.variables, name))
