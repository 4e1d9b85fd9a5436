"""Rounded fractions as inline ids: from a sum and a count, from the text of the decimal, and back."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.functions.numbers import decimal_text, quotient
from cqels_py.kernels.values import decimal_texts, quotients
from cqels_py.terms.layout import TAG_QUOTIENT
from tests.operators.plain_dictionary import inline_id, typed

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
EXACT = Context(prec=200)
SUMS = st.one_of(
    st.integers(-(10**6), 10**6), st.integers(-(10**12), 10**12), st.integers(-(1 << 62) + 1, (1 << 62) - 1)
)
COUNTS = st.one_of(st.integers(1, 300), st.integers(1, 70_000), st.integers(1, 1 << 58))


def tag(identifier: int) -> int:
    return (identifier >> 60) & 15


def mean(total: int, scale: int, count: int) -> str:
    return decimal_text(quotient(Decimal(total).scaleb(-scale, EXACT), count))


@given(SUMS, st.integers(0, 15), COUNTS)
@example(64, 0, 3)
@example(-6400, 2, 3)
@example(1, 0, 3)
@example(1, 1, 7)
@example(30, 1, 9)
@example(2**39 - 1, 0, 2**16 - 1)
@example(2**39, 0, 3)
@example(10**17 + 1, 15, 3)
@example(1, 0, 1 << 40)
@example(100_000_000_000_000_001, 1, 99_999_999)
def test_a_mean_has_the_id_of_its_text(total: int, scale: int, count: int) -> None:
    text = mean(total, scale, count)
    (encoded,) = Dictionary().encode([typed(text, "decimal")]).tolist()
    found = int(quotients.fraction_id(np.int64(total), np.int64(count), np.int64(scale)))
    if found:
        assert found == encoded == inline_id(text, "decimal")
        assert Dictionary().decode(np.array([found])) == [typed(text, "decimal")]
        negative, unscaled, places = quotients.quotient_decimal(np.int64(found))
        assert Decimal(-int(unscaled) if negative else int(unscaled)).scaleb(-int(places), EXACT) == Decimal(text)
    else:
        assert tag(encoded) != TAG_QUOTIENT


@given(st.lists(st.tuples(SUMS, st.integers(0, 5), st.integers(0, 300)), min_size=1, max_size=20))
@example([(n, 2, count) for n in (1, 7, -350, 2137, 10**7) for count in range(1, 200)])
def test_many_means_have_the_ids_of_each(rows: list[tuple[int, int, int]]) -> None:
    totals, scales, counts = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    found = np.zeros(len(rows), np.int64)
    quotients.fraction_ids(totals, scales, counts, 0, len(rows), found)
    for identifier, (total, scale, count) in zip(found.tolist(), rows, strict=True):
        if count:
            assert identifier in (0, int(quotients.fraction_id(np.int64(total), np.int64(count), np.int64(scale))))


def test_means_of_readings_are_inline() -> None:
    """Few are not: those with a zero in the last digit but one, or those that are too long."""
    rng = np.random.default_rng(5)
    for scale, most in ((0, 10**6), (1, 500), (2, 10_000)):
        totals, counts = rng.integers(10 * most, 100 * most, 500), rng.choice([3, 7, 30, 59, 96, 97, 1234], 500)
        texts = [typed(mean(int(t), scale, int(c)), "decimal") for t, c in zip(totals, counts, strict=True)]
        tags = (Dictionary().encode(texts) >> 60) & 15
        assert np.isin(tags, (6, TAG_QUOTIENT)).mean() > 0.97


@given(st.lists(st.tuples(st.integers(-(1 << 126), 1 << 126), st.integers(0, 60)), min_size=1, max_size=10))
@example(
    [(0, 0), (0, 5), (-10, 1), (1, 40), (10**38, 0), (3333333333333333333, 19), (9999999999999999999, 18), (-50, 3)]
)
def test_decimals_are_written_in_their_canonical_form(numbers: list[tuple[int, int]]) -> None:
    rows = np.array([((v >> 64), np.uint64(v & (1 << 64) - 1).astype(np.int64), s) for v, s in numbers], np.int64)
    out, offsets = np.zeros(200 * len(rows), np.uint8), np.zeros(len(rows) + 1, np.int64)
    decimal_texts.write_decimals(rows, np.zeros(decimal_texts.MOST_DIGITS, np.uint8), out, offsets)
    for i, (value, scale) in enumerate(numbers):
        text = out[offsets[i] : offsets[i + 1]].tobytes().decode()
        assert text == typed(decimal_text(Decimal(value).scaleb(-scale, EXACT)), "decimal")


@pytest.mark.parametrize("text", ["21.33333333333333333", "-0.1428571428571428571", "1234567.142857142857"])
def test_other_forms_of_a_fraction_have_no_inline_id(text: str) -> None:
    inline = Dictionary().encode([typed(text, "decimal")])[0]
    assert tag(int(inline)) == TAG_QUOTIENT
    sign, size = ("-", text[1:]) if text[0] == "-" else ("", text)
    others = [f"{sign}0{size}", f"{text}0", f"+{text}", text[:-1], f"{text}3", f"{sign}{size.lstrip('0')}"]
    forms = [typed(other, "decimal") for other in others if other != text] + [
        typed(text, "double"),
        typed(text, "float"),
    ]
    dictionary = Dictionary()
    ids = dictionary.encode(forms)
    assert not np.isin((ids >> 60) & 15, TAG_QUOTIENT).any()
    assert dictionary.decode(ids) == forms
    assert Fraction(text) == Fraction(f"{sign}0{size}")
