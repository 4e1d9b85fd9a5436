"""The oracle's evaluator of algebra: patterns over lists of triples, answers as lists of dict mappings.

EXISTS has substitution semantics (18.6): `Scope.given` is the outer solution, whose values stand for its variables
wherever the pattern names them. Solutions inside do not have these variables: they are terms there, so MINUS shares
nothing by them (that is the text of 18.6; other stores, and drafts of SPARQL 1.2, count them), and DISTINCT and GROUP BY
ignore them. Where only a variable can stand, the term has to agree: BIND (… AS ?outer) and VALUES ?outer
keep the solutions with the outer value. A subquery hides the variables that it does not select.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from rdflib import URIRef, Variable

from cqels_py.algebra import nodes
from tests.oracle import naive_aggregates, naive_expressions
from tests.oracle.naive_values import ExpressionError, Term, canonical, order_key, value_key

Triple: TypeAlias = tuple[Term, Term, Term]
Quad: TypeAlias = tuple[Term, Term, Term, URIRef | None]
Solution: TypeAlias = dict[Variable, Term]
Pairs: TypeAlias = list[tuple[Term, Term]]

MOST_PAIRS = 2_000_000


class TooManyPairs(Exception):
    """A join would compare more than MOST_PAIRS solutions: a generated query can be a product of products."""


@dataclass(frozen=True)
class Content:
    """The content of a window: all its triples, and the graphs that its elements name."""

    triples: list[Triple]
    named: Mapping[Term, list[Triple]] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """The data of a query at one tick: windows' contents (bags or sets), static graphs, and the time.

    `matches`: gives the standing matches of an event pattern. `events`: the rows of an event without a window.
    """

    windows: Mapping[URIRef, Content]
    default: list[Triple]
    named: Mapping[URIRef, list[Triple]]
    bags: bool
    now: int
    matches: Callable[[nodes.Match, Dataset], list[Solution]] | None = None
    events: Callable[[nodes.Event, Dataset], list[Solution]] | None = None


@dataclass(frozen=True)
class Scope:
    """Where a pattern is evaluated: the active graph, the solution that EXISTS substitutes, the graphs of the
    surrounding window.
    """

    dataset: Dataset
    graph: list[Triple]
    given: Solution = field(default_factory=dict)
    named: Mapping[Term, list[Triple]] = field(default_factory=dict)

    def over(self, graph: list[Triple]) -> Scope:
        return replace(self, graph=graph)

    def within(self, content: Content) -> Scope:
        return replace(self, graph=content.triples, named=content.named)

    def seeing(self, variables: Iterable[Variable]) -> Scope:
        """The scope inside a subquery, where only these variables are those of the outer query."""
        return replace(self, given={v: self.given[v] for v in variables if v in self.given})


def evaluate(pattern: nodes.Pattern, scope: Scope) -> list[Solution]:
    """The pattern's solutions, in the order of ORDER BY if there is one."""
    match pattern:
        case nodes.BGP(triples):
            return _basic(triples, scope)
        case nodes.PathPattern():
            return _path_pattern(pattern, scope)
        case nodes.Join(left, right):
            return join(evaluate(left, scope), evaluate(right, scope))
        case nodes.NaryJoin(parts):
            solutions: list[Solution] = [{}]
            for part in parts:
                solutions = join(solutions, evaluate(part, scope))
            return solutions
        case nodes.LeftJoin(left, right, condition):
            return _left_join(evaluate(left, scope), evaluate(right, scope), condition, scope)
        case nodes.Filter(inner, condition):
            return [mu for mu in evaluate(inner, scope) if _holds(condition, mu, scope)]
        case nodes.Union(parts):
            return [mu for part in parts for mu in evaluate(part, scope)]
        case nodes.Minus(left, right, uncounted):
            removed = evaluate(right, scope)
            return [mu for mu in evaluate(left, scope) if not any(_excludes(mu, one, uncounted) for one in removed)]
        case nodes.Extend(inner, variable, expression):
            return _extend(evaluate(inner, scope), variable, expression, scope)
        case nodes.Values(variables, rows):
            return _values(variables, rows, scope)
        case nodes.EventJoin(events, others, conditions):
            return _event_join(events, others, conditions, scope)
        case nodes.Match():
            assert scope.dataset.matches is not None
            return scope.dataset.matches(pattern, scope.dataset)
        case _:
            return _evaluate_scoped(pattern, scope)


def _event_join(
    events: Sequence[nodes.Event],
    others: Sequence[nodes.Pattern],
    conditions: Sequence[nodes.Expression],
    scope: Scope,
) -> list[Solution]:
    """All combinations of the events' rows and the other patterns' solutions, and those for which the conditions hold."""
    assert scope.dataset.events is not None
    solutions: list[Solution] = [{}]
    for event in events:
        solutions = join(solutions, scope.dataset.events(event, scope.dataset))
    for other in others:
        solutions = join(solutions, evaluate(other, scope))
    return [mu for mu in solutions if all(_holds(each, mu, scope) for each in conditions)]


def _evaluate_scoped(pattern: nodes.Pattern, scope: Scope) -> list[Solution]:
    """The patterns that choose a graph, and the solution modifiers."""
    match pattern:
        case nodes.Graph(name, inner, in_window):
            graphs = scope.named if in_window else scope.dataset.named
            return _over_named(name, inner, {each: scope.over(graph) for each, graph in graphs.items()}, scope)
        case nodes.WindowVariable(variable, inner):
            contents = scope.dataset.windows.items()
            return _over_named(variable, inner, {each: scope.within(content) for each, content in contents}, scope)
        case nodes.Window(graph=None):
            return evaluate(pattern.pattern, scope.within(_merge(pattern, scope.dataset)))
        case nodes.Window(_, inner, graph=name):
            return evaluate(replace(pattern, graph=None, pattern=nodes.Graph(name, inner, in_window=True)), scope)
        case nodes.Group(inner, keys, aggregates):
            inside = scope.seeing(keys)
            return _group(evaluate(inner, inside), keys, aggregates, inside)
        case nodes.Project(inner, variables):
            inside = scope.seeing(variables)
            if isinstance(inner, nodes.OrderBy):
                found = _order(evaluate(inner.pattern, inside), inner.conditions, variables, inside)
            else:
                found = evaluate(inner, inside)
            return [{v: mu[v] for v in variables if v in mu} for mu in found]
        case nodes.Distinct(inner):
            return _distinct(evaluate(inner, scope))
        case nodes.Reduced(inner):
            return evaluate(inner, scope)
        case nodes.OrderBy(inner, conditions):
            return _order(evaluate(inner, scope), conditions, None, scope)
        case nodes.Slice(inner):
            found = evaluate(inner, scope)
            if not _is_ordered(inner):
                found = _order(found, (), _columns(inner), scope)
            return _slice(found, pattern)
        case _:
            raise NotImplementedError(f"the oracle does not evaluate {type(pattern).__name__}")


# --- leaves ---------------------------------------------------------------------------------------


def _basic(triples: Sequence[nodes.TriplePattern], scope: Scope) -> list[Solution]:
    """Pattern by pattern: the fewest triples first, patterns that share a variable before others. Any order would be
    correct.
    """
    wanted = [(each.subject, each.predicate, each.object) for each in triples]
    waiting = [(one, [t for t in scope.graph if _match(one, t, {}, scope.given) is not None]) for one in wanted]
    solutions: list[Solution] = [{}]
    bound: set[nodes.TermOrVariable] = set()
    while waiting:
        following = min(waiting, key=lambda each: (bound.isdisjoint(each[0]), len(each[1])))
        waiting.remove(following)
        slots, fitting = following
        solutions = [
            found
            for mu in solutions
            for triple in fitting
            if (found := _match(slots, triple, mu, scope.given)) is not None
        ]
        bound.update(slot for slot in slots if isinstance(slot, Variable))
    return solutions


def _match(
    wanted: Sequence[nodes.TermOrVariable], found: Sequence[Term], mu: Solution, given: Solution
) -> Solution | None:
    """The solution extended by matching terms position by position; None if one does not fit."""
    result = dict(mu)
    for slot, term in zip(wanted, found, strict=True):
        if isinstance(slot, Variable) and slot not in given:
            if result.setdefault(slot, term) != term:
                return None
        elif isinstance(slot, Variable):
            if given[slot] != term:
                return None
        elif canonical(slot) != term:
            return None
    return result


def _values(variables: Sequence[Variable], rows: Sequence[Sequence[nodes.Term | None]], scope: Scope) -> list[Solution]:
    solutions: list[Solution] = [
        {v: canonical(term) for v, term in zip(variables, row, strict=True) if term is not None} for row in rows
    ]
    return [_substituted(mu, scope) for mu in solutions if compatible(mu, scope.given)]


def _substituted(mu: Solution, scope: Scope) -> Solution:
    """A solution that agrees with the outer one, without the variables of the outer one: terms are substituted for those."""
    return {v: term for v, term in mu.items() if v not in scope.given}


def _merge(window: nodes.Window, dataset: Dataset) -> Content:
    contents = [dataset.windows[name] for name in window.windows]
    if len(contents) == 1 and not window.with_static:
        return contents[0]
    triples = [triple for content in contents for triple in content.triples]
    if window.with_static:
        triples += dataset.default
    return Content(triples if dataset.bags else list(dict.fromkeys(triples)))


def _over_named(
    name: URIRef | Variable, inner: nodes.Pattern, inside: Mapping[Term, Scope], scope: Scope
) -> list[Solution]:
    """A pattern over the graph or window of that name, or over each; `inside`: the scopes there, by name."""
    if not isinstance(name, Variable):
        return evaluate(inner, inside[name]) if name in inside else []
    solutions: list[Solution] = []
    for each, there in inside.items():
        bound: Solution = {name: each}
        if compatible(bound, scope.given):
            solutions += join(evaluate(inner, there), [_substituted(bound, scope)])
    return solutions


# --- property paths, 9.3 and 18.4 -----------------------------------------------------------------


def _path_pattern(pattern: nodes.PathPattern, scope: Scope) -> list[Solution]:
    """`*`, `+` and `?` give each pair of nodes once; every other path once for each way."""
    subject, object_ = pattern.subject, pattern.object
    match pattern.path:
        case nodes.PathInverse(inner):
            return _path_pattern(nodes.PathPattern(object_, inner, subject), scope)
        case nodes.PathAlternative(parts):
            return [mu for part in parts for mu in _path_pattern(nodes.PathPattern(subject, part, object_), scope)]
        case nodes.PathSequence(parts):
            return _sequence(pattern, parts, scope)
        case _:
            return _ways(pattern, scope)


def _sequence(pattern: nodes.PathPattern, parts: Sequence[nodes.Path], scope: Scope) -> list[Solution]:
    """18.2.2.4: patterns joined by variables of their own."""
    via = [Variable(f"_:via {number}") for number in range(1, len(parts))]
    ends = [pattern.subject, *via, pattern.object]
    solutions: list[Solution] = [{}]
    for number, part in enumerate(parts):
        solutions = join(solutions, _path_pattern(nodes.PathPattern(ends[number], part, ends[number + 1]), scope))
    return [{v: term for v, term in mu.items() if v not in via} for mu in solutions]


def _ways(pattern: nodes.PathPattern, scope: Scope) -> list[Solution]:
    ends = [canonical(end) for end in (pattern.subject, pattern.object) if not isinstance(end, Variable)]
    ends += [scope.given[v] for v in (pattern.subject, pattern.object) if isinstance(v, Variable) and v in scope.given]
    every_node = list(dict.fromkeys([node for s, _, o in scope.graph for node in (s, o)] + ends))
    wanted = (pattern.subject, pattern.object)
    in_graph = {node for s, _, o in scope.graph for node in (s, o)}
    solutions = []
    for pair in _pairs(pattern.path, scope.graph, every_node):
        found = _match(wanted, pair, {}, scope.given)
        if found is not None and _reachable(wanted, pair, in_graph, scope.given):
            solutions.append(found)
    return solutions


def _reachable(wanted: Sequence[Term], pair: tuple[Term, Term], in_graph: set[Term], given: Solution) -> bool:
    """A node outside the graph matches a path of length zero from or to a given term, never two variables."""
    fixed = any(not isinstance(end, Variable) or end in given for end in wanted)
    return fixed or pair[0] in in_graph


def _pairs(path: nodes.Path, graph: list[Triple], every_node: list[Term]) -> Pairs:
    match path:
        case nodes.PathInverse(inner):
            return [(o, s) for s, o in _pairs(inner, graph, every_node)]
        case nodes.PathSequence(parts):
            found = _pairs(parts[0], graph, every_node)
            for part in parts[1:]:
                following = _pairs(part, graph, every_node)
                found = [(a, d) for a, b in found for c, d in following if b == c]
            return found
        case nodes.PathAlternative(parts):
            return [pair for part in parts for pair in _pairs(part, graph, every_node)]
        case nodes.PathRepeat():
            return _repeat(path, graph, every_node)
        case nodes.PathNegated(forward, backward):
            there = [(s, o) for s, p, o in graph if p not in forward] if forward or not backward else []
            back = [(o, s) for s, p, o in graph if p not in backward] if backward else []
            return there + back
        case _:
            return [(s, o) for s, p, o in graph if p == path]


def _repeat(path: nodes.PathRepeat, graph: list[Triple], every_node: list[Term]) -> Pairs:
    once = dict.fromkeys(_pairs(path.path, graph, every_node))
    found: dict[tuple[Term, Term], None] = {}
    if path.minimum == 0:
        found.update(dict.fromkeys((node, node) for node in every_node))
    found.update(once)
    while path.unbounded:
        longer = {(a, d): None for a, b in found for c, d in once if b == c}
        if longer.keys() <= found.keys():
            break
        found.update(longer)
    return list(found)


# --- multisets of solutions, 18.5 -----------------------------------------------------------------


def compatible(one: Solution, other: Solution) -> bool:
    return all(other[v] == term for v, term in one.items() if v in other)


def join(left: list[Solution], right: list[Solution]) -> list[Solution]:
    if len(left) * len(right) > MOST_PAIRS:
        raise TooManyPairs(f"a join of {len(left)} with {len(right)} solutions")
    return [one | other for one in left for other in right if compatible(one, other)]


def _excludes(mu: Solution, other: Solution, uncounted: frozenset[Variable]) -> bool:
    """MINUS: compatible, and with a variable in common."""
    return bool((mu.keys() & other.keys()) - uncounted) and compatible(mu, other)


def _left_join(
    left: list[Solution], right: list[Solution], condition: nodes.Expression | None, scope: Scope
) -> list[Solution]:
    solutions = []
    for mu in left:
        joined = join([mu], right)
        passed = [one for one in joined if condition is None or _holds(condition, one, scope)]
        solutions += passed or [mu]
    return solutions


def _extend(found: list[Solution], variable: Variable, expression: nodes.Expression, scope: Scope) -> list[Solution]:
    solutions = []
    for mu in found:
        try:
            extended = mu | {variable: _value(expression, mu, scope)}
        except ExpressionError:
            extended = mu
        if compatible(extended, scope.given):
            solutions.append(_substituted(extended, scope))
    return solutions


def _distinct(found: list[Solution]) -> list[Solution]:
    first: dict[frozenset[tuple[Variable, Term]], Solution] = {}
    for mu in found:
        first.setdefault(frozenset(mu.items()), mu)
    return list(first.values())


def _slice(found: list[Solution], pattern: nodes.Slice) -> list[Solution]:
    end = None if pattern.limit is None else pattern.offset + pattern.limit
    keys = dict.fromkeys(tuple(mu.get(v) for v in pattern.by) for mu in found)
    runs = [[mu for mu in found if tuple(mu.get(v) for v in pattern.by) == key] for key in keys]
    return [mu for run in runs for mu in run[pattern.offset : end]]


def _is_ordered(pattern: nodes.Pattern) -> bool:
    match pattern:
        case nodes.Project(inner) | nodes.Distinct(inner) | nodes.Reduced(inner):
            return _is_ordered(inner)
        case _:
            return isinstance(pattern, nodes.OrderBy)


def _columns(pattern: nodes.Pattern) -> Sequence[Variable] | None:
    """The selected variables in order; None: all of them."""
    match pattern:
        case nodes.Distinct(inner) | nodes.Reduced(inner):
            return _columns(inner)
        case nodes.Project(_, variables):
            return variables
        case _:
            return None


def _order(
    found: list[Solution],
    conditions: Sequence[tuple[nodes.Expression, bool]],
    columns: Sequence[Variable] | None,
    scope: Scope,
) -> list[Solution]:
    """By the conditions' values, then by the terms of the columns (None: of all variables, by name).

    Python's sort is stable, so the last condition is sorted by first.
    """
    if columns is None:
        columns = sorted({v for mu in found for v in mu})
    ordered = sorted(found, key=lambda mu: [order_key(mu.get(v)) for v in columns])
    for expression, descending in reversed(conditions):
        key = partial(_value_key, expression=expression, scope=scope)
        ordered.sort(key=key, reverse=descending)
    return ordered


def _value_key(mu: Solution, expression: nodes.Expression, scope: Scope) -> tuple[object, ...]:
    try:
        return value_key(_value(expression, mu, scope))
    except ExpressionError:
        return value_key(None)


def _group(
    found: list[Solution],
    keys: Sequence[Variable],
    aggregates: Sequence[tuple[Variable, nodes.AggregateCall]],
    scope: Scope,
) -> list[Solution]:
    groups: dict[tuple[Term | None, ...], list[Solution]] = {} if keys else {(): []}
    for mu in found:
        groups.setdefault(tuple(mu.get(key) for key in keys), []).append(mu)
    solutions: list[Solution] = []
    for key, members in groups.items():
        row: Solution = {v: term for v, term in zip(keys, key, strict=True) if term is not None}
        for variable, aggregate in aggregates:
            value = naive_aggregates.evaluate(aggregate, members, _evaluator(scope))
            if value is not None:
                row[variable] = value
        solutions.append(row)
    return solutions


# --- expressions ----------------------------------------------------------------------------------


def _evaluator(scope: Scope) -> Callable[[nodes.Expression, Solution], Term]:
    return lambda expression, mu: _value(expression, mu, scope)


def _value(expression: nodes.Expression, mu: Solution, scope: Scope) -> Term:
    return naive_expressions.evaluate(
        expression, scope.given | mu, scope.dataset.now, lambda test, outer: _exists(test, outer, scope)
    )


def _holds(condition: nodes.Expression, mu: Solution, scope: Scope) -> bool:
    return naive_expressions.holds(
        condition, scope.given | mu, scope.dataset.now, lambda test, outer: _exists(test, outer, scope)
    )


def _exists(test: nodes.Exists, outer: Mapping[Variable, Term], scope: Scope) -> bool:
    return bool(evaluate(test.pattern, replace(scope, given=dict(outer))))
