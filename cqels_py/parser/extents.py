"""What stands in a window's brackets: `[RANGE 5s STEP 1s]`, `[COUNT 10]`, `[NOW]` …, and durations."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from rdflib import Variable

from cqels_py.algebra.nodes import ElementCount, Everything, Extent, Session, TimeRange, TripleCount
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
_FORMS = (
    "[RANGE 10s], [RANGE 10s STEP 5s], [RANGE 10s TUMBLING], [COUNT 100], [TRIPLES 100], [SESSION 5m], [NOW], [ALL] "
    "or [FROM NOW-2h TO NOW-1h]"
)
_MOST = 2**62
_PARTS = re.compile(r"(\d+(?:\.\d+)?)([^\W\d_]+)")
_ISO = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=\d)(?:(?P<h>\d+(?:\.\d+)?)H)?(?:(?P<m>\d+(?:\.\d+)?)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_CHUNK = re.compile(r"[\w.:+\-]*[\w]")
_NO_UNITS = ("STEP", "SLIDE", "TUMBLING", "START", "STARTING", "COMPUTED", "AS", "TO", "PARTITION")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRITE_START = "write START 2024-01-01T00:00:00Z"


def read_extent(cursor: Cursor, *, bare_milliseconds: bool) -> Extent:
    """The extent at the cursor, just behind '['; stops before '@' or ']'.

    `bare_milliseconds`: a number without a unit is one of milliseconds (RSP-QL).
    """
    reader = _Reader(cursor, bare_milliseconds)
    if cursor.take_word("FROM"):
        return reader.past()
    if now := cursor.take_word("NOW"):
        if cursor.here.is_mark("-") or cursor.here.is_mark("+"):
            raise cursor.source.error("where does the window begin and end? Write [FROM NOW-2h TO NOW-1h]", now.start)
        return TimeRange(1)
    if cursor.take_word("ALL"):
        return Everything()
    if cursor.take_word("COUNT", "ELEMENTS", "ROWS"):
        return reader.elements()
    if cursor.take_word("TRIPLES"):
        return reader.triples()
    if cursor.take_word("SESSION"):
        return reader.session()
    if cursor.take_word("RANGE"):
        return reader.triples() if cursor.take_word("TRIPLES") else reader.time()
    cursor.fail(f"expected a window such as {_FORMS}")
    raise AssertionError


def read_partition(cursor: Cursor, extent: Extent) -> tuple[Token, ...]:
    """The variables of `PARTITION BY ?v …` behind the extent; none where there is no such clause."""
    word = cursor.take_word("PARTITION")
    if word is None:
        return ()
    cursor.expect_word("BY", "PARTITION")
    variables: list[Token] = []
    while cursor.here.kind is Kind.VARIABLE:
        variables.append(cursor.take())
        cursor.take_mark(",")
    if not variables:
        cursor.fail("expected the variables after PARTITION BY, such as ?sensor")
    if isinstance(extent, Session):
        raise cursor.source.refusal(
            "a session for each value of a variable (SESSION with PARTITION BY) is not supported: "
            "[SESSION 5m] has one session for the stream",
            word.start,
        )
    if not isinstance(extent, ElementCount | TripleCount):
        raise cursor.source.refusal(
            "PARTITION BY keeps the last n for each value: write it in a window of elements or triples, such as "
            f"[COUNT 10 PARTITION BY {variables[0].text}]",
            word.start,
        )
    if isinstance(extent, ElementCount) and extent.step is not None:
        raise cursor.source.refusal(
            "PARTITION BY in a window with STEP is not supported: leave STEP out, the last n for each value are then "
            "up to date at every element",
            word.start,
        )
    return tuple(variables)


def partition_variables(tokens: tuple[Token, ...]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(Variable(token.text[1:]) for token in tokens))


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
        return self._stepped(read_duration(self._cursor, bare_milliseconds=self._bare), 0)

    def past(self) -> TimeRange:
        """`NOW-2h TO NOW-1h`, behind FROM."""
        first = self._cursor.here
        begin = self._ago("FROM")
        self._cursor.expect_word("TO", "where the window begins, as in [FROM NOW-2h TO NOW-1h]")
        end = self._ago("TO")
        if begin <= end:
            raise self._cursor.source.error(
                "the window ends where or before it begins: write what is longer ago first, as in "
                "[FROM NOW-2h TO NOW-1h]",
                first.start,
            )
        return self._stepped(begin - end, end)

    def _ago(self, word: str) -> int:
        """NOW, or NOW minus a duration, in microseconds before now."""
        self._cursor.expect_word("NOW", f"{word}, as in [FROM NOW-2h TO NOW-1h]")
        if self._cursor.here.is_mark("+"):
            raise self._cursor.source.refusal(
                "a window in the future is not supported: elements are only known when they have come",
                self._cursor.here.start,
            )
        if not self._cursor.take_mark("-"):
            return 0
        return read_duration(self._cursor, bare_milliseconds=self._bare)

    def session(self) -> Session:
        gap = read_duration(self._cursor, bare_milliseconds=self._bare)
        if self._cursor.here.is_word("STEP", "SLIDE", "TUMBLING", "START", "STARTING"):
            raise self._cursor.source.refusal(
                "a session with a step is not supported: [SESSION 5m] changes at every element, and ends 5m after the last",
                self._cursor.here.start,
            )
        return Session(gap)

    def _stepped(self, width: int, delay: int) -> TimeRange:
        step: int | None = None
        start = 0
        while True:
            if self._cursor.take_word("STEP", "SLIDE"):
                self._once(step)
                step = read_duration(self._cursor, bare_milliseconds=self._bare)
            elif self._cursor.take_word("TUMBLING"):
                self._once(step)
                step = width
            elif word := self._cursor.take_word("START", "STARTING"):
                if step is None:
                    raise self._cursor.source.error(
                        f"{word.text.upper()} says where steps begin: write it after STEP", word.start
                    )
                if not self._cursor.take_word("AT") and word.is_word("STARTING"):
                    self._cursor.fail("expected AT after STARTING")
                start = self._start()
            else:
                return TimeRange(width, step, start, delay)

    def _once(self, step: int | None) -> None:
        if step is not None:
            word = self._cursor.before
            raise self._cursor.source.error(
                f"{word.text} after another STEP, SLIDE or TUMBLING: one is enough", word.start
            )

    def elements(self) -> ElementCount:
        extent = self._elements()
        if word := self._cursor.take_word("START", "STARTING"):
            raise self._cursor.source.refusal(
                f"{word.text.upper()} is for windows of time: elements are counted from the first that comes",
                word.start,
            )
        return extent

    def _elements(self) -> ElementCount:
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
        """A dateTime, bare or in quotes, or an integer since the epoch: of the unit that a bare number has here."""
        first = self._cursor.take()
        if first.kind is Kind.STRING:
            text = first.text.strip("\"'")
            if self._cursor.take_mark("^"):
                self._cursor.expect_mark("^", "before the datatype")
                datatype = self._cursor.take()
                if not re.search(r"dateTime(Stamp)?>?$|integer>?$|long>?$", datatype.text):
                    raise self._cursor.source.error(
                        f"a start is an xsd:dateTime or an xsd:integer, not {datatype.text}: {_WRITE_START}",
                        datatype.start,
                    )
        else:
            chunk = _CHUNK.match(self._cursor.source.text, first.start)
            text = chunk[0] if chunk else ""
            while self._cursor.here.end <= first.start + len(text) and not self._cursor.at_end:
                self._cursor.take()
        return _instant(self._cursor, first, text, 1000 if self._bare else 1)


def _instant(cursor: Cursor, first: Token, text: str, unit: int) -> int:
    try:
        moment = (
            _EPOCH + timedelta(microseconds=int(text) * unit)
            if _WHOLE.fullmatch(text)
            else datetime.fromisoformat(text)
        )
    except OverflowError:
        raise cursor.source.error(f"{text} is beyond the years 1 to 9999: {_WRITE_START}", first.start) from None
    except ValueError:
        raise cursor.source.error(
            f"expected a time such as 2024-01-01T00:00:00Z after START, found '{text or first.text}'", first.start
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
