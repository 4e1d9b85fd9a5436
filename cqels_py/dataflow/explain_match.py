"""MATCH as text: its automaton, the comparisons made by keys, and those made only when matches are formed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cqels_py.automata.q_tree import not_hierarchical, q_tree
from cqels_py.plan.match_bounds import is_cut, late_variables, unsteady_lists
from cqels_py.plan.nodes import MatchRows, MatchState, MatchTransition, Plan, PlannedEvent, partition_variables
from cqels_py.planner.windows import duration_text


def match_lines(query: Plan, node: MatchRows) -> Iterator[str]:
    """The lines of a MATCH in the tree of the plan: events, states, transitions, and their cost."""
    kept = ", and standing matches" if node.retract else ""
    yield f"match {within_text(node)}{_choice(node)}; {_indexes(node)}; keeps the events within reach{kept}"
    for number, event in enumerate(node.events, 1):
        yield f"   event {number} = {event_text(query, event)}"
    states = [
        f"s{number} has event {state.event + 1}{_role(state)}"
        if _is_product(node)
        else f"{state.event + 1}{_role(state)}"
        for number, state in enumerate(node.states, 1)
    ]
    shown = states if len(states) <= _MOST_SHOWN else [*states[:_MOST_SHOWN], f"… {len(states)} in all"]
    yield f"   states: {', '.join(shown)}"
    edges = [f"{_state(node, t.source)} → {_state(node, t.target)}{edge_text(t)}" for t in node.transitions]
    shown = edges if len(edges) <= _MOST_SHOWN else [*edges[:_MOST_SHOWN], f"… {len(edges)} in all"]
    if edges:
        yield f"   transitions: {', '.join(shown)}"
    for number, gap in enumerate(node.absent):
        keys = f" by {_names(gap.key)}" if gap.key else ""
        cut = all(is_cut(node, t) for t in node.transitions if t.absent == number)
        how = "one look-up for all runs of a key" if cut else "tested for each run"
        yield f"   no event {gap.event + 1} after {_numbers(gap.after)}{keys}: {how}"
    yield f"   {_nesting(node)}"
    yield f"   {_comparisons(node)}"
    if shared := partition_variables(node):
        yield f"   all events have {_names(shared)}"


_MOST_SHOWN = 24


def _choice(node: MatchRows) -> str:
    parts = []
    if node.policy != "ALL":
        parts.append(f", the {node.policy.lower()} of each last element")
    if node.consume:
        shared = partition_variables(node)
        where = f" for their {_names(shared)}" if shared else ""
        parts.append(f", after which elements so far serve no more{where}")
    return "".join(parts)


def _role(state: MatchState) -> str:
    parts = [*(["begins"] if state.initial else []), *(["ends"] if state.final else [])]
    return f" ({' and '.join(parts)})" if parts else ""


def _is_product(node: MatchRows) -> bool:
    """Has an event several states, as in the orders of AND? Then states have numbers of their own."""
    return len({state.event for state in node.states}) < len(node.states)


def _state(node: MatchRows, state: int) -> str:
    return f"s{state + 1}" if _is_product(node) else str(node.states[state].event + 1)


def edge_text(transition: MatchTransition) -> str:
    """The conditions of a transition."""
    parts = [f" by {_names(transition.key)}" if transition.key else ""]
    parts.append(" also in the same element" if transition.same_element else "")
    parts.append(" at a later time" if transition.later else "")
    if transition.later_than:
        parts.append(f" at a later time than event {_numbers(transition.later_than)}")
    return "".join(parts)


def _nesting(node: MatchRows) -> str:
    """The q-tree of the events' shared variables, or why there is none."""
    present = [event for number, event in enumerate(node.events) if number not in {gap.event for gap in node.absent}]
    mentions = Counter(name for event in present for name in event.variables)
    atoms = [{name for name in event.variables if mentions[name] > 1} for event in present]
    if crossing := not_hierarchical(atoms):
        one, other = crossing
        return (
            f"no q-tree, as the events are not hierarchical: ?{one} and ?{other} are together in an event, and each is in one "
            "without the other"
        )
    return f"q-tree of the events: {q_tree(atoms)}"


def _comparisons(node: MatchRows) -> str:
    late = sorted(late_variables(node))
    if late:
        return f"{_names(tuple(late))} compared when matches are formed, as no key has it: a search may end without a match"
    if any(t.later_than for t in node.transitions):
        return "STRICT TIME inside of AND is tested for each run: a search may end without a match"
    if any(t.absent >= 0 and not is_cut(node, t) for t in node.transitions):
        return "keys decide all comparisons but those of NOT: a search may end without a match"
    return f"keys decide all comparisons: {_delay(node)}"


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


def event_text(query: Plan, event: PlannedEvent) -> str:
    """An event as a query says it."""
    stream = query.streams[query.windows[event.window].stream]
    patterns = " . ".join(" ".join(pattern) for pattern in event.patterns)
    bound = "".join(f" BIND({program} AS ?{name})" for name, program in event.bindings)
    tests = "".join(f" FILTER({condition})" for condition in event.conditions)
    time = f" AT ?{event.time}" if event.time else ""
    return f"<{stream}>{time} {{ {patterns}{bound}{tests} }}"


def _numbers(events: list[int] | tuple[int, ...]) -> str:
    return " or ".join(str(event + 1) for event in dict.fromkeys(events))


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"?{name}" for name in names)
