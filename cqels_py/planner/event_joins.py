"""Events without windows, EVENT blocks outside of MATCH: by counters where memory is bounded, else the join of all rows."""

from __future__ import annotations

from dataclasses import replace

from rdflib import Variable

from cqels_py.algebra.nodes import Event, EventJoin, Extend, Filter, NaryJoin, Pattern, Project, Reduced, Union
from cqels_py.algebra.variables import expression_variables, variables_of_event
from cqels_py.plan.nodes import CountedJoin, EventMemory, EventRows, FilterRows, Node, Rows, UnionRows
from cqels_py.planner.counted_joins import Decision, decide
from cqels_py.planner.event_groups import MOST_ALTERNATIVES, alternatives
from cqels_py.planner.matches import planned_event
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import project
from cqels_py.planner.weighted_groups import with_weights

_NEVER = "no combination of times or values can satisfy the conditions of the EVENT blocks: there will be no results"


def event_join(planner: Planning, group: EventJoin, needed: Needed) -> Node:
    """The node of the events of a group: their join over all elements ever."""
    if len(group.events) == 1 and group.events[0].window in planner.kept_rows:
        return _rows(planner, group.events[0], needed)
    weights = sorted(needed & planner.weights)
    needed -= planner.weights
    parts = [decide(planner, part, needed) for part in alternatives(group)]
    memory = _memory(planner, group, parts)
    planner.event_memory.append(memory)
    if not memory.is_bounded or "count_events" in planner.without:
        planner.kept_rows.update(event.window for event in group.events)
        return with_weights(planner.plan(_of_all_rows(group), needed), list(map(str, weights)))
    known = frozenset().union(*(part.variables for part in parts))
    columns = tuple(sorted(str(v) for v in needed if str(v) in known))
    nodes = [_weighted(planner, part.node, weights) for part in parts if part.node is not None]
    columns = (*columns, *map(str, weights))
    if not nodes:
        planner.warnings.append(_NEVER)
        return Rows(columns, ())
    nodes = [project(node, columns) for node in nodes]
    return nodes[0] if len(nodes) == 1 else UnionRows(tuple(nodes), columns)


def _weighted(planner: Planning, node: Node, weights: list[Variable]) -> Node:
    """The counted join below filters gives its rows with their weight."""
    if not weights:
        return node
    if isinstance(node, FilterRows):
        return replace(node, input=_weighted(planner, node.input, weights))
    assert isinstance(node, CountedJoin)
    (weight,) = weights
    summed = tuple(name for name in node.output if Variable(name) in planner.summed)
    return replace(node, weight=str(weight), summed=summed)


def passes_rows(pattern: Pattern) -> bool:
    """Are there events, whose rows go on one by one?"""
    match pattern:
        case EventJoin():
            return True
        case Union(parts):
            return all(map(passes_rows, parts))
        case Filter(inner) | Extend(inner) | Project(inner) | Reduced(inner):
            return passes_rows(inner)
        case _:
            return False


def _memory(planner: Planning, group: EventJoin, parts: list[Decision]) -> EventMemory:
    """The verdict of a group: bounded if each part is."""
    windows = tuple(planner.streams.number(event.window) for event in group.events)
    free = {number for number, event in zip(windows, group.events, strict=True) if event.keep_all}
    planner.kept_events |= free
    if not parts:
        blame = f"the times are compared by more than {MOST_ALTERNATIVES} combinations of <=, >= and !="
        return EventMemory(
            "not shown to be bounded", "", (blame,), "Write < and = between times", windows, tuple(set(windows) - free)
        )
    worst = max(parts, key=lambda part: _rank(part.kind))
    bound = "; ".join(dict.fromkeys(part.bound for part in parts if part.bound))
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    blamed = {number for part in parts for number in part.blamed}
    return EventMemory(worst.kind, bound, worst.blame, worst.repair, windows, tuple(sorted(blamed - free)), notes)


def _rank(kind: str) -> int:
    """Better verdicts first."""
    ranks = ("bounded", "bounded by what comes before", "not shown to be bounded", "not bounded")
    return max(rank for rank, words in enumerate(ranks) if kind.startswith(words))


def _rows(planner: Planning, event: Event, needed: Needed) -> EventRows:
    return EventRows(planned_event(planner, event, needed & variables_of_event(event), frozenset()))


def _of_all_rows(group: EventJoin) -> Pattern:
    """The join that keeps the rows of all events. Conditions over one event's variables become its own."""
    events, rest = list(group.events), []
    for condition in group.conditions:
        wanted = expression_variables(condition)
        place = next((i for i, event in enumerate(events) if wanted and wanted <= variables_of_event(event)), None)
        if place is None:
            rest.append(condition)
        else:
            events[place] = replace(events[place], conditions=(*events[place].conditions, condition))
    parts: tuple[Pattern, ...] = (*(EventJoin((event,)) for event in events), *group.others)
    pattern = parts[0] if len(parts) == 1 else NaryJoin(parts)
    for condition in rest:
        pattern = Filter(pattern, condition)
    return pattern
