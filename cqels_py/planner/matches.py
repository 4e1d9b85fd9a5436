"""MATCH: its events with the columns that are read, and its automaton."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from rdflib import Variable

from cqels_py.algebra.match_automaton import Automaton, automaton_of
from cqels_py.algebra.nodes import Event, Match, TriplePattern
from cqels_py.algebra.variables import event_variables, variables_of_event
from cqels_py.errors import UnsupportedQuery
from cqels_py.event_time.windows import Bounds, Measure
from cqels_py.plan.match_bounds import without_guarantee
from cqels_py.plan.nodes import (
    AbsentEvent,
    ExtendRows,
    FilterRows,
    MatchRows,
    MatchState,
    MatchTransition,
    Node,
    PlannedEvent,
    PlannedWindow,
    ProjectRows,
    UnionRows,
    inputs_of,
)
from cqels_py.plan.order import is_timed
from cqels_py.plan.traverse import bottom_up, nodes_of
from cqels_py.planner.expressions import compile_expression
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.texts import pattern_text


def match_rows(planner: Planning, match: Match, needed: Needed) -> MatchRows:
    """The node of a MATCH."""
    automaton = automaton_of(match.pattern, strict_time=match.strict_time)
    mentions = Counter(v for event in automaton.events for v in variables_of_event(event))
    shared = frozenset(v for v, count in mentions.items() if count > 1)
    visible = event_variables(match.pattern)
    if match.policy == "ALL" and not match.consume:
        # All variables decide which of several matches is delivered, and those of all events which elements are consumed.
        visible &= needed
    planned = tuple(planned_event(planner, event, shared | visible, shared) for event in automaton.events)
    return MatchRows(
        events=planned,
        states=_states(automaton),
        transitions=tuple(_transitions(automaton, planned)),
        absent=tuple(_absent(automaton, planned)),
        windows=tuple(planner.streams.number(name) for name in match.windows),
        within=match.within,
        within_events=match.within_events,
        strict_time=match.strict_time,
        variables=tuple(sorted(map(str, visible))),
        policy=match.policy,
        consume=match.consume,
    )


def planned_event(planner: Planning, event: Event, kept: Needed, shared: Needed) -> PlannedEvent:
    """An event with the columns that are kept. `shared`: variables without whose value a row is none."""
    bound = [variable for variable, _ in event.bindings]
    columns = dict.fromkeys(p for t in event.triples for p in _variables(t))
    mine = (*columns, *([] if event.time is None else [event.time]), *bound)
    return PlannedEvent(
        window=planner.streams.number(event.window),
        patterns=tuple(pattern_text(triple) for triple in _connected(event.triples)),
        columns=tuple(map(str, columns)),
        time="" if event.time is None else str(event.time),
        bindings=tuple((str(variable), compile_expression(each)) for variable, each in event.bindings),
        conditions=tuple(map(compile_expression, event.conditions)),
        variables=tuple(str(v) for v in mine if v in kept),
        required=tuple(str(v) for v in bound if v in shared),
    )


def _variables(triple: TriplePattern) -> tuple[Variable, ...]:
    positions = (triple.subject, triple.predicate, triple.object)
    return tuple(position for position in positions if isinstance(position, Variable))


def _connected(triples: tuple[TriplePattern, ...]) -> list[TriplePattern]:
    """Triple patterns in an order in which each shares a variable with those before it, where there is one."""
    found: list[TriplePattern] = []
    waiting = list(triples)
    while waiting:
        seen = {v for triple in found for v in _variables(triple)}
        following = next((triple for triple in waiting if seen.intersection(_variables(triple))), waiting[0])
        waiting.remove(following)
        found.append(following)
    return found


def _states(automaton: Automaton) -> tuple[MatchState, ...]:
    fragment = automaton.fragment
    first, last = set(fragment.first), set(fragment.last)
    numbers = _numbers(automaton)
    return tuple(MatchState(fragment.event_of[state], state in first, state in last) for state in numbers)


def _numbers(automaton: Automaton) -> dict[int, int]:
    return {state: number for number, state in enumerate(sorted(automaton.fragment.event_of))}


def _transitions(automaton: Automaton, events: tuple[PlannedEvent, ...]) -> list[MatchTransition]:
    numbers, event_of = _numbers(automaton), automaton.fragment.event_of
    found = []
    for edge in automaton.fragment.edges:
        fresh = tuple(sorted(map(str, edge.fresh)))
        there = set(events[event_of[edge.target]].variables) - set(fresh)
        key = tuple(v for v in events[event_of[edge.source]].variables if v in there)
        found.append(
            MatchTransition(
                numbers[edge.source],
                numbers[edge.target],
                key,
                edge.same_element,
                edge.later,
                edge.absent,
                fresh,
                edge.later_than,
            )
        )
    return found


def _absent(automaton: Automaton, events: tuple[PlannedEvent, ...]) -> list[AbsentEvent]:
    present = {v for event in events[: len(events) - len(automaton.absent)] for v in event.variables}
    return [
        AbsentEvent(event, after, tuple(v for v in events[event].variables if v in present))
        for event, after in automaton.absent
    ]


def without_retractions(root: Node, windows: list[PlannedWindow]) -> tuple[Node, list[PlannedWindow]]:
    """The plan of ISTREAM where only rows of MATCH are filtered, extended and projected: nothing is kept to withdraw them.

    Windows of MATCH then have no expiries, which would be ticks without results.
    """
    if not all(_is_passed_through(node) for node in nodes_of(root)):
        return root, windows
    numbers = {number for node in nodes_of(root) if isinstance(node, MatchRows) for number in node.windows}
    endless = Bounds(Measure.TIME, None)
    changed = [replace(w, bounds=endless) if number in numbers else w for number, w in enumerate(windows)]
    return _unretracted(root), changed


def _is_passed_through(node: Node) -> bool:
    return isinstance(node, MatchRows | FilterRows | ExtendRows | ProjectRows | UnionRows) and not is_timed(node)


def _unretracted(node: Node) -> Node:
    match node:
        case MatchRows():
            return replace(node, retract=False)
        case UnionRows(inputs):
            return replace(node, inputs=tuple(map(_unretracted, inputs)))
        case FilterRows(inner) | ExtendRows(inner) | ProjectRows(inner):
            return replace(node, input=_unretracted(inner))
        case _:
            assert not inputs_of(node)
            return node


def with_guarantee(root: Node) -> Node:
    """The plan in which each MATCH has indexes with a bound for each step. UnsupportedQuery where one cannot have it."""
    matches = [node for node in nodes_of(root) if isinstance(node, MatchRows)]
    if not matches:
        raise UnsupportedQuery("guarantee=True is about MATCH, which this query does not have: leave it out")
    for node in matches:
        if reason := without_guarantee(node):
            raise UnsupportedQuery(f"guarantee=True: {reason}; or leave guarantee=True out")
    return bottom_up(root, _guaranteed)


def _guaranteed(node: Node) -> Node:
    return replace(node, guarantee=True) if isinstance(node, MatchRows) else node
