"""Inline terms from bytes and back, and the instants of event times."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.kernels.values.inline import inline_id, instants, read_instants, write_inline
from tests.operators import plain_dictionary
from tests.operators.plain_dictionary import INTEGERS, typed

NO_TIME = np.iinfo(np.int64).min
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

LATEST = datetime.datetime(4200, 1, 1)
"""About where a count of microseconds no longer fits an id."""

WHOLE = st.from_regex(r"0|-?[1-9][0-9]{0,9}", fullmatch=True)
FRACTIONS = st.from_regex(r"(\.[0-9]{1,6})?", fullmatch=True)
SCALED = st.builds("{}{}".format, WHOLE, FRACTIONS)
SECONDS = st.datetimes(datetime.datetime(1000, 1, 1), LATEST).map(lambda t: t.replace(microsecond=0).isoformat())
DATETIMES = st.builds("{}{}{}".format, SECONDS, FRACTIONS, st.sampled_from(["", "Z"]))
DATES = st.builds("{}{}".format, st.dates(), st.sampled_from(["", "Z", "+05:45", "-14:00"]))
SMALL = st.integers(1, 99).map(str)
POSITIVE = st.sampled_from([name for name in INTEGERS if name not in ("nonPositiveInteger", "negativeInteger")])
INLINE = st.one_of(
    st.tuples(SMALL, POSITIVE),
    st.tuples(SMALL.map("-{}".format), st.sampled_from(["nonPositiveInteger", "negativeInteger", "byte"])),
    st.tuples(WHOLE, st.just("integer")),
    st.tuples(SCALED, st.sampled_from(["decimal", "double", "float"])),
    st.tuples(st.sampled_from(["true", "false", "0", "1"]), st.just("boolean")),
    st.tuples(DATETIMES, st.just("dateTime")),
    st.tuples(DATES, st.just("date")),
)


def encoded(text: str) -> int:
    """The inline id of a literal, read from the middle of a buffer."""
    raw = text.encode()
    data = np.frombuffer(b"ab" + raw + b" .", np.uint8)
    return int(inline_id(data, np.int64(2), np.int64(2 + raw.rindex(b'"')), np.int64(2 + len(raw))))


def written(identifier: int) -> str:
    out = np.zeros(100, np.uint8)
    end = int(write_inline(np.int64(identifier), out, np.int64(3)))
    return out[3:end].tobytes().decode()


@given(INLINE)
def test_inline_literals_survive_a_round_trip(pair: tuple[str, str]) -> None:
    text = typed(*pair)
    found = encoded(text)
    assert found == plain_dictionary.inline_id(*pair)
    assert written(found) == text


@pytest.mark.parametrize(
    "text",
    [
        *(
            typed(text, "integer")
            for text in ("", "-", "+1", "01", "-0", "1.0", " 1", "1 ", "36028797018963968", "1" * 40)
        ),
        *(
            typed(text, "decimal")
            for text in ("", ".", "1.", ".5", "-0.0", "00.1", "1.2.3", "0.1234567890123456", "1e2")
        ),
        *(typed(text, "double") for text in ("INF", "NaN", "1E0", "-0")),
        *(typed(text, "boolean") for text in ("", "TRUE", "t", "10", "00")),
        *(typed(text, "byte") for text in ("128", "-129")),
        *(
            typed(text, "dateTime")
            for text in (
                "2013-02-29T00:00:00Z",
                "2013-01-01T24:00:00Z",
                "2013-01-01T00:00",
                "13-1-1",
                "9999-01-01T00:00:00.0001",
            )
        ),
        *(typed(text, "date") for text in ("2013-04-31", "2013-4-3", "2013-04-30z", "")),
        *(
            '"5"',
            '"5"@en',
            '"5"^^<http://ex.org/integer>',
            typed("5", "integers"),
            typed("5", "nteger"),
            typed("5", ""),
        ),
    ],
)
def test_texts_that_would_not_survive_a_round_trip_have_no_inline_id(text: str) -> None:
    assert encoded(text) == 0


def micros_of(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    return (moment - EPOCH) // datetime.timedelta(microseconds=1)


MOMENTS = st.datetimes(datetime.datetime(1, 1, 2), LATEST).flatmap(
    lambda t: st.sampled_from([t.isoformat(), t.isoformat() + "Z", t.isoformat(timespec="milliseconds") + "-05:30"])
)


@given(st.lists(MOMENTS, max_size=5))
def test_instants_are_those_of_the_calendar(texts: list[str]) -> None:
    data = np.frombuffer("".join(texts).encode() or b"\0", np.uint8)
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    out = np.empty(len(texts), np.int64)
    assert read_instants(data, offsets, out) == 0
    assert out.tolist() == [micros_of(text) for text in texts]
    ids = np.array([encoded(typed(text, "dateTime")) for text in texts], np.int64)
    assert instants(ids, out) == 0
    assert out.tolist() == [micros_of(text) for text in texts]


def test_integers_are_microseconds_and_dates_are_midnights() -> None:
    literals = [
        ("5", "integer"),
        ("-7", "long"),
        ("1970-01-02", "date"),
        ("1970-01-02+01:00", "date"),
        ("true", "boolean"),
    ]
    ids = np.array([encoded(typed(*pair)) for pair in literals], np.int64)
    out = np.empty(len(ids), np.int64)
    assert instants(ids, out) == 1
    assert out.tolist() == [5, -7, 86_400_000_000, 82_800_000_000, NO_TIME]


def test_texts_that_are_no_instants_are_counted() -> None:
    texts = ["", "5", "-5", "5.5", "2013", "noon", "1970-01-01T00:00:00Z"]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    out = np.empty(len(texts), np.int64)
    assert read_instants(np.frombuffer("".join(texts).encode(), np.uint8), offsets, out) == 3
    assert out.tolist() == [NO_TIME, 5, -5, NO_TIME, 2013, NO_TIME, 0]
