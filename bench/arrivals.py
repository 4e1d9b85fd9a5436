"""Random arrivals for all benchmarks: the input, the key and the value of each.

Keys are uniform over 1..keys, values over 1..values; `iris` and `integers` make ids from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cqels_py.terms.layout import TAG_INTEGER, TAG_IRI, TAG_SHIFT

Int64 = npt.NDArray[np.int64]

MANY = 1 << 40
"""So many values that no value repeats."""
_FILLING = 10_000


def iris(numbers: Int64) -> Int64:
    """Ids like those of IRIs: in another range than those of numbers, and not in any dictionary (nothing decodes them)."""
    return numbers | (TAG_IRI << TAG_SHIFT)


def integers(numbers: Int64) -> Int64:
    """The ids of xsd:integer literals: they are ordered like their values."""
    return numbers | (TAG_INTEGER << TAG_SHIFT)


@dataclass(frozen=True)
class Batch:
    """n arrivals in order: `port` (n) is the input of each, `columns` (2, n) the ids of its key and its value."""

    port: npt.NDArray[np.int32]
    columns: Int64

    def __len__(self) -> int:
        return len(self.port)

    @cached_property
    def rows(self) -> list[tuple[int, int, int]]:
        """Port, key and value as Python integers."""
        return list(zip(self.port.tolist(), *self.columns.tolist(), strict=True))

    @cached_property
    def in_pairs(self) -> Int64:
        """The columns with each arrival repeated: one row for the insertion, one for the retraction."""
        return np.repeat(self.columns, 2, 1)

    @cached_property
    def bounds(self) -> Int64:
        """The bounds of the arrivals as elements of one triple each."""
        return np.arange(len(self) + 1)

    def of(self, port: int) -> Int64:
        """Positions of an input's arrivals."""
        return np.flatnonzero(self.port == port)


@dataclass(frozen=True)
class Setting:
    """The parameters at which competitors are compared.

    `window`: mappings in each input's window. `keys`: the number of different keys; `values`: the number of different
    values of each input. `batch`: arrivals per batch. `filled`, `measured`: the inputs whose windows are filled first,
    and those whose arrivals are measured; empty for all.
    """

    name: str
    window: int
    keys: int
    values: tuple[int, ...] = (MANY,)
    batch: int = 10_000
    values_are_numbers: bool = False
    filled: tuple[int, ...] = ()
    measured: tuple[int, ...] = ()

    @property
    def inputs(self) -> int:
        return len(self.values)

    @property
    def most_per_key(self) -> int:
        """An upper bound (a power of two) of the mappings that a key has in a window, for yardsticks of fixed size."""
        mean = self.window / self.keys
        return 1 << int(mean + 8 * mean**0.5 + 16).bit_length()

    def arrivals(self, seed: int) -> Arrivals:
        return Arrivals(self, seed)


class Arrivals:
    """An endless stream of batches. The inputs alternate in random order, so that all windows become full at the same time."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self._setting = setting
        self._random = np.random.default_rng(seed)
        self._made = 0

    def batch(self) -> Batch:
        """The next batch to measure."""
        return self._draw(self._setting.measured, self._setting.batch)

    def filling(self) -> Iterator[Batch]:
        """The batches that fill every window."""
        ports = self._setting.filled or tuple(range(self._setting.inputs))
        wanted = len(ports) * (self._setting.window + 1)
        for start in range(0, wanted, _FILLING):
            yield self._draw(ports, min(_FILLING, wanted - start))

    def _draw(self, ports: tuple[int, ...], size: int) -> Batch:
        setting = self._setting
        inputs = np.array(ports or range(setting.inputs), np.int32)
        taking_turns = inputs[(self._made + np.arange(size)) % len(inputs)]
        self._made += size
        port = self._random.permutation(taking_turns)
        columns = np.empty((2, size), np.int64)
        columns[0] = iris(self._random.integers(1, setting.keys + 1, size))
        values = self._random.integers(1, np.array(setting.values)[port] + 1)
        columns[1] = integers(values) if setting.values_are_numbers else iris(values)
        return Batch(port, columns)
