"""The conditions of Theorems 1 and 2 of Schiff and Özçep, "Bounded-memory criteria for streams with application time", for explain.

They are checked on a group as it is, with events of the same time together, but without the split into locally ordered queries. The
verdict does not depend on them: Theorem 1 is not necessary, and Theorem 2 is not sufficient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cqels_py.planner.event_sets import GroupFacts
from cqels_py.planner.number_ranges import Order

Failures = dict[str, list[str]]
"""For each condition that fails, why."""


class Graph:
    """The dependency graph: from each source to those that are next before it. `depth`: 0 for those that nothing is later than."""

    def __init__(self, facts: GroupFacts) -> None:
        every = range(len(facts.sources))
        earlier = [facts.sources[each].earlier for each in every]
        self.children = [[c for c in sorted(earlier[s]) if not any(c in earlier[b] for b in earlier[s])] for s in every]
        self.parents = [[p for p in every if s in self.children[p]] for s in every]
        self.depth = [self._depth(s) for s in every]
        self.roots = [s for s in every if not self.parents[s]]

    def _depth(self, source: int) -> int:
        return max((1 + self._depth(parent) for parent in self.parents[source]), default=0)

    def may_join(self, one: int, other: int) -> bool:
        """Are the two parent and child, siblings, or roots of different trees?"""
        if one in self.children[other] or other in self.children[one]:
            return True
        return bool(set(self.parents[one]) & set(self.parents[other])) or (one in self.roots and other in self.roots)

    def text(self, name_of: Callable[[int], str], source: int) -> str:
        """A tree, with its root first."""
        below = [self.text(name_of, child) for child in self.children[source]]
        if not below:
            return name_of(source)
        return f"{name_of(source)} > {below[0] if len(below) == 1 else '{' + ', '.join(below) + '}'}"


def theorem_1(facts: GroupFacts, name_of: Callable[[int], str]) -> Failures:
    """The conditions of the criterion for bags that fail."""
    graph, failed = Graph(facts), Failures()
    only = graph.roots[0] if len(graph.roots) == 1 else None
    for source, parents in enumerate(graph.parents):
        if len(parents) > 1:
            _fail(failed, "C1", f"{name_of(source)} has parents {' and '.join(map(name_of, parents))}")
    for one, other, text in _joins(facts):
        if not graph.may_join(one, other):
            where = f"between {name_of(one)} and {name_of(other)}, which are not parent and child, siblings or roots"
            _fail(failed, "C2", f"{text} {where}")
    for name in sorted(facts.output):
        source = min(_with(facts, name), key=lambda s: graph.depth[s])
        if graph.depth[source] > 1:
            _fail(failed, "C3", f"?{name} of {name_of(source)} at depth {graph.depth[source]} is in the result")
        elif name not in facts.counts and (only is None or graph.depth[source] == 1):
            _fail(failed, "C3", f"?{name} of {name_of(source)} is in the result without bounds")
    for one, left, other, right, text in _equalities(facts):
        at_root = [pair for pair in ((one, other, right), (other, one, left)) if pair[0] == only]
        if any(graph.depth[partner] == 1 and name in facts.counts for _, partner, name in at_root):
            continue
        if at_root or left not in facts.counts or right not in facts.counts:
            _fail(failed, "C4", text)
    for source in range(len(facts.sources)):
        names = [name for name, _ in _references(facts, source)]
        if names and source != only:
            _fail(
                failed,
                "C5",
                f"{', '.join(f'?{name}' for name in dict.fromkeys(names))} of {name_of(source)} without bounds",
            )
    return failed


def theorem_2(facts: GroupFacts, name_of: Callable[[int], str]) -> Failures:
    """The conditions of the criterion for DISTINCT that fail."""
    failed = Failures()
    for name in sorted(facts.output):
        if name not in facts.counts:
            _fail(failed, "C1", f"?{name} is in the result without bounds")
    for _, left, _, right, text in _equalities(facts):
        if left not in facts.counts or right not in facts.counts:
            _fail(failed, "C2", text)
    for source in range(len(facts.sources)):
        found = dict.fromkeys(_references(facts, source))
        if len(found) > 1:
            names = ", ".join(dict.fromkeys(f"?{name}" for name, _ in found))
            _fail(failed, "C3", f"{name_of(source)} has {len(found)} references without bounds: {names}")
    return failed


def _fail(failed: Failures, condition: str, why: str) -> None:
    if why not in failed.setdefault(condition, []):
        failed[condition].append(why)


def _with(facts: GroupFacts, name: str) -> list[int]:
    return [number for number, source in enumerate(facts.sources) if name in source.variables]


def _pairs(facts: GroupFacts, order: Order) -> Iterator[tuple[int, int]]:
    for one in _with(facts, order.left):
        for other in _with(facts, order.right):
            if one != other:
                yield one, other


def _joins(facts: GroupFacts) -> Iterator[tuple[int, int, str]]:
    for one, _, other, _, text in _equalities(facts):
        yield one, other, text
    for order in facts.orders:
        if order.operator != "=":
            for one, other in _pairs(facts, order):
                yield one, other, f"?{order.left} {order.operator} ?{order.right}"


def _equalities(facts: GroupFacts) -> Iterator[tuple[int, str, int, str, str]]:
    """Equality joins: by a common variable, or by `=`."""
    for one, source in enumerate(facts.sources):
        for other in range(one):
            for name in sorted(source.variables & facts.sources[other].variables):
                yield other, name, one, name, f"?{name} = ?{name}"
    for order in facts.orders:
        if order.operator == "=":
            for one, other in _pairs(facts, order):
                yield one, order.left, other, order.right, f"?{order.left} = ?{order.right}"


def _references(facts: GroupFacts, source: int) -> Iterator[tuple[str, str]]:
    """MaxRef and MinRef (Definition 9): unbounded variables that a variable of another source is less, or greater, than."""
    for order in facts.orders:
        for mine, other, kind in ((order.left, order.right, "MinRef"), (order.right, order.left, "MaxRef")):
            beside = any(s != source for s in _with(facts, other))
            if (
                order.operator != "="
                and mine in facts.sources[source].variables
                and beside
                and mine not in facts.counts
            ):
                yield mine, kind
