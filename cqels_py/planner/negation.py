"""EXISTS, NOT EXISTS and MINUS: left mappings with, or without, a right mapping of the same key."""

from __future__ import annotations

from functools import reduce

from rdflib import Literal, Variable

from cqels_py.algebra.mentions import mentioned_in, mentioned_variables
from cqels_py.algebra.nodes import (
    Call,
    Constant,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Minus,
    Pattern,
    Planned,
    Project,
    Union,
    VariableRef,
)
from cqels_py.algebra.variables import certain_variables, first_exists, possible_variables, replaced
from cqels_py.plan.nodes import Negate, Node
from cqels_py.planner.correlation import Given, stands_alone, under, without_slice
from cqels_py.planner.joins import joined
from cqels_py.planner.keys import UNBOUND, with_exact_key
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import expires_in_order, project, without_ids


def exists_filter(planner: Planning, inner: Pattern, exists: Exists, needed: Needed) -> Node:
    """Mappings for which a pattern has a solution, or has none."""
    word = "NOT EXISTS" if exists.negated else "EXISTS"
    left, right, key = _sides(planner, inner, without_slice(exists.pattern), needed, read_again=False)
    return kept(planner, planner.node_of(left), right, key, exists=not exists.negated, word=word)


def with_exists_values(
    planner: Planning, inner: Pattern, expression: Expression, needed: Needed
) -> tuple[Pattern, Expression]:
    """The pattern with a hidden boolean for each EXISTS in an expression over it, and the expression that reads those."""
    wanted = needed | mentioned_in(expression)
    while (exists := first_exists(expression)) is not None:
        value = planner.fresh("exists")
        left, right, key = _sides(planner, inner, without_slice(exists.pattern), wanted, read_again=True)
        right = planner.share(right, key)
        parts: list[Pattern] = []
        for found in (True, False):
            node = kept(planner, planner.node_of(left), right, key, exists=found, word=_VALUE_WORDS[found])
            result = Constant(Literal(found != exists.negated))
            parts.append(Extend(planner.planned(node, left.certain), value, result))
        inner = Union(tuple(parts))
        expression = replaced(expression, exists, VariableRef(value))
        wanted |= {value}
    return inner, expression


_VALUE_WORDS = {True: "EXISTS is true", False: "EXISTS is false"}


def _sides(
    planner: Planning, inner: Pattern, asked: Pattern, needed: Needed, *, read_again: bool
) -> tuple[Planned, Pattern, frozenset[Variable]]:
    """The outer mappings, the pattern of EXISTS under each of them, and the key that connects them.

    Where the pattern sees of the outer mappings only what it binds itself, it stands as it is.
    """
    visible = possible_variables(inner)
    outer = visible & mentioned_variables(asked)
    shared = outer & possible_variables(asked)
    if stands_alone(asked, outer) and _surely_bound(shared, inner, asked):
        wanted = (needed & visible) | shared
        if read_again:
            return planner.share(inner, wanted), asked, shared
        return planner.planned(planner.plan(inner, wanted), certain_variables(inner)), asked, shared
    keyed, key = with_exact_key(planner, inner, outer)
    columns = outer.union(key.values())
    left = planner.share(keyed, (needed & visible) | columns)
    given = planner.share(Distinct(Project(left, tuple(sorted(columns)))), columns)
    return left, under(planner, asked, Given(given, key)), frozenset(key.values())


def without(planner: Planning, minus: Minus, needed: Needed) -> Node:
    """MINUS: left mappings that agree with no right mapping with which they have a bound variable in common."""
    shared = possible_variables(minus.left) & possible_variables(minus.right)
    if not shared:
        planner.warnings.append("MINUS shares no variable with what it is taken from: it removes nothing")
        return planner.plan(minus.left, needed)
    if _surely_bound(shared, minus.left, minus.right):
        return kept(planner, planner.plan(minus.left, needed | shared), minus.right, shared, exists=False, word="MINUS")
    keyed, key = with_exact_key(planner, minus.left, shared)
    columns = shared.union(key.values())
    left = planner.share(keyed, (needed & possible_variables(minus.left)) | columns)
    seen = Distinct(Project(left, tuple(sorted(columns))))
    agreeing = _sharing_a_value(planner, seen, minus.right, key)
    return kept(planner, planner.node_of(left), agreeing, frozenset(key.values()), exists=False, word="MINUS")


def _sharing_a_value(planner: Planning, left: Pattern, right: Pattern, key: dict[Variable, Variable]) -> Pattern:
    """The join of both, where a variable of the key is bound on both sides."""
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


def kept(planner: Planning, left: Node, right: Pattern, key: frozenset[Variable], *, exists: bool, word: str) -> Node:
    """Left mappings with (`exists`) or without a right mapping that has the same key, which is bound on both sides."""
    names = tuple(v for v in left.variables if Variable(v) in key)
    right_node = project(planner.plan(right, key), names)
    in_order = expires_in_order(left), expires_in_order(right_node)
    return Negate(without_ids(left), without_ids(right_node), names, in_order, exists, word)
