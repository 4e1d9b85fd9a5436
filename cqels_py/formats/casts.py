"""Terms in columns to values of a type that the program asks for; a term that is none is null."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.formats.lexical import Terms
from cqels_py.terms.layout import INTEGER_DATATYPES, XSD

_INTEGERS = [XSD + name for name in INTEGER_DATATYPES]
_EXACT = [*_INTEGERS, XSD + "decimal"]
_NUMBERS = [*_EXACT, XSD + "double", XSD + "float"]
_INTEGER = r"^[+-]?0*[0-9]{1,37}(?:\.0*)?$"
_DECIMAL = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)$"
_DOUBLE = r"^(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|[+-]?INF|NaN)$"
_INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6}0*)?"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DIGITS = 38
_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
_NANO_MICROS = (1 << 63) // 1000
"""Microseconds from the epoch, both ways, whose nanoseconds are 64 bits."""
_WIDE = pa.decimal128(_DIGITS, 0)
_TEXT = pa.large_string()


def cast_terms(terms: Terms, kind: pa.DataType) -> pa.Array:
    """The values (n) of terms that are exactly a value of the type; null for others. NotImplementedError for other types.

    Doubles are the nearest of numbers, as SPARQL's are; texts are the lexical forms of any terms.
    """
    if kind in (pa.string(), _TEXT):
        return terms.lexical.cast(kind)
    if pa.types.is_integer(kind):
        return _integers(terms, kind)
    if kind in (pa.float64(), pa.float32()):
        texts = _chosen(terms, _NUMBERS, _DOUBLE)
        return pc.replace_substring(texts, "INF", "inf").cast(pa.float64()).cast(kind, safe=False)
    if pa.types.is_boolean(kind):
        return _chosen(terms, [XSD + "boolean"], "^(?:true|false|0|1)$").cast(kind)
    if pa.types.is_decimal(kind):
        return _decimals(terms, kind)
    if pa.types.is_timestamp(kind):
        return _instants(terms, kind)
    if pa.types.is_date32(kind):
        return _parsed(_chosen(terms, [XSD + "date"], _DATE), kind)
    raise NotImplementedError(kind)


def _chosen(terms: Terms, datatypes: list[str], form: str) -> pa.Array:
    """The lexical forms of terms of these datatypes that have this form; null for others."""
    right = pc.and_(
        pc.is_in(terms.datatypes, pa.array(datatypes, _TEXT)), pc.match_substring_regex(terms.lexical, form)
    )
    return pc.if_else(right, terms.lexical, pa.scalar(None, _TEXT))


def _integers(terms: Terms, kind: pa.DataType) -> pa.Array:
    texts = pc.replace_substring_regex(_chosen(terms, _EXACT, _INTEGER), r"^\+|\.0*$", "")
    values = pc.replace_substring_regex(texts, r"^(-?)0+([0-9])", r"\1\2").cast(_WIDE)
    bits = _BITS[str(kind)]
    least = 0 if pa.types.is_unsigned_integer(kind) else -(1 << bits)
    fits = pc.and_(pc.greater_equal(values, _wide(least)), pc.less(values, _wide(1 << bits)))
    return pc.if_else(fits, values, pa.scalar(None, _WIDE)).cast(kind)


def _wide(number: int) -> pa.Scalar:
    return (
        pa.scalar(number, pa.int64()).cast(_WIDE) if abs(number) < 1 << 63 else pa.array([str(number)]).cast(_WIDE)[0]
    )


def _decimals(terms: Terms, kind: pa.DataType) -> pa.Array:
    # Of a type with fewer digits than places behind the point, the first of these are zeros.
    zeros = max(kind.scale - kind.precision, 0)
    fraction = rf"0{{0,{zeros}}}|0{{{zeros}}}[0-9]{{0,{kind.scale - zeros}}}0*"
    form = rf"^[+-]?0*[0-9]{{0,{max(kind.precision - kind.scale, 0)}}}(?:\.(?:{fraction}))?$"
    texts = _chosen(terms, _EXACT, form)
    right = pc.match_substring_regex(texts, _DECIMAL)
    texts = pc.if_else(right, texts, pa.scalar(None, _TEXT))
    # Arrow takes no more digits than the type has, zeros or not.
    texts = pc.replace_substring_regex(texts, r"^([+-]?)0+([0-9])", r"\1\2")
    texts = pc.replace_substring_regex(texts, rf"(\.[0-9]{{0,{kind.scale}}})0*$", r"\1")
    texts = pc.replace_substring_regex(texts, r"^\+|\.$", "")
    return texts.cast(kind)


def _instants(terms: Terms, kind: pa.DataType) -> pa.Array:
    """With a zone in the type instants that have one, else those that have none; only those that its unit holds exactly."""
    zone = r"(?:Z|[+-][0-9]{2}:[0-9]{2})$" if kind.tz else "$"
    texts = _chosen(terms, [XSD + "dateTime"], _INSTANT + zone)
    texts = pc.replace_substring_regex(texts, r"(\.[0-9]{1,6})0*", r"\1")
    texts = pc.replace_substring_regex(texts, r"\.0+(Z|[+-]|$)", r"\1")
    micros = _parsed(texts, pa.timestamp("us", "UTC" if kind.tz else None))
    factor = {"s": 1_000_000, "ms": 1_000}.get(kind.unit, 1)
    numbers = micros.cast(pa.int64())
    whole = pc.equal(pc.multiply(pc.divide(numbers, factor), factor), numbers)
    if kind.unit == "ns":
        # The years 1677 to 2262.
        whole = pc.and_(pc.greater_equal(numbers, -_NANO_MICROS), pc.less_equal(numbers, _NANO_MICROS))
    return pc.if_else(whole, micros, pa.scalar(None, micros.type)).cast(kind)


def _parsed(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        # Days that are none, and 24:00: of many terms, only malformed ones come here.
        return pa.concat_arrays([_parsed_or_null(texts.slice(at, 1), kind) for at in range(len(texts))])


def _parsed_or_null(text: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        return pa.nulls(1, kind)
