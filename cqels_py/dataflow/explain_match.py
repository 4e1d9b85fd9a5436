"""MATCH as text: its automaton, the comparisons made by keys, and those made only when matches are formed."""

from __future__ import annotations

from collections.abc import Iterator

from cqels_py.plan.match_bounds import is_cut, late_variables, unsteady_lists
from cqels_py.plan.nodes import MatchRows, Plan, PlannedEvent, partition_variables
from cqels_py.planner.windows import duration_text


def match_text(query: Plan, node: MatchRows) -> str:
    """The line of a MATCH in the tree of the plan."""
    return "; ".join(_parts(query, node))


def _parts(query: Plan, node: MatchRows) -> Iterator[str]:
    events = [_event(query, number, event) for number, event in enumerate(node.events, 1)]
    yield f"match {within_text(node)} of {', '.join(events)}"
    yield f"automaton of {len(node.states)} states: {' '.join(_edges(node))}"
    for number, gap in enumerate(node.absent):
        keys = f" by {_names(gap.key)}" if gap.key else ""
        cut = all(is_cut(node, t) for t in node.transitions if t.absent == number)
        how = "one look-up for all runs of a key" if cut else "tested for each run"
        yield f"no event {gap.event + 1} after {_numbers(gap.after)}{keys}, {how}"
    late = sorted(late_variables(node))
    if late:
        yield f"{_names(tuple(late))} compared when matches are formed, as no key has it: a search may end without a match"
    elif any(t.absent >= 0 and not is_cut(node, t) for t in node.transitions):
        yield "keys decide all comparisons but those of NOT: a search may end without a match"
    else:
        yield f"keys decide all comparisons: {_delay(node)}"
    shared = partition_variables(node)
    if shared:
        yield f"all events have {_names(shared)}"
    if node.policy != "ALL":
        yield f"of the matches of a last element the {node.policy.lower()} one"
    if node.consume:
        where = f" for their {_names(shared)}" if shared else ""
        yield f"after a match elements so far serve no more{where}"
    kept = ", and standing matches" if node.retract else ""
    yield f"{_indexes(node)}; keeps the events within reach{kept}"


def _delay(node: MatchRows) -> str:
    if unsteady_lists(node) and not node.guarantee:
        return (
            "each match takes time by its own length, not counting runs that expired, each of which is passed about once "
            "(guarantee=True: by its length alone)"
        )
    if node.policy == "EARLIEST":
        return "a match takes time by its own length; runs that expired are passed once"
    return "each match takes time by its own length, and an event a look-up for each of its transitions"


def _indexes(node: MatchRows) -> str:
    heaps = unsteady_lists(node) if node.guarantee else set()
    if not heaps:
        return "lists of runs by key, an insertion takes one step"
    after = _numbers(sorted({node.states[state].event for state, _ in heaps}))
    return f"lists of runs by key, after {after} persistent heaps by the first event: an insertion takes about log2(runs) steps"


def within_text(node: MatchRows) -> str:
    """How far apart the elements of a match may be, as the query says it."""
    parts = []
    if node.within is not None:
        parts.append(duration_text(node.within) if node.within else "0s")
    if node.within_events is not None:
        parts.append(f"{node.within_events} EVENTS")
    return f"WITHIN {' '.join(parts)}{' STRICT TIME' if node.strict_time else ''}"


def _event(query: Plan, number: int, event: PlannedEvent) -> str:
    stream = query.streams[query.windows[event.window].stream]
    patterns = " . ".join(" ".join(pattern) for pattern in event.patterns)
    bound = "".join(f" BIND({program} AS ?{name})" for name, program in event.bindings)
    tests = "".join(f" FILTER({condition})" for condition in event.conditions)
    time = f" AT ?{event.time}" if event.time else ""
    return f"{number} = <{stream}>{time} {{ {patterns}{bound}{tests} }}"


def _edges(node: MatchRows) -> Iterator[str]:
    yield "begins with " + _numbers([state.event for state in node.states if state.initial]) + ","
    for t in node.transitions:
        source, target = node.states[t.source].event + 1, node.states[t.target].event + 1
        key = f"({' '.join(f'?{name}' for name in t.key)})" if t.key else "()"
        same = "=" if t.same_element else ""
        yield f"{source} →{same}{key} {target},"
    yield "ends with " + _numbers([state.event for state in node.states if state.final])


def _numbers(events: list[int] | tuple[int, ...]) -> str:
    return " or ".join(str(event + 1) for event in dict.fromkeys(events))


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"?{name}" for name in names)
