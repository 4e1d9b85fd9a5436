"""Random steps of signed mappings for an operator, and its output compared with a model tick by tick."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.operator import Operator

Row = tuple[int, ...]
Event = tuple[int, int, Row]
"""Tick, sign, mapping."""
Live = list[list[Row]]
"""Each input's mappings at an instant."""
Seen = tuple[Hashable, ...]
View = Callable[[Row], Seen]
Model = Callable[[Live], Iterable[Seen]]


def delta(events: Sequence[Event], width: int) -> Delta:
    columns = np.array([row for _, _, row in events], np.int64).reshape(len(events), width).T
    tick = np.array([tick for tick, _, _ in events], np.int32)
    return Delta(tick, np.array([sign for _, sign, _ in events], np.int8), np.ascontiguousarray(columns))


def changes(chunks: Iterable[Delta], view: View = tuple) -> dict[int, Counter[Seen]]:
    """The sum of an operator's output over each tick; its ticks must not fall."""
    found: dict[int, Counter[Seen]] = {}
    last = -1
    for chunk in chunks:
        for tick, sign, row in zip(chunk.tick.tolist(), chunk.sign.tolist(), chunk.columns.T.tolist(), strict=True):
            assert tick >= last, "ticks fall"
            last = tick
            found.setdefault(tick, Counter())[view(tuple(row))] += sign
    for bag in found.values():
        _drop_zeros(bag)
    return {tick: bag for tick, bag in found.items() if bag}


def _drop_zeros(bag: Counter[Seen]) -> None:
    for row in [row for row, count in bag.items() if count == 0]:
        del bag[row]


def difference(after: Counter[Seen], before: Counter[Seen]) -> Counter[Seen]:
    """The signed bag that turns one bag into the other."""
    bag = Counter(after)
    bag.subtract(before)
    _drop_zeros(bag)
    return bag


@dataclass(frozen=True)
class Step:
    """One step's input of each port, and what is live after each of its ticks."""

    inputs: list[list[Event]]
    live: list[Live]


@dataclass(frozen=True)
class Port:
    """An input: its width, whether mappings leave in the order in which they came, the values of each column."""

    width: int
    expires_fifo: bool = True
    values: Sequence[int] = (1, 2, 3)


def random_steps(seed: int, ports: Sequence[Port], steps: int, ticks: int, most: int) -> Iterator[Step]:
    """Random insertions and retractions, up to four at a tick and at most `most` mappings alive; in the last step all
    are retracted."""
    rng = random.Random(seed)
    live: Live = [[] for _ in ports]
    for _ in range(steps):
        inputs: list[list[Event]] = [[] for _ in ports]
        after: list[Live] = []
        for tick in range(ticks):
            for _ in range(rng.randrange(5)):
                p = rng.randrange(len(ports))
                port, mine = ports[p], live[p]
                if mine and (len(mine) == most or rng.random() < 0.4):
                    place = 0 if port.expires_fifo else rng.randrange(len(mine))
                    inputs[p].append((tick, -1, mine.pop(place)))
                else:
                    row = tuple(rng.choice(port.values) for _ in range(port.width))
                    mine.append(row)
                    inputs[p].append((tick, 1, row))
            after.append([list(rows) for rows in live])
        yield Step(inputs, after)
    yield Step([[(0, -1, row) for row in rows] for rows in live], [[[] for _ in ports]])


def assert_follows(
    operator: Operator, widths: Sequence[int], steps: Iterable[Step], model: Model, chunk: int = 0, view: View = tuple
) -> None:
    """At each tick the operator's output is the difference of the model's answers.

    `view`: what of the output's rows is compared; the model gives it. `chunk`: inputs are handed over in chunks of this
    many mappings, as operators below would do (0: in one).
    """
    before: Counter[Seen] = Counter()
    first = True
    for number, step in enumerate(steps):
        inputs = [chunks_of(events, width, chunk) for events, width in zip(step.inputs, widths, strict=True)]
        found = changes(operator.process(Ticks(np.arange(len(step.live)), first), inputs), view)
        first = False
        for tick, live in enumerate(step.live):
            after = Counter(model(live))
            got, wanted = found.pop(tick, Counter()), difference(after, before)
            assert got == wanted, f"step {number}, tick {tick}: {difference(got, wanted)} too much"
            before = after
        assert not found, f"step {number}: output at ticks {sorted(found)} that are none"


def chunks_of(events: Sequence[Event], width: int, size: int) -> list[Delta]:
    size = size or max(len(events), 1)
    return [delta(events[at : at + size], width) for at in range(0, len(events), size)]
