"""Sums times counters, written as differences and added up again, against Python's fractions."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.kernels.aggregates import weighted_sums as kernel
from cqels_py.kernels.aggregates.accumulators import DECIMALS, DOUBLES, FLOATS, HI, LO, SCALE, SUM_WORDS, N
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS
from cqels_py.kernels.aggregates.group_records import Numbers
from tests.kernels.digits import exact_value
from tests.operators.plain_dictionary import inline_id

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

INTEGERS = st.integers(-(1 << 55), (1 << 55) - 1)
SMALL = st.integers(-1000, 1000)
NUMBERS = st.one_of(
    st.tuples(st.one_of(SMALL, INTEGERS), st.just(0), st.just("integer")),
    st.tuples(SMALL, st.integers(1, 4), st.sampled_from(["decimal", "float", "double"])),
)
ALIKE = st.sampled_from(["decimal", "float", "double"]).flatmap(
    lambda kind: st.lists(st.tuples(SMALL, st.just(2), st.just(kind)), max_size=6)
)
MEMBERS = st.one_of(
    ALIKE, st.lists(st.tuples(SMALL, st.just(0), st.just("integer")), max_size=6), st.lists(NUMBERS, max_size=6)
)
WEIGHTS = st.one_of(st.integers(-5, 5), st.integers(-(1 << 40), 1 << 40))
NO_HASHED_NUMBERS = (np.zeros(1, np.int64), np.zeros((1, 3), np.int64), np.zeros(1))
KINDS = {"decimal": DECIMALS, "float": FLOATS, "double": DOUBLES}

Number = tuple[int, int, str]


@cache
def identifier(number: Number) -> int:
    unscaled, scale, kind = number
    digits = f"{abs(unscaled):0{scale + 1}d}"
    text = ("-" if unscaled < 0 else "") + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)
    found = inline_id(text, kind)
    return 0 if found is None else found


def is_inline(number: Number) -> bool:
    """ "-0.00" is not."""
    return identifier(number) != 0


class Sum:
    """One accumulator, and what its members are."""

    def __init__(self, members: list[Number]) -> None:
        self.words, self.apart = np.zeros(SUM_WORDS, np.int64), np.zeros(REAL_WORDS, np.uint32)
        self.members = [each for each in members if is_inline(each)]
        for each in self.members:
            assert kernel.take_argument(
                self.words, 0, self.apart, 0, np.int64(identifier(each)), np.int64(1), *NO_HASHED_NUMBERS
            )

    @property
    def accumulator(self) -> kernel.Accumulator:
        return kernel.Accumulator(self.words, 0, self.apart, 0)

    def times(self, weight: int) -> dict[str, Fraction | int]:
        return sums((weight, each) for each in self.members)


def sums(weighted) -> dict[str, Fraction | int]:  # type: ignore[no-untyped-def]
    """The sum of numbers times their weights, and how many there are, of all and of each kind."""
    found: dict[str, Fraction | int] = {"sum": Fraction(0), "n": 0, **dict.fromkeys(KINDS, 0)}
    for weight, (unscaled, scale, kind) in weighted:
        value = Fraction(unscaled, 10**scale)
        found["sum"] += weight * (Fraction(float(np.float32(float(value)))) if kind == "float" else value)
        found["n"] += weight
        if kind in KINDS:
            found[kind] += weight
    return found


def said(words: np.ndarray, apart: np.ndarray) -> dict[str, Fraction | int]:  # type: ignore[type-arg]
    """The same of an accumulator."""
    value = (int(words[HI]) << 64) | (int(words[LO]) & ((1 << 64) - 1))
    return {
        "sum": Fraction(value, 10 ** int(words[SCALE])) + exact_value(apart),
        "n": int(words[N]),
        **{kind: int(words[place]) for kind, place in KINDS.items()},
    }


class Differences:
    """Differences as they are put down, and a group's accumulator that takes them."""

    def __init__(self, room: int = 16) -> None:
        self.out = np.zeros((3, room), np.int64)
        self.slots = np.zeros(1, np.int64)
        self.wide, self.wide_apart = np.zeros(room * SUM_WORDS, np.int64), np.zeros(REAL_WORDS * room, np.uint32)
        self.made = 0

    @property
    def places(self):  # type: ignore[no-untyped-def]
        self.made += 1
        return 0, self.made - 1, self.out, self.slots, self.wide, self.wide_apart

    def added(self) -> dict[str, Fraction | int]:
        words, apart = np.zeros(SUM_WORDS, np.int64), np.zeros(REAL_WORDS, np.uint32)
        for value, count, form in self.out[:, : self.made].T:
            if form >= 0:
                assert kernel.add_difference(value, count, form, words, 0)
            else:
                slot = -1 - form
                assert kernel.add_times(
                    words, 0, apart, 0, self.wide, slot * SUM_WORDS, self.wide_apart, REAL_WORDS * slot, np.int64(1)
                )
        return said(words, apart)


@given(MEMBERS, WEIGHTS)
@example([(1 << 54, 0, "integer")] * 3, 1 << 40)
@example([(250, 2, "decimal"), (5, 1, "decimal")], -3)
@example([(1, 2, "float"), (1, 2, "double")], 7)
def test_an_accumulator_times_a_weight(members: list[Number], weight: int) -> None:
    total, differences = Sum(members), Differences()
    assert kernel.put_times(total.words, 0, total.apart, 0, np.int64(weight), *differences.places)
    assert differences.added() == total.times(weight)


@given(st.lists(st.tuples(NUMBERS, WEIGHTS, st.sampled_from([1, -1])), max_size=6))
def test_arguments_times_weights(given: list[tuple[Number, int, int]]) -> None:
    differences, change, apart = Differences(), np.zeros(SUM_WORDS, np.int64), np.zeros(REAL_WORDS, np.uint32)
    given = [each for each in given if is_inline(each[0])]
    for number, weight, way in given:
        assert kernel.put_argument(
            np.int64(identifier(number)), np.int64(way), np.int64(weight), *differences.places,
            kernel.Accumulator(change, 0, apart, 0), Numbers(*NO_HASHED_NUMBERS)
        )  # fmt: skip
    wanted = sums((weight * way, number) for number, weight, way in given)
    assert differences.added() == wanted


@given(MEMBERS, MEMBERS, st.integers(0, 1 << 30), st.integers(0, 1 << 30), st.integers(1, 1 << 20))
@example([(1, 0, "integer")], [(1, 0, "integer")], 1, 1, 1)
@example([], [(5, 1, "decimal")], 0, 3, 2)
@example([(5, 1, "decimal")], [(5, 0, "integer")], 4, 3, 2)
def test_the_difference_of_two_accumulators(
    members: list[Number], before: list[Number], weight: int, old_weight: int, times: int
) -> None:
    new, old, differences = Sum(members), Sum(before), Differences()
    change, apart = np.zeros(kernel.DIFFERENCE_WORDS, np.int64), np.zeros(REAL_WORDS, np.uint32)
    assert kernel.find_difference(
        change, 0, apart, 0, new.accumulator, np.int64(weight), old.accumulator, np.int64(old_weight)
    )
    wanted = sums(
        [(weight * times, each) for each in new.members] + [(-old_weight * times, each) for each in old.members]
    )
    assert kernel.put_difference(change, 0, apart, 0, np.int64(times), *differences.places)
    nothing = not any(wanted.values())
    assert differences.added() == wanted
    assert kernel.is_no_difference(change, 0, apart, 0) == nothing


def test_too_large_sums_are_reported() -> None:
    huge, differences = Sum([]), Differences()
    huge.words[HI], huge.words[N] = 1 << 60, 1
    assert not kernel.put_times(huge.words, 0, huge.apart, 0, np.int64(1 << 40), *differences.places)
