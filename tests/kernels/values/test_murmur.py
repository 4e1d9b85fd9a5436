"""The hash against the mmh3 package: the same id on every machine depends on it."""

from __future__ import annotations

import mmh3
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.kernels.compiler.jit import jit
from cqels_py.kernels.values.murmur import murmur64

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@jit
def hash_of(data, start, end):  # type: ignore[no-untyped-def]
    return murmur64(data, start, end)


def expected(data: bytes) -> int:
    return int(mmh3.hash64(data, seed=0, x64arch=True, signed=False)[0])


@pytest.mark.parametrize("length", [*range(34), 63, 64, 65, 1000])
def test_every_length_of_the_last_block(length: int) -> None:
    data = bytes((7 * i + 200) % 256 for i in range(length))
    assert int(hash_of(np.frombuffer(data + b"!", np.uint8), 0, length)) == expected(data)


@given(st.binary(max_size=100), st.binary(max_size=5), st.binary(max_size=5))
@example(b"\xff" * 16, b"", b"")
def test_a_slice_hashes_like_its_bytes_alone(data: bytes, before: bytes, after: bytes) -> None:
    buffer = np.frombuffer(before + data + after + b"!", np.uint8)
    assert int(hash_of(buffer, len(before), len(before) + len(data))) == expected(data)
