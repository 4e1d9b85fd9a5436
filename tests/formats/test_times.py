"""Event times: which texts and terms are one, and which instant they name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.formats.times import NO_TIME, time_of_text, times_of_ids, times_of_texts

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def both(text: str) -> int:
    """The time of a text, by the kernel with its fallback; the fallback alone must agree."""
    data = np.frombuffer(text.encode() or b"\0", np.uint8)
    [found] = times_of_texts(data, np.array([0, len(text.encode())])).tolist()
    assert found == time_of_text(text)
    return int(found)


@given(st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=ZONES), st.sampled_from("T "))
def test_iso_8601(moment: datetime, separator: str) -> None:
    assert both(moment.isoformat(separator)) == (moment - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T00:00:01", 1_000_000),
        ("1970-01-01T01:00:01+0100", 1_000_000),
        ("1970-01-01T00:01", 60_000_000),
        ("1970-01-02", 86_400_000_000),
        ("1970-01-01T24:00:00Z", 86_400_000_000),
        ("1970-01-01T00:00:00.1234567Z", 123_456),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("0", 0),
        ("-1", -1),
        ("1357053490000000", 1_357_053_490_000_000),
        ("007", 7),
        ("0000-01-01T00:00:00Z", -62_167_219_200_000_000),
        ("-0044-03-15T12:00:00Z", -63_549_316_800_000_000),
        ("-9999-12-31", -377_673_667_200_000_000),
        ("10000-01-01T00:00:00.5Z", 253_402_300_800_500_000),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200_000_000),
        # As PostgreSQL writes them, in RFC 3339's small letters, and in ISO 8601's basic format.
        ("1970-01-01 00:00:01+00", 1_000_000),
        ("1970-01-01 02:00:01.5+02", 1_500_000),
        ("1969-12-31 18:30:01.000001-05:30", 1_000_001),
        ("1970-01-01t00:00:01z", 1_000_000),
        ("19700101T000001Z", 1_000_000),
        ("19700101t010001.5+01", 1_500_000),
        ("19700101T0001", 60_000_000),
        ("19691231T190001-0500", 1_000_000),
    ],
)
def test_forms(text: str, expected: int) -> None:
    assert both(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "1.5", "1e6", "2013-13-01T00:00:00Z", "2013-02-29", "2013-01-01T25:00:00Z"),
        *("2013-01-01T24:00:01Z", "2013-01-01T00:60:00Z", "2013-01-01T00:00:60Z", "2013-01-01T00:00:00+25:00"),
        *("-044-03-15T00:00:00Z", "02013-01-01T00:00:00Z", "999999-01-01T00:00:00Z"),
        *("-0001-02-29T00:00:00Z", "2013-01-01T00:00:00.Z", "٢٠١٣-01-01", "99999999999999999999"),
        *("2013-01-01T00:00:00+1", "2013-01-01T00:00:00+02:60", "2013-01-01T00:00:00 UTC", "2013-01-01T00:00:00+02:0"),
        *(
            "20130101Z",
            "201301T000000Z",
            "20130101T00Z",
            "20131301T000000Z",
            "20130101T00:00:00Z",
            "2013-01-01T000000Z",
        ),
    ],
)
def test_invalid_times(text: str) -> None:
    assert both(text) == NO_TIME


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ('"1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>', 1_000_000),
        ('"1970-01-01T01:00:00.000001+01:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>', 1),
        ('"1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTimeStamp>', 1_000_000),
        ('"1970-01-01T00:00:01Z"', 1_000_000),
        ('"1970-01-02"^^<http://www.w3.org/2001/XMLSchema#date>', 86_400_000_000),
        ('"17"^^<http://www.w3.org/2001/XMLSchema#long>', 17),
        ('"soon"', NO_TIME),
        ('"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', NO_TIME),
        ("<http://ex.org/1970-01-01>", NO_TIME),
        ("_:a", NO_TIME),
    ],
)
def test_literals(term: str, expected: int) -> None:
    dictionary = Dictionary()
    assert times_of_ids(dictionary.encode([term, None]), dictionary).tolist() == [expected, NO_TIME]
