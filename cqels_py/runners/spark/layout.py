"""The mappings that belong to each part of a stage."""

from __future__ import annotations

from cqels_py.dataflow.ownership import Condition, HasValue, cell
from cqels_py.distribution.heavy_values import tests_of
from cqels_py.distribution.stages import PlannedStage


def conditions_of(stage: PlannedStage, part: int) -> tuple[Condition, ...]:
    """Those of the parts of no block, whose numbers come first, or of a heavy value's block."""
    if stage.shares is None:
        return ()
    number = next((n for n, each in enumerate(stage.blocks) if 0 <= part - each.first < each.shares.cells), None)
    shares, first = (stage.shares, 0) if number is None else (stage.blocks[number].shares, stage.blocks[number].first)
    tests = (HasValue(name, id_, not wanted) for name, id_, wanted in tests_of(stage.blocks, number))
    return (*tests, *cell(shares.axes, part - first))
