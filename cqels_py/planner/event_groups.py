"""A group of events, prepared: events of the same time together, and each condition where it can be tested first.

    EventJoin(a AT i, b AT j, c AT k; j = k, i > j, x < y, z < 5)  →  sources {a}, {b, c}, the second earlier than the first

`i >= j` and `i != j` make groups of their own, of which the whole is the union: `alternatives`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from rdflib import Literal, Variable

from cqels_py.algebra.nodes import Call, Constant, Event, EventJoin, Expression, NaryJoin, Pattern, VariableRef
from cqels_py.algebra.variables import certain_variables, expression_variables, possible_variables, variables_of_event
from cqels_py.functions.dates import parse_datetime
from cqels_py.planner.connected import components
from cqels_py.planner.joins import pieces
from cqels_py.rewrites.push_filters import conjuncts

MOST_ALTERNATIVES = 16
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_SPLIT = {"<=": ("<", "="), ">=": (">", "="), "!=": ("<", ">")}
_MICROS = 1_000_000


@dataclass(slots=True)
class Source:
    """Events of the same time, with their variables.

    `joined`: static relations that are joined with their rows, `found`: those in which the rows must have a partner. `conditions`:
    over all of its variables. `earlier`: sources by number. `until`: the last instant with rows.
    """

    events: list[Event]
    joined: list[int] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    earlier: set[int] = field(default_factory=set)
    until: int | None = None
    variables: frozenset[Variable] = frozenset()


@dataclass(slots=True)
class Group:
    """`statics`: connected static patterns. `conditions`: over variables of several sources. `never`: the times cannot be so."""

    sources: list[Source]
    statics: list[Pattern]
    conditions: list[Expression]
    never: bool = False

    @property
    def events(self) -> Iterator[Event]:
        """All events, by source."""
        return (event for source in self.sources for event in source.events)


def alternatives(group: EventJoin) -> list[EventJoin]:
    """The groups of which a group is the union, without <=, >= and != between times; too many: none at all."""
    times = {event.time for event in group.events}
    rest: list[Expression] = []
    # Of each pair of times the operators that all of its comparisons allow: a comparison that follows from others adds no group.
    allowed: dict[tuple[Variable, Variable], tuple[str, ...]] = {}
    for condition in group.conditions:
        compared = compared_variables(condition)
        if compared is None or compared[0] not in times or compared[2] not in times:
            rest.append(condition)
            continue
        left, function, right = compared
        if (right, left) in allowed:
            left, function, right = right, _MIRRORED[function], left
        split = _SPLIT.get(function, (function,))
        allowed[left, right] = tuple(each for each in allowed.get((left, right), split) if each in split)
    choices: list[list[tuple[Expression, ...]]] = [
        [(_comparison(each, pair),) for each in operators] or [(_comparison("<", pair), _comparison(">", pair))]
        for pair, operators in allowed.items()
    ]
    if prod(map(len, choices)) > MOST_ALTERNATIVES:
        return []
    return [replace(group, conditions=(*rest, *(c for each in chosen for c in each))) for chosen in product(*choices)]


def _comparison(function: str, pair: tuple[Variable, Variable]) -> Expression:
    return Call(function, (VariableRef(pair[0]), VariableRef(pair[1])))


def prepared(group: EventJoin) -> Group:
    """The group with its conditions in place. Comparisons of times are < and = between times, and any with constants."""
    times = {event.time: number for number, event in enumerate(group.events) if event.time is not None}
    together = [{number} for number in range(len(group.events))]
    later: list[tuple[int, int]] = []
    rest: list[Expression] = []
    for number, event in enumerate(group.events):
        if event.time is not None and times[event.time] != number:
            _unite(together, number, times[event.time])
    for condition in group.conditions:
        match condition:
            case Call(function, (VariableRef(left), VariableRef(right))) if left in times and right in times:
                one, other = times[left], times[right]
                if function == "=":
                    _unite(together, one, other)
                else:
                    later.append((one, other) if function == ">" else (other, one))
            case _:
                rest.append(condition)
    classes = [sorted(each) for number, each in enumerate(together) if number == min(each)]
    place = {number: source for source, each in enumerate(classes) for number in each}
    events = _with_conditions(group.events, rest)
    sources = [Source([events[number] for number in each]) for each in classes]
    for one, other in later:
        sources[place[one]].earlier.add(place[other])
    never = _close(sources)
    result = Group(sources, _relations(group.others), [], never)
    _attach(result, rest)
    for source in sources:
        source.until = min((t for event in source.events if (t := _last_instant(event)) is not None), default=None)
    for source in sources:
        if source.until is not None:
            for number in source.earlier:
                until = sources[number].until
                sources[number].until = source.until if until is None else min(until, source.until)
    return result


def _unite(together: list[set[int]], one: int, other: int) -> None:
    merged = together[one] | together[other]
    for number in merged:
        together[number] = merged


def _close(sources: list[Source]) -> bool:
    """Add the conclusions from the order of the times; True if one would be earlier than itself."""
    for _ in sources:
        for source in sources:
            source.earlier |= {each for number in source.earlier for each in sources[number].earlier}
    return any(number in source.earlier for number, source in enumerate(sources))


def _with_conditions(events: Iterable[Event], group: list[Expression]) -> list[Event]:
    """Each event with the conditions over its variables alone: its own, those of the group, and those of other events."""
    found = [replace(each, conditions=tuple(p for c in each.conditions for p in conjuncts(c))) for each in events]
    every = [*dict.fromkeys([*group, *(condition for event in found for condition in event.conditions)])]
    for number, event in enumerate(found):
        mine = variables_of_event(event)
        added = [
            c for c in every if c not in event.conditions and (wanted := expression_variables(c)) and wanted <= mine
        ]
        found[number] = replace(event, conditions=(*event.conditions, *added))
    return found


def _relations(others: Iterable[Pattern]) -> list[Pattern]:
    """The static patterns in connected components."""
    patterns = [piece for other in others for piece in pieces(other)]
    together = components([possible_variables(each) for each in patterns])
    return [_join_of([patterns[place] for place in places]) for places in together]


def _join_of(patterns: list[Pattern]) -> Pattern:
    return patterns[0] if len(patterns) == 1 else NaryJoin(tuple(patterns))


def _attach(group: Group, conditions: list[Expression]) -> None:
    """Each static relation is joined with the rows of one source; those of others must have a partner in it."""
    sources = group.sources
    for source in sources:
        source.variables = frozenset().union(*map(variables_of_event, source.events))
    own = [source.variables for source in sources]
    for number, pattern in enumerate(group.statics):
        mine = possible_variables(pattern)
        touched = [place for place, variables in enumerate(own) if variables & mine]
        owner = max(
            touched or [0], key=lambda place: (_tests(conditions, own[place], mine), len(own[place] & mine), -place)
        )
        for place in touched:
            if place != owner:
                sources[place].found.append(number)
        sources[owner].joined.append(number)
        sources[owner].variables |= mine
    for condition in conditions:
        wanted = expression_variables(condition)
        events = [event for event in group.events if condition in event.conditions]
        homes = [source for source in sources if wanted <= source.variables]
        if events:
            continue
        for source in homes or sources[: not wanted]:
            source.conditions.append(condition)
        if not homes and wanted:
            group.conditions.append(condition)


def _tests(conditions: list[Expression], own: frozenset[Variable], static: frozenset[Variable]) -> int:
    """How many conditions compare variables of a source with those of a static relation alone?"""
    wanted = map(expression_variables, conditions)
    return sum(each <= own | static and bool(each & own - static) and bool(each & static - own) for each in wanted)


def maybe_unbound(group: Group) -> list[Variable]:
    """Variables of several events or static relations that one of them may leave unbound."""
    parts: list[Pattern] = [EventJoin((event,)) for event in group.events]
    parts += group.statics
    found = set[Variable]()
    for number, part in enumerate(parts):
        uncertain = possible_variables(part) - certain_variables(part)
        found |= {
            v
            for v in uncertain
            for other, each in enumerate(parts)
            if other != number and v in possible_variables(each)
        }
    return sorted(found)


def compared_with_constant(condition: Expression) -> tuple[Variable, str, Literal] | None:
    """A comparison of a variable with a literal, the variable on the left."""
    match condition:
        case Call(function, (VariableRef(variable), Constant(Literal() as term))) if function in _MIRRORED:
            return variable, function, term
        case Call(function, (Constant(Literal() as term), VariableRef(variable))) if function in _MIRRORED:
            return variable, _MIRRORED[function], term
        case _:
            return None


def compared_variables(condition: Expression) -> tuple[Variable, str, Variable] | None:
    """A comparison of two variables."""
    match condition:
        case Call(function, (VariableRef(left), VariableRef(right))) if function in _MIRRORED:
            return left, function, right
        case _:
            return None


def _last_instant(event: Event) -> int | None:
    """The last instant at which an event can have rows, by comparisons of its time with constants that have a zone."""
    found = []
    for condition in event.conditions:
        compared = compared_with_constant(condition)
        if compared is None or compared[0] != event.time or compared[1] not in ("<", "<=", "="):
            continue
        moment = parse_datetime(str(compared[2]), False)
        if moment is not None and moment.zone is not None:
            found.append(int(moment.instant * _MICROS // 1))
    return min(found, default=None)
