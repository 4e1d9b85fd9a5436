"""How a plan runs on Spark, in words."""

from __future__ import annotations

from cqels_py.plan.nodes import Plan, Scan
from cqels_py.planner.partitioning import division_of, scans_of

_PLACES = ("subject", "predicate", "object")


def describe(plan: Plan, partitions: int) -> str:
    """By which variable the state is divided, or why it is not; where triples go; the stages of a micro-batch."""
    division = division_of(plan)
    if division.variable is None:
        parts = 1
        lines = [f"the state is in one part: {division.reason}", "triples of all streams go there"]
    else:
        parts = partitions
        lines = [f"the state is divided by ?{division.variable}: {_counted(parts, 'part')}"]
        lines += list(dict.fromkeys(_route(plan, scan, division.variable) for scan in scans_of(plan.root)))
    lines += [
        "every part learns the times of all elements",
        f"a micro-batch: route (a task for each piece of its input) ─ shuffle by part ─ evaluate ({_counted(parts, 'task')})",
    ]
    return "\n".join(["on Spark", *(f"  {line}" for line in lines)]) + "\n"


def _route(plan: Plan, scan: Scan, variable: str) -> str:
    stream = plan.streams[plan.windows[scan.window].stream]
    place = _PLACES[scan.pattern.index(f"?{variable}")]
    return f"<{stream}>: triples {' '.join(scan.pattern)} go to the part of their {place}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
