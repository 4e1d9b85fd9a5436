"""A dataflow's state as data: named arrays and plain values, by the path of each part in the plan.

    Project                   the root
    Project/0:Join            its input
    Project/0:Join/1:Scan     the second input of that; a window's PARTITION BY is at …/partition
    clock, arrivals, output   the clock and the counters of all scans; the operator that turns the root's changes into results
    reports                   which reports that are made once have been made

It contains no code, so a file of it can be read safely even if its origin is unknown. The contents of arrays are not validated: a
checkpoint needs a digest that detects damage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from cqels_py.dataflow.counted_join import CountedJoinScan
from cqels_py.dataflow.delta_sources import ChangelogInput, Constant, DeltaSource, OperatorNode, unwrap
from cqels_py.dataflow.event_rows import EventRowsScan
from cqels_py.dataflow.match_scan import MatchScan
from cqels_py.dataflow.scans import PartitionedScan, Scan
from cqels_py.dataflow.state_scan import StateScan
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.plan.digest import digest_of
from cqels_py.plan.nodes import Plan
from cqels_py.state.named_values import NamedValues, restore, values_of

DataflowState: TypeAlias = dict[str, NamedValues]

FORMAT = 2
"""Raised whenever a name, a type or the meaning of a value changes."""
_HEADER = "dataflow"
_SAME_AS = "same_as"


def stateful_parts(root: DeltaSource) -> Iterator[tuple[str, object]]:
    """The parts with state at and below a source, each with its path; a part that several operators read has several paths."""
    visited: set[int] = set()
    waiting = [(type(unwrap(root).node).__name__, unwrap(root))]
    while waiting:
        path, source = waiting.pop()
        match source:
            case OperatorNode():
                yield path, source.operator
            case PartitionedScan():
                yield path, source
                yield f"{path}/partition", source.partition
            case (
                Scan() | MatchScan() | EventRowsScan() | CountedJoinScan() | StateScan() | Constant() | ChangelogInput()
            ):
                yield path, source
        if isinstance(source, OperatorNode) and id(source) not in visited:
            visited.add(id(source))
            inputs = [unwrap(each) for each in source.inputs]
            named = [(f"{path}/{place}:{type(each.node).__name__}", each) for place, each in enumerate(inputs)]
            waiting += reversed(named)


def save(plan: Plan, parts: Mapping[str, object], *, ticked: bool) -> DataflowState:
    """The state of the parts of a plan's dataflow. Arrays are not copies: see `values_of`."""
    state: DataflowState = {_HEADER: {"format": FORMAT, "plan": digest_of(plan), "ticked": ticked}}
    paths: dict[int, str] = {}
    for path, part in parts.items():
        first = paths.setdefault(id(part), path)
        state[path] = values_of(part) if first == path else {_SAME_AS: first}
    return state


def load(plan: Plan, parts: Mapping[str, object], state: DataflowState) -> bool:
    """Give the parts this state; returns whether the dataflow has had a tick. UsageError where it is another plan's."""
    header = state.get(_HEADER, {})
    if header.get("format") != FORMAT:
        raise UsageError(f"the state has the format {header.get('format')}; this version reads {FORMAT}")
    if header.get("plan") != digest_of(plan):
        raise UsageError(f"the state is not that of {plan.title}: its plan was another one")
    restored: set[int] = set()
    for path, part in parts.items():
        if id(part) not in restored:
            restored.add(id(part))
            _load_part(path, part, state)
    return bool(header.get("ticked"))


def _load_part(path: str, part: object, state: DataflowState) -> None:
    values = state.get(path)
    if values is not None and _SAME_AS in values:
        values = state.get(str(values[_SAME_AS]))
    if values is None:
        raise UsageError(f"the state has nothing for {path}")
    try:
        restore(part, values)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def dictionary_state(dictionary: Dictionary) -> NamedValues:
    """The terms that a dictionary keeps, for `restore_dictionary`. Arrays are not copies."""
    return values_of(dictionary)


def restore_dictionary(dictionary: Dictionary, values: NamedValues) -> None:
    """Give a new dictionary the terms of another one: before anything is registered, whose terms get their ids here."""
    if len(dictionary):
        raise UsageError("terms are restored before a dictionary has any: make a new engine, and register queries then")
    restore(dictionary, values)
