"""What the themes of planning share: the query's streams, warnings, names for hidden variables, and planning of sub-patterns."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rdflib import Variable

from cqels_py.algebra.nodes import ContinuousQuery, Pattern
from cqels_py.plan.nodes import Node
from cqels_py.planner.windows import StreamTable

Needed = frozenset[Variable]
"""Variables that somebody above a pattern reads."""


class Planning(ABC):
    """One query being planned.

    `bags`: the same triple twice in a window counts twice. `warnings`: what the user should know of the plan.
    """

    def __init__(self, query: ContinuousQuery, streams: StreamTable) -> None:
        self.bags = query.bag_windows
        self.streams = streams
        self.warnings: list[str] = []
        self._fresh = 0

    def fresh(self, word: str) -> Variable:
        """A variable that no query can name."""
        self._fresh += 1
        return Variable(f"_:{word}{self._fresh}")

    @abstractmethod
    def plan(self, pattern: Pattern, needed: Needed) -> Node:
        """A plan that delivers at least the needed variables of the pattern, each mapping as often as the pattern does."""
