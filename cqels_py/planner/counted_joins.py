"""The decision about a group of events, and its plan by counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from rdflib import Variable

from cqels_py.algebra.nodes import EventJoin, Expression, NaryJoin, Pattern
from cqels_py.algebra.nodes import Values as InlineValues
from cqels_py.algebra.variables import expression_variables, possible_variables, variables_of_event
from cqels_py.functions.dates import instant_text
from cqels_py.plan.nodes import (
    CountedColumn,
    CountedJoin,
    CountedSet,
    CountedSource,
    CountedStep,
    FilterRows,
    Node,
)
from cqels_py.planner.bounded_values import ANY, Values, filtered, number_of, tree_of, value_of
from cqels_py.planner.event_groups import (
    Group,
    Source,
    compared_variables,
    compared_with_constant,
    maybe_unbound,
    prepared,
)
from cqels_py.planner.event_sets import (
    IN_RESULT,
    MOST_SOURCES,
    GroupFacts,
    KeptVariable,
    SourceFacts,
    WaitingSet,
    waiting_sets,
)
from cqels_py.planner.expressions import compile_expression
from cqels_py.planner.matches import planned_event
from cqels_py.planner.number_ranges import Order, Ranges
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import once
from cqels_py.planner.theorems import Failures, Graph, theorem_1, theorem_2
from cqels_py.terms.rdf import from_rdflib

_MOST_REPAIRS = 3
_LARGEST = 10**15
"""Counters by so many values are as good as unbounded; their number is not told."""


@dataclass(frozen=True, slots=True)
class Decision:
    """`node`: the plan by counters, None if there are never rows; `kind` and the rest: see EventMemory. `blamed`: windows."""

    variables: frozenset[str]
    kind: str
    node: Node | None = None
    bound: str = ""
    blame: tuple[str, ...] = ()
    repair: str = ""
    blamed: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def decide(planner: Planning, part: EventJoin, needed: Needed) -> Decision:
    """Is the memory of a group bounded, and if so, how is it evaluated? `part`: one of the `alternatives` of a group."""
    decider = _Decider(planner, prepared(part), needed)
    return replace(decider.decide(), notes=decider.notes())


@dataclass(slots=True)
class _Comparisons:
    """Comparisons by order between sources (`orders`); those that have no integers are left: `others`. All orders: `every`."""

    orders: list[Order] = field(default_factory=list)
    every: list[Order] = field(default_factory=list)
    others: list[Expression] = field(default_factory=list)


class _Decider:
    def __init__(self, planner: Planning, group: Group, needed: Needed) -> None:
        self._planner = planner
        self._group = group
        self._values = _known_values(group)
        self._ranges, self._compared, self._satisfiable = _compared(group, self._values)
        outside = [v for condition in self._compared.others for v in expression_variables(condition)]
        every = frozenset().union(*(source.variables for source in group.sources))
        self._every = frozenset(map(str, every))
        self._needed = frozenset(map(str, needed))
        self._output = tuple(sorted({str(v) for v in (*needed, *outside) if v in every}))

    def decide(self) -> Decision:
        group = self._group
        if group.never or not self._satisfiable:
            return Decision(self._every, "bounded", None, "keeps nothing, as its conditions are never true")
        if len(group.sources) > MOST_SOURCES:
            return self._refused([f"there are more than {MOST_SOURCES} EVENT blocks"], "Write fewer blocks")
        if unbound := maybe_unbound(group):
            names = " ".join(f"?{v}" for v in unbound)
            return self._refused(
                [f"{names} may be unbound in a block"], f"Bounded perhaps where {names} has a value in each block"
            )
        sets = self._sets(finite=False)
        kind = "bounded"
        if any(each.unbounded for each in sets):
            sets = self._sets(finite=True)
            kind = f"bounded by what comes before {self._end()}"
        growing = [each for each in sets if each.unbounded and each.until is None]
        rows, times = self._rows_kept(), self._times_read()
        if growing or rows or times:
            return self._growing(growing, rows, times)
        return Decision(self._every, kind, self._node(sets), self._bound(sets, rows))

    # --- facts ----------------------------------------------------------------------------------------------------

    def notes(self) -> tuple[str, ...]:
        """The conditions of the paper's theorems beside the verdicts for bags and for DISTINCT."""
        if self._group.never or not self._satisfiable or len(self._group.sources) < 2:
            return ()
        facts = self._facts(finite=True)
        graph = Graph(facts)
        trees = ", ".join(graph.text(self._short, root) for root in graph.roots)
        return (
            f"{_conditions('Theorem 1 (bag)', 5, theorem_1(facts, self._short))}; times: {trees}",
            *_difference_1(theorem_1(facts, self._short), bounded=self._is_bounded(once=False)),
            _conditions("Theorem 2 (DISTINCT)", 3, theorem_2(facts, self._short)),
            *_difference_2(
                theorem_2(facts, self._short), bounded=self._is_bounded(once=True), followed=self._best_is_followed()
            ),
        )

    def _is_bounded(self, *, once: bool) -> bool:
        """Is memory bounded, as a bag or (`once`) with DISTINCT?"""
        if len(self._group.sources) > MOST_SOURCES or maybe_unbound(self._group):
            return False
        facts = replace(self._facts(finite=True), once=once)
        shown = once and any(name not in facts.counts for name in self._output)
        return not shown and not any(each.unbounded and each.until is None for each in waiting_sets(facts, self._name))

    def _best_is_followed(self) -> bool:
        """Is a best value kept of a source that another one is later than?"""
        sets = waiting_sets(replace(self._facts(finite=True), once=True), self._name)
        later = {number for source in self._group.sources for number in source.earlier}
        best = {kept.variable for each in sets for kept in each.kept if kept.best}
        return any(best & self._variables(number) for number in later)

    def _facts(self, assumed: Iterable[str] = (), *, finite: bool) -> GroupFacts:
        group = self._group
        counts: dict[str, int | None] = dict.fromkeys(assumed)
        for name in self._every:
            values = self._values.get(name, ANY)
            low, high = self._ranges.low(name), self._ranges.high(name)
            if values.integer and low is not None and high is not None:
                integers = max(0, high // 2 - -(-low // 2) + 1)
                counts[name] = integers if values.count is None else min(values.count, integers)
            elif values.bounded:
                counts[name] = values.count
        sources = []
        for source in group.sources:
            sources.append(SourceFacts(frozenset(map(str, source.variables)), frozenset(source.earlier), source.until))
            if finite and source.until is not None:
                for name in map(str, source.variables):
                    counts.setdefault(name, None)
        return GroupFacts(
            tuple(sources),
            tuple(self._compared.orders),
            self._ranges,
            counts,
            frozenset(self._output),
            self._planner.once,
        )

    def _sets(self, assumed: Iterable[str] = (), *, finite: bool) -> list[WaitingSet]:
        sets = waiting_sets(self._facts(assumed, finite=finite), self._name)
        if finite:
            return sets
        return [replace(each, until=None) for each in sets]

    def _rows_kept(self) -> list[str]:
        """DISTINCT keeps its results: variables of the result that are not bounded."""
        if not self._planner.once:
            return []
        counts = self._facts(finite=True).counts
        return [name for name in self._output if name not in counts]

    def _times_read(self) -> list[str]:
        """Times of events that are in the result."""
        times = {str(event.time) for event in self._group.events}
        return [name for name in self._output if name in times]

    def _end(self) -> str:
        ends = [source.until for source in self._group.sources if source.until is not None]
        return instant_text(min(ends)) if ends else ""

    # --- texts ----------------------------------------------------------------------------------------------------

    def _name(self, source: int) -> str:
        return " and ".join(f"<{self._stream(event.window)}>" for event in self._group.sources[source].events)

    def _stream(self, window: object) -> str:
        streams = self._planner.streams
        return streams.streams[streams.windows[streams.number(window)].stream]  # type: ignore[arg-type]

    def _short(self, source: int) -> str:
        names = [self._stream(event.window) for event in self._group.sources[source].events]
        return " = ".join(name.rstrip("/#").replace("#", "/").rsplit("/", 1)[-1] for name in names)

    def _set_text(self, sources: Sequence[int]) -> str:
        return "{" + ", ".join(map(self._short, sources)) + "}"

    def _bound(self, sets: list[WaitingSet], rows: list[str]) -> str:
        if not sets:
            return "keeps the rows of one instant"
        counts = [each.most for each in sets]
        parts = [f"{self._count_text(each)} for {self._set_text(each.sources)}{self._by(each)}" for each in sets]
        if None in counts or sum(each for each in counts if each is not None) > _LARGEST:
            return f"counters, {', '.join(parts)}"
        total = sum(each for each in counts if each is not None)
        return f"at most {total} counter{'s' if total != 1 else ''}: {', '.join(parts)}"

    def _count_text(self, each: WaitingSet) -> str:
        return "one for each combination of values" if each.most is None or each.most > _LARGEST else str(each.most)

    def _by(self, each: WaitingSet) -> str:
        names = [self._range_text(kept) for kept in each.kept]
        return f" by {', '.join(names)}" if names else ""

    def _range_text(self, kept: KeptVariable) -> str:
        name, columns = kept.variable, kept.columns
        low, high = self._ranges.low(name), self._ranges.high(name)
        values = self._values.get(name, ANY)
        if kept.best:
            return f"the {'least' if kept.best < 0 else 'greatest'} ?{name}"
        text = f"?{name}"
        if values.integer and low is not None and high is not None:
            text += f" ({-(-low // 2)}..{high // 2})"
        if (any(column.exact for column in columns) and values.written) or (values.integer and columns[0].exact):
            text += " in each way of writing it" if columns[0].exact and name in self._output else ""
        return text

    def _growing(self, growing: list[WaitingSet], rows: list[str], times: list[str]) -> Decision:
        blame: dict[str, None] = dict.fromkeys(map(_time_text, times))
        told = set[str](times)
        for each in growing:
            for kept in each.unbounded:
                if kept.variable not in told:
                    told.add(kept.variable)
                    blame[self._blame(each, kept.variable, kept.reasons)] = None
        for name in rows:
            blame[f"DISTINCT keeps one entry for each value of ?{name} ever seen"] = None
        variables = list(dict.fromkeys([*(kept.variable for each in growing for kept in each.unbounded), *rows]))
        certain = (
            (growing or times) and not self._planner.once and not self._compared.others and not self._repeats_stream()
        )
        sources = {
            s for each in growing for k in each.unbounded for s in each.sources if k.variable in self._variables(s)
        }
        sources |= {s for s in range(len(self._group.sources)) if self._variables(s).intersection([*rows, *times])}
        windows = {
            self._planner.streams.number(event.window) for s in sources for event in self._group.sources[s].events
        }
        return Decision(
            self._every,
            "not bounded" if certain else "not shown to be bounded",
            blame=tuple(blame),
            repair=self._repair(variables, sorted(sources)),
            blamed=tuple(sorted(windows)),
        )

    def _variables(self, source: int) -> frozenset[str]:
        return frozenset(map(str, self._group.sources[source].variables))

    def _repeats_stream(self) -> bool:
        return max(Counter(self._stream(event.window) for event in self._group.events).values()) > 1

    def _blame(self, each: WaitingSet, name: str, reasons: tuple[str, ...]) -> str:
        mine = next(s for s in each.sources if name in self._variables(s))
        others = [s for s in range(len(self._group.sources)) if s not in each.sources]
        waits = f"{self._name(mine)} may wait for {' and '.join(map(self._name, others))}"
        shown = name in self._needed
        why = " and ".join(_IN_CONDITION if each == IN_RESULT and not shown else each for each in reasons)
        which = self._set_text(each.sources)
        return f"memory grows with {self._name(mine)}: ?{name} {why}, and {waits} (set {which})"

    def _repair(self, variables: list[str], sources: list[int]) -> str:
        """The smallest set of variables whose bounds end the growth; else windows."""
        if times := self._times_read():
            return f"Leave {' '.join(f'?{name}' for name in times)} out of the result"
        candidates = variables
        for size in range(1, _MOST_REPAIRS + 1):
            for chosen in combinations(candidates, size):
                if set(self._rows_kept()) <= set(chosen) and not any(
                    each.unbounded for each in self._sets(chosen, finite=False)
                ):
                    return self._repair_text(chosen, sources)
        return f"Bounded with windows: {self._windows_text(sources)}"

    def _windows_text(self, sources: list[int]) -> str:
        names = dict.fromkeys(self._stream(event.window) for s in sources for event in self._group.sources[s].events)
        return " and ".join(f"STREAM <{name}> [RANGE 10m] {{ … }}" for name in names)

    def _repair_text(self, chosen: Sequence[str], sources: list[int]) -> str:
        texts = []
        for name in chosen:
            low, high = self._ranges.low(name), self._ranges.high(name)
            values = self._values.get(name, ANY)
            if values.after and values.before:
                texts.append(f"FILTER(DATATYPE(?{name}) = xsd:date), as other terms in a range are not boundedly many")
            elif not values.integer and low is not None and high is not None:
                texts.append(
                    f"FILTER(DATATYPE(?{name}) = xsd:integer), as numbers in a range are boundedly many only if they are integers"
                )
            else:
                texts.append(f"bounds for ?{name} (FILTER(?{name} IN (…)), VALUES)")
        return f"Bounded with {' and '.join(texts)}; or with windows: {self._windows_text(sources)}"

    def _refused(self, blame: list[str], repair: str) -> Decision:
        windows = tuple(self._planner.streams.number(event.window) for event in self._group.events)
        return Decision(self._every, "not shown to be bounded", blame=tuple(blame), repair=repair, blamed=windows)

    # --- the plan -------------------------------------------------------------------------------------------------

    def _node(self, sets: list[WaitingSet]) -> Node:
        places = self._order()
        sources = tuple(self._source(self._group.sources[s], s) for s in places)
        number = {s: place for place, s in enumerate(places)}
        tables = tuple(
            CountedSet(
                tuple(sorted(number[s] for s in each.sources)),
                # Columns of which only the best value counts come last.
                tuple(sorted((c for kept in each.kept for c in kept.columns), key=lambda column: column.better != 0)),
                each.until,
                None if each.most is None or each.most > _LARGEST else each.most,
            )
            for each in sets
        )
        steps = []
        table_of = {frozenset(each.sources): place for place, each in enumerate(tables)}
        for place, s in enumerate(places):
            earlier = {number[each] for each in self._group.sources[s].earlier}
            for start in [frozenset[int](), *table_of]:
                if place in start or not earlier <= start:
                    continue
                target = start | {place}
                # A set to which others have to be earlier is never the start of anything.
                if target in table_of or len(target) == len(places):
                    steps.append(self._step(place, start, target, table_of, tables, sources))
        node: Node = CountedJoin(
            sources,
            tables,
            tuple(steps),
            tuple(map(self._static, self._group.statics)),
            self._output,
            once=self._planner.once,
            bounded=tuple(
                (name, count) for name, count in sorted(self._facts(finite=True).counts.items()) if name in self._output
            ),
        )
        for condition in self._compared.others:
            node = FilterRows(node, compile_expression(condition))
        return node

    def _order(self) -> list[int]:
        """The sources, later ones first."""
        sources = self._group.sources
        return sorted(range(len(sources)), key=lambda s: (-len(sources[s].earlier), s))

    def _static(self, pattern: Pattern) -> Node:
        wanted = self._wanted()
        return once(self._planner.plan(pattern, frozenset(v for v in possible_variables(pattern) if v in wanted)))

    def _wanted(self) -> frozenset[Variable]:
        """Variables that are read: of the result, of several events or static relations, of comparisons."""
        group = self._group
        mentions = Counter(v for event in group.events for v in variables_of_event(event))
        mentions.update(v for pattern in group.statics for v in possible_variables(pattern))
        found = {v for v, count in mentions.items() if count > 1} | set(map(Variable, self._output))
        found |= {v for source in group.sources for each in source.conditions for v in expression_variables(each)}
        found |= {Variable(v) for order in self._compared.every for v in (order.left, order.right)}
        return frozenset(found)

    def _source(self, source: Source, number: int) -> CountedSource:
        wanted = self._wanted()
        events = tuple(
            planned_event(self._planner, event, wanted & variables_of_event(event), frozenset())
            for event in source.events
        )
        others = frozenset().union(*(other.variables for other in self._group.sources if other is not source))
        exact = sorted(str(v) for v in source.variables if str(v) in self._output or v in others)
        numbers = sorted({v for o in self._compared.orders for v in (o.left, o.right) if v in self._variables(number)})
        tested = sorted({v for o in self._compared.every for v in (o.left, o.right) if v in self._variables(number)})
        return CountedSource(
            events,
            tuple(source.joined),
            tuple(source.found),
            tuple(map(compile_expression, source.conditions)),
            tuple((v, self._ranges.low(v), self._ranges.high(v)) for v in tested),
            (*(CountedColumn(v, exact=True) for v in exact), *(CountedColumn(v, exact=False) for v in numbers)),
        )

    def _step(
        self,
        place: int,
        start: frozenset[int],
        target: frozenset[int],
        table_of: dict[frozenset[int], int],
        tables: Sequence[CountedSet],
        sources: Sequence[CountedSource],
    ) -> CountedStep:
        mine = {(column.variable, column.exact): c for c, column in enumerate(sources[place].columns)}
        begun = tables[table_of[start]].columns if start else ()
        theirs = {(column.variable, column.exact): c for c, column in enumerate(begun)}
        row_variables = {column.variable for column in sources[place].columns}
        equal = tuple((mine[key], c) for key, c in theirs.items() if key[1] and key in mine)
        compared = []
        for order in self._compared.orders:
            for left, operator, right in (
                (order.left, order.operator, order.right),
                (order.right, _TURNED[order.operator], order.left),
            ):
                if (
                    (left, False) in mine
                    and (right, False) in theirs
                    and right not in row_variables
                    and left not in {name for name, _ in theirs}
                ):
                    compared.append((mine[left, False], operator, theirs[right, False]))
        if target in table_of:
            wanted = [(column.variable, column.exact) for column in tables[table_of[target]].columns]
        else:
            wanted = [(name, True) for name in self._output]
        copied = tuple((0, mine[key]) if key in mine else (1, theirs[key]) for key in wanted)
        return CountedStep(
            place, table_of[start] if start else -1, table_of.get(target, -1), equal, tuple(compared), copied
        )


def _conditions(theorem: str, count: int, failed: Failures) -> str:
    """Which conditions of a theorem hold, and which fail."""
    holding = " ".join(name for name in (f"C{number}" for number in range(1, count + 1)) if name not in failed)
    parts = [f"{holding} hold{'s' if ' ' not in holding else ''}"] if holding else []
    parts += [f"{name} fails ({'; '.join(why)})" for name, why in sorted(failed.items())]
    return f"{theorem}: {', '.join(parts)}"


def _difference_1(failed: Failures, *, bounded: bool) -> list[str]:
    if failed and bounded:
        return [
            "  it is bounded all the same: the conditions are not necessary, counters for each set of blocks suffice"
        ]
    if not failed and not bounded:
        return [
            "  it is not bounded: the theorem asks this of each locally ordered part of the query, which is not checked here"
        ]
    return []


def _difference_2(failed: Failures, *, bounded: bool, followed: bool) -> list[str]:
    if not failed and not bounded:
        return ["  this does not suffice: which pairs of best values have come together needs unboundedly much memory"]
    if failed and bounded:
        return ["  it is bounded all the same: values beyond the bounds of what they are compared with are one"]
    if not failed and followed:
        return [
            "  the update in its proof can answer wrongly here: a new best value counts only with later elements; it is kept for "
            "each set of blocks"
        ]
    return []


def _time_text(name: str) -> str:
    return f"?{name} is the time of an element: each is new, so the rows can never be bounded; leave it out, or use MATCH WITHIN"


_IN_CONDITION = (
    "is read by a FILTER over whole results (a comparison by order is one, unless one side has integers only)"
)
_TURNED = {"<": ">", "<=": ">=", "=": "=", "!=": "!="}


def _known_values(group: Group) -> dict[str, Values]:
    """The values of all variables, as far as they are known."""
    found: dict[str, Values] = {}
    for event in group.events:
        programs = [compile_expression(condition) for condition in event.conditions]
        known = dict(filtered({}, programs))
        for variable, expression in event.bindings:
            value = value_of(known, tree_of(compile_expression(expression))).concluded()
            known[str(variable)] = known.get(str(variable), ANY) & value
        for name in map(str, variables_of_event(event)):
            found[name] = found.get(name, ANY) & known.get(name, ANY)
    for pattern in group.statics:
        for name in map(str, possible_variables(pattern)):
            found[name] = found.get(name, ANY) & Values(bounded=True, count=_count_in(pattern, name))
    return found


def _count_in(pattern: Pattern, name: str) -> int | None:
    """The number of values of a variable in a static pattern, if the query itself has them."""
    match pattern:
        case InlineValues(variables, rows) if Variable(name) in variables:
            return len({row[variables.index(Variable(name))] for row in rows})
        case NaryJoin(parts):
            counts = [count for part in parts if (count := _count_in(part, name)) is not None]
            return min(counts, default=None)
        case _:
            return None


def _compared(group: Group, values: dict[str, Values]) -> tuple[Ranges, _Comparisons, bool]:
    found = _Comparisons()
    integers = {name for name, each in values.items() if each.integer}
    for condition in group.conditions:
        compared = compared_variables(condition)
        if compared is None or not {str(compared[0]), str(compared[2])} & integers:
            found.others.append(condition)
            continue
        left, operator, right = map(str, compared)
        if operator in (">", ">="):
            left, operator, right = right, operator.replace(">", "<"), left
        found.every.append(Order(left, operator, right))
    constants = [
        constant
        for event in group.events
        for condition in event.conditions
        if (constant := compared_with_constant(condition)) is not None
    ]
    names = [*(str(name) for name, _, _ in constants), *integers]
    names += [name for order in found.every for name in (order.left, order.right)]
    ranges = Ranges(names, integers)
    for name in integers:
        if (least := values[name].least) is not None:
            ranges.compare(name, ">=", number_of(f'"{least}"^^<http://www.w3.org/2001/XMLSchema#integer>'))  # type: ignore[arg-type]
    for name, operator, term in constants:
        number = number_of(str(from_rdflib(term)))
        if number is not None:
            ranges.compare(str(name), operator, number)
    for order in found.every:
        ranges.order(order)
    satisfiable = ranges.conclude()
    found.orders = [order for order in found.every if not ranges.is_redundant(order)] if satisfiable else []
    return ranges, found, satisfiable
