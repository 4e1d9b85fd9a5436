"""Event times: terms and texts to microseconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.functions.dates import instant_text
from cqels_py.kernels.values.inline import instants, read_instants

NO_TIME = np.iinfo(np.int64).min
"""Stands for a time that cannot be read."""

FAR = 1 << 62
"""Times are less than this many microseconds from the epoch, so that sums of two stay within 64 bits."""

GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
"""The predicate of the default-graph triple that gives an event graph's time."""

EXPECTED = 'expected a time like "2013-01-01T15:18:10Z", or an integer of microseconds since the epoch'

LIKELY_FROM, LIKELY_TO = 315_532_800_000_000, 7_258_118_400_000_000
"""Microseconds of the years 1980 and 2200. There is no question about times between them."""
# For each other unit: how many microseconds make how many of the unit.
_UNITS = {"seconds": (1_000_000, 1), "milliseconds": (1_000, 1), "nanoseconds": (1, 1_000)}
_RANGES = {name: (LIKELY_FROM * of // each, LIKELY_TO * of // each) for name, (each, of) in _UNITS.items()}
_LEAST = min(low for low, _ in _RANGES.values())
_MINUTE = 60_000_000

_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR = r"(-?(?:[1-9]\d{3,5}|0\d{3}))"
_ZONE = r"(Z|[+-]\d\d(?::?\d\d)?)?"
_ISO = re.compile(
    _YEAR + r"-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?" + _ZONE, re.ASCII | re.IGNORECASE
)
_BASIC = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(?:(\d\d)(?:[.,](\d+))?)?" + _ZONE, re.ASCII | re.IGNORECASE)
"""ISO 8601's basic format. Without a time of day it would be an integer."""
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


def times_of_ids(ids: Ids, dictionary: Dictionary) -> npt.NDArray[np.int64]:
    """Microseconds (n) of literals (n); NO_TIME where invalid."""
    out = np.empty(len(ids), np.int64)
    if instants(ids, out):
        for i in np.flatnonzero(out == NO_TIME).tolist():
            text = dictionary.decode(ids[i : i + 1])[0] if 0 < ids[i] >> 60 < 5 else None
            out[i] = _of_term(text or "")
    return out


def times_of_texts(data: npt.NDArray[np.uint8], offsets: Ids) -> npt.NDArray[np.int64]:
    """Microseconds (n) of n texts in one buffer; NO_TIME where invalid."""
    out = np.empty(len(offsets) - 1, np.int64)
    if read_instants(data, offsets, out):
        for i in np.flatnonzero(out == NO_TIME).tolist():
            out[i] = time_of_text(data[offsets[i] : offsets[i + 1]].tobytes().decode())
    return out


def time_of_text(text: str) -> int:
    """Microseconds of ISO 8601 or of an integer of microseconds; NO_TIME for anything else.

    A blank may stand for T, as databases write it, and T and Z may be small letters, as RFC 3339 has it. Without a zone it is UTC.
    Fractions of a microsecond are cut off.

    >>> time_of_text("1970-01-01T00:00:01.5+00:00")
    1500000
    """
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    match = _ISO.fullmatch(text) or _BASIC.fullmatch(text)
    if match is None:
        return NO_TIME
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        # 24:00:00 is the end of the day.
        # The calendar repeats every 400 years: years are counted from 2000, because Python's dates range from 1 to 9999
        # only.
        cycles, of_cycle = divmod(int(year) - 2000, _CYCLE_YEARS)
        midnight = datetime(2000 + of_cycle, int(month), int(day), tzinfo=_zone(zone))
        if int(hour or 0) > 24 or int(minute or 0) > 59 or int(second or 0) > 59:
            return NO_TIME
    except ValueError:
        return NO_TIME
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    rest = (int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0)
    if rest * 1_000_000 + micros > 86_400_000_000:
        return NO_TIME
    seconds = (midnight - _EPOCH) // timedelta(seconds=1) + cycles * _CYCLE_DAYS * 86_400 + rest
    time = seconds * 1_000_000 + micros
    return time if -FAR < time < FAR else NO_TIME


def unit_question(time: int) -> str | None:
    """A question if an integer time seems to be in another unit: outside of 1980 to 2200 as microseconds, but inside in
    that unit.

    >>> unit_question(1714564800)
    '1714564800: seconds? as microseconds it is 1970-01-01T00:28'
    >>> unit_question(1_000_000)
    """
    for name, (low, high) in _RANGES.items():
        if low <= time < high:
            return (
                f"{time}: {name}? as microseconds it is {instant_text(time // _MINUTE * _MINUTE).removesuffix(':00Z')}"
            )
    return None


def questionable(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The positions of the times (n) that `unit_question` asks about."""
    if not len(times) or (times.min() >= LIKELY_FROM and times.max() < LIKELY_TO) or times.max() < _LEAST:
        return np.empty(0, np.int64)
    asked = np.zeros(len(times), np.bool_)
    for low, high in _RANGES.values():
        asked |= (low <= times) & (times < high)
    return np.flatnonzero(asked)


def is_integer(text: str) -> bool:
    """Whether the text of a time is an integer of microseconds, not ISO 8601."""
    return _INTEGER.fullmatch(text.strip()) is not None


def _zone(text: str | None) -> timezone:
    """ValueError for an offset of a day or more, or of 60 minutes."""
    if text is None or text in "Zz":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    if int(digits[2:] or 0) > 59:
        raise ValueError(text)
    return timezone(-offset if text[0] == "-" else offset)


def _of_term(text: str) -> int:
    return time_of_text(text[1 : text.rindex('"')]) if text.startswith('"') else NO_TIME
