"""Durations, `10s` or `PT10S`, and the instants at which steps begin."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Cursor, Kind, Token, tokenize

UNITS: dict[str, Fraction] = {
    "d": Fraction(86_400_000_000),
    "h": Fraction(3_600_000_000),
    "m": Fraction(60_000_000),
    "min": Fraction(60_000_000),
    "s": Fraction(1_000_000),
    "ms": Fraction(1_000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ns": Fraction(1, 1_000),
}
"""Units of time in microseconds."""

_KNOWN_UNITS = "d, h, m (or min), s, ms, us and ns"
MOST = 2**62
"""Numbers in windows are less than this."""
_MOST_DIGITS = 300
"""The most characters of a duration: the time to read a number grows with the square of its digits."""
_SHOWN = 30
_PARTS = re.compile(r"([0-9]+(?:\.[0-9]+)?)([^\W\d_]+)")
_ISO = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=\d)(?:(?P<h>\d+(?:\.\d+)?)H)?(?:(?P<m>\d+(?:\.\d+)?)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE | re.ASCII,
)
_CHUNK = re.compile(r"[\w.:+\-]*[\w]")
_NO_UNITS = ("STEP", "SLIDE", "TUMBLING", "START", "STARTING", "COMPUTED", "AS", "TO", "PARTITION")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRITE_START = "write START 2024-01-01T00:00:00Z"


def duration_of(text: str) -> int:
    """The duration that a text is, in microseconds, in any form that queries take; unlike there it may be zero.

    >>> duration_of("PT5S"), duration_of("0s")
    (5000000, 0)
    """
    source = Source(text, None)
    cursor = Cursor(source, tokenize(source).tokens)
    first = cursor.here
    micros = _microseconds(cursor, bare_milliseconds=False)
    if not cursor.at_end:
        raise source.error(f"expected the end of the duration, found {cursor.here}", cursor.here.start)
    return _whole(cursor, micros, first, least=0)


def read_duration(cursor: Cursor, *, bare_milliseconds: bool = False) -> int:
    """A duration at the cursor in microseconds: `5s`, `1h30m`, `1.5 s`, `PT10S`, `P1DT2H`."""
    first = cursor.here
    return _whole(cursor, _microseconds(cursor, bare_milliseconds), first, least=1)


def read_duration_or_zero(cursor: Cursor) -> int:
    """As `read_duration`; it may be zero, as in `[0s, 5s]`."""
    first = cursor.here
    return _whole(cursor, _microseconds(cursor, bare_milliseconds=False), first, least=0)


def _microseconds(cursor: Cursor, bare_milliseconds: bool) -> Fraction:
    first = cursor.take()
    iso = first.is_word(first.text.upper()) and re.match(r"P[T0-9]", first.text, re.IGNORECASE)
    if first.kind is not Kind.NUMBER and not iso:
        raise cursor.source.error(f"expected a duration such as 10s or PT10S, found {first}", first.start)
    text = first.text
    while cursor.here.start == cursor.before.end and (cursor.here.kind is Kind.NUMBER or cursor.here.is_mark(".")):
        text += cursor.take().text
    check_digits(cursor.source, first, text)
    if iso:
        return _iso_microseconds(cursor, first, text)
    if re.fullmatch(r"[0-9.]+", text):
        return _with_unit(cursor, first, text, bare_milliseconds)
    if cursor.here.start == cursor.before.end and cursor.here.kind is Kind.WORD:
        text += cursor.take().text
    return _sum_of_parts(cursor, first, text)


def check_digits(source: Source, first: Token, text: str) -> None:
    """Raise QuerySyntaxError for a number that no window can have: its digits are not 0 to 9, or too many."""
    if any(digit.isdecimal() and not digit.isascii() for digit in text):
        raise source.error(
            f"numbers are written with the digits 0 to 9, as in [RANGE 10s]: '{_short(text)}'", first.start
        )
    if len(text) > _MOST_DIGITS:
        raise source.error(
            f"'{_short(text)}' has {len(text)} characters: numbers in windows are less than {MOST}", first.start
        )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _with_unit(cursor: Cursor, first: Token, number: str, bare_milliseconds: bool) -> Fraction:
    if cursor.here.kind is Kind.WORD and not cursor.here.is_word(*_NO_UNITS):
        total = _amount(cursor, first, number) * _unit(cursor, cursor.here.text, cursor.here.start)
        cursor.take()
        return total
    if bare_milliseconds:
        return _amount(cursor, first, number) * UNITS["ms"]
    raise cursor.source.error(
        f"'{number}' of which unit of time? Write {number}s, or another of {_KNOWN_UNITS}", first.start
    )


def _sum_of_parts(cursor: Cursor, first: Token, text: str) -> Fraction:
    total, at = Fraction(0), 0
    for part in _PARTS.finditer(text):
        if part.start() != at:
            break
        total += Fraction(part[1]) * _unit(cursor, part[2], first.start + part.start(2))
        at = part.end()
    if at != len(text):
        raise cursor.source.error(f"'{text}' is not a duration: write 10s, 1h30m or PT1H30M", first.start)
    return total


def _amount(cursor: Cursor, first: Token, number: str) -> Fraction:
    try:
        return Fraction(number)
    except ValueError:
        raise cursor.source.error(f"'{number}' is not a number", first.start) from None


def _unit(cursor: Cursor, name: str, offset: int) -> Fraction:
    found = UNITS.get(name.lower())
    if found is None:
        raise cursor.source.error(f"unknown unit of time '{name}': known are {_KNOWN_UNITS}, as in [RANGE 10s]", offset)
    return found


def _iso_microseconds(cursor: Cursor, first: Token, text: str) -> Fraction:
    match = _ISO.fullmatch(text)
    if match is None or not any(match.groups()):
        raise cursor.source.error(
            f"'{text}' is not a duration: write PT10S, PT5M, PT1H30M or P1D; years and months have no fixed length",
            first.start,
        )
    weeks = Fraction(match["w"] or 0) * 7 * UNITS["d"]
    return weeks + sum((Fraction(match[unit] or 0) * UNITS[unit] for unit in "dhms"), Fraction(0))


def _whole(cursor: Cursor, micros: Fraction, first: Token, least: int) -> int:
    if micros.denominator != 1:
        raise cursor.source.refusal("durations are whole microseconds: this one is not", first.start)
    if not least <= micros < MOST:
        raise cursor.source.error(f"a duration must be more than zero and less than {MOST} microseconds", first.start)
    return int(micros)


def read_start(cursor: Cursor, *, bare_milliseconds: bool) -> int:
    """Where steps begin, in microseconds since the epoch: a dateTime, bare or in quotes, or an integer.

    An integer is one of microseconds, or with `bare_milliseconds` of milliseconds.
    """
    first = cursor.take()
    if first.kind is Kind.STRING:
        text = first.text.strip("\"'")
        if cursor.take_mark("^"):
            cursor.expect_mark("^", "before the datatype")
            datatype = cursor.take()
            if not re.search(r"dateTime(Stamp)?>?$|integer>?$|long>?$", datatype.text):
                raise cursor.source.error(
                    f"a start is an xsd:dateTime or an xsd:integer, not {datatype.text}: {_WRITE_START}",
                    datatype.start,
                )
    else:
        chunk = _CHUNK.match(cursor.source.text, first.start)
        text = chunk[0] if chunk else ""
        while cursor.here.end <= first.start + len(text) and not cursor.at_end:
            cursor.take()
    return _instant(cursor, first, text, 1000 if bare_milliseconds else 1)


def _instant(cursor: Cursor, first: Token, text: str, unit: int) -> int:
    try:
        moment = (
            _EPOCH + timedelta(microseconds=int(text) * unit)
            if len(text) <= _MOST_DIGITS and _WHOLE.fullmatch(text)
            else datetime.fromisoformat(text)
        )
    except OverflowError:
        raise cursor.source.error(
            f"{_short(text)} is beyond the years 1 to 9999: {_WRITE_START}", first.start
        ) from None
    except ValueError:
        raise cursor.source.error(
            f"expected a time such as 2024-01-01T00:00:00Z after START, found '{_short(text or first.text)}'",
            first.start,
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
