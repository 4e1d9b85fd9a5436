"""Sums in 128 bits, and their totals, against Python's integers and decimals."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.kernels.aggregates import accumulators as kernel
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS
from cqels_py.kernels.values import inline
from cqels_py.terms.layout import TAG_DECIMAL, TAG_DOUBLE, TAG_INTEGER
from tests.operators.plain_dictionary import inline_id
from tests.oracle import naive_values

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

SCALED = st.tuples(st.integers(-(1 << 54), 1 << 54), st.integers(0, 15))


BOUNDS = (1 << 53, 1 << 55, 10**16, 10**18, 1 << 62, 1 << 63, 1 << 64, 1 << 70)
NEAR = st.builds(
    lambda bound, divisor, more, sign: sign * (bound // divisor + more),
    st.sampled_from(BOUNDS), st.sampled_from([1, 10, 100]), st.integers(-9, 9), st.sampled_from([-1, 1]),
)  # fmt: skip
"""Where an inline id, a sum of one word or a double's digits end, their tenths and hundredths."""
COUNTED_BY = {
    "integer": [],
    "decimal": [kernel.DECIMALS],
    "double": [kernel.DOUBLES, kernel.INEXACT],
}


def words128(value: int) -> tuple[np.int64, np.uint64]:
    return np.int64(value >> 64), np.uint64(value & ((1 << 64) - 1))


class Sum:
    """The accumulator of one SUM or AVG."""

    def __init__(self) -> None:
        self.words = np.zeros(kernel.SUM_WORDS, np.int64)
        self.apart = np.zeros(REAL_WORDS, np.uint32)
        self.cursor = np.zeros(kernel.CURSOR_FIELDS, np.int64)
        self.deferred = np.zeros((1, kernel.DEFERRED_FIELDS), np.int64)
        self.deferred_real = np.zeros(1)

    def add(self, unscaled: int, scale: int, sign: int) -> bool:
        return bool(kernel._add_scaled(self.words, 0, *words128(unscaled), np.int64(scale), np.int64(sign)))

    def take(self, text: str, datatype: str, sign: int = 1) -> None:
        identifier = inline_id(text, datatype)
        assert identifier is not None
        if datatype == "float":
            kernel.take_float(self.words, 0, self.apart, 0, np.int64(identifier), np.int64(sign))
            return
        assert kernel._take_number(self.words, 0, np.int64(identifier), np.int64(sign))

    def total(self, *, average: bool = False) -> int:
        """An id; 0 on error, or a provisional one whose number stands in `deferred`."""
        self.cursor[kernel.DEFERRED] = 0
        return int(
            kernel.total_of(self.words, 0, self.apart, 0, average, self.cursor, self.deferred, self.deferred_real)
        )

    def said(self, *, average: bool) -> Decimal:
        """The total as a number, whether it has an inline id or not."""
        found = self.total(average=average)
        if found >> 60 != -1:
            out = np.zeros(80, np.uint8)
            inline.write_inline(np.int64(found), out, 0)
            return Decimal(out.tobytes().split(b'"')[1].decode())
        tag, value = self.deferred_value()
        real = float(self.deferred_real[0])
        if tag == TAG_DOUBLE:
            return Decimal(real)
        return naive_values._quotient(value, Decimal(int(real))) if real else value

    def deferred_value(self) -> tuple[int, Decimal]:
        tag, hi, lo, scale = (int(x) for x in self.deferred[0, : kernel.DEFERRED_PLACE])
        return tag, Decimal((hi << 64) | (lo & ((1 << 64) - 1))).scaleb(-scale)


@given(st.lists(SCALED, max_size=12), st.data())
@example([((1 << 54), 0), (1, 15)], None)
@example([(15, 1), (-1, 2)], None)
@example([(1, 12), (10**16, 0), (-1, 0)], None)
def test_decimals_are_added_exactly_and_leave_no_error(
    numbers: list[tuple[int, int]], data: st.DataObject | None
) -> None:
    total = Sum()
    for unscaled, scale in numbers:
        assert total.add(unscaled, scale, 1)
    expected = sum((Fraction(u, 10**s) for u, s in numbers), Fraction(0))
    hi, lo = int(total.words[kernel.HI]), int(total.words[kernel.LO]) & ((1 << 64) - 1)
    assert Fraction((hi << 64) | lo, 10 ** int(total.words[kernel.SCALE])) == expected
    for unscaled, scale in data.draw(st.permutations(numbers)) if data else numbers:
        assert total.add(unscaled, scale, -1)
    assert total.words[kernel.HI] == total.words[kernel.LO] == 0


def test_overflow_of_128_bits_is_reported() -> None:
    total = Sum()
    assert total.add(1 << 126, 0, 1)
    assert not total.add(1 << 126, 0, 1)


@given(st.integers(-(1 << 126), 1 << 126))
@example(-1)
@example(-(1 << 64))
@example(1 << 63)
def test_128_bits_become_the_nearest_double(value: int) -> None:
    found = float(kernel._real128(*words128(value)))
    assert abs(found - float(value)) <= 2e-16 * abs(float(value))


@pytest.mark.parametrize(
    ("numbers", "average", "expected"),
    [
        ([], False, ("0", "integer")),
        ([], True, ("0", "integer")),
        ([("2", "integer"), ("-5", "byte")], False, ("-3", "integer")),
        ([("1", "integer"), ("2", "integer")], True, ("1.5", "decimal")),
        ([("1", "integer")] * 2 + [("2", "integer")], True, ("1.333333333333333333", "decimal")),
        ([("1.50", "decimal"), ("1", "integer")], False, ("2.5", "decimal")),
        ([("1.5", "decimal"), ("-0.01", "decimal")], False, ("1.49", "decimal")),
        ([("1.5", "decimal"), ("-1.5", "decimal")], False, ("0", "decimal")),
        ([("0.1", "double"), ("0.2", "double")], False, ("0.3", "double")),
        ([("1.5", "float"), ("1", "integer")], False, ("2.5", "float")),
        ([("1.5", "float"), ("1.5", "double")], False, ("3.0", "double")),
        ([("4194304.3", "float"), ("0", "integer")], False, ("4194304.5", "float")),
        ([("16777217", "float"), ("1", "double")], False, ("16777217.0", "double")),
        ([("0.25", "float"), ("1.0", "decimal")], True, ("0.625", "float")),
        ([("7", "double"), ("0.5", "decimal")], True, ("3.75", "double")),
    ],
)
def test_the_type_of_a_total(numbers: list[tuple[str, str]], average: bool, expected: tuple[str, str]) -> None:
    total = Sum()
    for text, datatype in numbers:
        total.take(text, datatype)
    assert total.total(average=average) == inline_id(*expected)


def test_a_type_disappears_with_its_last_member() -> None:
    total = Sum()
    for text, datatype in (("1.25", "decimal"), ("0.5", "double"), ("3", "integer")):
        total.take(text, datatype)
    assert total.total() == inline_id("4.75", "double")
    total.take("0.5", "double", -1)
    assert total.total() == inline_id("4.25", "decimal")
    total.take("1.25", "decimal", -1)
    assert total.total() == inline_id("3", "integer")


def test_a_member_that_is_no_number_is_an_error_while_it_is_there() -> None:
    total = Sum()
    total.take("3", "integer")
    total.take("true", "boolean")
    assert total.total() == total.total(average=True) == 0
    total.take("true", "boolean", -1)
    assert total.total() == inline_id("3", "integer")


@pytest.mark.parametrize(
    ("numbers", "average", "tag"),
    [
        ([(str((1 << 55) - 1), "integer")] * 3, False, TAG_INTEGER),
        ([("36028797018963967", "integer"), ("0.000000000000001", "decimal")], False, TAG_DECIMAL),
        ([("-36028797018963968", "integer")] * 2, False, TAG_INTEGER),
    ],
)
def test_a_total_without_an_inline_id_is_left_to_the_dictionary(
    numbers: list[tuple[str, str]], average: bool, tag: int
) -> None:
    total = Sum()
    for text, datatype in numbers:
        total.take(text, datatype)
    found = total.total(average=average)
    assert found >> 60 == -1
    assert found & ((1 << 60) - 1) == 0
    assert total.deferred_value() == (tag, sum(Decimal(text) for text, _ in numbers))


def test_a_sum_of_doubles_beyond_an_id_is_a_double() -> None:
    total = Sum()
    for _ in range(3):
        total.take(str((1 << 55) - 1), "double")
    assert total.total() >> 60 == -1
    assert total.deferred[0, 0] == TAG_DOUBLE
    assert total.deferred_real[0] == float(3 * ((1 << 55) - 1))


@given(st.one_of(NEAR, st.integers(-(1 << 70), 1 << 70)), st.integers(0, 15), st.sampled_from(list(COUNTED_BY)))
@example(18447000000000005, 1, "double")
@example(18450000000000000025, 1, "double")
@example((1 << 62) + 1, 1, "integer")
def test_totals_near_the_bounds_of_words_and_ids(unscaled: int, scale: int, kind: str) -> None:
    for n in (1, 2, 3, 1000):
        total = Sum()
        # Integers have a scale after decimals have come and gone.
        assert total.add(unscaled * 10**scale if kind == "integer" else unscaled, scale, 1)
        for word in (kernel.N, *COUNTED_BY[kind]):
            total.words[word] = n
        exact = Decimal(unscaled).scaleb(0 if kind == "integer" else -scale)
        mean = naive_values._quotient(exact, Decimal(n))
        for found, expected in ((total.said(average=False), exact), (total.said(average=True), mean)):
            if kind == "double":
                assert abs(found - expected) <= abs(expected) * Decimal(2) ** -51
            else:
                assert found == expected


def test_huge_members_leave_no_error_behind() -> None:
    apart, words = np.zeros(REAL_WORDS, np.uint32), np.zeros(kernel.SUM_WORDS, np.int64)
    totals = []
    for value, sign in ((3e-5, 1), (1e300, 1), (1.7e308, 1), (1.6e308, 1), (1.7e308, -1), (1e300, -1), (1.6e308, -1)):
        kernel._take_real(words, 0, apart, 0, np.float64(value), np.int64(kernel.DOUBLES), np.int64(sign))
        totals.append(kernel._real_total(0.0, 0.0, apart, 0))
    assert totals == [3e-5, 1e300, 1.7e308 + 1e300, math.inf, 1.6e308 + 1e300, 1.6e308, 3e-5]
    kernel._take_real(words, 0, apart, 0, np.float64(3e-5), np.int64(kernel.DOUBLES), np.int64(-1))
    assert not apart.any()


@given(
    st.integers(-(1 << 120), 1 << 120),
    st.integers(0, 15),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
)
@example(10, 0, [1e-17, -10.0])
@example(-1, 0, [1.0, 5e-324])
def test_separate_sums_are_added_to_the_exact_sum(unscaled: int, scale: int, reals: list[float]) -> None:
    total = Sum()
    total.add(unscaled, scale, 1)
    for real in reals:
        kernel._take_real(total.words, 0, total.apart, 0, np.float64(real), np.int64(kernel.DOUBLES), np.int64(1))
    value, left = kernel._real_decimal(*words128(unscaled), np.int64(scale))
    before = total.apart.copy()
    found = kernel._real_total(value, left, total.apart, 0)
    exact = Fraction(unscaled, 10**scale) + sum(map(Fraction, reals))
    if abs(exact) < Fraction(1.7e308):
        # To the last digit, also where they cancel down to the last digit of a decimal.
        assert abs(Fraction(found) - exact) <= max(
            abs(exact) / (1 << 53), abs(Fraction(unscaled, 10**scale)) / (1 << 100)
        )
    assert kernel.nearest_real(total.apart, 0) == kernel.nearest_real(before, 0)
