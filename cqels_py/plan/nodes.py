"""Nodes of the physical plan.

A plan is plain frozen data: terms are N-Triples texts, variables are names, expressions are programs. Each node says what it
delivers (`variables`, in column order). A position of a pattern is a term's text, or a variable's name with a "?" before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cqels_py.event_time.windows import Bounds
from cqels_py.plan.expressions import ExpressionProgram

TRIPLE = ("subject", "predicate", "object")
GRAPH = len(TRIPLE)
"""The position of a triple's graph."""
PatternText: TypeAlias = tuple[str, ...]
"""Subject, predicate, object; and the graph, where the triple is asked in one. Without it, in whatever graph it is, or in none."""


def is_variable(position: str) -> bool:
    return position.startswith("?")


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """PARTITION BY: elements have the values that the patterns of any of the alternatives, together, give the variables."""

    variables: tuple[str, ...]
    alternatives: tuple[tuple[PatternText, ...], ...]


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """A window of the query: `stream` is a position in the plan's streams."""

    name: str
    stream: int
    bounds: Bounds
    text: str
    partition: PlannedPartition | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """Mappings of one triple pattern in one window (a position in the plan's windows).

    `conditions` are tested when a mapping arrives, before it takes any room. `keep_ids`: an expiring mapping is delivered with
    its ids; a join that keeps its own leaves does not need them. `expires_fifo`: mappings leave in the order in which they came.
    """

    window: int
    pattern: PatternText
    variables: tuple[str, ...]
    conditions: tuple[ExpressionProgram, ...] = ()
    keep_ids: bool = True
    expires_fifo: bool = True


@dataclass(frozen=True, slots=True)
class StaticScan:
    """Mappings of one triple pattern in static data: the default graph (graph ""), a named one, or each named one (a variable)."""

    graph: str
    pattern: PatternText
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphNames:
    """The named graphs of static data: each one's name (a variable), or the one empty mapping if there is this one (a term)."""

    graph: str

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.graph[1:],) if is_variable(self.graph) else ()


@dataclass(frozen=True, slots=True)
class Rows:
    """Inline data; None is unbound."""

    variables: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Once:
    """A sub-plan over static data alone: answered at registration, and again when that data is replaced."""

    input: Node

    @property
    def variables(self) -> tuple[str, ...]:
        return self.input.variables


@dataclass(frozen=True, slots=True)
class JoinAll:
    """The n-ary join. `expires_fifo`: that input's mappings leave in the order in which they came.

    `maybe_unbound` variables may be unbound in an input. `retract`: results are withdrawn when a leaf goes.
    """

    inputs: tuple[Node, ...]
    variables: tuple[str, ...]
    expires_fifo: tuple[bool, ...]
    maybe_unbound: frozenset[str] = frozenset()
    retract: bool = True


@dataclass(frozen=True, slots=True)
class FilterRows:
    input: Node
    condition: ExpressionProgram

    @property
    def variables(self) -> tuple[str, ...]:
        return self.input.variables


@dataclass(frozen=True, slots=True)
class ExtendRows:
    input: Node
    variable: str
    expression: ExpressionProgram

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.input.variables, self.variable)


@dataclass(frozen=True, slots=True)
class ProjectRows:
    """Columns by name; a variable the input lacks is unbound."""

    input: Node
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnionRows:
    """Inputs with the same variables in the same order."""

    inputs: tuple[Node, ...]
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DistinctRowsOf:
    input: Node
    reason: str = "DISTINCT"

    @property
    def variables(self) -> tuple[str, ...]:
        return self.input.variables


@dataclass(frozen=True, slots=True)
class ClosureRows:
    """The different pairs of nodes that one edge of the input or more lead between, under the names `variables`.

    `edge`: the input's columns where an edge starts and ends, and perhaps the graph it is in, within which it leads on.
    `source`: the one term from which nodes are reached, else each is a source. `loops`: also pairs of equal nodes.
    """

    input: Node
    edge: tuple[str, ...]
    variables: tuple[str, ...]
    source: str | None = None
    loops: bool = True


@dataclass(frozen=True, slots=True)
class Negate:
    """MINUS and NOT EXISTS, or (`exists`) EXISTS: the right input has just the key's columns, in the key's order."""

    left: Node
    right: Node
    key: tuple[str, ...]
    expires_fifo: tuple[bool, bool]
    exists: bool
    word: str

    @property
    def variables(self) -> tuple[str, ...]:
        return self.left.variables


@dataclass(frozen=True, slots=True)
class Shared:
    """A sub-plan that several nodes of a plan read, all under the same number: it is evaluated once for them."""

    number: int
    input: Node

    def __hash__(self) -> int:
        # Where sub-plans are shared the tree of a plan is far larger than the plan.
        return hash(self.number)

    @property
    def variables(self) -> tuple[str, ...]:
        return self.input.variables


@dataclass(frozen=True, slots=True)
class NumberRows:
    """Adds `variable`: a number that is the same for mappings that are equal in the columns `of`, and another for others."""

    input: Node
    of: tuple[str, ...]
    variable: str

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.input.variables, self.variable)


@dataclass(frozen=True, slots=True)
class PlannedAggregate:
    """`function` COUNT(*), COUNT, SUM, AVG, MIN, MAX, SAMPLE or GROUP_CONCAT (with `separator`) over the variable `argument`."""

    variable: str
    function: str
    argument: str | None
    distinct: bool
    separator: str = " "


@dataclass(frozen=True, slots=True)
class GroupRows:
    input: Node
    keys: tuple[str, ...]
    aggregates: tuple[PlannedAggregate, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.keys, *(aggregate.variable for aggregate in self.aggregates))


@dataclass(frozen=True, slots=True)
class FactorisedGroups:
    """Groups of the join of the inputs on `key`, which all of them have and nothing else they share.

    `carrier`: the input with those of the group's variables (`keys`) that are not in the key. An aggregate's argument is in the
    first input that has it.
    """

    inputs: tuple[Node, ...]
    key: tuple[str, ...]
    carrier: int
    keys: tuple[str, ...]
    aggregates: tuple[PlannedAggregate, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.keys, *(aggregate.variable for aggregate in self.aggregates))

    @property
    def own(self) -> tuple[str, ...]:
        """The group's variables that only the carrier has."""
        return tuple(dict.fromkeys(v for v in self.keys if v not in self.key))

    @property
    def by_key(self) -> bool:
        """Are the groups those of the key itself?"""
        return bool(self.key) and set(self.keys) == set(self.key)

    def source(self, aggregate: PlannedAggregate) -> int:
        """The input with an aggregate's argument; without one, the carrier."""
        if aggregate.argument is None:
            return self.carrier
        return next(i for i, node in enumerate(self.inputs) if aggregate.argument in node.variables)


@dataclass(frozen=True, slots=True)
class TopRows:
    """LIMIT and OFFSET: `order` are (variable, descending); rows that are equal there follow the term order, column by column.

    `limit` None: all rows from the offset on. `by`: a slice for each value of these variables.
    """

    input: Node
    order: tuple[tuple[str, bool], ...]
    offset: int
    limit: int | None
    by: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        return self.input.variables


@dataclass(frozen=True, slots=True)
class ChangelogRead:
    """What another stage delivers, which has the plan below this node: on Spark, in other tasks."""

    variables: tuple[str, ...]


Node: TypeAlias = (
    Scan | ChangelogRead | StaticScan | GraphNames | Rows | Once | JoinAll | FilterRows | ExtendRows | ProjectRows | UnionRows
    | DistinctRowsOf | Negate | Shared | ClosureRows | NumberRows | GroupRows | FactorisedGroups | TopRows
)  # fmt: skip


def inputs_of(node: Node) -> tuple[Node, ...]:
    """The nodes a node reads."""
    match node:
        case Scan() | ChangelogRead() | StaticScan() | GraphNames() | Rows():
            return ()
        case JoinAll(inputs=inputs) | UnionRows(inputs=inputs) | FactorisedGroups(inputs=inputs):
            return inputs
        case Negate(left=left, right=right):
            return (left, right)
        case _:
            return (node.input,)


@dataclass(frozen=True, slots=True)
class ReportOrder:
    """In which order RSTREAM reports: by `keys`, (column of the root, descending), then by the results' terms.

    `distinct`: of equal results only the first is reported.
    """

    keys: tuple[tuple[str, bool], ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class DrawnColumn:
    """A new value for each result: `function` UUID, STRUUID, RAND or BNODE; `argument`: the column of BNODE's labels."""

    variable: str
    function: str
    argument: str | None = None


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """An expression over a result's columns; a column that there is not is unbound."""

    variable: str
    expression: ExpressionProgram


AddedColumn: TypeAlias = DrawnColumn | ComputedColumn


@dataclass(frozen=True, slots=True)
class TemplateTriple:
    """A triple of a CONSTRUCT template; positions as in patterns, and "_:label" for a blank node of its own in each result."""

    subject: str
    predicate: str
    object: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A registered query, ready to run.

    `form` SELECT, ASK or CONSTRUCT; `variables` the columns of a result; `output` ISTREAM, DSTREAM, RSTREAM or CHANGELOG;
    `time_predicates`: for each stream the IRI of the property that carries the event time, or None. `graphs`: for each stream, are
    the graphs of its elements asked for? `static_default` and
    `static_named`: IRIs of FROM and FROM NAMED. `order`: for RSTREAM with ORDER BY; the root then has columns for it after the
    results'. `added`: columns of RSTREAM's results that are made as they are delivered, one after the other, from those of the root.
    """

    root: Node
    form: str
    variables: tuple[str, ...]
    output: str
    streams: tuple[str, ...]
    windows: tuple[PlannedWindow, ...]
    time_predicates: tuple[str | None, ...]
    graphs: tuple[bool, ...]
    template: tuple[TemplateTriple, ...] = ()
    static_default: tuple[str, ...] = ()
    static_named: tuple[str, ...] = ()
    name: str | None = None
    warnings: tuple[str, ...] = ()
    order: ReportOrder | None = None
    added: tuple[AddedColumn, ...] = ()

    @property
    def title(self) -> str:
        """The query in messages: by its name, or by the streams that it reads."""
        return f"the query <{self.name}>" if self.name else f"a query over <{'>, <'.join(self.streams)}>"

    @property
    def graph_streams(self) -> tuple[str, ...]:
        """The streams of whose elements the graphs are asked for."""
        return tuple(stream for stream, asked in zip(self.streams, self.graphs, strict=True) if asked)
