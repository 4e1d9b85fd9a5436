"""The volatile functions UUID, STRUUID, BNODE and RAND: evaluated for each result of RSTREAM as it is delivered.

RSTREAM delivers whole answers and retracts nothing. So a value that no other operator reads is never looked up again, and is not
kept in any state: the plan's root delivers the other columns, and these are added to its results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rdflib import Variable
from rdflib.namespace import XSD

from cqels_py.algebra.mentions import mentioned_in
from cqels_py.algebra.nodes import Call, Constant, Expression, Extend, Filter, Pattern, Project, Reduced, VariableRef
from cqels_py.algebra.variables import exists_patterns, possible_variables
from cqels_py.plan.nodes import AddedColumn, ComputedColumn, VolatileColumn
from cqels_py.planner.expressions import VOLATILE, compile_expression
from cqels_py.planner.planning import Needed, Planning


@dataclass(frozen=True, slots=True)
class _Added:
    """An Extend that is evaluated with the results; `visible`: the variables of the pattern it extends."""

    extend: Extend
    visible: frozenset[Variable]


def with_volatile_columns(
    planner: Planning, pattern: Pattern, columns: tuple[Variable, ...]
) -> tuple[Pattern, tuple[Variable, ...], tuple[AddedColumn, ...]]:
    """The pattern and columns of an RSTREAM query whose state is kept; and those of `columns` that are added to its results.

    Nothing is added where a volatile value would be compared, ordered or kept; planning then refuses the function by name.
    """
    unchanged = pattern, columns, ()
    visible: Needed = frozenset(columns)
    inner = pattern
    while isinstance(inner, Project | Reduced):
        if isinstance(inner, Project):
            visible &= frozenset(inner.variables)
        inner = inner.pattern
    split = _split(inner)
    if split is None:
        return unchanged
    base, added = split
    kept: list[_Added] = []
    needed = visible
    for each in reversed(added):
        if each.extend.variable in needed:
            kept.insert(0, each)
            needed = (needed - {each.extend.variable}) | (mentioned_in(each.extend.expression) & each.visible)
    if not kept:
        return unchanged
    needed &= possible_variables(base)
    first = [column for column in columns if column in needed]
    steps = tuple(step for each in kept for step in _steps(planner, each))
    return base, (*first, *sorted(needed - set(first))), steps


def _split(pattern: Pattern) -> tuple[Pattern, list[_Added]] | None:
    """The pattern without the topmost expressions that are or read volatile values; and these expressions, innermost first."""
    around: list[Extend | Filter] = []
    while isinstance(pattern, Extend | Filter):
        around.insert(0, pattern)
        pattern = pattern.pattern
    added: list[_Added] = []
    volatile: set[Variable] = set()
    for node in around:
        expression = node.expression if isinstance(node, Extend) else node.condition
        if not (_is_volatile(expression) or volatile & mentioned_in(expression)):
            pattern = replace(node, pattern=pattern)
        elif isinstance(node, Filter) or exists_patterns(expression):
            return None
        else:
            added.append(_Added(node, possible_variables(node.pattern)))
            volatile.add(node.variable)
    return pattern, added


def _is_volatile(expression: Expression) -> bool:
    return isinstance(expression, Call) and (
        expression.function.upper() in VOLATILE or any(map(_is_volatile, expression.arguments))
    )


def _steps(planner: Planning, added: _Added) -> Iterator[AddedColumn]:
    volatile: list[AddedColumn] = []
    expression = _without_volatile(planner, added.extend.expression, added.visible, volatile)
    yield from volatile
    yield _computed(str(added.extend.variable), expression, added.visible)


def _computed(name: str, expression: Expression, visible: frozenset[Variable]) -> ComputedColumn:
    program = compile_expression(expression)
    # A variable that is bound only later is unbound here: it gets a name that no column has.
    known = {*map(str, visible), *(each for each in program.inputs if each.startswith("_:"))}
    return ComputedColumn(
        name, replace(program, inputs=tuple(each if each in known else f"{each} before" for each in program.inputs))
    )


def _without_volatile(
    planner: Planning, expression: Expression, visible: frozenset[Variable], volatile: list[AddedColumn]
) -> Expression:
    """The expression with a variable for each volatile value; their columns are appended to `volatile`."""
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(_without_volatile(planner, each, visible, volatile) for each in expression.arguments)
    function = expression.function.upper()
    if function not in VOLATILE:
        return replace(expression, arguments=arguments)
    label = None
    if arguments:
        label = str(planner.fresh("label"))
        volatile.append(_computed(label, _only_strings(arguments[0]), visible))
    variable = planner.fresh("volatile")
    volatile.append(VolatileColumn(str(variable), function, label))
    return VariableRef(variable)


def _only_strings(expression: Expression) -> Expression:
    """BNODE takes a simple literal; for any other argument it is an error, as COALESCE() always is."""
    is_string = Call("=", (Call("DATATYPE", (expression,)), Constant(XSD.string)))
    return Call("IF", (is_string, expression, Call("COALESCE", ())))
