"""Heavy values: a value that is in very many triples has parts of its own, which divide its mappings by other variables.

A share of a variable puts all triples with one value into one part, however many parts there are. A block of parts for that value is
a cube over the other variables, as in hypercube.py, and the other parts leave its mappings alone:

    ?a :p ?b . ?a :q ?c                     parts 0-3: by ?a, but for :busy
    :busy is heavy, 4 partitions            parts 4-7: ?a is :busy, by ?b (2) x ?c (2)

Of several blocks the first one whose value a mapping has gets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cqels_py.distribution.hypercube import HypercubeShares

Test: TypeAlias = tuple[str, int, bool]
"""A variable, an id, and whether mappings must have it, or must not."""


@dataclass(frozen=True, slots=True)
class HeavyValue:
    """A value of a variable that divides the state: its N-Triples text and its id. `parts`: into how many it is divided, and these
    again, each time that the state was split."""

    variable: str
    text: str
    id: int
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The parts of a heavy value, from the number `first` on: cells of `shares` of other variables."""

    value: HeavyValue
    shares: HypercubeShares
    first: int


def tests_of(blocks: Sequence[Block], number: int | None) -> Iterator[Test]:
    """The values that the mappings of a block's parts have, or (None) those of parts of no block."""
    for block in blocks[:number]:
        yield block.value.variable, block.value.id, False
    if number is not None:
        value = blocks[number].value
        yield value.variable, value.id, True
