"""The dictionary as aggregates use it: numbers of hashed literals, ids of computed numbers, texts to compare."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.functions import numbers
from cqels_py.functions.durations import FRACTION_DIGITS, XSD_DAY_TIME, XSD_YEAR_MONTH, parse_duration, rounded_duration
from cqels_py.functions.limits import NO_REPORTS, Limits, is_longer, too_long
from cqels_py.functions.numbers import NUMERIC_DATATYPES, Number, number_term, parse_number, quotient
from cqels_py.functions.terms import ExpressionError, TermKind, literal, parse_term, print_term
from cqels_py.kernels.aggregates import accumulators as kernel
from cqels_py.kernels.values import decimal_texts
from cqels_py.kernels.values.decimals import ID_SCALE, SUM_SCALE
from cqels_py.operators.r2r.aggregate import HashedNumbers
from cqels_py.terms.layout import TAG_DECIMAL, TAG_DOUBLE, TAG_FLOAT, TAG_INTEGER, TAG_SHIFT, VALUE_BITS, XSD

_ODD_KIND = {
    numbers.INTEGER: kernel.HASHED_INTEGER,
    numbers.DECIMAL: kernel.HASHED_DECIMAL,
    numbers.FLOAT: kernel.HASHED_FLOAT,
    numbers.DOUBLE: kernel.HASHED_DOUBLE,
}
_ODD_DURATION = {XSD_DAY_TIME: kernel.HASHED_DAY_TIME, XSD_YEAR_MONTH: kernel.HASHED_YEAR_MONTH}
"""The datatypes of durations that are added; an xsd:duration with both months and seconds is not."""
_LITERAL = re.compile(r'^"((?:[^"\\]|\\.)*)"\^\^<(' + re.escape(XSD) + r"[A-Za-z]+)>$", re.DOTALL)
_LARGEST = 1 << 126
_EXACT = Context(prec=80)
_MOST_DIGITS = 17
"""No inline number has more digits before the point."""
_SHOWN = 50
_LOG = logging.getLogger("cqels_py")
_KIND = {
    TAG_INTEGER: numbers.INTEGER,
    TAG_DECIMAL: numbers.DECIMAL,
    TAG_DOUBLE: numbers.DOUBLE,
    TAG_FLOAT: numbers.FLOAT,
}


class DictionaryValues:
    """The dictionary as `operators.r2r.aggregate.TermValues`."""

    STATE = ("_warned", "_reported")

    def __init__(self, dictionary: Dictionary, limits: Limits = NO_REPORTS) -> None:
        self._dictionary = dictionary
        self._limits = limits
        self._warned = False
        self._reported = False

    def numbers(self, ids: Ids) -> HashedNumbers:
        result = HashedNumbers(len(ids))
        for i, text in enumerate(self._dictionary.decode(ids)):
            match = _LITERAL.match(text or "")
            if match and match.group(2) in NUMERIC_DATATYPES:
                written = match.group(1)
                number = parse_number(written, match.group(2))
                if number is not None and isinstance(number.value, float):
                    result.ids[i] = _as_plain_double(written) if number.kind == numbers.DOUBLE else 0
                    result.kind[i] = _ODD_KIND[number.kind]
                    result.real[i] = number.value
                elif number is not None:
                    self._exact_number(i, number, result)
            elif match and match.group(2) in _ODD_DURATION:
                _put_duration(i, match.group(1), match.group(2), result)
        return result

    def _exact_number(self, i: int, number: Number, result: HashedNumbers) -> None:
        value = Decimal(number.value)
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        scale = max(0, -exponent)
        text = f"{value:f}"
        datatype = "integer" if number.kind == numbers.INTEGER else "decimal"
        inline = self._dictionary.encode_one(f'"{text.removeprefix("-") if not value else text}"^^<{XSD}{datatype}>')
        if (inline >> 60) & 15 in (TAG_INTEGER, TAG_DECIMAL):
            result.ids[i] = inline
            return
        unscaled = int(value.scaleb(scale, _EXACT)) if value.adjusted() + scale < 60 else _LARGEST
        if scale > SUM_SCALE or abs(unscaled) >= _LARGEST:
            self._warn_of(text)
            return
        result.kind[i] = _ODD_KIND[number.kind]
        result.words[i] = (unscaled >> 64, _signed(unscaled), scale)

    def _warn_of(self, text: str) -> None:
        """Log once that there is a number too large to be added exactly in 128 bits: an error, as for terms that are no numbers."""
        if not self._warned:
            self._warned = True
            _LOG.warning(
                "SUM and AVG add numbers of up to 37 digits; %s has more, so that sums and averages over it are unbound",
                _beginning(text),
            )

    def no_numbers(self, ids: Ids) -> None:
        """Count them, and report the first. Numbers beyond 128 bits are counted too; `_warn_of` reports these."""
        self._limits.count(len(ids))
        if self._reported:
            return
        different, first = np.unique(ids, return_index=True)
        texts = self._dictionary.decode(different[np.argsort(first)])
        text = next((text for text in texts if text is not None and not _is_number(text)), None)
        if text is not None:
            self._reported = True
            self._limits.report(
                f"SUM and AVG add numbers, and {_beginning(text)} is not a number: they are unbound for a group while it has "
                "such a value (reported once; the statistics count all)"
            )

    def computed(self, deferred: npt.NDArray[np.int64], real: npt.NDArray[np.float64]) -> Ids:
        ids = np.empty(len(deferred), np.int64)
        decimals = (deferred[:, 0] == TAG_DECIMAL) & (real == 0.0)
        if decimals.any():
            ids[decimals] = decimal_ids(deferred[decimals, 1:], self._dictionary)
        if not decimals.all():
            others = zip(deferred[~decimals].tolist(), real[~decimals].tolist(), strict=True)
            texts = [_text(tag, hi, lo, scale, value) for (tag, hi, lo, scale), value in others]
            ids[~decimals] = self._dictionary.encode(texts)
        return ids

    def joined(self, values: Ids, start: Ids, length: Ids, separators: Sequence[str]) -> Ids:
        used = int((start + length).max(initial=0))
        different, place = np.unique(values[:used], return_inverse=True)
        strings = [_string(text) for text in self._dictionary.decode(different)]
        members = [strings[i] for i in place.tolist()]
        texts: list[str | None] = []
        for first, last, separator in zip(start.tolist(), (start + length).tolist(), separators, strict=True):
            parts = [part for part in members[first:last] if part is not None]
            texts.append(self._joined(separator, parts) if len(parts) == last - first else None)
        return self._dictionary.encode(texts)

    def _joined(self, separator: str, parts: list[str]) -> str | None:
        most = self._limits.max_text
        if sum(map(len, parts)) + len(separator) * (len(parts) - 1) <= most:
            text = separator.join(parts)
            if not is_longer(text, most):
                return print_term(literal(text))
        error = too_long("GROUP_CONCAT", most)
        self._limits.report(f"{error}: it is unbound for a group of {len(parts):,} values, as long as that holds")
        return None

    def texts(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        table, arena = self._dictionary.texts
        return arena, table


def _put_duration(i: int, written: str, datatype: str, result: HashedNumbers) -> None:
    """Its months, or its seconds with as many digits as they have."""
    value = parse_duration(written, datatype)
    if value is None:
        return
    unscaled, scale = value.months or int(value.seconds * 10**FRACTION_DIGITS), 0 if value.months else FRACTION_DIGITS
    while scale > 0 and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    result.kind[i] = _ODD_DURATION[datatype]
    result.words[i] = (unscaled >> 64, _signed(unscaled), scale)


def decimal_ids(numbers: npt.NDArray[np.int64], dictionary: Dictionary) -> Ids:
    """The ids of decimals (n, 3): the two words of the unscaled value, and the scale."""
    room = len(numbers) * decimal_texts.FRAME + int(numbers[:, 2].sum())
    out, offsets = np.empty(room, np.uint8), np.empty(len(numbers) + 1, np.int64)
    digits = np.empty(decimal_texts.MOST_DIGITS, np.uint8)
    decimal_texts.write_decimals(np.ascontiguousarray(numbers), digits, out, offsets)
    return dictionary.encode_bytes(out, offsets, np.zeros(len(numbers), np.int64))


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_number(text: str) -> bool:
    match = _LITERAL.match(text)
    if match is None or match.group(2) not in NUMERIC_DATATYPES:
        return False
    return parse_number(match.group(1), match.group(2)) is not None


def _string(text: str | None) -> str | None:
    """STR(): the text of a literal or an IRI; None for a blank node."""
    assert text is not None
    if text[0] == '"' and "\\" not in text:
        # As nearly all are; texts are joined anew at each change of their group.
        return text[1 : text.rindex('"')]
    term = parse_term(text)
    return None if term.kind is TermKind.BLANK else term.text


def _as_plain_double(written: str) -> int:
    """The id of an equal double without an exponent, which can be subtracted from a sum exactly; 0 if it is not inline."""
    value = Decimal(written)
    if not value.is_finite() or not value:
        return 0
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    if scale > ID_SCALE or value.adjusted() > _MOST_DIGITS:
        return 0
    unscaled, limit = int(value.scaleb(scale, _EXACT)), 1 << (VALUE_BITS - 1)
    if not -limit <= unscaled < limit:
        return 0
    return (TAG_DOUBLE << TAG_SHIFT) | (scale << VALUE_BITS) | (unscaled & (2 * limit - 1))


def _signed(value: int) -> int:
    low = value & ((1 << 64) - 1)
    return low - (1 << 64) if low >> 63 else low


def _text(tag: int, hi: int, lo: int, scale: int, real: float) -> str | None:
    """The literal of a sum, or of an average: `real` is then the number of values, else 0, or 1 for durations.

    None for a duration that no literal holds.
    """
    if tag in (TAG_DOUBLE, TAG_FLOAT):
        return print_term(number_term(Number(_KIND[tag], real)))
    unscaled = (hi << 64) | (lo & ((1 << 64) - 1))
    if tag == TAG_INTEGER:
        return print_term(number_term(Number(numbers.INTEGER, unscaled // 10**scale)))
    if tag in (kernel.DEFERRED_DAY_TIME, kernel.DEFERRED_YEAR_MONTH):
        return _duration_text(tag, Fraction(unscaled, 10**scale * int(real)))
    value = Decimal(unscaled).scaleb(-scale, _EXACT)
    return print_term(number_term(Number(numbers.DECIMAL, quotient(value, int(real)) if real else value)))


def _duration_text(tag: int, value: Fraction) -> str | None:
    """The literal of a number of months or seconds; None where it has more digits than a duration can have."""
    nothing = Fraction(0)
    try:
        if tag == kernel.DEFERRED_YEAR_MONTH:
            return print_term(rounded_duration(value, nothing, XSD_YEAR_MONTH))
        return print_term(rounded_duration(nothing, value, XSD_DAY_TIME))
    except ExpressionError:
        return None
