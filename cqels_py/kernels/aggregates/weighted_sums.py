"""Sums times counters: below a join (factorised.py) a mapping stands for as many results as it has partners.

The accumulators are those of accumulators.py. All of their words are sums over the members, so a sum of several equal
members is each word times a counter, and so is the difference made by a change.

Such a difference is written as three words: the unscaled value, the change of the number of members, and their form:
the fraction digits and the kind of number that all of them are, 0 for integers, else DECIMALS + kind - 1 is the word
that counts their kind. Where three words do not hold it, the form is -1 - the number of an accumulator in `wide`, which
does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.aggregates.accumulators import (
    APART,
    DECIMALS,
    DONE,
    DOUBLES,
    DURATIONS,
    FLOATS,
    HI,
    INEXACT,
    LO,
    MINUS_INF,
    NANS,
    OVERFLOW,
    PLUS_INF,
    SCALE,
    SUM_WORDS,
    TOO_MANY,
    N,
    _add_scaled,
    _defer,
    _take_hashed,
    _take_number,
    any_total,
    take_float,
    total_of,
)
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS, add_reals_times, clear_reals, is_zero
from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.decimals import LIMIT, negate128, scaled_id, sum128
from cqels_py.terms.layout import TAG_DECIMAL, TAG_DOUBLE, TAG_FLOAT, TAG_INTEGER

_PROVISIONAL_INDEX = np.int64((1 << 60) - 1)
_MOST_RESULTS = 2.0**61
_MOST_AVERAGED = 1 << 53
_SAFE_PRODUCT = 4.0e18
_KIND, _DIGITS = 6, 63
_OF_DECIMALS, _OF_DOUBLES = 1, 1 + DOUBLES - DECIMALS
DIFFERENCE_WORDS = 3 + SUM_WORDS
"""Room for a difference: its three words, and an accumulator."""


class Accumulator(NamedTuple):
    """One accumulator: SUM_WORDS of `words` from `at` on, and its exact sum of floats in `apart` from `apart_at` on."""

    words: npt.NDArray[np.int64]
    at: int
    apart: npt.NDArray[np.uint32]
    apart_at: int


@jit_flat
def times128(hi, lo, factor):
    """(hi, lo) * factor -> (hi, lo, ok); ok is False on overflow of 128 bits."""
    value = np.int64(lo)
    if (value >> 63) == hi and abs(np.float64(value) * np.float64(factor)) < _SAFE_PRODUCT:
        product = value * factor
        return product >> 63, np.uint64(product), True
    negative = factor < 0
    if negative:
        factor = -factor
    total_hi, total_lo = np.int64(0), np.uint64(0)
    ok = True
    while factor > 0 and ok:
        if factor & 1:
            new_hi, new_lo = sum128(total_hi, total_lo, hi, lo)
            ok = (total_hi ^ hi) < 0 or (total_hi ^ new_hi) >= 0
            total_hi, total_lo = new_hi, new_lo
        factor = factor >> 1
        if factor > 0:
            new_hi, new_lo = sum128(hi, lo, hi, lo)
            ok = ok and (hi ^ new_hi) >= 0
            hi, lo = new_hi, new_lo
    if negative:
        total_hi, total_lo = negate128(total_hi, total_lo)
    return total_hi, total_lo, ok


@jit_inline
def times(count, other):
    """The product of counters; -1 where there are too many results to be counted, which propagates."""
    if count < 0 or np.float64(count) * np.float64(other) >= _MOST_RESULTS:
        return np.int64(-1)
    return count * other


@jit_flat
def _add_wide(words, at, hi, lo, scale, weight):
    """Add (hi, lo) / 10**scale times the weight. False on overflow of 128 bits."""
    hi, lo, ok = times128(hi, lo, weight)
    return ok and _add_scaled(words, at, hi, lo, scale, 1)


@jit_inline
def add_times(words, at, apart, apart_at, other, place, other_apart, apart_place, weight):
    """Add another accumulator, times the weight. False on overflow of 128 bits.

    All words of an accumulator are sums over its members, except for the scale of HI and LO.
    """
    words[at + N] += other[place + N] * weight
    words[at + INEXACT] += other[place + INEXACT] * weight
    for w in range(DECIMALS, SUM_WORDS):
        words[at + w] += other[place + w] * weight
    hi, lo = other[place + HI], np.uint64(other[place + LO])
    if (hi != 0 or lo != 0) and not _add_wide(words, at, hi, lo, other[place + SCALE], weight):
        return False
    if len(other_apart) > 0 and not is_zero(other_apart, apart_place):
        add_reals_times(apart, apart_at, other_apart, apart_place, weight)
    return True


@jit_inline
def take_argument(words, at, apart, apart_at, identifier, sign, hashed_kind, hashed_words, hashed_real):
    """Add or subtract an argument of SUM or AVG. False on overflow of 128 bits."""
    if (identifier >> 60) == -1:
        return _take_hashed(
            words, at, apart, apart_at, identifier & _PROVISIONAL_INDEX, sign, hashed_kind, hashed_words, hashed_real
        )  # fmt: skip
    if (identifier >> 60) & 15 == TAG_FLOAT:
        take_float(words, at, apart, apart_at, identifier, sign)
        return True
    return _take_number(words, at, identifier, sign)


@jit_inline
def _clear_sum(words, at, apart, apart_at):
    for w in range(SUM_WORDS):
        words[at + w] = 0
    clear_reals(apart, apart_at)


@jit_inline
def _is_nothing(words, at, apart, apart_at):
    for w in range(SUM_WORDS):
        if w != SCALE and words[at + w] != 0:
            return False
    return is_zero(apart, apart_at)


@jit_inline
def _form_of(words, at):
    """The form of an accumulator's members; -1 where they are of several kinds, or their sum does not fit 64 bits.

    A scale is at most SUM_SCALE of values/decimals.py, which _DIGITS holds.
    """
    total, n = words[at + LO], words[at + N]
    decimals, doubles = words[at + DECIMALS], words[at + DOUBLES]
    errors = words[at + INEXACT] - words[at + FLOATS] - doubles
    special = words[at + PLUS_INF] | words[at + MINUS_INF] | words[at + NANS]
    odd = errors | special | words[at + APART] | words[at + DURATIONS]
    kind = np.int64(0)
    if decimals | doubles != 0:
        kind = np.int64(_OF_DECIMALS if decimals == n else _OF_DOUBLES if doubles == n else -1)
    narrow = (words[at + HI] == total >> 63) & (total > -LIMIT) & (total < LIMIT)
    return words[at + SCALE] | kind << _KIND if narrow and odd == 0 and kind >= 0 else np.int64(-1)


@jit_inline
def _form_of_number(identifier):
    """The form of one number with an inline id; -1 for a float, and for a term that is no number."""
    tag = (identifier >> 60) & 15
    if tag == TAG_INTEGER:
        return np.int64(0)
    if tag != TAG_DECIMAL and tag != TAG_DOUBLE:
        return np.int64(-1)
    kind = np.int64(_OF_DECIMALS if tag == TAG_DECIMAL else _OF_DOUBLES)
    return ((identifier >> 56) & 15) | kind << _KIND


@jit_flat
def _widen(value, count, form, weight, wide, wide_apart, slot):
    """Write to a new accumulator a value times the weight, which is too large for three words. False on overflow."""
    at = slot * SUM_WORDS
    _clear_sum(wide, at, wide_apart, REAL_WORDS * slot)
    wide[at + N] = count * weight
    if form >> _KIND > 0:
        wide[at + DECIMALS - 1 + (form >> _KIND)] = count * weight
        wide[at + INEXACT] = count * weight if form >> _KIND == _OF_DOUBLES else 0
    return _add_wide(wide, at, value >> 63, np.uint64(value), form & _DIGITS, weight)


@jit_inline
def _put_product(value, count, form, weight, column, k, out, slots, wide, wide_apart):
    """Write `value`, of `count` members of one form, times the weight, to three columns. False on overflow of 128 bits.

    `slots`: one word, the number of accumulators of `wide` used.
    """
    if abs(np.float64(value) * np.float64(weight)) < _SAFE_PRODUCT:
        out[column, k] = value * weight
        out[column + 1, k] = count * weight
        out[column + 2, k] = form
        return True
    out[column + 2, k] = -1 - slots[0]
    slots[0] += 1
    return _widen(value, count, form, weight, wide, wide_apart, slots[0] - 1)


@jit_flat
def _put_wide(other, place, other_apart, apart_place, weight, column, k, out, slots, wide, wide_apart):
    slot = slots[0]
    out[column + 2, k] = -1 - slot
    slots[0] = slot + 1
    _clear_sum(wide, slot * SUM_WORDS, wide_apart, REAL_WORDS * slot)
    return add_times(
        wide, slot * SUM_WORDS, wide_apart, REAL_WORDS * slot, other, place, other_apart, apart_place, weight
    )


@jit_inline
def put_times(other, place, other_apart, apart_place, weight, column, k, out, slots, wide, wide_apart):
    """Write an accumulator times the weight. False on overflow of 128 bits."""
    form = _form_of(other, place)
    if form >= 0:
        return _put_product(
            other[place + LO], other[place + N], form, weight, column, k, out, slots, wide, wide_apart
        )  # fmt: skip
    return _put_wide(other, place, other_apart, apart_place, weight, column, k, out, slots, wide, wide_apart)


@jit_flat
def put_argument(identifier, delta, weight, column, k, out, slots, wide, wide_apart, scratch, numbers):
    """Write an inserted or retracted argument, times the weight. `scratch`: an Accumulator; `numbers`: of hashed terms."""
    form = _form_of_number(identifier)
    if form >= 0:
        return _put_product(
            ((identifier << 8) >> 8) * delta, delta, form, weight, column, k, out, slots, wide, wide_apart
        )  # fmt: skip
    words, at, apart, apart_at = scratch
    _clear_sum(words, at, apart, apart_at)
    ok = take_argument(words, at, apart, apart_at, identifier, delta, numbers.kind, numbers.words, numbers.real)
    return ok and _put_wide(words, at, apart, apart_at, weight, column, k, out, slots, wide, wide_apart)


@jit_inline
def find_difference(change, at, change_apart, apart_at, new, weight, old, old_weight):
    """The difference between an Accumulator times a weight and its earlier value, in the three words of `change` from
    `at` on.

    They are followed by room for an accumulator, which holds the difference where the form is negative. False on
    overflow of 128 bits.
    """
    form, old_form = _form_of(new.words, new.at), _form_of(old.words, old.at)
    value, old_value = new.words[new.at + LO], old.words[old.at + LO]
    form = old_form if weight == 0 else form
    size = abs(np.float64(value) * np.float64(weight)) + abs(np.float64(old_value) * np.float64(old_weight))
    if form >= 0 and (form == old_form or old_weight == 0) and size < _SAFE_PRODUCT:
        change[at] = value * weight - old_value * old_weight
        change[at + 1] = new.words[new.at + N] * weight - old.words[old.at + N] * old_weight
        change[at + 2] = form
        return True
    change[at + 2] = -1
    _clear_sum(change, at + 3, change_apart, apart_at)
    ok = add_times(change, at + 3, change_apart, apart_at, new.words, new.at, new.apart, new.apart_at, weight)
    return ok and add_times(
        change, at + 3, change_apart, apart_at, old.words, old.at, old.apart, old.apart_at, -old_weight
    )


@jit_inline
def is_no_difference(change, at, change_apart, apart_at):
    if change[at + 2] >= 0:
        return change[at] == 0 and change[at + 1] == 0
    return _is_nothing(change, at + 3, change_apart, apart_at)


@jit_inline
def put_difference(change, at, change_apart, apart_at, weight, column, k, out, slots, wide, wide_apart):
    """Write a difference times the weight. False on overflow of 128 bits."""
    if change[at + 2] >= 0:
        return _put_product(
            change[at], change[at + 1], change[at + 2], weight, column, k, out, slots, wide, wide_apart
        )  # fmt: skip
    return _put_wide(change, at + 3, change_apart, apart_at, weight, column, k, out, slots, wide, wide_apart)


@jit_inline
def add_difference(value, count, form, words, at):
    """Add a difference of three words to an accumulator. False on overflow of 128 bits."""
    words[at + N] += count
    if form >> _KIND > 0:
        words[at + DECIMALS - 1 + (form >> _KIND)] += count
        words[at + INEXACT] += count if form >> _KIND == _OF_DOUBLES else 0
    total = words[at + LO]
    if form & _DIGITS == words[at + SCALE] and words[at + HI] == total >> 63 and total > -LIMIT and total < LIMIT:
        total += value
        words[at + LO] = total
        words[at + HI] = total >> 63
        return True
    return value == 0 or _add_scaled(words, at, value >> 63, np.uint64(value), form & _DIGITS, 1)


@jit_inline
def total_of_times(words, at, apart, apart_at, average, weight, join, chunk, here):
    """The id of a SUM or AVG, as by `total_of`, where each member counts `weight` times: into chunk.fresh[here].

    `join` has an accumulator as scratch. Returns DONE, or why there is no result.
    """
    if average and words[at + APART] == 0:
        # Counting all members equally often does not change their mean, except for separate sums, which are rounded.
        chunk.fresh[here] = total_of(
            words, at, apart, apart_at, True, chunk.cursor, chunk.deferred, chunk.deferred_real
        )
        return DONE
    return _any_total_of_times(words, at, apart, apart_at, average, weight, join, chunk, here)


@jit_flat
def _any_total_of_times(words, at, apart, apart_at, average, weight, join, chunk, here):
    _clear_sum(join.words, 0, join.apart, 0)
    if not add_times(join.words, 0, join.apart, 0, words, at, apart, apart_at, weight):
        return OVERFLOW
    if are_too_many(join.words[N], average):
        return TOO_MANY
    chunk.fresh[here] = any_total(
        join.words, 0, join.apart, 0, average, chunk.cursor, chunk.deferred, chunk.deferred_real
    )
    return DONE


@jit_inline
def are_too_many(members, average):
    """Are there too many members for a SUM or AVG?"""
    return members >= (_MOST_AVERAGED if average else np.int64(_MOST_RESULTS))


@jit_inline
def short_times_id(tag, total, weight):
    """The id of an integer, or a decimal without fraction digits, times a weight; 0 if `large_id` finds it."""
    is_short = abs(np.float64(total) * np.float64(weight)) < _SAFE_PRODUCT
    return scaled_id(tag, total * weight if is_short else np.int64(_SAFE_PRODUCT), np.int64(0))


@jit_flat
def large_id(tag, total, weight, cursor, deferred, deferred_real):
    """That of one too large for `short_times_id`."""
    hi, lo, _ = times128(total >> 63, np.uint64(total), weight)
    return _defer(tag, hi, lo, np.int64(0), 0.0, cursor, deferred, deferred_real)
