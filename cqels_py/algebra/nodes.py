"""Nodes of the logical plan: SPARQL 1.1's algebra, and `Window` for a pattern over windows.

All nodes are frozen, hashable and picklable. Terms are rdflib's `URIRef`, `Literal`; a variable is rdflib's `Variable`;
blank nodes of patterns have become variables whose name starts with "_:".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from rdflib import BNode, Literal, URIRef, Variable

from cqels_py.algebra.temporal_rules import Atom, Interval, Rule

Term: TypeAlias = URIRef | Literal
TermOrVariable: TypeAlias = URIRef | Literal | Variable


# --- expressions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VariableRef:
    """The value of a variable; an error where it is unbound."""

    variable: Variable


@dataclass(frozen=True, slots=True)
class Constant:
    term: Term


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function.

    `function` is one of the operators ``|| && ! = != < > <= >= + - * / unary- unary+ IN NOT-IN``, a SPARQL builtin in
    capitals (``STR``, ``REGEX``, ``IF``, ``COALESCE``, ``BOUND`` …) or, for casts and extension functions, an IRI's text.
    For IN and NOT-IN the first argument is looked for among the others. IRI and URI have the query's
    base as a second argument where it has one.
    """

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    pattern: Pattern
    negated: bool


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """COUNT, SUM, AVG, MIN, MAX, SAMPLE or GROUP_CONCAT; `argument` is None for COUNT(*)."""

    function: str
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None


Expression: TypeAlias = VariableRef | Constant | Call | Exists


# --- patterns ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TriplePattern:
    subject: TermOrVariable
    predicate: TermOrVariable
    object: TermOrVariable


@dataclass(frozen=True, slots=True)
class BGP:
    """Triple patterns joined; none of them: the one empty mapping."""

    triples: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A property path that is not a plain predicate; `path` is one of the Path nodes below."""

    subject: TermOrVariable
    path: Path
    object: TermOrVariable


@dataclass(frozen=True, slots=True)
class Join:
    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class NaryJoin:
    """The join of all parts, made by the rewrites (flatten_joins)."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """OPTIONAL, with the filter of its group (None: true)."""

    left: Pattern
    right: Pattern
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class Filter:
    pattern: Pattern
    condition: Expression


@dataclass(frozen=True, slots=True)
class Union:
    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Minus:
    """`uncounted`: variables that have to agree, but do not count as in common; queries have none."""

    left: Pattern
    right: Pattern
    uncounted: frozenset[Variable] = frozenset()


@dataclass(frozen=True, slots=True)
class Extend:
    """BIND, and a projected expression."""

    pattern: Pattern
    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class Values:
    """Inline data: rows of terms, None where unbound. Blank nodes are only in answers of endpoints."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Term | BNode | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A pattern over a named graph (a variable: over each of them).

    `in_window`: of the graphs that the elements of the window around it name; otherwise of static data.
    """

    name: URIRef | Variable
    pattern: Pattern
    in_window: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """A pattern over the merge of windows' contents (and of the static default graph, where `with_static`).

    CQELS-QL and RSP-QL name one window; in C-SPARQL the default graph is the merge of all windows and static data. `graph`: over
    this named graph of the content alone, or over each of them; elements that name the same one share it. A graph is there while
    it has triples. None: over all triples of the elements, whatever graph they are in.
    """

    windows: tuple[URIRef, ...]
    pattern: Pattern
    with_static: bool = False
    graph: URIRef | Variable | None = None


@dataclass(frozen=True, slots=True)
class WindowVariable:
    """`WINDOW ?w {…}`: the pattern over each of the windows in turn, which are all of the query's."""

    variable: Variable
    pattern: Pattern
    windows: tuple[URIRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """`EVENT ON stream AT ?time {…}`: a row for each solution over the triples of one element.

    `window` names a window over the stream. The values of `bindings` are computed in their order, then `conditions` are tested.
    `time`: the variable of the element's time, an xsd:dateTime. `offset`: the place in the query's text. `keep_all`: outside of
    MATCH, all its rows may be kept for ever (`EVENT ON stream [ALL]`).
    """

    window: URIRef
    triples: tuple[TriplePattern, ...]
    bindings: tuple[tuple[Variable, Expression], ...] = ()
    conditions: tuple[Expression, ...] = ()
    time: Variable | None = None
    offset: int = field(default=0, compare=False)
    keep_all: bool = False


@dataclass(frozen=True, slots=True)
class EventSequence:
    """`A SEQ B SEQ C`; `absent[i]`: no such event between parts i and i + 1 (`A SEQ NOT N SEQ B`), or None."""

    parts: tuple[EventPattern, ...]
    absent: tuple[Event | None, ...]


@dataclass(frozen=True, slots=True)
class EventConjunction:
    """`A AND B`: in any order; one element may serve several parts."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class EventAlternatives:
    """`A OR B`."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class EventRepetition:
    """`A+`: A SEQ … SEQ A, once at least."""

    part: EventPattern


EventPattern: TypeAlias = Event | EventSequence | EventConjunction | EventAlternatives | EventRepetition


@dataclass(frozen=True, slots=True)
class Match:
    """`MATCH WITHIN d n EVENTS STRICT TIME {…}`: the matches of an event pattern that stand.

    `within`: microseconds between the first and the last element, `within_events`: elements between them; None: any number.
    `strict_time`: the parts of a sequence have different times. `windows`: one for each stream, as wide as a match stands.
    `policy`: ALL; or LATEST or EARLIEST, one match for each last element. `consume`: after a match, elements so far serve no more.
    `offset`: the place in the query's text.
    """

    pattern: EventPattern
    windows: tuple[URIRef, ...]
    within: int | None
    within_events: int | None
    strict_time: bool = False
    policy: str = "ALL"
    consume: bool = False
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class EventJoin:
    """Events without windows: the join of the rows of all elements ever with `others`, static patterns, where `conditions` hold.

    An instant's elements are taken together. The parser makes one of each EVENT block outside of MATCH; `rewrites.join_events` joins
    those of a group.
    """

    events: tuple[Event, ...]
    others: tuple[Pattern, ...] = ()
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """`STATE [STEP d] { … }`: for each instant the rows for which all triples hold by the query's rules, once each.

    `step`: microseconds between the instants at which the rows change; None: they change as soon as the facts that hold do.
    `offset`: the place in the query's text.
    """

    triples: tuple[TriplePattern, ...]
    step: int | None = None
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Service:
    """A pattern for another endpoint, which is queried once; `text` is the query, with the group as the user wrote it."""

    endpoint: URIRef | Variable
    pattern: Pattern
    silent: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """A pattern that has been planned already, to be read several times; only the planner makes them.

    `number`: of the plan node. `variables`: its columns; `certain`: those of them that are always bound.
    """

    number: int
    variables: tuple[Variable, ...]
    certain: frozenset[Variable]
    reads_stream: bool


@dataclass(frozen=True, slots=True)
class Group:
    """GROUP BY: `keys` name the grouping variables (an expression key is an Extend below, so keys are variables).

    No keys: the single implicit group, which exists over no mappings too. `aggregates` are (result variable, call).
    HAVING is a Filter above, an expression over aggregates an Extend above.
    """

    pattern: Pattern
    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, AggregateCall], ...]


@dataclass(frozen=True, slots=True)
class Project:
    pattern: Pattern
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Reduced:
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class OrderBy:
    """`conditions` are (expression, descending)."""

    pattern: Pattern
    conditions: tuple[tuple[Expression, bool], ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """OFFSET and LIMIT; limit None: no limit. `by`: for each value of these variables; queries have none."""

    pattern: Pattern
    offset: int
    limit: int | None
    by: tuple[Variable, ...] = ()


Pattern: TypeAlias = (
    BGP
    | PathPattern
    | Join
    | NaryJoin
    | LeftJoin
    | Filter
    | Union
    | Minus
    | Extend
    | Values
    | Graph
    | Window
    | WindowVariable
    | Match
    | EventJoin
    | State
    | Service
    | Planned
    | Group
    | Project
    | Distinct
    | Reduced
    | OrderBy
    | Slice
)


# --- property paths ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PathInverse:
    path: Path


@dataclass(frozen=True, slots=True)
class PathSequence:
    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathAlternative:
    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathRepeat:
    """``*`` (minimum 0, unbounded), ``+`` (1, unbounded), ``?`` (0, not unbounded)."""

    path: Path
    minimum: int
    unbounded: bool


@dataclass(frozen=True, slots=True)
class PathNegated:
    """A negated property set: predicates forbidden forwards and backwards."""

    forward: tuple[URIRef, ...]
    backward: tuple[URIRef, ...]


Path: TypeAlias = URIRef | PathInverse | PathSequence | PathAlternative | PathRepeat | PathNegated


# --- windows and queries ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeRange:
    """`[RANGE d STEP s]`: microseconds; step None: eager. [NOW] is the range of one microsecond.

    `delay`: the window ends so long ago, as in `[FROM NOW-2h TO NOW-1h]`, which is one hour wide and an hour late.
    """

    width: int
    step: int | None = None
    start: int = 0
    delay: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """`[SESSION d]`: elements of which each follows the one before within d; all leave when d has passed without another.

    `step`, `start`: with a step, the content at its last boundary.
    """

    gap: int
    step: int | None = None
    start: int = 0


@dataclass(frozen=True, slots=True)
class ElementCount:
    """`[COUNT n STEP m]`: the last n elements; step None: at every element."""

    count: int
    step: int | None = None


@dataclass(frozen=True, slots=True)
class TripleCount:
    """`[TRIPLES n STEP m]`: the last n triples; step None: at every element."""

    count: int
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Everything:
    """`[ALL]`: nothing expires."""


@dataclass(frozen=True, slots=True)
class EachInstant:
    """All elements of instants that have ended, and nothing expires: the window of an EVENT block outside of MATCH."""


Extent: TypeAlias = TimeRange | Session | ElementCount | TripleCount | Everything | EachInstant


@dataclass(frozen=True, slots=True)
class WindowDefinition:
    """A window over a stream.

    `name` is its name in the query (generated and unique for CQELS-QL's inline windows). `time_predicate` is the
    property that carries the event time (`@ :p`). `partition_by`: the last n, or a session, for each value of these variables
    (`cqels_py.algebra.partitions` says which element has which).
    """

    name: URIRef
    stream: URIRef
    extent: Extent
    time_predicate: URIRef | None = None
    partition_by: tuple[Variable, ...] = ()


class Output(Enum):
    """The relation-to-stream operator."""

    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RSTREAM = "RSTREAM"
    CHANGELOG = "CHANGELOG"


class Dialect(Enum):
    CQELS_QL = "CQELS-QL"
    RSP_QL = "RSP-QL"
    C_SPARQL = "C-SPARQL"


@dataclass(frozen=True, slots=True)
class RuleSet:
    """`RULES ON streams { … }`. `expressions`: those of FILTER and BIND, by their numbers in the rules.

    `facts`: facts that hold beside the triples of streams, and when.
    """

    streams: tuple[URIRef, ...]
    rules: tuple[Rule, ...]
    expressions: tuple[Expression, ...]
    facts: tuple[tuple[Atom, Interval], ...] = ()


@dataclass(frozen=True, slots=True)
class ContinuousQuery:
    """A registered query, still logical.

    `form` is SELECT, ASK, CONSTRUCT or DESCRIBE. `variables` are the result's columns in order (for CONSTRUCT those of the
    template). `bag_windows`: the same triple twice in a window counts twice (CQELS-QL), else once. `template` is
    CONSTRUCT's. `static_from` and `static_named` are FROM and FROM NAMED without windows. `describe` are DESCRIBE's terms.
    """

    form: str
    pattern: Pattern
    variables: tuple[Variable, ...]
    windows: tuple[WindowDefinition, ...]
    output: Output
    dialect: Dialect
    bag_windows: bool
    name: str | None = None
    template: tuple[TriplePattern, ...] = ()
    static_from: tuple[URIRef, ...] = ()
    static_named: tuple[URIRef, ...] = ()
    describe: tuple[TermOrVariable, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    rules: RuleSet | None = None
