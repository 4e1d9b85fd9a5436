"""Term ids written straight from the table in cqels_py/terms/layout.py: slow, and sharing no code with it."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGERS = (
    *("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
    *("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
)
SCALED_TAGS = {"decimal": 6, "double": 7, "float": 8}
RANGES = {"byte": (-128, 127), "unsignedByte": (0, 255), "nonNegativeInteger": (0, 1 << 55)}


def typed(text: str, name: str) -> str:
    """A literal of an XSD datatype as N-Triples."""
    return f'"{text}"^^<{XSD}{name}>'


def _signed(tag: int, payload: int) -> int:
    word = tag << 60 | payload
    return word - (1 << 64) if word >= 1 << 63 else word


def _zone(text: str) -> tuple[int, int] | None:
    """Number and minutes of a zone; None if it is not in quarters of an hour."""
    if text in ("", "Z"):
        return (1 if text else 0), 0
    minutes = (int(text[1:3]) * 60 + int(text[4:])) * (-1 if text[0] == "-" else 1)
    return None if minutes % 15 else (58 + minutes // 15, minutes)


def _days(text: str) -> int | None:
    """Days since the epoch; None if there is no such date."""
    try:
        return datetime.date.fromisoformat(text).toordinal() - 719163
    except ValueError:
        return None


def inline_id(text: str, datatype: str) -> int | None:
    """The id of a literal with an XSD datatype, if it has an inline form."""
    if datatype in INTEGERS:
        if not re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text):
            return None
        low, high = RANGES.get(datatype, (-(1 << 55), (1 << 55) - 1))
        value = int(text)
        fits = max(low, -(1 << 55)) <= value <= min(high, (1 << 55) - 1)
        return _signed(5, INTEGERS.index(datatype) << 56 | value & (1 << 56) - 1) if fits else None
    if datatype in SCALED_TAGS:
        match = re.fullmatch(r"-?(?:0|[1-9][0-9]*)(?:\.([0-9]{1,15}))?", text)
        if datatype == "decimal" and (fraction := _fraction_id(text)):
            return fraction
        if not match or (text.startswith("-") and Decimal(text) == 0):
            return None
        scale = len(match[1] or "")
        unscaled = int(Decimal(text).scaleb(scale))
        if not -(1 << 55) <= unscaled < 1 << 55:
            return None
        return _signed(SCALED_TAGS[datatype], scale << 56 | unscaled & (1 << 56) - 1)
    if datatype == "boolean":
        names = ("false", "true", "0", "1")
        return _signed(9, names.index(text)) if text in names else None
    if datatype == "dateTime":
        return _datetime_id(text)
    if datatype == "date" and (match := re.fullmatch(r"(\d{4}-\d\d-\d\d)(Z|[+-]\d\d:\d\d)?", text)):
        zone, days = _zone(match[2] or ""), _days(match[1])
        if zone and days is not None:
            return _signed(12, zone[0] << 53 | days & (1 << 53) - 1)
    return None


def _fraction_id(text: str) -> int | None:
    """The id of a decimal of 18 or 19 digits that is a rounded fraction: tag 13."""
    if not re.fullmatch(r"-?(?:0\.[1-9]|[1-9][0-9]*\.)[0-9]*[1-9]", text):
        return None
    size, digits = abs(Fraction(text)), len(text.lstrip("-0.").replace(".", ""))
    if digits not in (18, 19):
        return None
    found = size.limit_denominator(math.isqrt(int(10**17 / size)) + 1)
    if Fraction(Context(prec=19).divide(Decimal(found.numerator), Decimal(found.denominator))) != size:
        return None
    scale = next((s for s in range(16) if math.gcd((found * 10**s).denominator, 10) == 1), None)
    if scale is None:
        return None
    dividend, divisor = (found * 10**scale).as_integer_ratio()
    if divisor == 1 or divisor >= 1 << 16 or dividend >= 1 << 39 or dividend * divisor * 10**scale >= 10**17:
        return None
    payload = (-dividend if text[0] == "-" else dividend) & (1 << 40) - 1
    return _signed(13, scale << 56 | divisor << 40 | payload)


def _datetime_id(text: str) -> int | None:
    form = r"(\d{4}-\d\d-\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)?"
    match = re.fullmatch(form, text)
    zone = _zone(match[6] or "") if match else None
    days = _days(match[1]) if match else None
    if not match or not zone or days is None or match[2] == "24":
        return None
    seconds = ((days * 24 + int(match[2])) * 60 + int(match[3]) - zone[1]) * 60 + int(match[4])
    digits = len(match[5] or "")
    micros = int(Fraction(seconds * 1_000_000) + Fraction(int(match[5] or 0) * 1_000_000, 10**digits))
    if digits <= 3:
        return _signed(10, digits << 58 | zone[0] << 51 | micros // 1000 & (1 << 51) - 1)
    if zone[0] > 1:
        return None
    return _signed(11, (digits - 4) << 58 | zone[0] << 57 | micros & (1 << 57) - 1)


class PlainDictionary:
    """Inline terms by the table, all others numbered."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: dict[int, str] = {}

    def encode(self, texts: Sequence[str], *, existing: bool = False) -> npt.NDArray[np.int64]:
        return np.array([self._id(text) for text in texts], np.int64)

    def decode(self, ids: npt.NDArray[np.int64]) -> list[str]:
        return [self._texts[int(i)] for i in ids]

    def _id(self, text: str) -> int:
        if text not in self._ids:
            match = re.fullmatch(rf'"([^"\\]*)"\^\^<{XSD}(\w+)>', text)
            number = inline_id(match[1], match[2]) if match else None
            if number is None:
                tag = 1 if text.startswith("<") else 3 if text.startswith("_:") else 2
                number = _signed(tag, 1000 + len(self._ids))
            self._ids[text] = number
            self._texts[number] = text
        return self._ids[text]
