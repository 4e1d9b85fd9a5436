"""A generated case: a query as a tree, and its data. Texts for the engine and for pyoxigraph are written from it (`texts`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

EX = "http://ex.org/"
Triple: TypeAlias = tuple[str, str, str]
"""Three terms in N-Triples syntax; in patterns variables, SPARQL constants and paths."""
Clauses: TypeAlias = "tuple[Clause, ...]"


@dataclass(frozen=True)
class Window:
    """`kind`: RANGE, COUNT, TRIPLES, SESSION, NOW or ALL. `size`, `step`, `delay`, `start`: milliseconds, or elements or
    triples; a step of 0 is none. `timed`: elements carry their times."""

    name: str
    stream: str
    kind: str
    size: int = 0
    step: int = 0
    delay: int = 0
    start: int | None = None
    partition: tuple[str, ...] = ()
    timed: bool = False


@dataclass(frozen=True)
class Expression:
    """A text with `%0%`, `%1%` … in place of the groups of EXISTS."""

    text: str
    groups: tuple[Clauses, ...] = ()


@dataclass(frozen=True)
class Triples:
    """A group of triple patterns."""

    patterns: tuple[Triple, ...]


@dataclass(frozen=True)
class Block:
    """A group over the window with this name."""

    window: str
    inner: Clauses


@dataclass(frozen=True)
class AnyWindow:
    """`WINDOW ?w { … }`: over each window."""

    variable: str
    inner: Clauses


@dataclass(frozen=True)
class ElementGraph:
    """`GRAPH` inside of a window: over the elements' named graphs."""

    name: str
    inner: Clauses


@dataclass(frozen=True)
class StaticGraph:
    """`GRAPH` outside of windows."""

    name: str
    inner: Clauses


@dataclass(frozen=True)
class Filter:
    condition: Expression


@dataclass(frozen=True)
class Bind:
    value: Expression
    variable: str


@dataclass(frozen=True)
class Optional:
    inner: Clauses


@dataclass(frozen=True)
class Minus:
    inner: Clauses


@dataclass(frozen=True)
class Nested:
    inner: Clauses


@dataclass(frozen=True)
class Union:
    branches: tuple[Clauses, ...]


@dataclass(frozen=True)
class Values:
    variables: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Column:
    """A variable, or `(value AS variable)`."""

    variable: str
    value: Expression | None = None


@dataclass(frozen=True)
class Key:
    """A key of ORDER BY."""

    value: Expression
    descending: bool = False


@dataclass(frozen=True)
class Select:
    """A query or subquery; `form`: SELECT, ASK or CONSTRUCT (whose `template` is then given)."""

    where: Clauses
    columns: tuple[Column, ...]
    form: str = "SELECT"
    modifier: str = ""
    template: tuple[Triple, ...] = ()
    grouped: tuple[Column, ...] | None = None
    having: tuple[Expression, ...] = ()
    order: tuple[Key, ...] = ()
    limit: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Sub:
    query: Select


Clause: TypeAlias = (
    Triples
    | Block
    | AnyWindow
    | ElementGraph
    | StaticGraph
    | Filter
    | Bind
    | Optional
    | Minus
    | Nested
    | Union
    | Values
    | Sub
)


@dataclass(frozen=True)
class Element:
    """`time` in microseconds; `graph`: the element's name, or None."""

    time: int
    stream: str
    triples: tuple[Triple, ...]
    graph: str | None = None


@dataclass(frozen=True)
class Case:
    """`dialect`: CQELS-QL, RSP-QL or C-SPARQL. `output`: ISTREAM, DSTREAM, RSTREAM or CHANGELOG. `elements` in arrival
    order.

    `features`: the features of this case, for the summary.
    """

    seed: int
    dialect: str
    output: str
    query: Select
    windows: tuple[Window, ...]
    elements: tuple[Element, ...]
    static: tuple[Triple, ...] = ()
    named: tuple[tuple[str, tuple[Triple, ...]], ...] = ()
    lateness: int = 0
    features: frozenset[str] = frozenset()

    @property
    def bags(self) -> bool:
        """Whether a triple that is twice in a window counts twice."""
        return self.dialect == "CQELS-QL"
