"""A state in more parts: each part is split into several, which go on with its state, and get the triples of their own values only.

The part to which a value belongs is its hash modulo the number of parts. So of k times as many parts, those with the numbers p, p +
n, p + 2n … share the values of part p of n. Each begins with the whole state of p, also with the rows of its sisters, and leaves
out the results that are not its own (own_rows.py): they have other values of the variables that divide the parts. Rows of sisters
leave the state as they expire.

    2 parts    0          1
    6 parts    0  2  4    1  3  5
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from cqels_py.checkpoints.locations import Location
from cqels_py.checkpoints.state_file import State, from_bytes
from cqels_py.checkpoints.store import BEFORE
from cqels_py.dataflow.ownership import Condition, Coordinate, HasValue, cell, strides
from cqels_py.distribution.stages import PlannedStage
from cqels_py.errors import RunError, UsageError
from cqels_py.runners.spark.blueprint import blueprint_of
from cqels_py.runners.spark.layout import conditions_of
from cqels_py.runners.spark.parts import LaterState, PartState, ReadingState
from cqels_py.runners.spark.stage import BEGINNING, Job, state_after, store_of
from cqels_py.state.named_values import NamedValues

_CONSTANT = ["rows"]
"""The values of a part of a dataflow that has the static mappings of its cell."""


@dataclass(frozen=True, slots=True)
class _Child:
    """A new part of a stage, and the part whose state it begins with. `first`: of those with that state."""

    stage: int
    part: int
    parent: int
    first: bool


def split_state(old: Job, new: Job) -> None:
    """Write the states of the parts of a new layout: those after the last micro-batch that has ended everywhere, and after the one
    before it, since Spark may run the last one again."""
    children = list(_children(blueprint_of(old.blueprint).stages, blueprint_of(new.blueprint).stages))
    last = min(
        (
            store_of(old.folder, number, part).newest()
            for number, count in enumerate(old.parts)
            for part in range(count)
        ),
        default=BEFORE,
    )
    if last == BEFORE:
        raise UsageError(f"{old.folder} has no state yet: begin with more partitions")
    for batch in (last, last - 1):
        if batch > BEFORE:
            try:
                _split(old, new, children, batch)
            except RunError:
                # Of the one before there may be nothing any more.
                if batch == last:
                    raise


def _split(old: Job, new: Job, children: Sequence[_Child], batch: int) -> None:
    beginning = from_bytes(Location(old.folder).open().get(BEGINNING))
    parents = {
        (number, part): state_after(old, number, part, batch)
        for number, count in enumerate(old.parts)
        for part in range(count)
    }
    delivered = max(state.results.delivered for _, state in parents.values())
    for child in children:
        reached, parent = parents[child.stage, child.parent]
        state = _of_child(new, child, beginning, parent)
        # Results are named by their part and number: no two have the same name.
        state.results.delivered = delivered
        load = {"rows": state.rows, "rows_of_batch": 0, "rebuilt": 0, "caught_up": 0}
        counts = {"batch": batch, **load, **asdict(state.statistics)}
        store_of(new.folder, child.stage, child.part).begin_with(reached, state.state(), counts)


def _of_child(new: Job, child: _Child, beginning: State, parent: PartState) -> PartState:
    blueprint = blueprint_of(new.blueprint)
    fresh = blueprint.make(child.stage, child.part, beginning, None).state()
    constants: dict[str, NamedValues] = {name: each for name, each in fresh.items() if list(each) == _CONSTANT}
    state = blueprint.make(child.stage, child.part, beginning, {**parent.state(), **constants})
    if not child.first:
        _count_nothing(state)
    return state


def _count_nothing(state: PartState) -> None:
    """The counts so far belong to a sister part."""
    if isinstance(state, ReadingState):
        state.needed = state.skipped = 0
        counters = state.runner.counters
        counters.triples = 0
    else:
        assert isinstance(state, LaterState)
        state.rows = state.delivered = 0
        counters = state.counted
    counters.results = counters.no_numbers = state.results.left_out = 0


def _children(before: Sequence[PlannedStage], after: Sequence[PlannedStage]) -> Iterator[_Child]:
    """UsageError where a stage cannot be split."""
    if [each.root for each in before] != [each.root for each in after]:
        raise UsageError("with so many partitions the query has other stages: begin with an empty state")
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        parents = _parents(one, other)
        for part, parent in enumerate(parents):
            yield _Child(number, part, parent, parents.index(parent) == part)


def _parents(before: PlannedStage, after: PlannedStage) -> list[int]:
    """For each part of the new stage the part that it is split from."""
    old = {} if before.shares is None else dict(before.shares.axes)
    new = {} if after.shares is None else dict(after.shares.axes)
    blocks = [name for block in after.blocks for name, _ in block.shares.axes]
    names = (*new, *blocks, *after.by) if after.parts > 1 else ()
    one, other = ({(block.value.variable, block.value.id) for block in each.blocks} for each in (before, after))
    if one - other:
        raise UsageError("heavy values of before stay heavy: give them, too")
    hidden = [name for name in names if name not in after.root.variables]
    if after.parts != before.parts and hidden:
        raise UsageError(
            f"?{hidden[0]} divides the state, but the rows that its parts hand out do not have it: such a state cannot be split. "
            "Begin with an empty one; tasks= runs a state of many partitions in few tasks"
        )
    sizes = [each.parts if each.shares is None else each.shares.cells for each in (before, after)]
    if any(new.get(name, 1) % share for name, share in old.items()) or sizes[1] % sizes[0]:
        raise UsageError(
            f"{_text(before)} cannot be split into {_text(after)}: give a multiple; tasks= runs a state in fewer tasks"
        )
    if after.shares is None:
        return [part % before.parts for part in range(after.parts)]
    step = dict(zip(old, strides(tuple(old.items())), strict=True))
    cells = [
        sum(
            each.place % old[each.variable] * step[each.variable]
            for each in cell(after.shares.axes, part)
            if each.variable in old
        )
        for part in range(after.shares.cells)
    ]
    return [*cells, *(_parent_of_block(before, after, part) for part in range(after.shares.cells, after.parts))]


def _parent_of_block(before: PlannedStage, after: PlannedStage, part: int) -> int:
    """The part of the old stage that has all mappings of a part of a heavy value, which need not have been heavy."""
    mine = conditions_of(after, part)
    for parent in range(before.parts):
        if all(any(_implies(each, other) for each in mine) for other in conditions_of(before, parent)):
            return parent
    value = next(each.value for each in reversed(after.blocks) if each.first <= part)
    raise UsageError(
        f"the parts of {value.text} would have mappings of several parts of before: such a state cannot be split. Begin with an "
        "empty one"
    )


def _implies(one: Condition, other: Condition) -> bool:
    """Has each value that fulfils one condition also fulfilled the other?"""
    if one.variable != other.variable:
        return False
    if isinstance(one, HasValue):
        if not one.other:
            return bool(other.mine(np.array([one.id]))[0])
        return one == other
    return isinstance(other, Coordinate) and one.share % other.share == 0 and one.place % other.share == other.place


def _text(stage: PlannedStage) -> str:
    axes = () if stage.shares is None else stage.shares.axes
    divided = " x ".join(f"?{name} ({share})" for name, share in axes) if len(axes) > 1 else ""
    return f"{stage.parts} parts" + (f" by {divided}" if divided else "")
