"""Inline ids: their parts, event times, and the numbers that other kernels make."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.dictionary.layout import TAG_DECIMAL, TAG_LITERAL, ZONE_NONE, ZONE_UTC_OFFSET, ZONE_Z
from cqels_py.kernels import terms
from cqels_py.kernels.jit import jit

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

XSD = "http://www.w3.org/2001/XMLSchema#"
NO_TIME = np.iinfo(np.int64).min
FIT = st.integers(-(1 << 55), (1 << 55) - 1)


def encode(text: str, datatype: str) -> np.int64:
    return np.int64(Dictionary().encode_one(f'"{text}"^^<{XSD}{datatype}>'))


def decode(identifier: int) -> str | None:
    return Dictionary().decode(np.array([identifier], np.int64))[0]


@jit
def parts(identifier):  # type: ignore[no-untyped-def]
    return terms.tag_of(identifier), terms.value_of(identifier), terms.scale_of(identifier)


@jit
def instant(identifier):  # type: ignore[no-untyped-def]
    return terms.datetime_micros(identifier), terms.zone_of(identifier)


@jit
def integer(value):  # type: ignore[no-untyped-def]
    return terms.make_integer(value)


@jit
def scaled(unscaled, scale):  # type: ignore[no-untyped-def]
    return terms.make_scaled(TAG_DECIMAL, unscaled, scale)


@given(FIT)
def test_integers_are_made_and_taken_apart(value: int) -> None:
    identifier = np.int64(integer(np.int64(value)))
    assert decode(identifier) == f'"{value}"^^<{XSD}integer>'
    assert parts(identifier)[1] == value


@pytest.mark.parametrize("value", [1 << 55, -(1 << 55) - 1, 1 << 62, -(1 << 63)])
def test_an_integer_that_does_not_fit_is_refused(value: int) -> None:
    assert integer(np.int64(value)) == 0
    assert scaled(np.int64(value), np.int64(3)) == 0


@given(FIT, st.integers(0, 15))
def test_decimals_are_made_and_taken_apart(unscaled: int, scale: int) -> None:
    identifier = np.int64(scaled(np.int64(unscaled), np.int64(scale)))
    assert parts(identifier) == (TAG_DECIMAL, unscaled, scale)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
    lexical = ("-" if unscaled < 0 else "") + whole + ("." + fraction if scale else "")
    assert decode(identifier) == f'"{lexical}"^^<{XSD}decimal>'


def test_too_many_fraction_digits_are_refused() -> None:
    assert scaled(np.int64(1), np.int64(16)) == 0


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(MOMENTS, st.integers(0, 3), st.integers(-56, 56))
def test_the_instant_and_the_zone_of_a_datetime(moment: datetime, digits: int, quarters: int) -> None:
    zone = timezone(timedelta(minutes=15 * quarters))
    cut = moment.replace(microsecond=moment.microsecond // 1000 * 1000 if digits else 0, tzinfo=zone)
    text = cut.isoformat(timespec="milliseconds" if digits else "seconds")
    expected = (cut - EPOCH) // timedelta(microseconds=1)
    assert instant(encode(text, "dateTime")) == (expected, ZONE_UTC_OFFSET + quarters)


@given(st.datetimes(datetime(1, 1, 2), datetime(4253, 1, 1)), st.sampled_from([("", ZONE_NONE), ("Z", ZONE_Z)]))
def test_microseconds_are_kept(moment: datetime, zone: tuple[str, int]) -> None:
    expected = (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    text = moment.isoformat(timespec="microseconds") + zone[0]
    assert instant(encode(text, "dateTime")) == (expected, zone[1])


def test_microseconds_too_far_away_are_not_inline() -> None:
    text = "4254-01-01T00:00:00.000001Z"
    identifier = encode(text, "dateTime")
    assert parts(identifier)[0] == TAG_LITERAL


@pytest.mark.parametrize(
    ("text", "datatype", "expected"),
    [
        ("1970-01-01T00:00:01Z", "dateTime", 1_000_000),
        ("1969-12-31T23:59:59.5Z", "dateTime", -500_000),
        ("1970-01-01T01:00:00+01:00", "dateTime", 0),
        ("1970-01-02", "date", 86_400_000_000),
        ("1970-01-02+01:00", "date", 82_800_000_000),
        ("-5", "integer", -5),
        ("5", "long", 5),
        ("5", "decimal", NO_TIME),
        ("true", "boolean", NO_TIME),
        ("1970-01-01T24:00:00Z", "dateTime", NO_TIME),
    ],
)
def test_what_is_an_event_time(text: str, datatype: str, expected: int) -> None:
    out = np.empty(1, np.int64)
    others = terms.instants(np.array([encode(text, datatype)]), out)
    assert out.tolist() == [expected]
    assert others == (expected == NO_TIME)


def test_event_times_from_texts() -> None:
    texts = ["1970-01-01T00:00:01Z", "-17", "", "2", "1.5", "1970-01-01T00:00:00.000001", "soon", "05"]
    data = np.frombuffer("".join(texts).encode(), np.uint8)
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    out = np.empty(len(texts), np.int64)
    assert terms.read_instants(data, offsets, out) == 4
    assert out.tolist() == [1_000_000, -17, NO_TIME, 2, NO_TIME, 1, NO_TIME, NO_TIME]
