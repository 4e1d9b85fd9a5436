"""Events without windows in words."""

from __future__ import annotations

from cqels_py.dataflow.explain_match import event_text
from cqels_py.plan.nodes import CountedJoin, EventRows, Plan


def event_rows_text(query: Plan, node: EventRows) -> str:
    """The line of an event whose rows are joined one by one."""
    return f"rows of event {event_text(query, node.event)}; keeps those of the instant at hand"


def counted_join_text(query: Plan, node: CountedJoin) -> str:
    """The line of a join of events by counters."""
    sources = []
    for number, source in enumerate(node.sources, 1):
        events = " at the same time as ".join(event_text(query, event) for event in source.events)
        sources.append(f"{number} = {events}" + "".join(f" FILTER({condition})" for condition in source.conditions))
    sets = []
    for each in node.sets:
        names = ", ".join(f"?{name}" for name in dict.fromkeys(column.variable for column in each.columns))
        sets.append(f"{{{', '.join(str(s + 1) for s in each.sources)}}}{f' by {names}' if names else ''}")
    kept = f"keeps counters for {', '.join(sets)}" if sets else "keeps nothing"
    return f"counted join of {', '.join(sources)}; {kept}, and the rows of the instant at hand"
