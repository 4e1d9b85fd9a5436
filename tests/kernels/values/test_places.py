"""The places of numbers among the integers, against fractions."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dataflow.places import places_of
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.kernels.values.places import NO_NUMBER

XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = st.one_of(
    st.integers(-(10**15), 10**15).map(lambda n: (str(n), "integer")),
    st.decimals(-(10**12), 10**12, places=4).map(lambda d: (f"{d:f}", "decimal")),
    st.integers(-1000, 1000).map(lambda n: (f"{n / 8}", "double")),
    st.integers(-99, 99).map(lambda n: (f"{n}e1", "double")),
    st.integers(0, 99).map(lambda n: (f"+{n}", "int")),
)


@given(st.lists(NUMBERS, max_size=20))
def test_places_are_those_of_the_values(numbers):
    dictionary = Dictionary()
    ids = dictionary.encode([f'"{text}"^^<{XSD}{datatype}>' for text, datatype in numbers])
    values = [Fraction(Decimal(text)) for text, _ in numbers]
    assert places_of(ids, dictionary).tolist() == [2 * floor(v) + (v != floor(v)) for v in values]


def test_other_terms_have_none():
    dictionary = Dictionary()
    ids = dictionary.encode(
        ["<http://ex.org/a>", '"x"', '"5"', f'"x"^^<{XSD}integer>', f'"NaN"^^<{XSD}double>', f'"true"^^<{XSD}boolean>']
    )
    assert places_of(np.append(ids, 0), dictionary).tolist() == [NO_NUMBER] * 7


@pytest.mark.parametrize("text", [f'"{2**60}"^^<{XSD}integer>', f'"{2**54}"^^<{XSD}double>'])
def test_numbers_that_cannot_be_compared_exactly_are_refused(text):
    dictionary = Dictionary()
    with pytest.raises(RunError, match="cannot be compared exactly"):
        places_of(dictionary.encode([text]), dictionary)


def test_infinite_numbers_lie_beyond_all_others():
    dictionary = Dictionary()
    ids = dictionary.encode(
        [
            f'"-INF"^^<{XSD}double>',
            f'"{-(2**59)}"^^<{XSD}integer>',
            f'"{2**59}"^^<{XSD}integer>',
            f'"INF"^^<{XSD}double>',
        ]
    )
    found = places_of(ids, dictionary)
    assert sorted(found.tolist()) == found.tolist()
