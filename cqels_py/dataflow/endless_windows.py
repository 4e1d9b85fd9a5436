"""Windows that never run empty, and where the answer does not need them to: see standing_answer.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cqels_py.batches.delta import Delta, retractions
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.delta_sources import Constant, DataflowNode, DeltaSource, OperatorNode, sources_below, unwrap
from cqels_py.dataflow.scans import Scan
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.operator import Stateless
from cqels_py.plan import nodes as plan
from cqels_py.plan.nodes import PlannedWindow


@runtime_checkable
class KeepsRows(Protocol):
    """An operator whose state has the rows that it has delivered."""

    def standing_rows(self) -> Ids: ...


class Emptied(Stateless):
    """In the place of an operator: takes back, at the next tick, the rows that this has delivered, and is empty from then on."""

    def __init__(self, rows: Ids) -> None:
        self._rows: Ids | None = rows

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        rows, self._rows = self._rows, None
        if rows is not None and rows.shape[1]:
            yield retractions(rows)


def keepers(root: DeltaSource, windows: Sequence[PlannedWindow]) -> list[OperatorNode]:
    """The operators nearest to the root that keep their rows and read a window that never runs empty, in a fixed order."""
    found, visited = list[OperatorNode](), set[int]()
    waiting = [unwrap(root)]
    while waiting:
        source = waiting.pop()
        if id(source) in visited or not isinstance(source, OperatorNode):
            continue
        visited.add(id(source))
        if isinstance(source.operator, KeepsRows) and any(_is_endless(each, windows) for each in sources_below(source)):
            found.append(source)
        else:
            waiting.extend(unwrap(each) for each in reversed(source.inputs))
    return found


def _is_endless(source: DataflowNode, windows: Sequence[PlannedWindow]) -> bool:
    return isinstance(source, Scan) and windows[source.node.window].bounds.size is None


@dataclass(frozen=True, slots=True)
class Rest:
    """The rows of a source when all windows that can be are empty. `empty`: none. `settled`: they do not depend on the others."""

    empty: bool
    settled: bool


_NOTHING = Rest(empty=True, settled=True)


def rest_of(source: DeltaSource, windows: Sequence[PlannedWindow], known: dict[int, Rest] | None = None) -> Rest:
    """Of a source above operators that are `Emptied`. `known`: by the ids of sources that have been looked at, which grows."""
    known, source = {} if known is None else known, unwrap(source)
    if id(source) not in known:
        known[id(source)] = _rest_of(source, windows, known)
    return known[id(source)]


def _rest_of(source: DataflowNode, windows: Sequence[PlannedWindow], known: dict[int, Rest]) -> Rest:
    if isinstance(source, Scan):
        return Rest(empty=False, settled=False) if _is_endless(source, windows) else _NOTHING
    if isinstance(source, Constant):
        return Rest(empty=False, settled=True)
    if not isinstance(source, OperatorNode):
        return Rest(empty=False, settled=False)
    if isinstance(source.operator, Emptied):
        return _NOTHING
    inputs = [rest_of(each, windows, known) for each in source.inputs]
    settled = all(each.settled for each in inputs)
    match source.node:
        case plan.JoinAll() | plan.FactorisedGroups(keys=[_, *_]):
            empty = any(each.empty for each in inputs)
        case plan.Negate() | plan.FilterRows() | plan.ExtendRows() | plan.ProjectRows() | plan.GroupRows(keys=[_, *_]):
            empty = inputs[0].empty
        case plan.UnionRows() | plan.DistinctRowsOf() | plan.NumberRows() | plan.TopRows():
            empty = all(each.empty for each in inputs)
        case _:
            empty = False
    return Rest(empty=empty, settled=empty or settled)
