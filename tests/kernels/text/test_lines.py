"""Counting newlines word by word, against counting them byte by byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.kernels.text.lines import survey


def surveyed(text: bytes) -> tuple[int, bool]:
    data = np.frombuffer(text, np.uint8)
    whole = len(data) & -8
    newlines, is_ascii = survey(data[:whole].view(np.uint64), data[whole:])
    return int(newlines), bool(is_ascii)


@given(st.binary(max_size=40) | st.text(alphabet="\n\v\t a\x8a\x0a\u0a0a", max_size=40).map(str.encode))
def test_any_text(text: bytes) -> None:
    assert surveyed(text) == (text.count(b"\n"), text.isascii())


@pytest.mark.parametrize("length", [0, 7, 8, 255 * 8 - 1, 255 * 8, 255 * 8 + 1, 3 * 255 * 8 + 5])
def test_counts_per_byte_do_not_overflow(length: int) -> None:
    assert surveyed(b"\n" * length) == (length, True)
    assert surveyed(b"\n" * length + b"\xff") == (length, False)


@pytest.mark.parametrize("byte", range(256))
def test_each_byte_is_classified(byte: int) -> None:
    text = bytes([byte]) * 17
    assert surveyed(text) == (text.count(b"\n"), text.isascii())
