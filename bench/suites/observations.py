"""Observations as tables of triples, made in blocks: each has an IRI of its own, and sensors and notes that repeat.

An observation is an element, a millisecond after the previous one: its sensor, its result, and further properties.
numpy writes the terms, all of a column with equal length, so that a block is cheap compared with the engine's work on
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64 = npt.NDArray[np.int64]
Terms = npt.NDArray[np.uint8]
"""(n, length): texts in N-Triples syntax."""

STREAM = "http://ex.org/observations"
PREFIX = "http://ex.org/"
MICROSECONDS = 1_000
"""Event time between two observations."""
_DIGITS = 10
_XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True)
class Property:
    """A triple of every observation: its predicate; the code of its object by the observation's number (n); and the
    objects by code (n, length).
    """

    name: str
    codes: Callable[[Int64], Int64]
    write: Callable[[Int64], Terms]

    @property
    def iri(self) -> str:
        return f"{PREFIX}{self.name}"

    def objects(self, numbers: Int64) -> Terms:
        return self.write(self.codes(numbers))


def numbered(before: str, numbers: Int64, after: str, digits: int = _DIGITS) -> Terms:
    """Texts (n, length): `before`, the number with leading zeros, `after`."""
    left, right = (np.frombuffer(text.encode(), np.uint8) for text in (before, after))
    made = np.empty((len(numbers), len(left) + digits + len(right)), np.uint8)
    made[:, : len(left)] = left
    rest = numbers.copy()
    for place in range(len(left) + digits - 1, len(left) - 1, -1):
        rest, digit = np.divmod(rest, 10)
        made[:, place] = digit + ord("0")
    made[:, len(left) + digits :] = right
    return made


def observation_iris(numbers: Int64) -> Terms:
    return numbered(f"<{PREFIX}observation/", numbers, ">")


def integers(values: Int64) -> Terms:
    """Of two digits each, the first of them not 0."""
    return numbered('"', values, f'"^^<{_XSD_INTEGER}>', digits=2)


def sensor_iris(numbers: Int64) -> Terms:
    return numbered(f"<{PREFIX}sensor/", numbers, ">")


def two_digits(numbers: Int64) -> Int64:
    """10 to 99, in pseudo-random order."""
    return 10 + scattered(numbers + 7, 90)


def scattered(numbers: Int64, below: int) -> Int64:
    """Pseudo-random, but a function of the number."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed ^ mixed >> np.uint64(32)) % np.uint64(below)).astype(np.int64)


def table(first: int, count: int, properties: Sequence[Property]) -> pa.Table:
    """The observations `first` to `first + count` with their triples, one after another, in the engine's input form."""
    numbers = np.arange(first, first + count)
    n = len(properties)
    names = [np.frombuffer(f"<{each.iri}>".encode(), np.uint8) for each in properties]
    return pa.table(
        {
            "time": np.repeat((numbers + 1) * MICROSECONDS, n),
            "subject": _column([observation_iris(numbers)] * n),
            "predicate": _column([np.broadcast_to(name, (count, len(name))) for name in names]),
            "object": _column([each.objects(numbers) for each in properties]),
        }
    )


def _column(parts: Sequence[Terms]) -> pa.Array:
    """Text i of every part in turn, then text i + 1, as Arrow's large strings."""
    count = len(parts[0])
    lengths = np.array([part.shape[1] for part in parts])
    ends = np.cumsum(lengths)
    data = np.empty((count, int(ends[-1])), np.uint8)
    for part, end, length in zip(parts, ends.tolist(), lengths.tolist(), strict=True):
        data[:, end - length : end] = part
    offsets = np.zeros(count * len(parts) + 1, np.int64)
    np.cumsum(np.tile(lengths, count), out=offsets[1:])
    return pa.LargeStringArray.from_buffers(count * len(parts), pa.py_buffer(offsets), pa.py_buffer(data))
