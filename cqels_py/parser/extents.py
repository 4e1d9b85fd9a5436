"""The extent of a window, in its brackets: `[RANGE 5s STEP 1s]`, `[COUNT 10]`, `[NOW]` …"""

from __future__ import annotations

from cqels_py.algebra.nodes import ElementCount, Everything, Extent, Session, TimeRange, TripleCount
from cqels_py.parser.times import MOST, check_digits, read_duration, read_start
from cqels_py.parser.tokens import Cursor, Kind

_FORMS = (
    "[RANGE 10s], [RANGE 10s STEP 5s], [RANGE 10s TUMBLING], [COUNT 100], [TRIPLES 100], [SESSION 5m], [NOW], [ALL] "
    "or [FROM NOW-2h TO NOW-1h]"
)


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
                "the window ends where or before it begins: write the earlier time first, as in "
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
        return Session(gap, *self._steps(None, gap))

    def _stepped(self, width: int, delay: int) -> TimeRange:
        step, start = self._steps(width, width + delay)
        return TimeRange(width, step, start, delay)

    def _steps(self, width: int | None, reach: int) -> tuple[int | None, int]:
        """STEP and START; TUMBLING steps by the `width` (None: there is none). `reach`: how long ago the window begins."""
        first = self._cursor.here
        step, start = self._step_and_start(width)
        # So whatever instant follows from an element's time, which itself is less than MOST from the epoch, fits 64 bits.
        if step is not None and reach + step + abs(start) >= MOST:
            raise self._cursor.source.error(
                f"how long ago the window begins, its STEP, and how far START is from 1970 must be less than {MOST} "
                "microseconds together: write less",
                first.start,
            )
        return step, start

    def _step_and_start(self, width: int | None) -> tuple[int | None, int]:
        """As they stand, in any number of words."""
        step: int | None = None
        start = 0
        while True:
            if self._cursor.take_word("STEP", "SLIDE"):
                self._once(step)
                step = read_duration(self._cursor, bare_milliseconds=self._bare)
            elif self._cursor.here.is_word("TUMBLING") and width is None:
                raise self._cursor.source.error(
                    "sessions follow one another as they are: TUMBLING is for windows of a size",
                    self._cursor.here.start,
                )
            elif self._cursor.take_word("TUMBLING"):
                self._once(step)
                step = width
            elif word := self._cursor.take_word("START", "STARTING"):
                if step is None:
                    raise self._cursor.source.error(
                        f"{word.text.upper()} defines where steps begin: write it after STEP", word.start
                    )
                if not self._cursor.take_word("AT") and word.is_word("STARTING"):
                    self._cursor.fail("expected AT after STARTING")
                start = read_start(self._cursor, bare_milliseconds=self._bare)
            else:
                return step, start

    def _once(self, step: int | None) -> None:
        if step is not None:
            word = self._cursor.before
            raise self._cursor.source.error(
                f"{word.text} after another STEP, SLIDE or TUMBLING: one is enough", word.start
            )

    def elements(self) -> ElementCount:
        return ElementCount(*self._counted("elements"))

    def triples(self) -> TripleCount:
        return TripleCount(*self._counted("triples"))

    def _counted(self, units: str) -> tuple[int, int | None]:
        count, step = self._count(), None
        if self._cursor.take_word("TUMBLING"):
            step = count
        elif self._cursor.take_word("STEP", "SLIDE"):
            step = self._count()
        if word := self._cursor.take_word("START", "STARTING"):
            raise self._cursor.source.refusal(
                f"{word.text.upper()} is for windows of time: {units} are counted from the first that comes",
                word.start,
            )
        return count, step

    def _count(self) -> int:
        token = self._cursor.take()
        if token.kind is Kind.NUMBER:
            check_digits(self._cursor.source, token, token.text)
        number = int(token.text) if token.kind is Kind.NUMBER and token.text.isdecimal() else 0
        if number == 0:
            raise self._cursor.source.error(f"expected a whole number from 1, such as 100, found {token}", token.start)
        if number >= MOST:
            raise self._cursor.source.error(
                f"{token.text} is too large: the greatest number is {MOST - 1}", token.start
            )
        return number
