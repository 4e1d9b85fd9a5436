"""The EVENT blocks of a group, its static patterns and its filters become one join.

    Filter(Join(EventJoin(a), Join(EventJoin(b), bgp)), x > y && x > 1)  →  EventJoin(a, b; bgp; x > y, x > 1)

Results of events only come, never go: they stand where nothing above can take a row back. `Misplaced` says where they do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rdflib import XSD, Literal, Variable

from cqels_py.algebra.nodes import (
    Call,
    Constant,
    Distinct,
    Event,
    EventJoin,
    Expression,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Minus,
    NaryJoin,
    OrderBy,
    Pattern,
    Project,
    Reduced,
    Slice,
    Union,
    VariableRef,
)
from cqels_py.algebra.traverse import map_children
from cqels_py.algebra.validate import walk
from cqels_py.algebra.variables import (
    certain_variables,
    expression_variables,
    has_exists,
    possible_variables,
    variables_of_event,
)
from cqels_py.rewrites.push_filters import conjuncts

_MODIFIERS = (Union, Project, Distinct, Reduced, OrderBy, Slice, Group, Extend, Filter)
_COMPARISONS = ("=", "!=", "<", ">", "<=", ">=")
_NAMES: dict[type[Pattern], str] = {
    LeftJoin: "OPTIONAL", Minus: "MINUS", Union: "UNION", Extend: "BIND", Group: "GROUP BY", Project: "a sub-select",
    Distinct: "a sub-select", Slice: "a sub-select",
}  # fmt: skip


_EXISTS = (
    "EXISTS beside EVENT is not supported: beside the blocks write { SELECT DISTINCT ?x { … } }, with its pattern over static data "
    "and the variables ?x that the blocks share with it; without DISTINCT rows would come once for each solution. NOT EXISTS stands "
    "in there behind a static pattern that binds ?x"
)


class Misplaced(Exception):
    """An EVENT block outside of MATCH stands where it cannot be evaluated; `offset`: its place in the query's text."""

    def __init__(self, message: str, event: Event) -> None:
        super().__init__(message)
        self.message = message
        self.offset = event.offset


def join_events(pattern: Pattern) -> Pattern:
    """Join the events of each group. Raises Misplaced."""
    if not any(True for _ in _events_in(pattern)):
        return pattern
    found = _rewritten(pattern)
    for node, _ in walk(found):
        if isinstance(node, EventJoin):
            _check_times(node)
    if any(isinstance(node, Call) and node.function.upper() == "NOW" for node, _ in walk(_without_events(found))):
        raise _misplaced(
            found, "NOW() beside EVENT is not supported: name the element's time, as in EVENT ON <stream> AT ?t { … }"
        )
    return found


def _without_events(pattern: Pattern) -> Pattern:
    if isinstance(pattern, EventJoin):
        return replace(pattern, events=())
    return map_children(pattern, _without_events)


def _rewritten(pattern: Pattern) -> Pattern:
    if not any(True for _ in _events_in(pattern)):
        return pattern
    group = _group(pattern)
    if group is not None:
        return group
    match pattern:
        case Filter(Extend(inner, variable, expression), condition) if not has_exists(condition):
            parts = conjuncts(condition)
            below = [each for each in parts if variable not in expression_variables(each)]
            above = [each for each in parts if variable in expression_variables(each)]
            rewritten: Pattern = Extend(_rewritten(_filtered(inner, below)), variable, expression)
            return _filtered(rewritten, above)
        case Filter(_, condition) if has_exists(condition):
            raise _misplaced(pattern, _EXISTS)
        case Filter(inner, condition) if (within := _group(inner)) is not None:
            parts = conjuncts(condition)
            seen = possible_variables(within)
            below = [each for each in parts if expression_variables(each) <= seen]
            above = [each for each in parts if not expression_variables(each) <= seen]
            return _filtered(EventJoin(within.events, within.others, (*within.conditions, *below)), above)
        case _ if isinstance(pattern, _MODIFIERS):
            return map_children(pattern, _rewritten)
        case _:
            raise _misplaced(pattern, _beside(pattern))


def _group(pattern: Pattern) -> EventJoin | None:
    """The join of a group that has events; None if it is not a group of events, static patterns and filters alone."""
    match pattern:
        case EventJoin():
            return pattern
        case Filter(inner, condition) if not has_exists(condition):
            group = _group(inner)
            if group is None or not expression_variables(condition) <= possible_variables(group):
                return None
            return EventJoin(group.events, group.others, (*group.conditions, *conjuncts(condition)))
        case Join(left, right):
            return _joined([_part(left, pattern), _part(right, pattern)])
        case NaryJoin(parts):
            return _joined([_part(part, pattern) for part in parts])
        case _:
            return None


def _part(part: Pattern, whole: Pattern) -> EventJoin:
    if not any(True for _ in _events_in(part)):
        return EventJoin((), (part,))
    group = _group(part)
    if group is None:
        raise _misplaced(whole, _beside(part))
    for condition in group.conditions:
        if not expression_variables(condition) <= certain_variables(group):
            raise _misplaced(
                part, "a FILTER in an inner group with variables that may be unbound: write it in the outer group"
            )
    return group


def _joined(groups: list[EventJoin]) -> EventJoin:
    return EventJoin(
        tuple(event for group in groups for event in group.events),
        tuple(other for group in groups for other in group.others),
        tuple(condition for group in groups for condition in group.conditions),
    )


def _filtered(pattern: Pattern, conditions: list[Expression]) -> Pattern:
    for condition in conditions:
        pattern = Filter(pattern, condition)
    return pattern


def _events_in(pattern: Pattern) -> Iterator[Event]:
    return (event for node, _ in walk(pattern) if isinstance(node, EventJoin) for event in node.events)


def _misplaced(pattern: Pattern, message: str) -> Misplaced:
    return Misplaced(message, min(_events_in(pattern), key=lambda event: event.offset))


def _beside(pattern: Pattern) -> str:
    name = next((name for kind, name in _NAMES.items() if isinstance(pattern, kind)), "this pattern")
    if name == "UNION":
        return (
            "UNION inside of a group with EVENT is not supported: write { … } UNION { … } with all blocks in each part"
        )
    if name == "BIND":
        return "BIND before other patterns beside EVENT is not supported: write it inside of the EVENT, or at the group's end"
    return (
        f"EVENT inside of or beside {name} is not supported: in a group with EVENT stand EVENT blocks, static patterns, VALUES and "
        "FILTER; results of events never go"
    )


# --- times ------------------------------------------------------------------------------------------------------------


def _check_times(group: EventJoin) -> None:
    """Times are compared with times, or with constants."""
    times: dict[Variable, Event] = {event.time: event for event in group.events if event.time is not None}
    if not times:
        return
    for condition in group.conditions:
        for variable in sorted(expression_variables(condition) & set(times)):
            if not _compares_times(condition, set(times)):
                message = _distance_message if _is_computed(condition, variable) else _time_message
                raise Misplaced(message(variable), times[variable])
    others = [variables_of_event(event) - {event.time} for event in group.events]
    others += [possible_variables(other) for other in group.others]
    for variable, event in times.items():
        if any(variable in each for each in others):
            raise Misplaced(_time_message(variable), event)


def _time_message(variable: Variable) -> str:
    return (
        f"?{variable} is a time: times are compared with times, as in FILTER(?{variable} > ?other), or with a constant such as "
        '"2024-01-01T00:00:00Z"^^xsd:dateTime'
    )


def _is_computed(condition: Expression, variable: Variable) -> bool:
    """Is the variable in a sum or a difference?"""
    match condition:
        case Call("+" | "-"):
            return variable in expression_variables(condition)
        case Call(_, arguments):
            return any(_is_computed(each, variable) for each in arguments)
        case _:
            return False


def _distance_message(variable: Variable) -> str:
    return (
        f"?{variable} is a time: distances of times are not compared in a join of all elements ever. Events that are at most 10 "
        "minutes apart are found by MATCH WITHIN 10m { EVENT ON <a> { … } SEQ EVENT ON <b> { … } }, or in any order by AND"
    )


def _compares_times(condition: Expression, times: set[Variable]) -> bool:
    match condition:
        case Call(function, (left, right)) if function in _COMPARISONS:
            return all(_is_time(each, times) for each in (left, right))
        case _:
            return False


def _is_time(expression: Expression, times: set[Variable]) -> bool:
    match expression:
        case VariableRef(variable):
            return variable in times
        case Constant(Literal() as term):
            return term.datatype == XSD.dateTime
        case _:
            return False
