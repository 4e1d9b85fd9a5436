"""The order of values for ORDER BY and the total order of terms for MIN and MAX, against the oracle's."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import config

from cqels_py.dictionary import Dictionary
from cqels_py.functions.dates import parse_datetime
from cqels_py.kernels.values.order import order_terms, order_values
from cqels_py.terms.rdf import to_rdflib
from tests.operators.plain_dictionary import typed
from tests.oracle.naive_values import canonical, order_key, value_key

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

POOL = [
    *(typed(text, "integer") for text in ("0", "-1", "7", "07", "+8", "-36028797018963968", "12345678901234567890")),
    *(typed(text, "decimal") for text in ("0.0", "7.0", "7.00", "-0.5", ".25", "-99999999999999999999.5", "1e5")),
    *(typed(text, "double") for text in ("7", "7.5", "75E-1", "1.0E300", "-1.0e-300", "INF", "-INF", "NaN", "1E400")),
    *(typed(text, "float") for text in ("7", "7.5", "0.1", "1E10", "INF", "NaN", "-0.5e0")),
    *(typed(text, "long") for text in ("99999999999999999", "100000000000000000", "-100000000000000000")),
    *(typed(text, "double") for text in ("1e", "1e+", ".", "Inf", "-NaN", "+INF")),
    *(typed("3", "byte"), typed("18446744073709551615", "unsignedLong"), typed("2.5", "integer")),
    *(typed(text, "boolean") for text in ("true", "false", "1", "0")),
    *(typed(f"2020-01-01T00:00:00{rest}", "dateTime") for rest in ("Z", ".5Z", ".000001Z", "+14:00", "-01:30")),
    *(typed(text, "dateTime") for text in ("0001-01-01T00:00:00Z", "1969-12-31T23:59:59.9")),
    *(typed(text, "date") for text in ("2020-01-01", "1969-12-31Z", "2020-01-01+14:00")),
    *(
        typed(text, "dayTimeDuration")
        for text in ("PT1H", "PT60M", "P365D", "-P1D", "PT0.5S", "P30D", "PT", "P1Y", "PT0S", "PT0.000S")
    ),
    *(
        typed(text, "yearMonthDuration")
        for text in ("P1Y", "P12M", "P1M", "-P1M", "P0M", "P1D", "P999999999Y", "P1234567890M")
    ),
    *(
        typed(text, "duration")
        for text in ("P1YT1H", "PT60M", "P1M31D", "P12M", "-P1YT0.123456789123456789S", "P", "P1M2Y", "P1DT")
    ),
    typed("PT0.1234567891234567891S", "duration"),
    *('""', '"a"', '"ab"', '"b"', '"é"', '"\U0001f600"', '"\uffff"', '"A"', '"a\\"b"', '"7"'),
    *('"a"@en', '"a"@de', '"b"@de', '"ab"@en'),
    *(typed("7", name) for name in ("int", "unsignedByte", "positiveInteger")),
    *(
        '"x"^^<urn:t>',
        '"x!"^^<urn:t>',
        '"y"^^<urn:a>',
        '"1"^^<urn:t>',
        '"x"^^<http://www.w3.org/2001/XMLSchema#integer>',
    ),
    *("<urn:a>", "<urn:ab>", "<urn:b>", "<urn:é>", "_:x", "_:y"),
]


class Order:
    """Ids of texts, and how the kernel orders them."""

    def __init__(self, texts: list[str]) -> None:
        self.dictionary = Dictionary()
        self.ids = [np.int64(i) for i in self.dictionary.encode([None, *texts])]
        decoded = self.dictionary.decode(np.array(self.ids))
        self.terms = [None if text is None else canonical(to_rdflib(text)) for text in decoded]

    def compare(self, a: np.int64, b: np.int64) -> int:
        return int(order_terms(a, b, self.dictionary.arena, self.dictionary.table))

    def compare_values(self, a: np.int64, b: np.int64) -> int:
        return int(order_values(a, b, self.dictionary.arena, self.dictionary.table))


def sign(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def test_every_two_terms_are_ordered_as_by_the_oracle() -> None:
    assert len({order_key(term) for term in Order(POOL).terms}) == len(Order(POOL).ids)
    assert_ordered(POOL)


def test_sorting_gives_one_order_from_any_other() -> None:
    order = Order(POOL)
    rng = random.Random(3)
    sorted_ids = sorted(order.ids, key=cmp_to_key(order.compare))
    for _ in range(3):
        shuffled = list(order.ids)
        rng.shuffle(shuffled)
        assert sorted(shuffled, key=cmp_to_key(order.compare)) == sorted_ids


SMALL = ("0", "1", "7", "12", "-3")
LONG = ("12345678901234567890", "12345678901234567891", "36028797018963968", "99999999999999999999999")


def variants(whole: str, fraction: str, power: int) -> list[str]:
    """Texts of numbers with about the same digits, in all forms."""
    plain = whole + (f".{fraction}" if fraction else "")
    sign, size = ("-", whole[1:]) if whole[0] == "-" else ("", whole)
    exact = [(plain, name) for name in (["integer", "long", "byte"] if not fraction else [])]
    exact += [(text, "decimal") for text in (plain, f"{sign}0{size}.{fraction}0", f"{whole}.{fraction}")]
    exact += [(f"+{whole}", "integer")] if not sign and not fraction else []
    real = [
        plain,
        f"{whole}.{fraction}E{power}",
        f"{sign}.{size}{fraction}e{power + len(size)}",
        f"{plain}e+00{abs(power)}",
    ]
    return [typed(*pair) for pair in exact] + [typed(text, name) for text in real for name in ("double", "float")]


POWERS = [0, 0, 1, -1, -20, 25]
# Uncompiled, every two of a few numbers so small take minutes; those of the examples run in any mode.
FAR_POWERS = [] if config.DISABLE_JIT else [-320, 400]
NUMBERS = st.builds(
    variants,
    st.one_of(st.sampled_from([*SMALL, *LONG, *(f"-{x}" for x in LONG)]), st.integers(-(10**40), 10**40).map(str)),
    st.sampled_from(["", "0", "5", "50", "25", "000000000000000000001", "123456789012345678901234567890"]),
    st.sampled_from([*POWERS, *FAR_POWERS]),
)


# As plain Python the digits of 1E400 take minutes.
@(settings.get_profile("few") if config.DISABLE_JIT else settings.default)
@given(st.lists(NUMBERS, min_size=1, max_size=3))
@example([[typed("0.1", "double"), typed("1e-1", "double"), typed("0.1", "decimal"), typed("0.1", "float")]])
@example([[typed("5E-324", "double"), typed("0.0E0", "double"), typed("-0.0", "double"), typed("0", "integer")]])
@example([[typed("1.7976931348623157E308", "double"), typed("1E309", "double"), typed("INF", "double")]])
@example([[typed("-12345678901234567891", "integer"), typed("-12345678901234567890", "integer")]])
@example([[typed("-36028797018963969", "integer"), typed("-36028797018963968", "integer")]])
@example([[typed("123456789012345678901.5", "decimal"), typed("123456789012345678902", "integer")]])
@example([[typed(text, "decimal") for text in ("1.00000000000000000001", "1.0", "0.99999999999999999999")]])
@example(
    [[typed(text, "decimal") for text in ("100000000000000000000.1", "100000000000000000000", "1000000000000000000")]]
)
@example([[typed("9007199254740993", "integer"), typed("9007199254740992.0", "double")]])
@example([[typed("0.1", "double"), typed("0.10000000000000001", "double"), typed("0.1000000000000000056", "decimal")]])
@example([[typed("16777217", "float"), typed("16777216", "float"), typed("16777217", "double")]])
@example([[typed("1E400", "double"), typed("2E400", "double"), typed("INF", "double"), typed("1E40", "float")]])
@example([[typed("-1E-400", "double"), typed("0", "integer"), typed("1E-50", "float"), typed("-0.0E0", "double")]])
@example([[typed("9007199254740993.000000000000000000001", "double"), typed("9007199254740994", "double")]])
@example([[typed("NaN", "double"), typed("NaN", "float"), typed("-INF", "float"), typed("-INF", "double")]])
def test_numbers_of_any_length_are_ordered_by_value(found: list[list[str]]) -> None:
    assert_ordered([text for texts in found for text in texts])


@given(st.floats(allow_nan=False), st.integers(14, 40), st.sampled_from(["double", "float"]))
@example(0.30000000000000004, 16, "double")
@example(5e-324, 15, "double")
@example(2.0**-44, 17, "double")
@example(1.7976931348623157e308, 17, "double")
def test_digits_that_do_not_change_the_double_do_not_change_the_order(value: float, places: int, datatype: str) -> None:
    texts = [repr(value).replace("inf", "INF"), f"{Decimal(value):.{places}E}".replace("Infinity", "INF")]
    assert_ordered([typed(text, each) for text in texts for each in (datatype, "double")])


TIMES = st.builds(
    lambda day, time, fraction, zone: f"{day}T{time}{'.' + fraction if fraction else ''}{zone}",
    st.sampled_from(["2020-01-01", "2019-12-31", "2020-02-29", "0001-01-01", "9999-12-31"]),
    st.sampled_from(["00:00:00", "12:30:00", "23:59:59"]),
    st.sampled_from(
        ["", "0", "5", "50", "500000", "5000000", "4999999", "123456789", "1234567890123456789012", "0" * 30]
    ),
    st.sampled_from(["", "Z", "+00:00", "-00:00", "+01:00", "-00:15", "+00:07", "+14:00", "-14:00"]),
)
DATES = st.builds(
    "".join,
    st.tuples(st.sampled_from(["2020-01-01", "2019-12-31"]), st.sampled_from(["", "Z", "+14:00", "-10:00", "-00:07"])),
)


@given(
    st.lists(TIMES.map(lambda text: typed(text, "dateTime")), min_size=2, max_size=6),
    st.lists(DATES.map(lambda text: typed(text, "date")), max_size=4),
)
@example([typed("2020-01-01T00:00:00.123456789Z", "dateTime"), typed("2021-01-01T00:00:00Z", "dateTime")], [])
@example([typed("2020-01-01T00:00:00+14:00", "dateTime"), typed("2019-12-31T10:00:00.0", "dateTime")], [])
def test_datetimes_are_ordered_by_instant_to_the_last_digit(times: list[str], dates: list[str]) -> None:
    assert_ordered([*times, *dates])


def assert_ordered(texts: list[str]) -> None:
    """Every two of the terms, and their values, stand as the oracle has them."""
    order = Order(texts)
    keys = [(i, order_key(term), value_key(term)) for i, term in zip(order.ids, order.terms, strict=True)]
    for (a, a_key, a_value), (b, b_key, b_value) in itertools.product(keys, repeat=2):
        assert order.compare(a, b) == sign(a_key, b_key), (a_key, b_key)
        assert order.compare_values(a, b) == sign(a_value, b_value), (a_key, b_key)


def test_years_beyond_four_digits_and_the_end_of_a_day() -> None:
    """The oracle knows neither."""
    ascending = [
        *("-12345-01-01T00:00:00Z", "-0001-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "2019-12-31T23:59:59.9999999Z"),
        *("2020-01-01T00:00:00Z", "2019-12-31T24:00:00Z", "2020-01-01T00:00:00.0Z", "2020-01-01T00:00:00.0000001Z"),
        *("10000-01-01T00:00:00Z", "123456789-12-31T24:00:00Z"),
    ]
    order = Order([typed(text, "dateTime") for text in ascending])
    for (a, one), (b, other) in itertools.product(enumerate(order.ids), repeat=2):
        assert order.compare(one, other) == sign(a, b), (a, b)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2020-02-30T00:00:00Z",
            "2020-13-01T00:00:00Z",
            "2020-00-01T00:00:00Z",
            "2020-01-00T00:00:00Z",
            "2019-02-29T00:00:00Z",
        ),
        *("2020-01-01T24:00:01Z", "2020-01-01T24:00:00.1Z", "2020-01-01T25:00:00Z", "2020-01-01T00:60:00Z"),
        *("2020-01-01T00:00:60Z", "2020-01-01T00:00:00.Z", "2020-01-01T00:00:00+14:01", "2020-01-01T00:00:00+00:60"),
        *("2020-01-01 00:00:00Z", "2020-01-01T00:00Z", "2020-01-01T00:00:00z", "2020-01-01", "20-01-01T00:00:00Z", ""),
        *("02020-01-01T00:00:00Z", "1234567890-01-01T00:00:00Z", "2020-1-01T00:00:00Z", "2020-01-01T00-00-00Z", "-"),
        *("2020-01-01T00:00:00ZZ", "2020-01-01T00:00:00+1:00", "2020/01/01T00:00:00Z", "2020-01-01T00:00:00.1234567+"),
    ],
)
def test_invalid_datetimes_come_after_all_strings(text: str) -> None:
    assert parse_datetime(text, is_date=False) is None
    order = Order([typed(text, "dateTime"), '"~"@zz', typed("2020-01-01T00:00:00Z", "dateTime")])
    assert order.compare(order.ids[1], order.ids[2]) == order.compare(order.ids[1], order.ids[3]) == 1


@given(st.text(max_size=6), st.text(max_size=6))
@example("a\nb", "aAb")
@example('a"', "a#")
@example("\\", "Z")
@example("a\r", "a ")
def test_strings_are_ordered_by_code_points(a: str, b: str) -> None:
    a, b = (text.encode("utf-8", "ignore").decode() for text in (a, b))
    texts = ['"' + "".join(f"\\U{ord(c):08x}" for c in text) + '"' for text in (a, b)]
    order = Order(texts)
    assert order.compare(order.ids[1], order.ids[2]) == sign(list(map(ord, a)), list(map(ord, b)))
