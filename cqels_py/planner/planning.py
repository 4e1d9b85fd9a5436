"""The common state of planning: the query's streams, warnings, names for hidden variables, shared sub-plans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import ContinuousQuery, Pattern, Planned, State
from cqels_py.algebra.variables import certain_variables
from cqels_py.plan.nodes import EventMemory, Node, Shared
from cqels_py.planner.rows import is_static, once, project, without_ids
from cqels_py.planner.windows import StreamTable

Needed = frozenset[Variable]
"""The variables of a pattern that are read above it."""


class Planning(ABC):
    """One query being planned.

    `bags`: the same triple twice in a window counts twice. `without`: choices that are left out (`rules.CHOICES`).
    `warnings`: messages about expensive operators, and clauses without effect. `event_memory`: verdicts of joins of events;
    `kept_rows`: windows of events whose rows are all kept, and `kept_events`: the numbers of those that say [ALL].
    `states`: those of STATE, by number. `once`: it does not matter how often a row is there.
    `weights`: columns with the number of rows that a row stands for, and `summed`: the variables that are multiplied by them.
    """

    def __init__(self, query: ContinuousQuery, streams: StreamTable, without: Collection[str] = ()) -> None:
        self.bags = query.bag_windows
        self.streams = streams
        self.without = without
        self.warnings: list[str] = []
        self.event_memory: list[EventMemory] = []
        self.kept_rows: set[URIRef] = set()
        self.kept_events: set[int] = set()
        self.once = False
        self.weights: set[Variable] = set()
        self.summed: set[Variable] = set()
        self.states: list[State] = []
        self._fresh = 0
        self._shared = 0
        self._nodes: list[Node] = []

    def fresh(self, word: str) -> Variable:
        """A variable that no query can name."""
        self._fresh += 1
        return Variable(f"_:{word}{self._fresh}")

    def share(self, pattern: Pattern, variables: Iterable[Variable], *, leaves: bool = False) -> Planned:
        """Plan a pattern for several readers, which see these variables of it.

        `leaves`: all readers keep its mappings, so that expired mappings are delivered without ids.
        """
        columns = tuple(sorted(map(str, set(variables))))
        node = once(project(self.plan(pattern, frozenset(map(Variable, columns))), columns))
        node = without_ids(node) if leaves else node
        self._shared += 1
        return self.planned(Shared(self._shared, node), certain_variables(pattern))

    def planned(self, node: Node, certain: frozenset[Variable]) -> Planned:
        """A plan node in the place of a pattern; `certain`: variables that are always bound."""
        variables = tuple(map(Variable, node.variables))
        self._nodes.append(node)
        return Planned(len(self._nodes) - 1, variables, certain & frozenset(variables), not is_static(node))

    def node_of(self, planned: Planned) -> Node:
        return self._nodes[planned.number]

    @abstractmethod
    def plan(self, pattern: Pattern, needed: Needed) -> Node:
        """A plan that delivers at least the needed variables of the pattern, each mapping as often as the pattern does."""
