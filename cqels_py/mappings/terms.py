"""Values of columns to terms: numbers, truth values and instants are typed, texts are plain literals, nulls are unbound."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.formats.times import NO_TIME, times_of_ids, times_of_texts
from cqels_py.terms.layout import TAG_DOUBLE, TAG_INTEGER, TAG_SHIFT, VALUE_BITS

_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_INTEGER = r"^-?(0|[1-9][0-9]*)$"
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"))
_INSIDE_QUOTES = r'^"(?P<text>[^"]*)"'
_LAST_HASHED = 4
"""Tags of terms with texts in the dictionary are 1 to 4."""
_TEXTS = (pa.string(), pa.large_string())
_VIEWS = ("string_view", "utf8_view")
"""Texts of Polars and DuckDB. (A list of texts has their name within its own.)"""
_DOUBLES = (pa.float32(), pa.float64())
_MOST_INLINE = 1 << (VALUE_BITS - 1)
_MOST_DIGITS = 6
"""Doubles with more fraction digits are read from their texts."""
_POWERS = 10.0 ** np.arange(_MOST_DIGITS + 1)
_MOST_EXACT = 10.0**15
"""Decimals of fewer digits are all told apart by doubles."""
_LEAST_WITH_EXPONENT = 1e10
"""Arrow writes greater doubles with an exponent."""


def ids_of_column(column: pa.Array, name: str, dictionary: Dictionary) -> Ids:
    """The ids (n) of the values of a column by their Arrow type; 0 for null. DataError for a type that has no terms.

    Integers are xsd:integer, decimals xsd:decimal, floats xsd:double, timestamps xsd:dateTime and dates xsd:date.
    """
    if pa.types.is_dictionary(column.type):
        values = ids_of_column(column.dictionary, name, dictionary)
        places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.where(places < 0, 0, values[places]) if len(values) else np.zeros(len(places), np.int64)
    if len(column) and (column.type in _DOUBLES or pa.types.is_integer(column.type)):
        return _of_numbers(column, name, dictionary)
    return _encoded(_terms(column, name), dictionary)


def terms_of_column(column: pa.Array, name: str) -> pa.Array:
    """The terms (n) of a column's values in N-Triples syntax; null for null. Errors as of `ids_of_column`."""
    if pa.types.is_dictionary(column.type):
        return terms_of_column(column.dictionary, name).take(column.indices)
    return _terms(column, name)


def texts_of_column(column: pa.Array, name: str) -> pa.Array:
    """The lexical forms (n) of the terms of a column's values, as large strings; null for null. Errors as of `ids_of_column`."""
    if pa.types.is_dictionary(column.type):
        return texts_of_column(column.dictionary, name).take(column.indices)
    texts, _ = _lexical(column, name)
    return texts.cast(pa.large_string())


def ids_of_written(texts: pa.Array, dictionary: Dictionary) -> Ids:
    """The ids (n) of values of delimited text. One that is written as a number or a truth value of JSON is that; empty: unbound."""
    integer = pc.match_substring_regex(texts, _INTEGER)
    double = pc.match_substring_regex(texts, _NUMBER)
    boolean = pc.is_in(texts, value_set=pa.array(["true", "false"], texts.type))
    end = pc.case_when(pc.make_struct(integer, double, boolean), *map(_end, ("integer", "double", "boolean")), '"')
    shown = pc.if_else(pc.equal(pc.binary_length(texts), 0), pa.scalar(None, texts.type), _escaped(texts))
    return _encoded(_joined(shown, end.cast(texts.type)), dictionary)


def times_of_terms(ids: Ids, dictionary: Dictionary) -> npt.NDArray[np.int64]:
    """Microseconds (n) of times as literals (n), typed or plain; NO_TIME where there is none."""
    kept_as_text = np.flatnonzero((ids >> TAG_SHIFT > 0) & (ids >> TAG_SHIFT <= _LAST_HASHED))
    times = np.full(len(ids), NO_TIME)
    inline = np.delete(np.arange(len(ids)), kept_as_text) if len(kept_as_text) else slice(None)
    times[inline] = times_of_ids(ids[inline], dictionary)
    if len(kept_as_text):
        data, offsets = dictionary.decode_bytes(ids[kept_as_text])
        terms = pa.LargeStringArray.from_buffers(len(kept_as_text), pa.py_buffer(offsets), pa.py_buffer(data))
        inside = pc.struct_field(pc.extract_regex(terms, _INSIDE_QUOTES), [0]).fill_null("")
        times[kept_as_text] = times_of_texts(*buffers(inside))
    return times


def _of_numbers(column: pa.Array, name: str, dictionary: Dictionary) -> Ids:
    """Ids of integers and doubles (n): by arithmetic, and only those that have no short decimal notation by their texts."""
    plain = column.fill_null(0) if column.null_count else column
    if pa.types.is_integer(column.type):
        out, left = _of_integers(plain)
    else:
        out, left = _of_doubles(_values(plain.cast(pa.float64()), np.float64))
    if len(left):
        out[left] = _encoded(_terms(column.take(pa.array(left)), name), dictionary)
    if column.null_count:
        out[~_flags(column.is_valid())] = 0
    return out


def _of_integers(column: pa.Array) -> tuple[Ids, npt.NDArray[np.int64]]:
    """Ids (n), and the places of those that have none by arithmetic."""
    # Those of 64 bits without a sign that do not fit become negative.
    values = _values(column.cast(pa.int64(), safe=False), np.int64)
    inline = (values >= -_MOST_INLINE) & (values < _MOST_INLINE)
    if pa.types.is_uint64(column.type):
        inline &= values >= 0
    return _inline(TAG_INTEGER, 0, values), np.flatnonzero(~inline)


def _of_doubles(values: npt.NDArray[np.float64]) -> tuple[Ids, npt.NDArray[np.int64]]:
    """Ids (n), and the places of those that have none by arithmetic: those that are no decimals of few digits."""
    out, left = np.zeros(len(values), np.int64), np.arange(len(values))
    with np.errstate(over="ignore", invalid="ignore"):
        for digits in range(_MOST_DIGITS + 1):
            here = values[left]
            rounded = np.rint(here * _POWERS[digits])
            exact = (np.abs(rounded) < _MOST_EXACT) & (np.abs(here) < _LEAST_WITH_EXPONENT)
            exact &= rounded / _POWERS[digits] == here
            # -0 is another term than 0.
            exact &= (rounded != 0) | ~np.signbit(here)
            out[left[exact]] = _inline(TAG_DOUBLE, digits, rounded[exact].astype(np.int64))
            left = left[~exact]
            if not len(left):
                break
    return out, left


def _values(column: pa.Array, kind: type[Any]) -> npt.NDArray[Any]:
    """The values of a column without nulls. (`to_numpy` would import pandas if it is installed.)"""
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


def _flags(column: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = _values(column.cast(pa.int8()), np.int8) != 0
    return found


def _inline(tag: int, digits: int, values: Ids) -> Ids:
    """Ids of numbers with so many fraction digits, given without their point."""
    return (tag << TAG_SHIFT | digits << VALUE_BITS) | (values & ((1 << VALUE_BITS) - 1))


def _terms(column: pa.Array, name: str) -> pa.Array:
    """The values in N-Triples syntax."""
    texts, end = _lexical(column, name)
    return _joined(texts if end else _escaped(texts), _end(end) if end else '"')


def _lexical(column: pa.Array, name: str) -> tuple[pa.Array, str]:
    """The lexical forms of values, and the local name of their datatype; none for texts."""
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.string()), ""
    if kind in _TEXTS:
        return column, ""
    if pa.types.is_boolean(kind):
        return column.cast(pa.string()), "boolean"
    if pa.types.is_integer(kind):
        return column.cast(pa.string()), "integer"
    if pa.types.is_decimal(kind):
        return _decimal_texts(column), "decimal"
    if pa.types.is_floating(kind):
        return _double_texts(column), "double"
    if pa.types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.string()), "date"
    if pa.types.is_timestamp(kind):
        return _instant_texts(column), "dateTime"
    if str(kind) in _VIEWS:
        return column.cast(pa.large_string()), ""
    raise DataError(
        f"the column {name} of type {kind} has no terms: texts, numbers, truth values, timestamps, dates and null have"
    )


def _decimal_texts(column: pa.Array) -> pa.Array:
    """Without exponents, which xsd:decimal does not have and Arrow writes for numbers near 0."""
    texts = column.cast(pa.string())
    with_exponent = pc.match_substring(texts, "E").fill_null(False)
    if not pc.any(with_exponent).as_py():
        return texts
    plain = [format(value, "f") for value in column.filter(with_exponent).to_pylist()]
    return pc.replace_with_mask(texts, with_exponent, pa.array(plain, pa.string()))


def _double_texts(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.float64()).cast(pa.string())
    special = pc.invert(pc.is_finite(column))
    if not pc.any(special).as_py():
        return texts
    named = pa.array(["nan", "inf", "-inf"]), ["NaN", "INF", "-INF"]
    return pc.if_else(special, pa.array(named[1]).take(pc.index_in(texts, value_set=named[0])), texts)


def _instant_texts(column: pa.Array) -> pa.Array:
    """With Z where the type has a time zone: an instant is kept in UTC."""
    plain = column.cast(pa.timestamp(column.type.unit))
    texts = pc.replace_substring(plain.cast(pa.string()), " ", "T")
    texts = pc.replace_substring_regex(texts, r"\.0+$|(\.[0-9]*[1-9])0+$", r"\1")
    return texts if column.type.tz is None else pc.binary_join_element_wise(texts, "Z", "")


def _escaped(texts: pa.Array) -> pa.Array:
    for character, escape in _ESCAPES:
        if pc.any(pc.match_substring(texts, character)).as_py():
            texts = pc.replace_substring(texts, character, escape)
    return texts


def _end(name: str) -> str:
    return f'"^^<{_XSD}{name}>'


def _joined(texts: pa.Array, end: Any) -> pa.Array:
    """Literals: a quote, the text, and the end."""
    kind = texts.type
    if isinstance(end, str):
        end = pa.scalar(end, kind)
    return pc.binary_join_element_wise(pa.scalar('"', kind), texts, end, pa.scalar("", kind))


def _encoded(terms: pa.Array, dictionary: Dictionary) -> Ids:
    if terms.null_count:
        terms = terms.fill_null("")
    if isinstance(terms, pa.ChunkedArray):
        terms = terms.combine_chunks()
    return dictionary.encode_bytes(*buffers(terms), np.zeros(len(terms), np.int64))


def buffers(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], Ids]:
    """The bytes of texts without nulls, and the start of each (n + 1)."""
    if not len(texts):
        return np.frombuffer(b"\0", np.uint8), np.zeros(1, np.int64)
    _, offsets, data = texts.buffers()
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    bounds = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    found = np.frombuffer(data if data is not None and data.size else b"\0", np.uint8)
    # Kernels are compiled for one kind of array: texts are mostly bytes, which are not writable.
    found.flags.writeable = False
    return found, bounds
