"""The times that a relation of TREE promises of members, from its kinds and values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from cqels_py.formats.times import FAR, NO_TIME, is_integer, time_of_text

FIRST, LAST = -FAR, FAR
"""Bounds of times for relations that promise none, in microseconds."""

TREE: Final = "https://w3id.org/tree#"
_BETWEEN: Final = {TREE + "InBetweenRelation", TREE + "EqualToRelation"}
_GREATER: Final = {TREE + "GreaterThanRelation", TREE + "GreaterThanOrEqualToRelation", *_BETWEEN}
_LESS: Final = {TREE + "LessThanRelation", TREE + "LessThanOrEqualToRelation", *_BETWEEN}

_YEAR_TYPE: Final = "http://www.w3.org/2001/XMLSchema#gYear"
_SECOND, _MINUTE, _HOUR = 1_000_000, 60_000_000, 3_600_000_000
_ZONE: Final = r"(?P<zone>Z|[+-]\d\d:\d\d)?"
_SHORTENED: Final = re.compile(
    r"(?P<year>\d{4,6})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)(?:T(?P<hour>\d\d)(?::(?P<minute>\d\d))?)?)?)?" + _ZONE,
    re.ASCII,
)
_WHOLE: Final = re.compile(r".+T\d\d:\d\d:[\d.]+" + _ZONE, re.ASCII)
_UNKNOWN_ZONE: Final = 14 * _HOUR
"""Zones are at most so far from UTC."""


def bounds(kinds: set[str], values: Iterable[Any]) -> tuple[int, int]:
    """The first and the last time that members of the page may have; FIRST and LAST where there is no promise.

    `values`: literals of pyoxigraph. Which of several is for which kind is not said, so all times between them may be.
    """
    spans = [_span(value.value, value.datatype.value) for value in values]
    if not spans or None in spans:
        return FIRST, LAST
    low, high = min(span[0] for span in spans if span), max(span[1] for span in spans if span)
    # Times are whole microseconds, values need not be: a member greater than the value may have the same number.
    return (low if kinds & _GREATER else FIRST), (high + _SECOND * bool(kinds & _BETWEEN) if kinds & _LESS else LAST)


def _span(text: str, datatype: str) -> tuple[int, int] | None:
    """The times at which a value begins and ends; None if it is no time. A date without a zone may be that of any zone.

    >>> _span("1970-01-01T01Z", "") == (_HOUR, 2 * _HOUR)
    True
    """
    if is_integer(text) and datatype != _YEAR_TYPE:
        return _between(text, text, 0)
    if (match := _WHOLE.fullmatch(text)) is not None:
        return _between(text, text, 0 if match["zone"] else _UNKNOWN_ZONE)
    if (match := _SHORTENED.fullmatch(text)) is None:
        return None
    year, month, day, hour, minute, zone = match.group("year", "month", "day", "hour", "minute", "zone")
    start = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:00{zone or 'Z'}"
    slack = 0 if zone else _UNKNOWN_ZONE
    if day is not None:
        return _between(start, start, slack, _MINUTE if minute else _HOUR if hour else 24 * _HOUR)
    years, months = divmod(int(month or 12), 12)
    return _between(start, f"{int(year) + years:04}-{months + 1:02}-01T00:00:00{zone or 'Z'}", slack)


def _between(first: str, last: str, slack: int, length: int = 0) -> tuple[int, int] | None:
    low, high = time_of_text(first), time_of_text(last)
    return None if NO_TIME in (low, high) else (low - slack, high + slack + length)
