from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.kernels.values import decimals
from cqels_py.terms.layout import TAG_DECIMAL
from tests.operators.plain_dictionary import inline_id

WIDE = st.integers(-(1 << 126), 1 << 126)
EXACT = Context(prec=200)
COUNTS = st.one_of(
    st.sampled_from([1, 2, 3, 7, 10, 96, 1 << 40, 5**20, 10**9, 10**17]),
    st.integers(1, 1000),
    st.integers(1, (1 << 59) - 1),
)
NARROW = st.integers(-(1 << 62) + 1, (1 << 62) - 1)


def split(value: int) -> tuple[np.int64, np.uint64]:
    return np.int64(value >> 64), np.uint64(value & (1 << 64) - 1)


def whole(hi: int, lo: int) -> int:
    return (int(hi) << 64) + int(lo)


@given(WIDE, st.integers(-(1 << 63), (1 << 63) - 1))
@example((1 << 64) - 1, 1)
@example(-(1 << 64), -1)
@example(0, -(1 << 63))
def test_a_word_is_added_to_128_bits(total: int, value: int) -> None:
    assert whole(*decimals.add128(*split(total), np.int64(value))) == total + value


@given(WIDE)
@example(0)
@example(1 << 64)
def test_128_bits_are_negated(value: int) -> None:
    assert whole(*decimals.negate128(*split(value))) == -value


@given(st.integers(-(1 << 100), 1 << 100), st.integers(0, 18))
@example((1 << 127) // 10**18, 18)
def test_scaling_is_exact_or_reports_overflow(value: int, digits: int) -> None:
    hi, lo, ok = decimals.scale128(*split(value), np.int64(digits))
    assert ok == (abs(value) * 10**digits < 1 << 127)
    if ok:
        assert whole(hi, lo) == value * 10**digits


@pytest.mark.parametrize("value", [(1 << 55) - 1, 1 << 55, -(1 << 55), -(1 << 55) - 1, 1 << 70, -(1 << 70), 0])
def test_decimals_that_fit_an_id(value: int) -> None:
    assert decimals.fits_id(*split(value), 15) == (-(1 << 55) <= value < 1 << 55)
    assert not decimals.fits_id(*split(0), 16)


@given(st.one_of(NARROW, st.integers(-(1 << 70), 1 << 70)))
def test_narrow_values_survive_a_round_trip(value: int) -> None:
    hi, lo = split(value)
    if decimals.is_narrow(hi, lo):
        assert decimals.narrow128(lo) == value
    else:
        assert abs(value) >= decimals.LIMIT


def rounded_quotient(value: int, scale: int, count: int) -> Decimal:
    """16 significant digits by Python's decimals, but never fewer than the integer part has, which then does not fit."""
    with localcontext() as context:
        context.prec = 80
        total = Decimal(value).scaleb(-scale)
        context.prec = max(16, len(str(abs(value) // (10**scale * count))))
        context.rounding = ROUND_HALF_EVEN
        return total / count


def fits(quotient: Decimal) -> bool:
    exponent = quotient.normalize().as_tuple().exponent
    unscaled = abs(int(quotient.scaleb(max(0, -int(exponent)))))
    return int(exponent) >= -decimals.MAX_SCALE and unscaled < 10**decimals.SHORT_DIGITS


@given(st.one_of(NARROW, st.integers(-(10**24), 10**24)), st.integers(0, 15), st.integers(1, 1 << 40))
@example(1, 0, 3)
@example(2, 0, 3)
@example(-1, 0, 3)
@example(10**15 * 2 + 1, 0, 2)
@example((10**16 - 1) * 10 + 5, 1, 1)
@example((10**15 * 10 + 5), 1, 1)
@example((10**15 * 10 + 15), 1, 1)
@example(0, 5, 7)
@example(1, 15, (1 << 40) - 1)
@example(1 << 90, 15, 3)
@example((1 << 126), 15, 1)
@example(10**30 + 5 * 10**12, 15, 1)
@example(10**30 + 5 * 10**12 + 1, 15, 1)
@example(10**30 + 15 * 10**12, 15, 1)
def test_the_mean_of_doubles_is_rounded_half_to_even(value: int, scale: int, count: int) -> None:
    unscaled, digits, ok = decimals.short_quotient(*split(value), np.int64(scale), np.int64(count))
    expected = rounded_quotient(value, scale, count)
    assert ok == fits(expected)
    if ok:
        assert Decimal(int(unscaled)).scaleb(-int(digits)) == expected
        assert digits == 0 or unscaled % 10 != 0, "no trailing zeros"


def quotient_of(value: int, scale: int, count: int) -> Decimal:
    """All digits where there are at most 37, or as many as those of the dividend; else 19, but all of the integer part."""
    dividend, whole = Decimal(value).scaleb(-scale, EXACT), len(str(abs(value) // (10**scale * count)))
    try:
        return Context(prec=max(37, len(str(abs(value))), whole), traps=[Inexact]).divide(dividend, Decimal(count))
    except Inexact:
        return Context(prec=max(19, whole), rounding=ROUND_HALF_EVEN).divide(dividend, Decimal(count))


@given(st.one_of(NARROW, st.integers(-(10**30), 10**30)), st.integers(0, 38), COUNTS)
@example(1, 0, 3)
@example(-2, 0, 3)
@example(1, 38, (1 << 58) - 1)
@example(1, 0, 1 << 37)
@example(5, 0, 1 << 40)
@example(10**36 + 1, 0, 8)
@example(10**17 * 2 + 1, 0, 2)
@example(999_999_999_999_999_999, 0, 7)
@example(1_714_564_800_123_456_789, 0, 10**9)
@example(0, 5, 7)
def test_a_terminating_quotient_keeps_its_digits_and_any_other_has_nineteen(value: int, scale: int, count: int) -> None:
    hi, lo, digits, ok = decimals.decimal_quotient(*split(value), np.int64(scale), np.int64(count))
    if not ok:
        assert abs(value) // count >= decimals.LIMIT or abs(value) >= 10**37 or count >= 1 << 59
        return
    found = Decimal((int(hi) << 64) + int(lo)).scaleb(-int(digits), EXACT)
    assert found == quotient_of(value, scale, count)


def inline(value: Decimal) -> int:
    """The id of a decimal in its canonical form with tag 6, or 0."""
    value = value.normalize(EXACT)
    scale = max(0, -int(value.as_tuple().exponent))
    unscaled = int(value.scaleb(scale, EXACT))
    if scale > 15 or not -(1 << 55) <= unscaled < 1 << 55:
        return 0
    return int(decimals.scaled_id(np.int64(TAG_DECIMAL), np.int64(unscaled), np.int64(scale)))


@given(NARROW, st.integers(0, 15), st.integers(1, 1 << 59))
@example(10**15 * 2 + 1, 0, 2)
@example((10**16 - 1) * 10 + 5, 1, 1)
@example(10**15 - 1, 0, 1)
@example(10**15, 0, 1)
@example(-(10**18), 15, 7)
@example(999_999_999_999_999_999, 0, 100)
@example(123_000, 2, 3)
@example(500_000, 3, 1)
@example(0, 5, 7)
@example(2, 0, 3)
def test_the_fast_path_of_averages_gives_the_same_result(value: int, scale: int, count: int) -> None:
    found = int(decimals.average_id(np.int64(value), np.int64(scale), np.int64(count)))
    assert found in (0, inline(quotient_of(value, scale, count)))


@given(
    st.integers(1, 10**6),
    st.integers(-(10**6), 10**6),
    st.integers(0, 6),
    st.sampled_from([1, 2, 4, 5, 8, 10, 16, 100, 4000]),
)
@example(1, 1, 0, 4000)
@example(999_999, 999, 0, 1000)
def test_terminating_averages_of_readings_take_the_fast_path(mean: int, more: int, scale: int, count: int) -> None:
    value = mean * count + more % count
    for each in (value, -value):
        found = int(decimals.average_id(np.int64(each), np.int64(scale), np.int64(count)))
        assert found == inline(quotient_of(each, scale, count))
        assert found != 0


def test_too_large_a_quotient_has_no_result() -> None:
    for value in (1 << 126, -(1 << 126), 1 << 64):
        assert not decimals.short_quotient(*split(value), np.int64(0), np.int64(1))[2]
        assert not decimals.decimal_quotient(*split(value + 1), np.int64(0), np.int64(3))[3] or (value + 1) % 3 == 0


@given(st.floats(allow_nan=True, allow_infinity=True))
@example(0.1 + 0.2)
@example(0.0)
@example(-0.0)
@example(23.0)
@example(0.3)
@example(1e-4)
@example(7.333333333333333)
@example(899999999999999.9)
def test_doubles_become_the_id_of_their_shortest_text(value: float) -> None:
    found = int(decimals.double_to_id(np.float64(value)))
    assert found in (0, inline_id(repr(value), "double"))
    if 1e-4 <= abs(value) < 1e9 and len(repr(abs(value))) <= 16:
        assert found != 0, "readings do not need the dictionary"


@given(st.floats(width=32, allow_nan=True, allow_infinity=True))
@example(0.10000000149011612)
@example(16777216.0)
@example(123456792.0)
def test_floats_become_the_id_of_their_shortest_text(value: float) -> None:
    found = int(decimals.float_to_id(np.float64(value)))
    assert found in (0, inline_id(np.format_float_positional(np.float32(value), trim="0"), "float"))
    if 1e-3 <= abs(value) < 1e6:
        assert found != 0


@given(st.integers(-(1 << 56), 1 << 56), st.integers(0, 18))
@example(0, 3)
def test_decimals_have_one_canonical_form(unscaled: int, scale: int) -> None:
    text = f"{Decimal(unscaled).scaleb(-scale):f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    expected = inline_id("0" if unscaled == 0 else text, "decimal") or 0
    assert int(decimals.decimal_to_id(np.int64(unscaled), np.int64(scale))) == expected


def test_ids_are_signed() -> None:
    assert int(decimals.scaled_id(np.int64(TAG_DECIMAL), np.int64(-1), np.int64(1))) == inline_id("-0.1", "decimal")
