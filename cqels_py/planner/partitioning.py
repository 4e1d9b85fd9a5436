"""Which variable a plan's state can be divided by, so that no part ever needs to know what another one holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cqels_py.event_time.windows import Measure
from cqels_py.plan.nodes import (
    ClosureRows,
    DistinctRowsOf,
    ExtendRows,
    FactorisedGroups,
    FilterRows,
    GroupRows,
    JoinAll,
    Negate,
    Node,
    NumberRows,
    Once,
    Plan,
    ProjectRows,
    Rows,
    Scan,
    Shared,
    TopRows,
    UnionRows,
    inputs_of,
)


@dataclass(frozen=True, slots=True)
class Division:
    """The variable by which a state is divided; or none, and the reason."""

    variable: str | None
    reason: str = ""


def division_of(plan: Plan) -> Division:
    """A variable that is in every mapping of every operator, up to the results; none: all must be in one place.

    Mappings that differ in it never meet: not in a join, a group, a negation or a DISTINCT; and results that differ in it
    are different, so that what leaves one part and enters another at the same tick is no change that cancels out.
    """
    if plan.form == "ASK":
        return Division(None, "ASK has one answer about everything")
    if plan.order is not None:
        return Division(None, "ORDER BY puts results of all values in one order")
    for window in plan.windows:
        if window.partition or window.bounds.measure is Measure.TRIPLES:
            return Division(None, f"what {window.text} holds depends on triples that would be elsewhere")
    scans = list(scans_of(plan.root))
    if not scans:
        return Division(None, "no triple pattern is asked of a stream")
    common = [name for name in scans[0].variables if all(name in scan.variables for scan in scans)]
    if not common:
        return Division(None, "no variable is in every triple pattern over a stream")
    reasons = []
    for name in sorted(common, key=lambda name: name not in plan.variables):
        if name not in plan.variables:
            nameless = "no variable of the results is in every triple pattern over a stream"
            reasons.append(nameless if name.startswith("_:") else f"?{name} is no variable of the results")
        elif obstacle := _obstacle(plan.root, name):
            reasons.append(obstacle)
        else:
            return Division(name)
    return Division(None, "; ".join(dict.fromkeys(reasons)))


def scans_of(node: Node) -> Iterator[Scan]:
    """The triple patterns over streams in a plan's node."""
    if isinstance(node, Scan):
        yield node
    for child in inputs_of(node):
        yield from scans_of(child)


def _obstacle(node: Node, variable: str) -> str | None:
    """Why a mapping of the node may lack the variable, or need mappings with other values of it; None: it never does."""
    match node:
        case GroupRows(keys=keys) | FactorisedGroups(keys=keys) if variable not in keys:
            return f"groups have several values of ?{variable}"
        case TopRows():
            return "LIMIT and OFFSET compare results of all values"
        case ClosureRows():
            return "a path that repeats leads over triples of all values"
        case _ if variable not in node.variables:
            return f"?{variable} is not in every part of the query"
        case Scan() | Once() | Rows():
            return None
        case JoinAll(loose=loose) if variable in loose:
            return f"?{variable} may be unbound"
        case JoinAll(inputs=inputs) | FactorisedGroups(inputs=inputs):
            # Static inputs without the variable are in every part.
            children: tuple[Node, ...] = tuple(child for child in inputs if not isinstance(child, Once | Rows))
        case Negate(left, right, key):
            if variable not in key:
                return f"{node.word} does not compare ?{variable}"
            children = (left, right)
        case (
            UnionRows()
            | GroupRows()
            | FilterRows()
            | ExtendRows()
            | ProjectRows()
            | DistinctRowsOf()
            | Shared()
            | NumberRows()
        ):
            children = inputs_of(node)
        case _:
            return f"{type(node).__name__} is not divided"
    return next((found for child in children if (found := _obstacle(child, variable))), None)
