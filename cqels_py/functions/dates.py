"""xsd:dateTime and xsd:date: parsing, instants and parts."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

_ZONE = r"(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_DATE = r"(-?(?:[1-9][0-9]{3,8}|0[0-9]{3}))-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_DATE_FORM = re.compile(_DATE + _ZONE)
_DATETIME_FORM = re.compile(_DATE + r"T([01][0-9]|2[0-4]):([0-5][0-9]):([0-5][0-9](?:\.[0-9]+)?)" + _ZONE)
_DAY = 86_400


class DateTime(NamedTuple):
    """A dateTime, or a date (its first instant). `zone` is the offset in minutes, None without one."""

    is_date: bool
    year: int
    month: int
    day: int
    hours: int
    minutes: int
    seconds: Decimal
    zone: int | None

    @property
    def instant(self) -> Fraction:
        """Seconds since the epoch. Without a zone, UTC is assumed."""
        whole = days_of(self.year, self.month, self.day) * _DAY + self.hours * 3600
        return (whole + (self.minutes - (self.zone or 0)) * 60) + Fraction(self.seconds)


def days_of(year: int, month: int, day: int) -> int:
    """Days since the epoch in the proleptic Gregorian calendar."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


def date_of(days: int) -> tuple[int, int, int]:
    shifted = days + 719468
    era, rest = divmod(shifted, 146097)
    year = (rest - rest // 1460 + rest // 36524 - rest // 146096) // 365
    rest -= 365 * year + year // 4 - year // 100
    part = (5 * rest + 2) // 153
    month = part + 3 if part < 10 else part - 9
    return year + era * 400 + (month <= 2), month, rest - (153 * part + 2) // 5 + 1


def _zone_minutes(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "Z":
        return 0
    minutes = int(text[1:3]) * 60 + int(text[4:6])
    return -minutes if text[0] == "-" else minutes


def parse_datetime(text: str, is_date: bool) -> DateTime | None:
    """The value of a lexical form; None if it is not valid."""
    match = (_DATE_FORM if is_date else _DATETIME_FORM).fullmatch(text)
    if not match:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if date_of(days_of(year, month, day)) != (year, month, day):
        return None
    if is_date:
        return DateTime(True, year, month, day, 0, 0, Decimal(0), _zone_minutes(match[4]))
    hours, minutes, seconds = int(match[4]), int(match[5]), Decimal(match[6])
    if hours == 24:
        if minutes or seconds:
            return None
        hours, (year, month, day) = 0, date_of(days_of(year, month, day) + 1)
    return DateTime(False, year, month, day, hours, minutes, seconds, _zone_minutes(match[7]))


def zone_text(text: str) -> str:
    """The zone as written in a dateTime's lexical form; empty without one."""
    match = _DATETIME_FORM.fullmatch(text)
    return (match[7] or "") if match else ""


def duration_text(minutes: int) -> str:
    """An offset as an xsd:dayTimeDuration."""
    hours, rest = divmod(abs(minutes), 60)
    if minutes == 0:
        return "PT0S"
    return f"{'-' if minutes < 0 else ''}PT{f'{hours}H' if hours else ''}{f'{rest}M' if rest else ''}"


def date_text(year: int, month: int, day: int) -> str:
    """A date in XML Schema's form: a year has at least four digits after its sign."""
    return f"{year:0{5 if year < 0 else 4}}-{month:02}-{day:02}"


def instant_text(micros: int) -> str:
    """Microseconds since the epoch as an xsd:dateTime in UTC, without trailing zeros of the fraction."""
    seconds, fraction = divmod(micros, 1_000_000)
    days, rest = divmod(seconds, _DAY)
    year, month, day = date_of(days)
    digits = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{date_text(year, month, day)}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}{digits}Z"
