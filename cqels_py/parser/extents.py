"""What stands in a window's brackets: `[RANGE 5s STEP 1s]`, `[COUNT 10]`, `[NOW]` …, and durations."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from cqels_py.algebra.nodes import ElementCount, Everything, Extent, TimeRange, TripleCount
from cqels_py.parser.tokens import Cursor, Kind, Token

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
_FORMS = "[RANGE 10s], [RANGE 10s STEP 5s], [RANGE 10s TUMBLING], [COUNT 100], [TRIPLES 100], [NOW] or [ALL]"
_MOST = 2**62
_PARTS = re.compile(r"(\d+(?:\.\d+)?)([^\W\d_]+)")
_ISO = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=\d)(?:(?P<h>\d+(?:\.\d+)?)H)?(?:(?P<m>\d+(?:\.\d+)?)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_CHUNK = re.compile(r"[\w.:+\-]*[\w]")
_NO_UNITS = ("STEP", "SLIDE", "TUMBLING", "START", "COMPUTED", "AS")


def read_extent(cursor: Cursor, *, bare_milliseconds: bool) -> Extent:
    """The extent at the cursor, just behind '['; stops before '@' or ']'.

    `bare_milliseconds`: a number without a unit is one of milliseconds (RSP-QL).
    """
    reader = _Reader(cursor, bare_milliseconds)
    first = cursor.here
    now = cursor.take_word("NOW")
    if first.is_word("FROM") or (now and (cursor.here.is_mark("-") or cursor.here.is_mark("+"))):
        raise cursor.source.refusal(
            "windows that begin or end before or after now (FROM NOW-… TO …) are not supported: use [RANGE 10s]",
            first.start,
        )
    if now:
        return TimeRange(1)
    if cursor.take_word("ALL"):
        return Everything()
    if cursor.take_word("COUNT", "ELEMENTS", "ROWS"):
        return reader.elements()
    if cursor.take_word("TRIPLES"):
        return reader.triples()
    if cursor.take_word("RANGE"):
        return reader.triples() if cursor.take_word("TRIPLES") else reader.time()
    cursor.fail(f"expected a window such as {_FORMS}")
    raise AssertionError


def read_duration(cursor: Cursor, *, bare_milliseconds: bool = False) -> int:
    """A duration at the cursor in microseconds: `5s`, `1h30m`, `1.5 s`, `PT10S`, `P1DT2H`."""
    first = cursor.take()
    iso = first.is_word(first.text.upper()) and re.match(r"P[T\d]", first.text, re.IGNORECASE)
    if first.kind is not Kind.NUMBER and not iso:
        raise cursor.source.error(f"expected a duration such as 10s or PT10S, found {first}", first.start)
    text = first.text
    while cursor.here.start == cursor.before.end and (cursor.here.kind is Kind.NUMBER or cursor.here.is_mark(".")):
        text += cursor.take().text
    if iso:
        return _whole(cursor, _iso_microseconds(cursor, first, text), first)
    if re.fullmatch(r"[\d.]+", text):
        return _whole(cursor, _with_unit(cursor, first, text, bare_milliseconds), first)
    if cursor.here.start == cursor.before.end and cursor.here.kind is Kind.WORD:
        text += cursor.take().text
    return _whole(cursor, _sum_of_parts(cursor, first, text), first)


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
        raise cursor.source.error(f"'{text}' is no duration: write 10s, 1h30m or PT1H30M", first.start)
    return total


def _amount(cursor: Cursor, first: Token, number: str) -> Fraction:
    try:
        return Fraction(number)
    except ValueError:
        raise cursor.source.error(f"'{number}' is no number", first.start) from None


def _unit(cursor: Cursor, name: str, offset: int) -> Fraction:
    found = UNITS.get(name.lower())
    if found is None:
        raise cursor.source.error(f"unknown unit of time '{name}': known are {_KNOWN_UNITS}, as in [RANGE 10s]", offset)
    return found


def _iso_microseconds(cursor: Cursor, first: Token, text: str) -> Fraction:
    match = _ISO.fullmatch(text)
    if match is None or not any(match.groups()):
        raise cursor.source.error(
            f"'{text}' is no duration: write PT10S, PT5M, PT1H30M or P1D; years and months have no fixed length",
            first.start,
        )
    weeks = Fraction(match["w"] or 0) * 7 * UNITS["d"]
    return weeks + sum((Fraction(match[unit] or 0) * UNITS[unit] for unit in "dhms"), Fraction(0))


def _whole(cursor: Cursor, micros: Fraction, first: Token) -> int:
    if micros.denominator != 1:
        raise cursor.source.refusal("durations are whole microseconds: this one is not", first.start)
    if not 0 < micros < _MOST:
        raise cursor.source.error(f"a duration must be more than zero and less than {_MOST} microseconds", first.start)
    return int(micros)


class _Reader:
    def __init__(self, cursor: Cursor, bare_milliseconds: bool) -> None:
        self._cursor = cursor
        self._bare = bare_milliseconds

    def time(self) -> TimeRange:
        width = read_duration(self._cursor, bare_milliseconds=self._bare)
        step: int | None = None
        start = 0
        while True:
            if self._cursor.take_word("STEP", "SLIDE"):
                self._once(step)
                step = read_duration(self._cursor, bare_milliseconds=self._bare)
            elif self._cursor.take_word("TUMBLING"):
                self._once(step)
                step = width
            elif word := self._cursor.take_word("START"):
                if step is None:
                    raise self._cursor.source.error("START says where steps begin: write it after STEP", word.start)
                start = self._start()
            else:
                return TimeRange(width, step, start)

    def _once(self, step: int | None) -> None:
        if step is not None:
            word = self._cursor.before
            raise self._cursor.source.error(
                f"{word.text} after another STEP, SLIDE or TUMBLING: one is enough", word.start
            )

    def elements(self) -> ElementCount:
        count = self._count()
        if self._cursor.take_word("TUMBLING"):
            return ElementCount(count, count)
        if self._cursor.take_word("STEP", "SLIDE"):
            return ElementCount(count, self._count())
        return ElementCount(count)

    def triples(self) -> TripleCount:
        count = self._count()
        if self._cursor.here.is_word("STEP", "SLIDE", "TUMBLING"):
            raise self._cursor.source.refusal(
                "a window of triples with a step is not supported: use [TRIPLES n], or [COUNT n STEP m] over elements",
                self._cursor.here.start,
            )
        return TripleCount(count)

    def _count(self) -> int:
        token = self._cursor.take()
        if token.kind is not Kind.NUMBER or not token.text.isdecimal() or not 0 < int(token.text) < _MOST:
            raise self._cursor.source.error(f"expected how many, such as 100, found {token}", token.start)
        return int(token.text)

    def _start(self) -> int:
        """A dateTime, bare or in quotes, or integer microseconds since the epoch."""
        first = self._cursor.take()
        if first.kind is Kind.STRING:
            text = first.text.strip("\"'")
            if self._cursor.take_mark("^"):
                self._cursor.expect_mark("^", "before the datatype")
                self._cursor.take()
        else:
            chunk = _CHUNK.match(self._cursor.source.text, first.start)
            text = chunk[0] if chunk else ""
            while self._cursor.here.end <= first.start + len(text) and not self._cursor.at_end:
                self._cursor.take()
        return _instant(self._cursor, first, text)


def _instant(cursor: Cursor, first: Token, text: str) -> int:
    if text.isdecimal() and len(text) > 4:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise cursor.source.error(
            f"expected a time such as 2024-01-01T00:00:00Z after START, found '{text or first.text}'", first.start
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
