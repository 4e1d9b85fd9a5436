"""Patterns of EXISTS under outer solutions, all at once.

SPARQL asks the pattern of EXISTS anew for each outer solution, whose values stand for its variables wherever they are named.
Here the pattern is joined with the different outer solutions, at its leaves and as far up as it needs to be, so that every
mapping carries the outer solution under which it holds; whatever reads a mapping sees its values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rdflib import URIRef, Variable

from cqels_py.algebra.mentions import aggregate_arguments, mentioned_in, mentioned_variables
from cqels_py.algebra.nodes import (
    BGP,
    Call,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    NaryJoin,
    OrderBy,
    PathPattern,
    Pattern,
    Planned,
    Project,
    Reduced,
    Service,
    Slice,
    Union,
    Values,
    VariableRef,
    Window,
    WindowVariable,
)
from cqels_py.algebra.paths import may_have_no_steps
from cqels_py.algebra.variables import certain_variables, possible_variables
from cqels_py.errors import UnsupportedQuery
from cqels_py.planner.joins import joined, maybe_unbound
from cqels_py.planner.planning import Needed, Planning


@dataclass(frozen=True, slots=True)
class Given:
    """The different outer solutions: `pattern` delivers them, `key` says which column tells a variable's own value."""

    pattern: Planned
    key: dict[Variable, Variable]

    @property
    def outer(self) -> Needed:
        return frozenset(self.key)

    @property
    def columns(self) -> Needed:
        return frozenset(self.pattern.variables)


def stands_alone(pattern: Pattern, outer: Needed) -> bool:
    """Are the solutions under an outer one just the pattern's own solutions that are compatible with it?"""
    match pattern:
        case BGP() | Values() | Service() | Planned():
            return True
        case PathPattern(subject, path, object_):
            # A path of no steps leads from an outer value to itself, wherever that is; to a constant, from that alone.
            free = isinstance(subject, Variable) and isinstance(object_, Variable)
            return not (free and may_have_no_steps(path) and {subject, object_} & outer)
        case Graph(_, inner) | Window(_, inner) | WindowVariable(_, inner) | Distinct(inner) | Reduced(inner):
            return stands_alone(inner, outer)
        case Join(left, right):
            return stands_alone(left, outer) and stands_alone(right, outer)
        case NaryJoin(parts) | Union(parts):
            return all(stands_alone(part, outer) for part in parts)
        case Filter(inner, expression) | Extend(inner, _, expression):
            return stands_alone(inner, outer) and mentioned_in(expression) & outer <= certain_variables(inner)
        case LeftJoin(left, right, condition):
            seen = possible_variables(right) | (frozenset() if condition is None else mentioned_in(condition))
            return _alone_beside(left, right, seen & outer, outer)
        case Minus(left, right):
            return _alone_beside(left, right, possible_variables(right) & outer, outer)
        case Project(inner, variables):
            return stands_alone(inner, outer & frozenset(variables))
        case Group(inner, keys, aggregates):
            visible = outer & frozenset(keys)
            seen = frozenset().union(*(mentioned_in(a) for a in aggregate_arguments(aggregates))) & visible
            return stands_alone(inner, visible) and seen <= certain_variables(inner)
        case OrderBy(inner):
            return stands_alone(inner, outer)
        case Slice(inner):
            return not mentioned_variables(inner) & outer


def _alone_beside(left: Pattern, right: Pattern, seen: Needed, outer: Needed) -> bool:
    return stands_alone(left, outer) and stands_alone(right, outer) and seen <= certain_variables(left)


def under(planner: Planning, pattern: Pattern, given: Given) -> Pattern:
    """A pattern that delivers the pattern's solutions under each of the given ones, with the columns of that.

    How often a solution is delivered is right under each outer solution. UnsupportedQuery for what has no exact plan.
    """
    if stands_alone(pattern, given.outer):
        return joined(given.pattern, pattern)
    match pattern:
        case Join(left, right):
            return _joined_under(planner, (left, right), given)
        case NaryJoin(parts):
            return _joined_under(planner, parts, given)
        case Union(parts):
            return Union(tuple(under(planner, part, given) for part in parts))
        case Filter(inner, condition):
            return Filter(under(planner, inner, given), condition)
        case Extend():
            return _extended_under(planner, pattern, given)
        case LeftJoin(left, right, condition):
            return LeftJoin(under(planner, left, given), _beside(planner, right, given), condition)
        case Minus():
            return _minus_under(planner, pattern, given)
        case Distinct(inner) | Reduced(inner):
            if maybe_unbound(inner) & given.outer:
                raise _no_plan("DISTINCT", maybe_unbound(inner) & given.outer)
            return Distinct(under(planner, inner, given))
        case Project(inner, variables):
            seen = _narrowed(planner, given, frozenset(variables))
            columns = tuple(dict.fromkeys((*variables, *sorted(seen.columns))))
            return joined(given.pattern, Project(under(planner, inner, seen), columns))
        case Group(inner, keys):
            if maybe_unbound(inner) & given.outer & frozenset(keys):
                raise _no_plan("GROUP BY", maybe_unbound(inner) & given.outer & frozenset(keys))
            seen = _narrowed(planner, given, frozenset(keys))
            columns = tuple(dict.fromkeys((*keys, *sorted(seen.columns))))
            return joined(given.pattern, replace(pattern, pattern=under(planner, inner, seen), keys=columns))
        case (PathPattern() as path) | Window(_, PathPattern() as path) | Graph(URIRef(), PathPattern() as path):
            return _path_under(pattern, path, given)
        case OrderBy(inner):
            return under(planner, inner, given)
        case Slice(inner):
            raise _no_plan("LIMIT", mentioned_variables(inner) & given.outer)
        case _:
            raise _no_plan("a path of any length in every named graph", possible_variables(pattern) & given.outer)


def without_slice(pattern: Pattern) -> Pattern:
    """A pattern that has a solution where this one has: order and the first rows make no difference to that."""
    match pattern:
        case Slice(inner, 0, limit) if limit != 0:
            return without_slice(inner)
        case OrderBy(inner) | Distinct(inner) | Reduced(inner):
            return without_slice(inner)
        case Project(inner, variables):
            return Project(without_slice(inner), variables)
        case _:
            return pattern


def _beside(planner: Planning, pattern: Pattern, given: Given) -> Pattern:
    """The pattern, to be joined with mappings that carry the outer solution already."""
    return pattern if stands_alone(pattern, given.outer) else under(planner, pattern, given)


def _joined_under(planner: Planning, parts: tuple[Pattern, ...], given: Given) -> Pattern:
    return joined(*(_beside(planner, part, given) for part in parts))


def _extended_under(planner: Planning, extend: Extend, given: Given) -> Pattern:
    variable = extend.variable
    if variable not in given.outer:
        return replace(extend, pattern=under(planner, extend.pattern, given))
    if variable in mentioned_variables(extend.pattern) | mentioned_in(extend.expression):
        raise _no_plan("BIND", frozenset([variable]))
    others = _narrowed(planner, given, given.outer - {variable})
    return joined(given.pattern, replace(extend, pattern=under(planner, extend.pattern, others)))


def _minus_under(planner: Planning, minus: Minus, given: Given) -> Pattern:
    """Carrying the outer solution must not make variables common that are not."""
    shared = possible_variables(minus.left) & possible_variables(minus.right)
    left = under(planner, minus.left, given)
    if not shared:
        return left
    if shared & certain_variables(minus.left) & certain_variables(minus.right):
        return Minus(left, _beside(planner, minus.right, given))
    if possible_variables(minus.right) & given.outer or not stands_alone(minus.right, given.outer):
        raise _no_plan("MINUS over variables that may be unbound", shared)
    return Minus(left, minus.right)


def _path_under(pattern: Pattern, path: PathPattern, given: Given) -> Pattern:
    """What the path connects, and outer values, which no steps lead to themselves even where the active graph has none of them."""
    ends = [end for end in dict.fromkeys((path.subject, path.object)) if isinstance(end, Variable)]
    found: list[Pattern] = [joined(given.pattern, pattern)]
    if given.outer.issuperset(ends):
        unbound = frozenset(ends) - certain_variables(given.pattern)
        if unbound and len(ends) == 2:
            raise _no_plan("a path of any length, zero too,", unbound)
        found.append(Filter(given.pattern, Call("SAMETERM", (VariableRef(ends[0]), VariableRef(ends[-1])))))
    else:
        known, other = ends if ends[0] in given.outer else reversed(ends)
        bound = Filter(given.pattern, Call("BOUND", (VariableRef(known),)))
        found.append(Extend(bound, other, VariableRef(known)))
    return Distinct(Project(Union(tuple(found)), tuple(sorted(given.columns.union(ends)))))


def _narrowed(planner: Planning, given: Given, visible: Needed) -> Given:
    """What a subquery sees of the outer solutions: the variables it selects."""
    key = {variable: own for variable, own in given.key.items() if variable in visible}
    columns = tuple(sorted({*key, *key.values()}))
    return given if key == given.key else Given(planner.share(Distinct(Project(given.pattern, columns)), columns), key)


def _no_plan(what: str, variables: Needed) -> UnsupportedQuery:
    names = ", ".join(f"?{variable}" for variable in sorted(variables))
    return UnsupportedQuery(
        f"EXISTS over {names} of the outer pattern, which {what} inside sees too, is not supported: give the variable "
        "inside another name, and compare them in a FILTER"
    )
