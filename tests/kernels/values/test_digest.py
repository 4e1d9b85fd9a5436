"""XXH64 against its definition, written with Python's integers, and its published values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.kernels.values.digest import xxh64

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)


def rotated(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (64 - bits))) & MASK


def mixed(lane: int, x: int) -> int:
    return rotated((lane + x * P2) & MASK, 31) * P1 & MASK


def naive(data: bytes, seed: int) -> int:
    lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
    stripes = len(data) // 32
    for at in range(0, 32 * stripes, 8):
        lanes[at // 8 % 4] = mixed(lanes[at // 8 % 4], int.from_bytes(data[at : at + 8], "little"))
    if stripes:
        found = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK
        for lane in lanes:
            found = ((found ^ mixed(0, lane)) * P1 + P4) & MASK
    else:
        found = (seed + P5) & MASK
    found = (found + len(data)) & MASK
    rest = data[32 * stripes :]
    while len(rest) >= 8:
        found = (rotated(found ^ mixed(0, int.from_bytes(rest[:8], "little")), 27) * P1 + P4) & MASK
        rest = rest[8:]
    if len(rest) >= 4:
        found = (rotated(found ^ (int.from_bytes(rest[:4], "little") * P1 & MASK), 23) * P2 + P3) & MASK
        rest = rest[4:]
    for byte in rest:
        found = rotated(found ^ (byte * P5 & MASK), 11) * P1 & MASK
    found = (found ^ (found >> 33)) * P2 & MASK
    found = (found ^ (found >> 29)) * P3 & MASK
    return found ^ (found >> 32)


def digest(data: bytes, seed: int = 0, before: bytes = b"") -> int:
    array = np.frombuffer(bytearray(before + data + b"?"), np.uint8)
    return int(xxh64(array, len(before), len(before) + len(data), seed)) & MASK


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_published_values(text: bytes, wanted: int) -> None:
    assert digest(text) == naive(text, 0) == wanted


@given(st.binary(max_size=150), st.integers(0, 1 << 62), st.binary(max_size=9))
def test_it_is_that_of_the_definition(data: bytes, seed: int, before: bytes) -> None:
    assert digest(data, seed, before) == naive(data, seed)
