"""Filters move to where all their variables are first bound, conjunct by conjunct.

    Filter(NaryJoin(a(x), b(x, y)), x > 1 && y > x)  →  NaryJoin(Filter(a, x > 1), Filter(b, y > x))

Only over variables that are bound for certain in that part: a filter over one that may be unbound sees another value there.
"""

from __future__ import annotations

from cqels_py.algebra.nodes import Call, Exists, Expression, Extend, Filter, NaryJoin, Pattern, Union
from cqels_py.algebra.traverse import map_children
from cqels_py.algebra.variables import certain_variables, expression_variables, has_exists


def push_filters(pattern: Pattern) -> Pattern:
    """Push the conjuncts of every filter down."""
    if isinstance(pattern, Filter):
        inner = push_filters(pattern.pattern)
        for condition in conjuncts(pattern.condition):
            inner = _push(inner, _rewrite_exists(condition))
        return inner
    return map_children(pattern, push_filters)


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The parts of a conjunction: a filter holds where all of them do.

    >>> from cqels_py.algebra.nodes import Constant
    >>> from rdflib import Literal
    >>> a, b = Constant(Literal("a")), Constant(Literal("b"))
    >>> conjuncts(Call("&&", (a, Call("&&", (b, a))))) == (a, b, a)
    True
    """
    if isinstance(condition, Call) and condition.function == "&&":
        return tuple(part for argument in condition.arguments for part in conjuncts(argument))
    return (condition,)


def _rewrite_exists(condition: Expression) -> Expression:
    match condition:
        case Exists(pattern, negated):
            return Exists(push_filters(pattern), negated)
        case Call("!", (Exists(pattern, negated),)):
            return Exists(push_filters(pattern), not negated)
        case _:
            return condition


def _push(pattern: Pattern, condition: Expression) -> Pattern:
    if has_exists(condition):
        return Filter(pattern, condition)
    wanted = expression_variables(condition)
    match pattern:
        case NaryJoin(parts):
            for place, part in enumerate(parts):
                if wanted and wanted <= certain_variables(part):
                    return NaryJoin((*parts[:place], _push(part, condition), *parts[place + 1 :]))
        case Union(parts) if all(wanted <= certain_variables(part) for part in parts):
            return Union(tuple(_push(part, condition) for part in parts))
        case Filter(inner, other):
            pushed = _push(inner, condition)
            # Filters change places only where this one gets further down: otherwise their order stays.
            if pushed != Filter(inner, condition):
                return Filter(pushed, other)
        case Extend(inner, variable, expression) if variable not in wanted and wanted <= certain_variables(inner):
            return Extend(_push(inner, condition), variable, expression)
    return Filter(pattern, condition)
