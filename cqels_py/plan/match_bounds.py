"""MATCH: choices that the keys of its automaton decide, and bounds for a step and for the delay between two matches."""

from __future__ import annotations

from cqels_py.plan.nodes import MatchRows, MatchTransition


def late_variables(node: MatchRows) -> set[str]:
    """Variables that an event shares with an earlier one which is not the last of its run, where that one lacks them."""
    found: set[str] = set()
    for t in node.transitions:
        source = set(node.events[node.states[t.source].event].variables)
        target = set(node.events[node.states[t.target].event].variables)
        found |= (target & _before(node, t.source)) - source
    return found


def _before(node: MatchRows, state: int) -> set[str]:
    """The variables of all events that may be in a run to a state."""
    reached, waiting = {state}, [state]
    while waiting:
        here = waiting.pop()
        for t in node.transitions:
            if t.target == here and t.source not in reached:
                reached.add(t.source)
                waiting.append(t.source)
    return {name for each in reached for name in node.events[node.states[each].event].variables}


def is_cut(node: MatchRows, transition: MatchTransition) -> bool:
    """Does one look-up decide the NOT before a transition: the same for all runs with the transition's key?

    Not in strict time, where an event of the same instant may come later, nor under EARLIEST, which walks lists from their old end.
    """
    if transition.absent < 0 or node.strict_time or node.policy == "EARLIEST":
        return False
    absent = node.absent[transition.absent]
    return node.states[transition.source].event in absent.after and set(absent.key) <= set(transition.key)


def is_steady(node: MatchRows, state: int, key: tuple[str, ...]) -> bool:
    """Do the runs in a state with one key begin in the order in which they get there?

    So it is where the key determines the keys of the runs that they prolong.
    """
    return all(set(t.key) <= set(key) for t in node.transitions if t.target == state)


def unsteady_lists(node: MatchRows) -> set[tuple[int, tuple[str, ...]]]:
    """The states and keys whose runs do not begin in order, so that a search in a list may pass many out of reach."""
    return {(t.source, t.key) for t in node.transitions if not is_steady(node, t.source, t.key)}


def without_guarantee(node: MatchRows) -> str | None:
    """Why no bound can be guaranteed for the delay between two matches; None where it can."""
    if late := sorted(late_variables(node)):
        return f"?{late[0]} is compared when matches are formed, as the event between has no ?{late[0]}: give it the variable"
    if any(t.later_than for t in node.transitions):
        return "STRICT TIME inside of AND is tested for each run, as events of other parts may come between"
    if any(t.absent >= 0 and not is_cut(node, t) for t in node.transitions):
        return "NOT is tested for each run, as its variables are not those that its neighbours share, or for STRICT TIME or EARLIEST"
    if unsteady_lists(node):
        if node.policy != "ALL":
            return f"{node.policy} orders runs by their last events, and there are keys whose runs do not begin in that order"
        if node.strict_time and any(not t.later and not t.same_element for t in node.transitions):
            return "STRICT TIME with AND needs lists, and there are keys whose runs do not begin in their order"
    return None
