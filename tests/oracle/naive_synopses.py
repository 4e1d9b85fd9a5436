"""The strategy of the proof of Theorem 1 (Schiff and Özçep) for one tree of streams, as the paper has it: a reference for tests.

Each stream below the root has two synopses of its kept values with counts: `before`, what came at earlier instants and has partners
in the streams below, and `now`, what this instant adds. An instant's output, and its additions, are computed from `before` of the
children; then `now` is added to `before`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod


@dataclass
class Stream:
    """`children`: the streams that have to be earlier. `keeps`: is its value kept? `passes`: a filter on its value.

    `agrees`: does a value join with the values of the children, in their order (None for those that keep none)?
    """

    name: str
    keeps: bool
    children: Sequence[Stream] = ()
    passes: Callable[[int], bool] = lambda value: True
    agrees: Callable[[int, tuple[int | None, ...]], bool] = lambda value, below: True
    before: Counter[int | None] = field(default_factory=Counter)
    now: Counter[int | None] = field(default_factory=Counter)

    def combinations(self, value: int) -> Counter[tuple[int | None, ...]]:
        """How often a value has partners, by the values that the children keep."""
        found: Counter[tuple[int | None, ...]] = Counter()
        if self.passes(value):
            for chosen in product(*(child.before.items() for child in self.children)):
                below = tuple(kept for kept, _ in chosen)
                if self.agrees(value, below):
                    found[below] += prod(count for _, count in chosen)
        return found


def instant(root: Stream, arrivals: Sequence[tuple[str, int]]) -> Counter[tuple[int | None, ...]]:
    """The output of an instant: root values with the values that its children keep. `now` is filled, and not yet moved."""
    output: Counter[tuple[int | None, ...]] = Counter()
    streams = {stream.name: stream for stream in _below(root)}
    for name, value in arrivals:
        stream = streams[name]
        for below, count in stream.combinations(value).items():
            if stream is root:
                output[value, *below] += count
            else:
                stream.now[value if stream.keeps else None] += count
    return output


def end(root: Stream) -> None:
    """The instant has ended."""
    for stream in _below(root):
        stream.before += stream.now
        stream.now = Counter()


def _below(stream: Stream) -> list[Stream]:
    return [stream, *(each for child in stream.children for each in _below(child))]
