"""What aggregates ask of the dictionary: numbers behind hashed literals, ids of computed numbers, texts to compare."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.dictionary.layout import INTEGER_DATATYPES, TAG_DECIMAL, TAG_DOUBLE, TAG_FLOAT, TAG_INTEGER, XSD
from cqels_py.operators.r2r.aggregate import OddNumbers

_ERROR, _INTEGER, _DECIMAL, _FLOAT, _DOUBLE = range(5)
_LITERAL = re.compile(r'^"((?:[^"\\]|\\.)*)"\^\^<' + re.escape(XSD) + r"([A-Za-z]+)>$", re.DOTALL)
_INTEGER_FORM = re.compile(r"^[+-]?[0-9]+$")
_DECIMAL_FORM = re.compile(r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$")
_DOUBLE_FORM = re.compile(r"^([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN)$")
_LARGEST = 1 << 126
_QUOTIENT = Context(prec=16, rounding=ROUND_HALF_EVEN)
_EXACT = Context(prec=80)
_DATATYPE = {TAG_INTEGER: "integer", TAG_DECIMAL: "decimal", TAG_DOUBLE: "double", TAG_FLOAT: "float"}


class DictionaryValues:
    """The dictionary as `operators.r2r.aggregate.TermValues`."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary

    def numbers(self, ids: Ids) -> OddNumbers:
        n = len(ids)
        result = OddNumbers(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((n, 3), np.int64), np.zeros(n))
        for i, text in enumerate(self._dictionary.decode(ids)):
            match = _LITERAL.match(text or "")
            if match:
                self._number(i, match.group(1).strip(), match.group(2), result)
        return result

    def _number(self, i: int, lexical: str, datatype: str, result: OddNumbers) -> None:
        if datatype in INTEGER_DATATYPES and _INTEGER_FORM.match(lexical):
            self._exact(i, Decimal(lexical), _INTEGER, "integer", result)
        elif datatype == "decimal" and _DECIMAL_FORM.match(lexical):
            self._exact(i, Decimal(lexical), _DECIMAL, "decimal", result)
        elif datatype in ("double", "float") and _DOUBLE_FORM.match(lexical):
            result.kind[i] = _DOUBLE if datatype == "double" else _FLOAT
            result.real[i] = float(lexical.replace("INF", "inf"))

    def _exact(self, i: int, value: Decimal, kind: int, datatype: str, result: OddNumbers) -> None:
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        scale = max(0, -exponent)
        text = f"{value:f}"
        inline = self._dictionary.encode_one(f'"{text.removeprefix("-") if not value else text}"^^<{XSD}{datatype}>')
        if (inline >> 60) & 15 in (TAG_INTEGER, TAG_DECIMAL):
            result.ids[i] = inline
            return
        unscaled = int(value.scaleb(scale, _EXACT)) if value.adjusted() < 60 else _LARGEST
        if scale > 18 or abs(unscaled) >= _LARGEST:
            # Beyond what 128 bits add exactly: an error, as for what is no number.
            return
        result.kind[i] = kind
        result.words[i] = (unscaled >> 64, _signed(unscaled), scale)

    def computed(self, late: npt.NDArray[np.int64], real: npt.NDArray[np.float64]) -> Ids:
        texts = [
            _text(int(tag), int(hi), int(lo), int(scale), float(r))
            for (tag, hi, lo, scale), r in zip(late, real, strict=True)
        ]
        return self._dictionary.encode(texts)

    def texts(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        return self._dictionary.arena, self._dictionary.table


def _signed(value: int) -> int:
    low = value & ((1 << 64) - 1)
    return low - (1 << 64) if low >> 63 else low


def _text(tag: int, hi: int, lo: int, scale: int, real: float) -> str:
    datatype = _DATATYPE[tag]
    if tag in (TAG_DOUBLE, TAG_FLOAT):
        return f'"{real_text(real)}"^^<{XSD}{datatype}>'
    value = Decimal((hi << 64) | (lo & ((1 << 64) - 1))).scaleb(-scale, _EXACT)
    if real not in (0.0, 1.0):
        value = _QUOTIENT.divide(value, Decimal(int(real)))
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f'"{text}"^^<{XSD}{datatype}>'


def real_text(value: float) -> str:
    """The lexical form of a computed double.

    >>> real_text(1e22), real_text(23.0), real_text(float("inf"))
    ('1.0E22', '23.0', 'INF')
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
