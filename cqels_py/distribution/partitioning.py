"""The variables by which a plan's mappings can be partitioned, so that no part needs the state of another one.

If a variable partitions a node, a part has those of the node's mappings whose value of the variable belongs to the part; otherwise
all parts have the same mappings. Operators must not combine mappings of several parts: two partitioned inputs are joined on the
variable, rows that are compared with each other have the same value of it.
"""

from __future__ import annotations

from cqels_py.distribution.rule_keys import state_keys
from cqels_py.event_time.windows import Measure
from cqels_py.plan.nodes import (
    ChangelogRead,
    ClosureRows,
    CountedJoin,
    DistinctRowsOf,
    EventRows,
    ExtendRows,
    FactorisedGroups,
    FilterRows,
    GraphNames,
    GroupRows,
    JoinAll,
    MatchRows,
    Negate,
    Node,
    NumberRows,
    Once,
    Plan,
    ProjectRows,
    Rows,
    Scan,
    Shared,
    StateRows,
    StaticScan,
    TopRows,
    UnionRows,
    is_variable,
    partition_variables,
)
from cqels_py.plan.temporal_rules import PlannedRules
from cqels_py.plan.traverse import states_of


def variables_of(scan: Scan) -> frozenset[str]:
    """The variables of a scan's pattern, delivered or not."""
    return frozenset(text[1:] for text in scan.pattern if is_variable(text))


def global_window(plan: Plan) -> str | None:
    """Why the content of a window depends on triples of all parts; None: it does not."""
    for window in plan.windows:
        if window.partition or window.bounds.measure is Measure.TRIPLES:
            return f"the content of {window.text} depends on triples of all parts"
    return None


def obstacle(node: Node, variable: str, rules: PlannedRules | None = None) -> str | None:
    """Why a node's mappings cannot be partitioned by a variable; None: they can. `rules`: of its STATEs."""
    try:
        divided = _Division(variable, node, rules).divides(node)
        return None if divided else f"?{variable} is in no triple pattern over a stream"
    except _Undivided as reason:
        return str(reason)


def follows_changes(node: Node) -> bool:
    """Do a node's mappings all follow from elements of streams? Others are there from the first tick on."""
    match node:
        case Scan() | MatchRows() | EventRows() | CountedJoin() | StateRows() | ChangelogRead():
            return True
        case StaticScan() | GraphNames() | Rows() | Once():
            return False
        case JoinAll(inputs=inputs) | FactorisedGroups(inputs=inputs):
            return any(map(follows_changes, inputs))
        case UnionRows(inputs=inputs):
            return all(map(follows_changes, inputs))
        case Negate(left=left):
            return follows_changes(left)
        case _:
            return follows_changes(node.input)


class _Undivided(Exception):
    """The message says why a variable cannot partition the node."""


class _Division:
    """The nodes that a variable partitions. `_shared`: answers for shared sub-plans, each found once."""

    def __init__(self, variable: str, root: Node, rules: PlannedRules | None) -> None:
        self._variable = variable
        self._root = root
        self._rules = rules
        self._shared: dict[int, bool] = {}

    def divides(self, node: Node) -> bool:
        """Are a node's mappings partitioned? False: they are the same in all parts. Raises _Undivided if they would be wrong."""
        variable = self._variable
        match node:
            case Scan():
                return variable in variables_of(node)
            case CountedJoin():
                if any(variable not in event.columns or variable not in event.variables for event in node.events):
                    raise _Undivided(f"not all EVENT blocks have ?{variable} in a triple pattern")
                return True
            case EventRows(event):
                return variable in event.variables and variable in event.columns
            case Rows(variables, rows):
                if variable in variables and any(row[variables.index(variable)] is None for row in rows):
                    raise _Undivided(f"?{variable} may be unbound")
                return variable in variables
            case StateRows():
                self._check_rules()
                return True
            case MatchRows():
                if reason := _match_obstacle(node, variable):
                    raise _Undivided(reason)
                return True
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

    def _check_rules(self) -> None:
        """Raises _Undivided if the rules need facts of other values."""
        assert self._rules is not None
        keys = state_keys(self._rules, states_of(self._root), self._variable)
        if isinstance(keys, str):
            raise _Undivided(keys)

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


def _match_obstacle(node: MatchRows, variable: str) -> str | None:
    """Why the matches of a pattern cannot be found in parts with their own values of a variable each; None: they can."""
    if node.within_events is not None:
        return "WITHIN … EVENTS counts the elements of all parts"
    if node.policy != "ALL":
        return f"{node.policy} compares matches of all parts"
    gaps = {gap.event for gap in node.absent}
    events = [event for number, event in enumerate(node.events) if number not in gaps]
    if variable not in partition_variables(node) or any(variable not in event.columns for event in events):
        return f"not all events of the MATCH have ?{variable} in a triple pattern"
    return None


def _mixes(node: Node, variable: str) -> str | None:
    """Why an operator combines mappings with several values of a variable that partitions its input; None: it does not."""
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
