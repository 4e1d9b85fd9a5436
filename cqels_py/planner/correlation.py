"""Correlated EXISTS, decorrelated: the pattern is evaluated for all outer solutions at once.

SPARQL evaluates the pattern of EXISTS for each outer solution, with the solution's values substituted for its variables (18.6). Here
the pattern is joined with the distinct outer solutions, at its leaves and as far up as necessary, so that every mapping carries the
outer solution under which it holds, and every operator sees its values. A substituted variable is no variable any more: it does not
count as in common for MINUS. Where only a variable can stand, as in BIND, the value has to agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from rdflib import Variable

from cqels_py.algebra.mentions import aggregate_arguments, mentioned_in, mentioned_variables
from cqels_py.algebra.nodes import (
    BGP,
    Call,
    Distinct,
    EventJoin,
    Expression,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Match,
    Minus,
    NaryJoin,
    OrderBy,
    PathPattern,
    PathRepeat,
    Pattern,
    Planned,
    Project,
    Reduced,
    Service,
    Slice,
    State,
    Union,
    Values,
    VariableRef,
    Window,
    WindowVariable,
)
from cqels_py.algebra.paths import may_have_no_steps
from cqels_py.algebra.variables import certain_variables, possible_variables
from cqels_py.planner.joins import joined, maybe_unbound
from cqels_py.planner.keys import UNBOUND
from cqels_py.planner.path_patterns import ActiveGraph, between
from cqels_py.planner.planning import Needed, Planning


@dataclass(frozen=True, slots=True)
class Given:
    """The distinct outer solutions: `pattern` delivers them; `key` maps a variable to the column with its outer value."""

    pattern: Planned
    key: dict[Variable, Variable]

    @property
    def outer(self) -> Needed:
        return frozenset(self.key)

    @property
    def columns(self) -> Needed:
        return frozenset(self.pattern.variables)

    @property
    def maybe_unbound(self) -> Needed:
        """Outer variables that some outer solutions leave unbound."""
        return frozenset(variable for variable, own in self.key.items() if own != variable)

    def is_unbound(self, variable: Variable) -> Expression:
        """Has the outer solution no value for this variable, which may be unbound?"""
        return Call("SAMETERM", (VariableRef(self.key[variable]), UNBOUND))


def stands_alone(pattern: Pattern, outer: Needed) -> bool:
    """Are the solutions under an outer one just the pattern's own solutions that are compatible with it?"""
    match pattern:
        case BGP() | Values() | Service() | Planned() | Match() | EventJoin() | State():
            return True
        case PathPattern(subject, path, object_):
            # A path of no length leads from any substituted value to itself, even if the graph does not have it.
            free = isinstance(subject, Variable) and isinstance(object_, Variable)
            return not (free and may_have_no_steps(path) and {subject, object_} & outer)
        case Graph(_, inner) | Window(_, inner) | WindowVariable(_, inner) | Reduced(inner) | OrderBy(inner):
            return stands_alone(inner, outer)
        case Distinct(inner):
            # Rows that differ only in a substituted variable are the same row.
            return stands_alone(inner, outer) and not maybe_unbound(inner) & outer
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
            return _shares_alone(left, right, outer) and _alone_beside(
                left, right, possible_variables(right) & outer, outer
            )
        case Project(inner, variables):
            return stands_alone(inner, outer & frozenset(variables))
        case Group(inner, keys, aggregates):
            visible = outer & frozenset(keys)
            seen = frozenset().union(*(mentioned_in(a) for a in aggregate_arguments(aggregates))) & visible
            return stands_alone(inner, visible) and seen | (visible & possible_variables(inner)) <= certain_variables(
                inner
            )
        case Slice(inner):
            return not mentioned_variables(inner) & outer


def _alone_beside(left: Pattern, right: Pattern, seen: Needed, outer: Needed) -> bool:
    return stands_alone(left, outer) and stands_alone(right, outer) and seen <= certain_variables(left)


def _shares_alone(left: Pattern, right: Pattern, outer: Needed) -> bool:
    """Is the result of MINUS the same if outer variables do not count as in common?"""
    shared = possible_variables(left) & possible_variables(right)
    return not shared & outer or bool((shared - outer) & certain_variables(left) & certain_variables(right))


def under(planner: Planning, pattern: Pattern, given: Given) -> Pattern:
    """A pattern with the given pattern's solutions under each of the outer solutions, and the columns of these.

    The multiplicity of a solution is right under each outer solution.
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
        case Distinct(inner):
            return Distinct(under(planner, inner, given))
        case Reduced(inner) | OrderBy(inner):
            return under(planner, inner, given)
        case Project(inner, variables):
            seen = _narrowed(planner, given, frozenset(variables))
            return joined(given.pattern, Project(under(planner, inner, seen), _with_columns(variables, seen)))
        case Group(inner, keys):
            seen = _narrowed(planner, given, frozenset(keys))
            grouped = replace(pattern, pattern=under(planner, inner, seen), keys=_with_columns(keys, seen))
            return joined(given.pattern, grouped)
        case (PathPattern() as path) | Window(_, PathPattern() as path) | Graph(_, PathPattern() as path):
            return _path_under(planner, pattern, path, given)
        case Slice(inner):
            ordered, seen = _ordered_under(planner, inner, given)
            by = (*pattern.by, *sorted(seen.key.values()))
            return joined(given.pattern, replace(pattern, pattern=ordered, by=by))
        case _:
            raise AssertionError(pattern)


def _beside(planner: Planning, pattern: Pattern, given: Given) -> Pattern:
    """The pattern, for a join with mappings that have the columns of the outer solution."""
    return pattern if stands_alone(pattern, given.outer) else under(planner, pattern, given)


def _joined_under(planner: Planning, parts: tuple[Pattern, ...], given: Given) -> Pattern:
    return joined(*(_beside(planner, part, given) for part in parts))


def _with_columns(variables: tuple[Variable, ...], given: Given) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys((*variables, *sorted(given.columns))))


def _ordered_under(planner: Planning, pattern: Pattern, given: Given) -> tuple[Pattern, Given]:
    """The ordered input of a slice, and the outer solutions by the variables that are visible there."""
    match pattern:
        case OrderBy(inner, conditions):
            return OrderBy(under(planner, inner, given), conditions), given
        case Project(inner, variables):
            seen = _narrowed(planner, given, frozenset(variables))
            ordered, _ = _ordered_under(planner, inner, seen)
            return Project(ordered, _with_columns(variables, seen)), seen
        case Distinct(inner):
            ordered, seen = _ordered_under(planner, inner, given)
            return Distinct(ordered), seen
        case Reduced(inner):
            return _ordered_under(planner, inner, given)
        case _:
            return under(planner, pattern, given), given


def _extended_under(planner: Planning, extend: Extend, given: Given) -> Pattern:
    """BIND to an outer variable keeps the mappings in which the values agree, or the expression is an error."""
    variable, inner = extend.variable, under(planner, extend.pattern, given)
    if variable not in given.outer:
        return replace(extend, pattern=inner)
    made = planner.fresh("made")
    tests: list[Expression] = [
        Call("!", (Call("BOUND", (VariableRef(made),)),)),
        Call("SAMETERM", (VariableRef(variable), VariableRef(made))),
    ]
    if variable in given.maybe_unbound:
        tests.insert(0, given.is_unbound(variable))
    agreeing = Filter(Extend(inner, made, extend.expression), _any(tests))
    if variable not in given.maybe_unbound:
        return agreeing
    value = planner.fresh("value")
    valued = Extend(agreeing, value, Call("COALESCE", (VariableRef(variable), VariableRef(made))))
    return Extend(_leaving_out(valued, frozenset([variable, made])), variable, VariableRef(value))


def _leaving_out(pattern: Pattern, variables: Needed) -> Pattern:
    return Project(pattern, tuple(sorted(possible_variables(pattern) - variables)))


def _minus_under(planner: Planning, minus: Minus, given: Given) -> Pattern:
    """Values are substituted for outer variables: these do not count as in common."""
    shared = possible_variables(minus.left) & possible_variables(minus.right)
    left = under(planner, minus.left, given)
    firm = (shared - given.outer) & certain_variables(minus.left) & certain_variables(minus.right)
    uncertain = shared & given.maybe_unbound
    if shared <= given.outer - uncertain:
        planner.warnings.append(
            "MINUS inside of EXISTS shares only variables of the outer pattern, for which their values stand there: "
            "it removes nothing"
        )
        return left
    uncounted = minus.uncounted | given.columns
    if firm or not uncertain:
        return Minus(left, _beside(planner, minus.right, given), uncounted)
    right = under(planner, minus.right, given)
    for variable in sorted(uncertain):
        # The variable's value where the outer solution leaves it unbound, otherwise unbound.
        free = planner.fresh(f"free.{variable}")
        value = Call("IF", (given.is_unbound(variable), VariableRef(variable), Call("COALESCE", ())))
        left, right = Extend(left, free, value), Extend(right, free, value)
    return Minus(left, right, uncounted)


def _path_under(planner: Planning, pattern: Pattern, path: PathPattern, given: Given) -> Pattern:
    """The pairs that the path connects, and each outer value with itself (no length), even if the graph does not have it."""
    graph = ActiveGraph(pattern if isinstance(pattern, Window | Graph) else None)
    if not isinstance(path.path, PathRepeat):
        return under(planner, between(planner, graph, path.subject, path.path, path.object), given)
    start, end = path.subject, path.object
    assert isinstance(start, Variable)
    assert isinstance(end, Variable)
    # In each named graph, also in one without triples.
    places = given.pattern if graph.name is None else joined(given.pattern, graph.asked(BGP(())))
    found: list[Pattern] = [joined(given.pattern, pattern)]
    if given.outer.issuperset((start, end)):
        tests = [
            Call("!", (given.is_unbound(each),)) for each in dict.fromkeys((start, end)) if each in given.maybe_unbound
        ]
        same = Call("SAMETERM", (VariableRef(start), VariableRef(end)))
        found.append(Filter(places, _all([*tests, same])))
    for known, other in ((start, end), (end, start)):
        if start != end and known in given.outer and other not in given.outer - given.maybe_unbound:
            found.append(_itself(places, known, other, given, graph))
    columns = given.columns.union((start, end), () if graph.name is None else (graph.name,))
    return Distinct(Project(Union(tuple(found)), tuple(sorted(columns))))


def _itself(places: Pattern, known: Variable, other: Variable, given: Given, graph: ActiveGraph) -> Pattern:
    """Outer solutions with a value for `known` and none for `other`, which gets the same value."""
    tests: list[Expression] = [given.is_unbound(other)] if other in given.maybe_unbound else []
    if known in given.maybe_unbound:
        tests.append(Call("!", (given.is_unbound(known),)))
    if other == graph.name:
        return Filter(places, _all([*tests, Call("SAMETERM", (VariableRef(known), VariableRef(other)))]))
    asked = Filter(places, _all(tests)) if tests else places
    return Extend(_leaving_out(asked, frozenset([other])), other, VariableRef(known))


def _any(tests: list[Expression]) -> Expression:
    return reduce(lambda one, other: Call("||", (one, other)), tests)


def _all(tests: list[Expression]) -> Expression:
    return reduce(lambda one, other: Call("&&", (one, other)), tests)


def _narrowed(planner: Planning, given: Given, visible: Needed) -> Given:
    """The outer solutions by the variables that are visible in a subquery: those it selects."""
    key = {variable: own for variable, own in given.key.items() if variable in visible}
    columns = tuple(sorted({*key, *key.values()}))
    return given if key == given.key else Given(planner.share(Distinct(Project(given.pattern, columns)), columns), key)
