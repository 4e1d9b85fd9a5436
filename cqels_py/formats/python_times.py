"""Instants and durations as Python's libraries have them, in microseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import numpy as np

from cqels_py.errors import QueryError, UsageError
from cqels_py.formats.times import FAR, NO_TIME, is_integer, time_of_text
from cqels_py.parser.times import duration_of

Time: TypeAlias = "int | datetime | date | np.datetime64 | str"
Duration: TypeAlias = "int | timedelta | np.timedelta64 | str"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_A_TIME = (
    'an integer of microseconds since the epoch, a datetime with a time zone, or a text such as "2024-05-01T12:00:00Z"'
)


def instant(time: Any, name: str = "time") -> int:
    """Microseconds since the epoch of an int, a datetime with a zone, a date, a numpy datetime64, a pandas Timestamp or ISO text.

    Dates, datetime64, Timestamps without a zone and texts without one are in UTC; fractions of a microsecond are cut off.
    UsageError for anything else, and for times that are far beyond any date.

    >>> instant("1970-01-01T00:00:01Z"), instant(datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC))
    (1000000, 2000000)
    """
    number = _microseconds(time, name)
    if number is None:
        raise UsageError(f"{name} is {_A_TIME}, not {time!r}")
    if not -FAR < number < FAR:
        raise UsageError(f"{name} is microseconds since the epoch; {number} is far beyond any date")
    return number


def duration(value: Any, name: str) -> int:
    """Microseconds of a duration: an int of microseconds, a timedelta (of numpy or pandas too), or a text such as "10s" or "PT10S".

    UsageError names the argument.

    >>> duration("10s", "lateness"), duration(timedelta(milliseconds=5), "lateness")
    (10000000, 5000)
    """
    found = None
    if isinstance(value, np.timedelta64):
        found = None if np.isnat(value) else int(value.astype("timedelta64[us]").astype(np.int64))
    elif isinstance(value, timedelta):
        found = value // _MICROSECOND if value == value else None
    elif isinstance(value, int | np.integer) and not isinstance(value, bool):
        found = int(value)
    elif isinstance(value, str):
        try:
            found = duration_of(value)
        except QueryError as error:
            raise UsageError(f"{name} is a duration such as 10s, not {value!r}: {error.message}") from None
    if found is None:
        raise UsageError(f'{name} is an integer of microseconds, a timedelta, or a text such as "10s", not {value!r}')
    return found


def _microseconds(time: Any, name: str) -> int | None:
    if hasattr(time, "to_datetime64"):
        time = time.to_datetime64()
    if isinstance(time, np.datetime64):
        return None if np.isnat(time) else int(time.astype("datetime64[us]").astype(np.int64))
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise UsageError(
                f"{name} is {time!r}, which has no time zone: write {name}.replace(tzinfo=datetime.UTC), for example"
            )
        return (time - _EPOCH) // _MICROSECOND
    if isinstance(time, date):
        return (datetime(time.year, time.month, time.day, tzinfo=UTC) - _EPOCH) // _MICROSECOND
    if isinstance(time, str):
        found = NO_TIME if is_integer(time) else time_of_text(time)
        return None if found == NO_TIME else found
    if isinstance(time, int | np.integer) and not isinstance(time, bool | np.timedelta64):
        return int(time)
    return None
