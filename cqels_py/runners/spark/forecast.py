"""How a plan's triples would spread over many partitions: its routing, tried on drawn triples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.dictionary import Dictionary
from cqels_py.distribution.heavy_values import HeavyValue
from cqels_py.distribution.stages import PlannedStage, keeps_to_own_elements, stages_of
from cqels_py.errors import UsageError
from cqels_py.plan.nodes import GRAPH, Plan, is_variable
from cqels_py.plan.traverse import scans_of
from cqels_py.runners.spark.routing import routing_of

_TRIPLE, _ELEMENT, _TIME = 24, 20, 8
"""Bytes that tasks send: three ids; the time, the stream and the place of the triples of an element; a time."""
_DRAWN = 20_000
_SEED = 46
_BUSY = "<urn:busy>"


@dataclass(frozen=True, slots=True)
class Spread:
    """`parts` that are used. `copies` of a triple, and `bytes` that are sent for one that is an element of its own, before
    compression and without terms. `busiest`: the fraction of the triples that the busiest task gets; `half`: the same if half of
    the triples have one value; `heavy`: and that is a heavy value (None: it cannot be one)."""

    parts: int
    copies: float
    bytes: float
    busiest: float
    half: float
    heavy: float | None


def bytes_of_triple(plan: Plan, stages: Sequence[PlannedStage], copies: float) -> float:
    """The bytes that are sent for a triple that is an element of its own, in so many copies."""
    if keeps_to_own_elements(plan, stages):
        return copies * (_TRIPLE + _ELEMENT) + _TIME
    return copies * _TRIPLE + stages[0].parts * _ELEMENT


def spread(plan: Plan, partitions: int) -> Spread | None:
    """The spread over up to so many partitions, if as many triples match each pattern; None where the state is in one."""
    stages = stages_of(plan, partitions)
    first = stages[0]
    if first.shares is None or not list(scans_of(first.root)):
        return None
    # The variable of the largest share is that of the busiest part.
    variable = max(first.shares.axes, key=lambda axis: axis[1])[0]
    dictionary = Dictionary(strict=True)
    busy = HeavyValue(variable, _BUSY, dictionary.encode_one(_BUSY), (partitions,))
    even = _loads(plan, first, _drawn(plan, first, dictionary), dictionary)
    skewed = _drawn(plan, first, dictionary, busy)
    copies = float(even.sum())
    try:
        block = stages_of(plan, partitions, [busy])[0]
        heavy = float(_loads(plan, block, skewed, dictionary).max())
    except UsageError:
        heavy = None
    half = float(_loads(plan, first, skewed, dictionary).max())
    return Spread(first.parts, copies, bytes_of_triple(plan, stages, copies), float(even.max()), half, heavy)


def _loads(plan: Plan, stage: PlannedStage, batch: ElementBatch, dictionary: Dictionary) -> npt.NDArray[np.float64]:
    """The fraction of the triples that each task gets. A task has a part of each heavy value."""
    _, owners = routing_of(plan, stage, dictionary).owners(batch)
    parts = np.bincount(owners, minlength=stage.parts).astype(np.float64) / batch.triples
    assert stage.shares is not None
    tasks = np.zeros(max([stage.shares.cells, *(each.shares.cells for each in stage.blocks)]))
    for first, size in ((0, stage.shares.cells), *((each.first, each.shares.cells) for each in stage.blocks)):
        tasks[:size] += parts[first : first + size]
    return tasks


def _drawn(plan: Plan, stage: PlannedStage, dictionary: Dictionary, busy: HeavyValue | None = None) -> ElementBatch:
    """As many triples of each pattern, with evenly drawn values; half of those of a variable are `busy`."""
    patterns = list(dict.fromkeys((plan.windows[scan.window].stream, scan.pattern) for scan in scans_of(stage.root)))
    draw = np.random.default_rng(_SEED)
    each = max(1, _DRAWN // len(patterns))
    columns: list[list[Ids]] = [[] for _ in range(GRAPH + 1)]
    for _, pattern in patterns:
        # The values of a variable are the same in all positions of a triple.
        values: dict[str, Ids] = {}
        has_busy = draw.random(each) < 0.5
        for place, column in enumerate(columns):
            text = pattern[place] if place < len(pattern) else ""
            if not is_variable(text):
                column.append(np.full(each, dictionary.encode_one(text) if text else 0))
                continue
            if text not in values:
                values[text] = draw.integers(1, 1 << 56, each)
                if busy is not None and text[1:] == busy.variable:
                    values[text][has_busy] = busy.id
            column.append(values[text])
    count = each * len(patterns)
    stream = np.repeat(np.array([number for number, _ in patterns], np.int32), each)
    subject, predicate, object_, graph = map(np.concatenate, columns)
    times = np.arange(count + 1)
    return ElementBatch(times[:-1], stream, times, subject, predicate, object_, graph)


def numbers_up_to(partitions: int) -> Iterator[int]:
    """Powers of ten below the number, and this.

    >>> list(numbers_up_to(1000)), list(numbers_up_to(16))
    ([10, 100, 1000], [10, 16])
    """
    number = 10
    while number < partitions:
        yield number
        number *= 10
    yield partitions


def table(plan: Plan, partitions: int) -> Iterator[str]:
    """Lines with the spread over these numbers of partitions; none where the state is in one part."""
    found = [each for number in numbers_up_to(partitions) if (each := spread(plan, number)) is not None]
    if not found:
        return
    yield f"drawn: {_DRAWN:,} triples, as many of each pattern, each an element; the busiest task's fraction of them,"
    yield "  also if half of them have one value, and if that is declared heavy"
    yield f"  {'partitions':>10} {'copies':>8} {'bytes':>9} {'busiest':>8} {'one value':>10} {'heavy':>8}"
    for each in found:
        heavy = "-" if each.heavy is None else f"{each.heavy:.2%}"
        yield (
            f"  {each.parts:>10,} {each.copies:>8.3g} {each.bytes:>9,.0f} {each.busiest:>8.2%} {each.half:>10.2%} {heavy:>8}"
        )
