from __future__ import annotations

from fractions import Fraction
from functools import cmp_to_key

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.kernels import compare, values
from cqels_py.operators.r2r.functions.terms import parse_term
from cqels_py.operators.r2r.functions.values import order_key
from tests.operators.plain_dictionary import PlainDictionary, typed

INTEGERS = st.integers(-(1 << 55), (1 << 55) - 1).map(str)
SCALED = st.builds(
    lambda unscaled, scale: f"{unscaled // 10**scale}.{unscaled % 10**scale:0{scale}}" if scale else str(unscaled),
    st.integers(1, 1 << 55),
    st.integers(0, 15),
)
NUMBERS = st.one_of(
    INTEGERS.map(lambda text: typed(text, "integer")),
    *(SCALED.map(lambda text, name=name: typed(text, name)) for name in ("decimal", "double", "float")),
    st.sampled_from(
        [typed(text, name) for text in ("1", "1.0", "-2.5", "0.1", "0.3") for name in ("decimal", "double")]
    ),
    st.sampled_from([typed("0.1", "float"), typed("0.3", "float"), typed("1", "byte")]),
)
OTHERS = st.sampled_from(
    [
        *(typed(text, "boolean") for text in ("true", "false", "0", "1")),
        *(typed(f"2010-01-01T{time}", "dateTime") for time in ("00:00:00", "00:00:00.00Z", "01:00:00+01:00")),
        typed("2010-01-01T00:00:00.000001Z", "dateTime"),
        *(typed(text, "date") for text in ("2010-01-01", "2010-01-02+14:00", "2009-12-31Z")),
        "_:a",
        "_:b",
        "<urn:a>",
        '"a"',
    ]
)
TERMS = st.one_of(NUMBERS, OTHERS)


def value_key(text: str) -> tuple[object, ...]:
    """The slow path's sort key without its tie-breakers."""
    key = order_key(parse_term(text))
    return key[:-2] if key[0] in (3, 4, 5, 6) else key


@given(st.integers(-(1 << 62), 1 << 62), st.integers(0, 18), st.integers(-(1 << 62), 1 << 62), st.integers(0, 18))
@example(1, 0, 10, 1)
@example(-1, 0, -11, 1)
@example(-11, 1, -1, 0)
def test_decimals_are_compared_exactly(a: int, a_scale: int, b: int, b_scale: int) -> None:
    first, second = Fraction(a, 10**a_scale), Fraction(b, 10**b_scale)
    found = compare.compare_decimals(np.int64(a), np.int64(a_scale), np.int64(b), np.int64(b_scale))
    assert found == (first > second) - (first < second)


@given(TERMS, TERMS)
@example(typed("0.1", "decimal"), typed("0.1", "double"))
@example(typed("0.3", "decimal"), typed("0.3", "double"))
@example(typed(str((1 << 53) + 1), "integer"), typed(str(1 << 53), "double"))
def test_the_order_is_that_of_values(a: str, b: str) -> None:
    first, second = PlainDictionary().encode([a, b])
    found = compare.compare_values(first, second)
    assert found == -compare.compare_values(second, first) or found == compare.UNORDERED
    if found == compare.UNORDERED:
        assert a[0] in '"<' and b[0] in '"<'
        return
    one, other = value_key(a), value_key(b)
    if one[0] == other[0] == 1:
        return
    if one != other:
        assert found == (-1 if one < other else 1)
    elif first == second:
        assert found == 0
    else:
        places = [(values.decode(each)[0] if one[0] == 3 else 0, each) for each in (first, second)]
        assert found == (-1 if places[0] < places[1] else 1), "ties go by the kind of number, then by id"


@given(st.lists(NUMBERS, min_size=3, max_size=8))
@example([typed(str((1 << 53) + 1), "integer"), typed(str(1 << 53), "double"), typed(str(1 << 53), "integer")])
def test_the_order_is_transitive(texts: list[str]) -> None:
    ids = [i for i in PlainDictionary().encode(texts) if values.decode(i)[0] != values.SLOW]
    decided = [i for i in ids if all(compare.compare_values(i, j) != compare.UNORDERED for j in ids)]
    ordered = sorted(decided, key=cmp_to_key(lambda a, b: int(compare.compare_values(a, b))))
    for i, a in enumerate(ordered):
        assert all(compare.compare_values(a, b) <= 0 for b in ordered[i:])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("<urn:a>", '"a"', -1),
        ('"a"', "_:b", 1),
        ("<urn:a>", "<urn:b>", compare.UNORDERED),
        ('"a"', '"b"', compare.UNORDERED),
        ('"a"', typed("5", "integer"), compare.UNORDERED),
        (typed("5", "integer"), typed("true", "boolean"), -1),
        (typed("2010-01-01T00:00:00Z", "dateTime"), typed("2009-01-01", "date"), -1),
    ],
)
def test_kinds_come_in_their_order(a: str, b: str, expected: int) -> None:
    dictionary = PlainDictionary()
    assert compare.compare_values(*dictionary.encode([a, b])) == expected


def test_unbound_comes_first() -> None:
    (blank,) = PlainDictionary().encode(["_:a"])
    assert compare.compare_values(np.int64(0), blank) == -1
    assert compare.order_key_numeric(np.int64(0)) == (0, 0.0)


def test_coarse_keys() -> None:
    ids = PlainDictionary().encode([typed("2.5", "decimal"), typed("true", "boolean"), '"a"'])
    assert [compare.order_key_numeric(i) for i in ids] == [(3, 2.5), (4, 1.0), (-1, 0.0)]
