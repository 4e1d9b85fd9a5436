"""Nodes of the physical plan.

A plan is plain frozen data: terms are N-Triples texts, variables are names, expressions are programs. `variables` of a node are
the columns that it delivers, in order. A position of a pattern is a term's text, or a variable's name with a "?" before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cqels_py.event_time.windows import Bounds
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.temporal_rules import PlannedRules

TRIPLE = ("subject", "predicate", "object")
GRAPH = len(TRIPLE)
"""The position of a triple's graph."""
PatternText: TypeAlias = tuple[str, ...]
"""Subject, predicate, object; and the graph, if the pattern asks for one. Without it triples of all graphs match, and of none."""


def is_variable(position: str) -> bool:
    return position.startswith("?")


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """PARTITION BY: an element's values of the variables are those of the joined patterns of any alternative."""

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

    `conditions` are tested when a mapping arrives, before it is kept. `keep_ids`: an expired mapping is delivered with its ids;
    a join that keeps its own leaves does not need them. `expires_fifo`: mappings expire in the order in which they came.
    `expires` False: they never do ([ALL]).
    """

    window: int
    pattern: PatternText
    variables: tuple[str, ...]
    conditions: tuple[ExpressionProgram, ...] = ()
    keep_ids: bool = True
    expires_fifo: bool = True
    expires: bool = True


@dataclass(frozen=True, slots=True)
class StaticScan:
    """Mappings of one triple pattern in static data: the default graph (graph ""), a named one, or each named one (a variable)."""

    graph: str
    pattern: PatternText
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphNames:
    """Named graphs of static data: their names (a variable), or the empty mapping if there is the graph of this name (a term)."""

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
    """A sub-plan over static data alone: evaluated at registration, and again when that data is replaced."""

    input: Node

    @property
    def variables(self) -> tuple[str, ...]:
        return self.input.variables


@dataclass(frozen=True, slots=True)
class JoinAll:
    """The n-ary join. `expires_fifo`, for each input: its mappings expire in the order in which they came.

    `maybe_unbound`: variables that may be unbound in an input. `retract`: results are retracted when a leaf is.
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
    """The transitive closure of edges: the distinct pairs of nodes with a path between them, in the columns `variables`.

    `edge`: the input's columns of an edge's start and end, and perhaps of its graph; then paths stay within a graph.
    `source`: the only start of paths, None: every node. `loops`: also pairs of equal nodes.
    """

    input: Node
    edge: tuple[str, ...]
    variables: tuple[str, ...]
    source: str | None = None
    loops: bool = True


@dataclass(frozen=True, slots=True)
class Negate:
    """The anti-join (MINUS, NOT EXISTS) or, with `exists`, the semi-join; the right input has the key's columns only, in order."""

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
    """A sub-plan that several nodes of a plan read, under the same number: it is evaluated once."""

    number: int
    input: Node

    def __hash__(self) -> int:
        # As a tree, a plan with shared sub-plans is far larger than the plan.
        return hash(self.number)

    @property
    def variables(self) -> tuple[str, ...]:
        return self.input.variables


@dataclass(frozen=True, slots=True)
class NumberRows:
    """Adds the column `variable`: a number for each distinct combination of values in the columns `of`."""

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


WITHOUT_TERMS = frozenset(("COUNT(*)", "COUNT", "SUM", "AVG"))
"""Aggregates that keep numbers only. The others keep terms of the group."""


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
    """Groups of the join of the inputs by `key`: all columns that inputs have in common, which all of them have.

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
    """LIMIT and OFFSET: `order` is (variable, descending) …; rows that are equal there are in term order, column by column.

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
    """The changelog of another plan's root: of the stage before on Spark, of the query with this `name` within one engine."""

    variables: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """An event of MATCH: rows of `patterns` over the triples of one element of the stream of `window`.

    `columns`: the patterns' variables. `time`: the variable of the element's time, or "". `bindings` are computed in order, then
    `conditions` tested. `variables`: those that the automaton keeps; a row without a value of one of the `required` is none.
    """

    window: int
    patterns: tuple[PatternText, ...]
    columns: tuple[str, ...]
    time: str
    bindings: tuple[tuple[str, ExpressionProgram], ...]
    conditions: tuple[ExpressionProgram, ...]
    variables: tuple[str, ...]
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventRows:
    """The rows of an event without a window, delivered at the end of the instant of their element."""

    event: PlannedEvent

    @property
    def variables(self) -> tuple[str, ...]:
        return self.event.variables


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """A column of rows or counters: the terms of a variable, or (`exact` False) the places of its numbers among the integers.

    The place of an integer n is 2 n, that of a number between n and n + 1 is 2 n + 1. `low`, `high`: all places beyond are one.
    `better`: -1 (1) if a counter with a less (greater) place makes all results that another one makes, which is then left out.
    """

    variable: str
    exact: bool
    low: int | None = None
    high: int | None = None
    better: int = 0


@dataclass(frozen=True, slots=True)
class CountedSource:
    """The rows of a stream of a counted join: of one event, or of several that have the same time.

    `joined`: static relations whose solutions are joined with them, `found`: static relations in which they must have a partner,
    both as numbers of the join's `statics`. `conditions`: tested on them. `ranges`: variables whose values must be numbers with
    places from … to …. `columns`: the parts that are kept of them.
    """

    events: tuple[PlannedEvent, ...]
    joined: tuple[int, ...]
    found: tuple[int, ...]
    conditions: tuple[ExpressionProgram, ...]
    ranges: tuple[tuple[str, int | None, int | None], ...]
    columns: tuple[CountedColumn, ...]


@dataclass(frozen=True, slots=True)
class CountedSet:
    """A table of counters, by the values of `columns`, for the combinations of rows of these `sources`.

    `until`: after this instant nothing is added to it, as one of the other sources has come to its end. `most`: so many counters at
    most, None: not known.
    """

    sources: tuple[int, ...]
    columns: tuple[CountedColumn, ...]
    until: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class CountedStep:
    """A row of `source` makes of each counter of the set `start` that agrees with it one of the set `target`; -1: a row of output.

    `start` -1: it begins a combination. `equal`: columns of the row and of the counter with the same term. `compared`: column of
    the row, comparison, column of the counter. `copied`: for each column of the target, 0 and a column of the row, or 1 and one of
    the counter.
    """

    source: int
    start: int
    target: int
    equal: tuple[tuple[int, int], ...]
    compared: tuple[tuple[int, str, int], ...]
    copied: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class CountedJoin:
    """The join of events without windows by counters: how many combinations of elements so far have the values that matter.

    `sources` are in an order in which none is later than one before it. `statics`: static relations. `once`: it does not matter how
    often a row is there. `bounded`: variables of the output that are bounded, each with the number of its values, if it is known.
    `weight`: a column with the number of combinations that a row stands for; rows in which one of the variables `summed` is no
    integer or decimal come that often, with the weight 1. "": all rows do, without the column.
    """

    sources: tuple[CountedSource, ...]
    sets: tuple[CountedSet, ...]
    steps: tuple[CountedStep, ...]
    statics: tuple[Node, ...]
    output: tuple[str, ...]
    once: bool = False
    bounded: tuple[tuple[str, int | None], ...] = ()
    weight: str = ""
    summed: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.output, self.weight) if self.weight else self.output

    @property
    def events(self) -> tuple[PlannedEvent, ...]:
        return tuple(event for source in self.sources for event in source.events)


@dataclass(frozen=True, slots=True)
class EventMemory:
    """The memory verdict of a join of events without windows, by counters or of all their rows.

    `kind`: "bounded", "bounded by what comes before …", "not bounded" or "not shown to be bounded". `bound`: how much. `blame`: the
    part that grows, and `repair`: a change that would end the growth. `windows`: of the group's events; `blamed`: those that grow,
    without [ALL]. `notes`: lines about the paper's theorems.
    """

    kind: str
    bound: str
    blame: tuple[str, ...]
    repair: str
    windows: tuple[int, ...]
    blamed: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_bounded(self) -> bool:
        return self.kind.startswith("bounded")


@dataclass(frozen=True, slots=True)
class MatchState:
    """A state of the automaton: `event` was the last one. `initial`: it may be the first. `final`: a match may end with it."""

    event: int
    initial: bool
    final: bool


@dataclass(frozen=True, slots=True)
class MatchTransition:
    """From state to state by the event of `target`, where the values of `key` agree with those of the event of `source`.

    `same_element`: the element of `source` may serve again. `later`: the time is later than that of `source`. `absent`: the
    number of the NOT in between, or -1. `fresh`: variables of which a repetition has values of its own. `later_than`: the time is
    later than that of the nearest of these events of the run.
    """

    source: int
    target: int
    key: tuple[str, ...]
    same_element: bool = False
    later: bool = False
    absent: int = -1
    fresh: tuple[str, ...] = ()
    later_than: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AbsentEvent:
    """NOT: no row of `event` that agrees with the match on `key`, between the nearest of the events `after` and the next one."""

    event: int
    after: tuple[int, ...]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MatchRows:
    """The matches of an event pattern that stand, by an automaton over its events.

    `within`: microseconds, `within_events`: elements, between the first and the last of a match; None: any number. `windows`:
    over the streams whose elements are counted. `retract`: matches are retracted when they no longer stand. `policy`: ALL, or the
    LATEST or EARLIEST match of each last element. `consume`: after a match, elements so far serve no more. `guarantee`: lists in
    which a search might pass many runs out of reach are heaps instead.
    """

    events: tuple[PlannedEvent, ...]
    states: tuple[MatchState, ...]
    transitions: tuple[MatchTransition, ...]
    absent: tuple[AbsentEvent, ...]
    windows: tuple[int, ...]
    within: int | None
    within_events: int | None
    strict_time: bool
    variables: tuple[str, ...]
    retract: bool = True
    policy: str = "ALL"
    consume: bool = False
    guarantee: bool = False


def partition_variables(node: MatchRows) -> tuple[str, ...]:
    """The variables that all events of a MATCH have, but for those of NOT, and whose value a match has one of."""
    gaps = {gap.event for gap in node.absent}
    each = [set(event.variables) for number, event in enumerate(node.events) if number not in gaps]
    fresh = {name for transition in node.transitions for name in transition.fresh}
    return tuple(sorted(set.intersection(*each) - fresh))


@dataclass(frozen=True, slots=True)
class StateRows:
    """The rows of a STATE: those of answer `number` of the query's rules. `step`: microseconds between its changes, or None."""

    number: int
    variables: tuple[str, ...]
    step: int | None
    text: str


Node: TypeAlias = (
    Scan | MatchRows | StateRows | EventRows | CountedJoin | ChangelogRead | StaticScan | GraphNames | Rows | Once | JoinAll
    | FilterRows | ExtendRows | ProjectRows | UnionRows
    | DistinctRowsOf | Negate | Shared | ClosureRows | NumberRows | GroupRows | FactorisedGroups | TopRows
)  # fmt: skip


def inputs_of(node: Node) -> tuple[Node, ...]:
    """The nodes a node reads."""
    match node:
        case Scan() | MatchRows() | StateRows() | EventRows() | ChangelogRead() | StaticScan() | GraphNames() | Rows():
            return ()
        case CountedJoin(statics=statics):
            return statics
        case JoinAll(inputs=inputs) | UnionRows(inputs=inputs) | FactorisedGroups(inputs=inputs):
            return inputs
        case Negate(left=left, right=right):
            return (left, right)
        case _:
            return (node.input,)


@dataclass(frozen=True, slots=True)
class ReportOrder:
    """The order of RSTREAM's results: by `keys`, (column of the root, descending), then by the results' terms.

    `distinct`: of equal results only the first is reported.
    """

    keys: tuple[tuple[str, bool], ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class VolatileColumn:
    """A new value for each result, by `function` UUID, STRUUID, RAND or BNODE; `argument`: the column with BNODE's labels."""

    variable: str
    function: str
    argument: str | None = None


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """An expression over a result's columns; a missing column is unbound."""

    variable: str
    expression: ExpressionProgram


AddedColumn: TypeAlias = VolatileColumn | ComputedColumn


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
    `time_predicates`: for each stream the IRI of the property that carries the event time, or None. `graphs`: for each stream, does
    the query ask for the graphs of its elements? `static_default` and `static_named`: IRIs of FROM and FROM NAMED. `order`: for
    RSTREAM with ORDER BY; the root then has columns for it after the results'. `added`: columns of RSTREAM's results that are
    computed as these are delivered, one after the other, from the columns of the root. `event_memory`: the verdicts of joins of
    events without windows, and `kept_events`: the windows of those that say [ALL]. `rules`: those that
    STATE asks.
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
    event_memory: tuple[EventMemory, ...] = ()
    kept_events: tuple[int, ...] = ()
    rules: PlannedRules | None = None

    @property
    def title(self) -> str:
        """A name of the query for messages: its own, or one by the streams that it reads."""
        return f"the query <{self.name}>" if self.name else f"a query over <{'>, <'.join(self.streams)}>"

    @property
    def graph_streams(self) -> tuple[str, ...]:
        """The streams whose elements are asked for their graphs."""
        return tuple(stream for stream, asked in zip(self.streams, self.graphs, strict=True) if asked)
