"""Which variables a plan's mappings can be divided by, so that no part ever needs to know what another one holds.

Where a variable divides a node, a part has those of its mappings whose value of the variable is the part's own; where it does
not, all parts have the same mappings. What an operator puts together has to agree in this: two inputs that are divided are
joined on the variable, what is compared with it has the same value.
"""

from __future__ import annotations

from cqels_py.event_time.windows import Measure
from cqels_py.plan.nodes import (
    ChangelogRead,
    ClosureRows,
    DistinctRowsOf,
    ExtendRows,
    FactorisedGroups,
    FilterRows,
    GraphNames,
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
    StaticScan,
    TopRows,
    UnionRows,
    is_variable,
)


def variables_of(scan: Scan) -> frozenset[str]:
    """The variables of a scan's pattern, delivered or not."""
    return frozenset(text[1:] for text in scan.pattern if is_variable(text))


def global_window(plan: Plan) -> str | None:
    """Why parts would have to know each other's triples to know what a window holds; None: they have not."""
    for window in plan.windows:
        if window.partition or window.bounds.measure is Measure.TRIPLES:
            return f"what {window.text} holds depends on triples that would be elsewhere"
    return None


def obstacle(node: Node, variable: str) -> str | None:
    """Why a node's mappings cannot be divided by a variable; None: they can."""
    try:
        divided = _Division(variable).divides(node)
        return None if divided else f"?{variable} is in no triple pattern over a stream"
    except _Undivided as reason:
        return str(reason)


class _Undivided(Exception):
    """Why a variable divides nothing here."""


class _Division:
    """What a variable divides. `_shared`: sub-plans that several nodes read, which are asked once."""

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._shared: dict[int, bool] = {}

    def divides(self, node: Node) -> bool:
        """Are a node's mappings divided? False: they are the same in all parts. _Undivided: they would be wrong."""
        variable = self._variable
        match node:
            case Scan():
                return variable in variables_of(node)
            case Rows(variables, rows):
                if variable in variables and any(row[variables.index(variable)] is None for row in rows):
                    raise _Undivided(f"?{variable} may be unbound")
                return variable in variables
            case ChangelogRead() | Once() | StaticScan() | GraphNames():
                return variable in node.variables
            case JoinAll(inputs=inputs) | FactorisedGroups(inputs=inputs):
                return self._joins(node, inputs)
            case UnionRows(inputs=inputs):
                divided = [self.divides(each) for each in inputs]
                if any(divided) and not all(divided):
                    raise _Undivided(f"?{variable} is not in every part of the query")
                return all(divided)
            case Negate(left, right, key):
                divided_left = self.divides(left)
                if self.divides(right) and not (divided_left and variable in key):
                    raise _Undivided(f"{node.word} does not compare ?{variable}")
                return divided_left
            case Shared(number, inner):
                if number not in self._shared:
                    self._shared[number] = self.divides(inner)
                return self._shared[number]
            case ClosureRows():
                raise _Undivided("a path that repeats leads over triples of all values")
            case (
                FilterRows(inner)
                | ExtendRows(inner)
                | ProjectRows(inner)
                | DistinctRowsOf(inner)
                | GroupRows(inner)
                | TopRows(inner)
                | NumberRows(inner)
            ):
                if not self.divides(inner):
                    return False
                if reason := _mixes(node, variable):
                    raise _Undivided(reason)
                return True

    def _joins(self, node: JoinAll | FactorisedGroups, inputs: tuple[Node, ...]) -> bool:
        variable = self._variable
        divided = [each for each in inputs if self.divides(each)]
        if not divided:
            return False
        if isinstance(node, JoinAll) and variable in node.maybe_unbound:
            raise _Undivided(f"?{variable} may be unbound")
        if isinstance(node, FactorisedGroups) and variable not in node.keys:
            raise _Undivided(f"groups have several values of ?{variable}")
        hidden = [each for each in divided if variable not in each.variables]
        # The same name in another sub-query is another variable.
        if hidden and (len(divided) > 1 or any(variable in each.variables for each in inputs)):
            raise _Undivided(f"there is more than one variable ?{variable}")
        return True


def _mixes(node: Node, variable: str) -> str | None:
    """Why an operator needs mappings with several values of a variable that divides its input."""
    match node:
        case GroupRows(keys=keys) if variable not in keys:
            return f"groups have several values of ?{variable}"
        case TopRows(by=by) if variable not in by:
            return "LIMIT and OFFSET compare results of all values"
        case DistinctRowsOf() if variable not in node.variables:
            return f"DISTINCT compares results of several values of ?{variable}"
        case NumberRows(of=of) if variable not in of:
            return f"DISTINCT compares results of several values of ?{variable}"
        case ExtendRows(inner, name) if name == variable:
            return f"there is more than one variable ?{variable}"
        case ProjectRows(inner, variables) if variable in variables and variable not in inner.variables:
            return f"there is more than one variable ?{variable}"
        case _:
            return None
