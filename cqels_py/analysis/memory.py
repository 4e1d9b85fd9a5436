"""The memory verdict of a query: does its state stay below a bound, however long the streams run?

Each operator of the plan keeps its input, or an entry for each of its different values, or nothing; and each relation is as
large as its windows. State that grows for ever is named, with the smallest set of bounds and windows that ends the growth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations
from typing import TypeAlias

from cqels_py.algebra.temporal_rules import CLASS
from cqels_py.analysis.rule_reach import lasting, reach
from cqels_py.event_time.windows import Measure
from cqels_py.plan.nodes import (
    WITHOUT_TERMS,
    ChangelogRead,
    ClosureRows,
    CountedJoin,
    DistinctRowsOf,
    EventRows,
    ExtendRows,
    FactorisedGroups,
    FilterRows,
    GraphNames,
    GroupRows,
    JoinAll,
    MatchRows,
    Negate,
    Node,
    NumberRows,
    Once,
    Plan,
    ProjectRows,
    Rows,
    Scan,
    Shared,
    StateRows,
    StaticScan,
    TopRows,
    UnionRows,
    inputs_of,
)
from cqels_py.plan.order import expires_fifo, is_timed
from cqels_py.planner.bounded_values import BoundedValues
from cqels_py.planner.windows import duration_text

_MOST_REPAIRS = 3
"""Sets of so many bounds and windows are tried."""
_MOST_CANDIDATES = 12
_WINDOW = "[RANGE 10m]"


class Level(Enum):
    """How memory behaves, from the best to the worst."""

    CONSTANT = "constant"
    WINDOW = "window"
    UNBOUNDED = "unbounded"


@dataclass(frozen=True, slots=True)
class MemoryVerdict:
    """How large the state of a query becomes.

    `kind`: "bounded", "not bounded"; of events without windows also "bounded by what comes before …" and "not shown to be bounded".
    `bound`: how much, where it is bounded. `blame`: the state that grows, by streams and
    variables, and `repair`: the change that would make it bounded, where it is not. `level`: constant; as large as windows
    are, which is constant if the rate of the streams is; or unbounded.
    """

    kind: str
    bound: str
    blame: tuple[str, ...]
    repair: str
    level: Level

    def within(self, limit: str) -> bool:
        """Is memory no worse than this level, "constant" or "window"?"""
        order = list(Level)
        return order.index(self.level) <= order.index(Level(limit))

    def __str__(self) -> str:
        if self.blame:
            return f"{self.kind}, {'; '.join(self.blame)}. {self.repair}"
        return f"{self.kind} {self.bound}" if self.bound.startswith("by ") else f"{self.kind}: {self.bound}"


# --- contents -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """The elements of a stream within a time; with a STEP also those that wait for the next boundary. A session lasts until a
    gap."""

    micros: int
    stream: str
    step: int = 0
    session: bool = False


@dataclass(frozen=True, slots=True)
class Last:
    """The last elements or triples of a stream; with a STEP also those that wait for the next boundary."""

    count: int
    unit: str
    stream: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class Entries:
    """An entry for each combination of values of bounded variables; `count`: how many at most, None: not known.

    `written`: a value that is written in several ways has an entry for each.
    """

    variables: tuple[str, ...]
    count: int | None
    written: bool = False


@dataclass(frozen=True, slots=True)
class Growing:
    """An entry for each combination of values ever seen, of variables that are not bounded; without any: for each row.

    `window`: the position of the window whose stream it grows with. `by`: the operator that keeps it.
    """

    window: int
    variables: tuple[str, ...] = ()
    by: str = ""


@dataclass(frozen=True, slots=True)
class Lasting:
    """Facts that rules derive and that may hold for ever: an entry for each combination of values. `names`: classes, properties."""

    names: tuple[str, ...]


Item: TypeAlias = Span | Last | Entries | Growing | Lasting
Content: TypeAlias = frozenset[Item]
"""How large a relation is."""
_NOTHING: Content = frozenset()


class _Kept:
    """The state of a plan's operators. `assumed`: variables taken for bounded; `windowed`: [ALL] windows taken for others."""

    def __init__(self, plan: Plan, assumed: Iterable[str] = (), windowed: Iterable[int] = ()) -> None:
        self._plan = plan
        self._windowed = frozenset(windowed)
        self._values = BoundedValues(assumed)
        self._visited: dict[int, Content] = {}
        self.items: dict[Item, None] = {}
        content = self._take(plan.root)
        if plan.order is not None:
            self._keep(content, "ORDER BY of RSTREAM")
        elif plan.output == "RSTREAM" and plan.form != "ASK":
            self._keep(self._by_value(plan.root, content, plan.root.variables, "RSTREAM"))

    @property
    def growing(self) -> list[Growing]:
        return [item for item in self.items if isinstance(item, Growing)]

    def _keep(self, content: Content, by: str = "") -> None:
        """Note that an operator keeps such content."""
        for item in sorted(content, key=repr):
            self.items[replace(item, by=by) if by and isinstance(item, Growing) else item] = None

    def _by_value(self, node: Node, content: Content, columns: Sequence[str], by: str) -> Content:
        """An entry for each combination of values of these columns of a node; a bounded relation has no more than its rows."""
        windows = [item.window for item in content if isinstance(item, Growing)]
        if not windows:
            return content
        unbounded, entries = self._values.combinations(node, dict.fromkeys(columns))
        bounded = frozenset(item for item in content if not isinstance(item, Growing))
        if not unbounded:
            return bounded | {Entries(tuple(columns), entries.count, entries.written)}
        return bounded | {Growing(window, tuple(unbounded), by) for window in windows}

    def _take(self, node: Node) -> Content:
        """Note the state of a node and of those below it; the size of the node's relation."""
        if isinstance(node, Shared):
            if node.number not in self._visited:
                self._visited[node.number] = self._take(node.input)
            return self._visited[node.number]
        match node:
            case StaticScan() | GraphNames() | Rows() | Once():
                return _NOTHING
            case Scan():
                return self._scan(node)
            case MatchRows():
                return self._match(node)
            case CountedJoin():
                return frozenset(Growing(event.window) for event in node.events)
            case EventRows(event):
                return frozenset({Growing(event.window)})
            case StateRows():
                return self._state()
            case ChangelogRead():
                raise AssertionError("a verdict is about a query as a whole, not about a stage of it")
        contents = [self._take(each) for each in inputs_of(node)]
        content = frozenset[Item]().union(*contents)
        match node:
            case JoinAll(inputs):
                self._keep(content, "the join" if len(inputs) > 1 else "")
            case Negate(word=word):
                self._keep(content, word)
            case FilterRows(inner) | ExtendRows(inner) if is_timed(node):
                self._keep(self._by_value(inner, content, inner.variables, "NOW()"))
            case DistinctRowsOf(inner, reason):
                content = self._by_value(inner, content, inner.variables, reason)
                self._keep(content)
            case ClosureRows(variables=variables):
                self._keep(content, "the path")
                content = self._by_value(node, content, variables, "the path")
            case NumberRows(inner, of):
                self._keep(self._by_value(inner, content, of, "COUNT(DISTINCT *)"))
            case TopRows(limit=limit, by=by):
                self._keep(content, "LIMIT" if limit is not None else "OFFSET")
                if limit is not None and not by:
                    content = frozenset({Entries((), limit)})
            case GroupRows():
                content = self._group(node, content)
            case FactorisedGroups():
                content = self._factorised(node, contents)
            case ProjectRows() | UnionRows() | FilterRows() | ExtendRows():
                pass
            case _:
                # Silence about a new operator would be a promise that it keeps nothing.
                raise AssertionError(node)
        return content

    def _scan(self, node: Scan) -> Content:
        """The content of a window. [ALL] keeps nothing itself."""
        window = self._plan.windows[node.window]
        bounds, stream = window.bounds, self._plan.streams[window.stream]
        item: Item
        if bounds.size is None:
            if node.window not in self._windowed:
                return frozenset({Growing(node.window)})
            item = Span(0, stream)
        elif bounds.of_time:
            session = bounds.measure is Measure.SESSION
            item = Span(bounds.size + bounds.delay, stream, bounds.step or 0, session)
        elif window.partition is not None and node.window not in self._windowed:
            item = Growing(node.window, window.partition.variables, "PARTITION BY")
        else:
            unit = "element" if bounds.measure is Measure.ELEMENTS else "triple"
            item = Last(bounds.size, unit, stream, bounds.step or 0)
        content = frozenset({item})
        self._keep(content)
        return content

    def _match(self, node: MatchRows) -> Content:
        """Events wait for others as long as WITHIN says."""
        streams = dict.fromkeys(self._plan.streams[self._plan.windows[window].stream] for window in node.windows)
        if node.within is not None:
            content = frozenset[Item](Span(node.within, stream) for stream in streams)
        else:
            assert node.within_events is not None
            content = frozenset[Item](Last(node.within_events, "element", stream) for stream in streams)
        self._keep(content)
        return content

    def _state(self) -> Content:
        """Facts count as long as conclusions from them may hold."""
        rules = self._plan.rules
        assert rules is not None
        micros = reach(rules.program)
        if micros is None:
            content = frozenset[Item]({Lasting(lasting(rules.program))})
        else:
            content = frozenset[Item](Span(micros, self._plan.streams[stream]) for stream in rules.streams)
        self._keep(content)
        return content

    def _group(self, node: GroupRows, content: Content) -> Content:
        groups = self._by_value(node.input, content, node.keys, "GROUP BY")
        self._keep(groups)
        for a in node.aggregates:
            columns = node.keys if a.argument is None else (*node.keys, a.argument)
            name = f"{a.function}({'DISTINCT ' if a.distinct else ''}{_names([a.argument or '*'])})"
            if a.distinct:
                self._keep(self._by_value(node.input, content, columns, name))
            # In FIFO input equal values are kept too, until they would expire.
            if a.function not in WITHOUT_TERMS and (not a.distinct or expires_fifo(node.input)):
                self._keep(content, name)
        return groups

    def _factorised(self, node: FactorisedGroups, contents: Sequence[Content]) -> Content:
        content = frozenset[Item]().union(*contents)
        for number, (each, mine) in enumerate(zip(node.inputs, contents, strict=True)):
            own = node.own if number == node.carrier else ()
            self._keep(self._by_value(each, mine, (*node.key, *own), "GROUP BY"))
        for a in node.aggregates:
            if a.function not in WITHOUT_TERMS or a.distinct:
                self._keep(contents[node.source(a)], f"{a.function}(?{a.argument})")
        groups = self._by_value(node, content, node.keys, "GROUP BY")
        self._keep(groups)
        return groups


# --- the verdict ------------------------------------------------------------------------------------------------------


def memory_verdict(plan: Plan) -> MemoryVerdict:
    """The verdict of a query by its plan."""
    kept = _Kept(plan)
    if plan.event_memory:
        return _of_events(plan, kept)
    if kept.growing:
        blame = tuple(dict.fromkeys(_blame(plan, item) for item in kept.growing))
        return MemoryVerdict("not bounded", "", blame, _repair(plan, kept.growing), Level.UNBOUNDED)
    for item in kept.items:
        if isinstance(item, Lasting):
            names = ", ".join(f"<{name.removeprefix(CLASS)}>" for name in item.names) or "a hidden predicate"
            blame = (f"by the rules {names} may hold for ever, for each new value",)
            repair = (
                "It is bounded if FOREVER has an end, as in [0s, 1h], and no recursion leads from a fact to the same one later; or "
                "if the streams bring no new values"
            )
            return MemoryVerdict("not bounded", "", blame, repair, Level.UNBOUNDED)
    spans = sorted((item for item in kept.items if isinstance(item, Span)), key=lambda span: -span.micros)
    others = list(dict.fromkeys(_others(kept.items)))
    if not spans:
        return MemoryVerdict("bounded", " and ".join(others) or "keeps nothing", (), "", Level.CONSTANT)
    first, *more = dict.fromkeys(_of_span(span) for span in spans)
    texts = [f"by what comes in {first}", *(f"in {text}" for text in more), *others]
    return MemoryVerdict("bounded", ", and ".join(texts), (), "", Level.WINDOW)


def _of_events(plan: Plan, kept: _Kept) -> MemoryVerdict:
    """The verdict of a query over events without windows: that of their joins, and of their kept results."""
    unbounded = [each for each in plan.event_memory if not each.is_bounded]
    if unbounded:
        blame = tuple(dict.fromkeys(text for each in unbounded for text in each.blame))
        repair = ". ".join(dict.fromkeys(each.repair for each in unbounded))
        return MemoryVerdict(max(each.kind for each in unbounded), "", blame, repair, Level.UNBOUNDED)
    if kept.growing:
        blame = tuple(dict.fromkeys(_blame(plan, item) for item in kept.growing))
        return MemoryVerdict("not bounded", "", blame, _repair(plan, kept.growing), Level.UNBOUNDED)
    bound = "; ".join(dict.fromkeys([*(each.bound for each in plan.event_memory), *_others(kept.items)]))
    finite = next((each.kind for each in plan.event_memory if each.kind != "bounded"), None)
    return MemoryVerdict(finite or "bounded", bound, (), "", Level.WINDOW if finite else Level.CONSTANT)


def growing_events(plan: Plan) -> list[int]:
    """The windows of events that are to blame for growing memory and do not say [ALL]: with any, a query is refused."""
    if not plan.event_memory:
        return []
    blamed = {number for each in plan.event_memory for number in each.blamed}
    accepted = {number for each in plan.event_memory if not each.is_bounded for number in each.windows}
    growing = {item.window for item in _Kept(plan).growing}
    return sorted(blamed | (growing - accepted - set(plan.kept_events)))


def _of_span(span: Span) -> str:
    time = duration_text(span.micros)
    waits = f", and waits {duration_text(span.step)} for the window to move" if span.step else ""
    lasts = f", in sessions: each is kept until nothing comes for {time}, and grows until then" if span.session else ""
    return f"{time} (constant if the rate is) on <{span.stream}>{waits}{lasts}"


def _others(items: Iterable[Item]) -> Iterator[str]:
    for item in items:
        match item:
            case Last(count, unit, stream, step):
                waits = f" (and {step} more until the window moves)" if step else ""
                last = f"the last {count} {unit}s" if count > 1 else f"the last {unit}"
                yield f"{last} of <{stream}>{waits}"
            case Entries(()):
                yield "one group"
            case Entries(variables, count, written):
                most = "" if count is None else f" (at most {count})"
                ways = ", and for each way of writing it" if written else ""
                yield f"one entry for each value of {_names(variables)}{most}{ways}"


def _names(variables: Iterable[str]) -> str:
    """As the query writes them, without those that only the plan has."""
    return " ".join(f"?{name}" for name in variables if not name.startswith("_:")) or "a hidden variable"


def _blame(plan: Plan, item: Growing) -> str:
    stream = plan.streams[plan.windows[item.window].stream]
    if item.variables:
        return f"{item.by} keeps one entry for each value of {_names(item.variables)} ever seen on <{stream}>"
    return f"{item.by} keeps all of <{stream}>"


def _repair(plan: Plan, growing: Sequence[Growing]) -> str:
    """The smallest set of bounds and windows with which nothing grows."""
    variables = dict.fromkeys(name for item in growing for name in item.variables if not name.startswith("_:"))
    candidates: list[str | int] = [*variables, *dict.fromkeys(item.window for item in growing)]
    for size in range(1, _MOST_REPAIRS + 1):
        for chosen in combinations(candidates[:_MOST_CANDIDATES], size):
            assumed = [each for each in chosen if isinstance(each, str)]
            windowed = [each for each in chosen if isinstance(each, int)]
            if not _Kept(plan, assumed, windowed).growing:
                return _repair_text(plan, assumed, windowed)
    return _repair_text(plan, (), [each for each in candidates if isinstance(each, int)])


def _repair_text(plan: Plan, bounded: Sequence[str], windowed: Iterable[int]) -> str:
    texts = [f"bounds for {_names(bounded)} (FILTER(?{bounded[0]} IN (…)), VALUES)"] if bounded else []
    streams = dict.fromkeys(plan.streams[plan.windows[each].stream] for each in windowed)
    texts += [f"a window on <{stream}>, such as {_WINDOW}" for stream in streams]
    return f"Bounded with {' and '.join(texts)}"
