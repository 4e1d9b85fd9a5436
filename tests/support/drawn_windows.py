"""Windows of generated queries (`tests.support.generators`): their sizes, and their form in each dialect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cqels_py.algebra.nodes import Dialect
from tests.oracle.naive_values import date_time_literal

if TYPE_CHECKING:
    from tests.support.generators import DrawnQuery

_TIMED = {"range", "step", "tumbling", "start", "past", "past_step", "session", "session_step"}
PARTITIONED = frozenset({"count_partition", "triples_partition", "session_partition"})
WINDOWS = frozenset({*_TIMED, *PARTITIONED, "now", "all", "count", "triples", "count_step", "triples_step"})
C_SPARQL_WINDOWS = frozenset({"step", "tumbling", "triples", "start", "past_step", "session_step"})
RSP_QL_WINDOWS = (_TIMED | {"count", "count_step", "count_partition", "session_partition"}) - {"now", "all"}

TIME = "at"
"""The property with an element's event time, for windows with `@`."""

_PLAIN_TRIPLE = re.compile(r"(\S+) :\w+ (\S+) \.")


@dataclass(frozen=True)
class Extent:
    """A window's generated size: `kind` of WINDOWS; milliseconds, or a count. `start`, `delay`: milliseconds."""

    kind: str
    size: int = 0
    step: int = 0
    start: int = 0
    delay: int = 0
    partition: tuple[str, ...] = ()

    def text(self, dialect: Dialect) -> str:
        """The text in the brackets."""
        size, step = _duration(self.size, dialect), _duration(self.step, dialect)
        match self.kind:
            case "range":
                return f"RANGE {size}"
            case "step":
                return f"RANGE {size} STEP {step}"
            case "start":
                return f"RANGE {size} STEP {step} {_start(self.start, dialect)}"
            case "tumbling" if dialect is Dialect.RSP_QL:
                return f"RANGE {size} STEP {size}"
            case "tumbling":
                return f"RANGE {size} TUMBLING"
            case "past" | "past_step":
                begin = _duration(self.delay + self.size, dialect)
                every = f" STEP {step}" if self.step else ""
                return f"FROM NOW-{begin} TO NOW-{_duration(self.delay, dialect)}{every}"
            case "session" | "session_step" | "session_partition":
                return f"SESSION {size}{f' STEP {step}' if self.step else ''}{self._partition()}"
            case "count" | "count_step" | "count_partition":
                word = "ELEMENTS" if dialect is Dialect.RSP_QL else "COUNT"
                return f"{word} {self._counted()}"
            case "triples" | "triples_step" | "triples_partition":
                return f"{'RANGE ' if dialect is Dialect.C_SPARQL else ''}TRIPLES {self._counted()}"
        return self.kind.upper()

    def _counted(self) -> str:
        return f"{self.size}{f' STEP {self.step}' if self.step else ''}{self._partition()}"

    def _partition(self) -> str:
        return f" PARTITION BY {' '.join(self.partition)}" if self.partition else ""


def _duration(milliseconds: int, dialect: Dialect) -> str:
    if dialect is Dialect.RSP_QL:
        return f"PT{milliseconds / 1000:g}S"
    return f"{milliseconds}ms" if milliseconds % 1000 else f"{milliseconds // 1000}s"


def _start(milliseconds: int, dialect: Dialect) -> str:
    match dialect:
        case Dialect.CQELS_QL:
            return f"START {date_time_literal(1000 * milliseconds)}"
        case Dialect.RSP_QL:
            return f'STARTING AT "{milliseconds}"^^xsd:integer'
        case Dialect.C_SPARQL:
            return f'START "{date_time_literal(1000 * milliseconds)}"^^xsd:dateTime'


@dataclass(frozen=True)
class WindowUse:
    """A window of a generated query; `timed`: it takes the event time from the elements."""

    stream: str
    extent: Extent
    timed: bool = False

    def text(self, dialect: Dialect) -> str:
        return f"[{self.extent.text(dialect)}{f' @ :{TIME}' if self.timed else ''}]"

    def fits(self, body: str) -> bool:
        """Whether the window can have a block with this body: PARTITION BY needs its variables in it."""
        wanted = set(self.extent.partition)
        found = _variables(body)
        return not wanted or any(
            wanted <= set(g) for g in (found if self.extent.kind == "triples_partition" else _groups(found))
        )


def draw_use(query: DrawnQuery, body: str) -> WindowUse:
    """A window for a block with this body."""
    return WindowUse(query.pick(["one", "two"]), draw_extent(query, body), query.chance(15))


def draw_extent(query: DrawnQuery, body: str) -> Extent:
    kind = query.pick(sorted(query.window_kinds))
    size = query.pick([3000, 2000, 5000, 8000, 1000, 1500])
    count = query.pick([3, 2, 5, 8, 1])
    step = query.pick([1000, 2000, 3000, 500, 7000])
    match kind:
        case "range" | "tumbling":
            return Extent(kind, size)
        case "session" | "session_step":
            return Extent(kind, query.pick([1000, 500, 2000, 2500]), step if kind == "session_step" else 0)
        case "step":
            return Extent(kind, size, step)
        case "start":
            return Extent(kind, size, step, start=query.pick([250, -750, 1_700_000_000_500]))
        case "past" | "past_step":
            delay = query.pick([1000, 500, 2000, 4000])
            return Extent(kind, size, step if kind == "past_step" else 0, delay=delay)
        case "count" | "triples":
            return Extent(kind, count)
        case "count_step" | "triples_step":
            return Extent(kind, count, query.pick([1, 2, 3]))
        case "count_partition" | "triples_partition":
            every = query.pick([0, 0, 2, 3])
            return _partitioned(query, kind, query.pick([1, 2, 1, 3]), every, _variables(body))
        case "session_partition":
            gap, every = query.pick([1000, 500, 2000, 2500]), query.pick([0, 0, step])
            return _partitioned(query, kind, gap, every, _variables(body))
    return Extent(kind)


def _partitioned(query: DrawnQuery, kind: str, size: int, step: int, patterns: Sequence[tuple[str, ...]]) -> Extent:
    if not patterns:
        return Extent(kind.removesuffix("_partition"), size)
    together = kind != "triples_partition" and query.chance(40)
    choices = query.pick(_groups(patterns) if together else patterns)
    chosen = [query.pick(choices)]
    if query.chance(30 if not together else 70):
        chosen.append(query.pick(choices))
    return Extent(kind, size, step, partition=tuple(dict.fromkeys(chosen)))


def _variables(body: str) -> list[tuple[str, ...]]:
    """The variables of each plain triple pattern that has any."""
    found = [tuple(part for part in pair if part.startswith("?")) for pair in _PLAIN_TRIPLE.findall(body)]
    return [variables for variables in found if variables]


def _groups(patterns: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The variables of connected patterns."""
    groups: list[set[str]] = []
    for pattern in patterns:
        touched = [group for group in groups if group & set(pattern)]
        groups = [group for group in groups if group not in touched] + [set(pattern).union(*touched)]
    return [tuple(sorted(group)) for group in groups]
