"""EXISTS, NOT EXISTS and MINUS as semi-joins and anti-joins."""

from __future__ import annotations

from functools import reduce

from rdflib import Literal, Variable

from cqels_py.algebra.mentions import mentioned_in, mentioned_variables
from cqels_py.algebra.nodes import (
    AggregateCall,
    Call,
    Constant,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Group,
    Minus,
    OrderBy,
    Pattern,
    Planned,
    Project,
    Reduced,
    Slice,
    Union,
    Values,
    VariableRef,
)
from cqels_py.algebra.variables import certain_variables, first_exists, possible_variables, replaced
from cqels_py.plan.nodes import Negate, Node
from cqels_py.plan.order import expires_fifo
from cqels_py.planner.correlation import Given, stands_alone, under
from cqels_py.planner.joins import is_product, joined
from cqels_py.planner.keys import UNBOUND, with_exact_key
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import project, without_ids


def exists_filter(planner: Planning, inner: Pattern, exists: Exists, needed: Needed) -> Node:
    """FILTER EXISTS as a semi-join, FILTER NOT EXISTS as an anti-join."""
    word = "NOT EXISTS" if exists.negated else "EXISTS"
    left, right, key = _sides(planner, inner, exists.pattern, needed, read_again=False)
    return semi_anti_join(planner, planner.node_of(left), right, key, exists=not exists.negated, word=word)


def with_exists_values(
    planner: Planning, inner: Pattern, expression: Expression, needed: Needed
) -> tuple[Pattern, Expression]:
    """The pattern with a hidden boolean column for each EXISTS of an expression, and the expression that reads the columns."""
    wanted = needed | mentioned_in(expression)
    while (exists := first_exists(expression)) is not None:
        value = planner.fresh("exists")
        left, right, key = _sides(planner, inner, exists.pattern, wanted, read_again=True)
        right = planner.share(right, key)
        parts: list[Pattern] = []
        for found in (True, False):
            node = semi_anti_join(planner, planner.node_of(left), right, key, exists=found, word=_VALUE_WORDS[found])
            result = Constant(Literal(found != exists.negated))
            parts.append(Extend(planner.planned(node, left.certain), value, result))
        inner = Union(tuple(parts))
        expression = replaced(expression, exists, VariableRef(value))
        wanted |= {value}
    return inner, expression


_VALUE_WORDS = {True: "EXISTS is true", False: "EXISTS is false"}


def _sides(
    planner: Planning, inner: Pattern, pattern: Pattern, needed: Needed, *, read_again: bool
) -> tuple[Planned, Pattern, frozenset[Variable]]:
    """The outer mappings, the pattern of EXISTS, and the key of the semi-join.

    A pattern that always binds the outer variables it uses stays as it is, unless its parts would be a cross product without the
    outer mappings; any other is evaluated under the distinct outer mappings (`correlation`).
    """
    asked, skipped = _asked(pattern)
    visible = possible_variables(inner)
    outer = visible & mentioned_variables(asked)
    shared = outer & possible_variables(asked)
    if stands_alone(asked, outer) and _surely_bound(shared, inner, asked) and not is_product(asked):
        wanted = (needed & visible) | shared
        more = _more_than(planner, asked, skipped, shared)
        if read_again:
            return planner.share(inner, wanted), more, shared
        return planner.planned(planner.plan(inner, wanted), certain_variables(inner)), more, shared
    keyed, key = with_exact_key(planner, inner, outer)
    columns = outer.union(key.values())
    left = planner.share(keyed, (needed & visible) | columns)
    given = planner.share(Distinct(Project(left, tuple(sorted(columns)))), columns)
    own = frozenset(key.values())
    return left, _more_than(planner, under(planner, asked, Given(given, key)), skipped, own), own


def _asked(pattern: Pattern) -> tuple[Pattern, int]:
    """A pattern and a number n: this pattern has a solution where that one has more than n. Order, LIMIT and DISTINCT fall away."""
    match pattern:
        case Slice(limit=0):
            return Values((), ()), 0
        case Slice(inner, 0):
            return _asked(inner)
        case Slice(inner, offset):
            return _unordered(inner), offset
        case OrderBy(inner) | Distinct(inner) | Reduced(inner):
            return _asked(inner)
        case Project(inner, variables):
            asked, skipped = _asked(inner)
            return Project(asked, variables), skipped
        case _:
            return pattern, 0


def _unordered(pattern: Pattern) -> Pattern:
    match pattern:
        case OrderBy(inner):
            return inner
        case Project(inner, variables):
            return Project(_unordered(inner), variables)
        case Distinct(inner):
            return Distinct(_unordered(inner))
        case _:
            return pattern


def _more_than(planner: Planning, pattern: Pattern, skipped: int, key: frozenset[Variable]) -> Pattern:
    """The keys for which the pattern has more than `skipped` solutions."""
    if skipped == 0:
        return pattern
    count = planner.fresh("count")
    counted = Group(pattern, tuple(sorted(key)), ((count, AggregateCall("COUNT", None)),))
    return Filter(counted, Call(">", (VariableRef(count), Constant(Literal(skipped)))))


def without(planner: Planning, minus: Minus, needed: Needed) -> Node:
    """MINUS as an anti-join: a right mapping counts that is compatible and has a bound variable in common."""
    shared = possible_variables(minus.left) & possible_variables(minus.right)
    counted = shared - minus.uncounted
    if not counted:
        planner.warnings.append("MINUS shares no variable with the pattern before it: it removes nothing")
        return planner.plan(minus.left, needed)
    if _surely_bound(shared, minus.left, minus.right) and not is_product(minus.right):
        return semi_anti_join(
            planner, planner.plan(minus.left, needed | shared), minus.right, shared, exists=False, word="MINUS"
        )
    keyed, key = with_exact_key(planner, minus.left, shared)
    columns = shared.union(key.values())
    left = planner.share(keyed, (needed & possible_variables(minus.left)) | columns)
    seen = Distinct(Project(left, tuple(sorted(columns))))
    agreeing = _sharing_a_value(planner, seen, minus.right, {variable: key[variable] for variable in counted})
    return semi_anti_join(planner, planner.node_of(left), agreeing, frozenset(key.values()), exists=False, word="MINUS")


def _sharing_a_value(planner: Planning, left: Pattern, right: Pattern, key: dict[Variable, Variable]) -> Pattern:
    """The join of both sides, filtered by: a variable of the key is bound on both."""
    always = certain_variables(right)
    if any(key[v] == v for v in key.keys() & always):
        return joined(left, right)
    tests: list[Expression] = []
    for variable, own in sorted(key.items()):
        conditions: list[Expression] = []
        if own != variable:
            conditions.append(Call("!", (Call("SAMETERM", (VariableRef(own), UNBOUND)),)))
        if variable not in always:
            bound = planner.fresh("bound")
            right = Extend(right, bound, Call("BOUND", (VariableRef(variable),)))
            conditions.append(VariableRef(bound))
        tests.append(reduce(lambda one, other: Call("&&", (one, other)), conditions))
    return Filter(joined(left, right), reduce(lambda one, other: Call("||", (one, other)), tests))


def _surely_bound(variables: frozenset[Variable], left: Pattern, right: Pattern) -> bool:
    return variables <= certain_variables(left) & certain_variables(right)


def semi_anti_join(
    planner: Planning, left: Node, right: Pattern, key: frozenset[Variable], *, exists: bool, word: str
) -> Node:
    """The semi-join (`exists`) or anti-join with the right pattern by a key that is bound on both sides."""
    names = tuple(v for v in left.variables if Variable(v) in key)
    right_node = project(planner.plan(right, key), names)
    fifo = expires_fifo(left), expires_fifo(right_node)
    return Negate(without_ids(left), without_ids(right_node), names, fifo, exists, word)
