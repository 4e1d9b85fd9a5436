"""Results as Arrow columns of their values' types: integers, doubles, decimals, instants, dates, truth values and texts.

A column has one type if all of its terms have one; otherwise it is text, beside a column `…_datatype`. No code of Python runs for a
row: ids that hold their values are decoded by arithmetic, others once for each different term, by Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.formats.casts import cast_terms
from cqels_py.formats.lexical import BLANK, IRI, Terms, terms_of
from cqels_py.terms.layout import (
    FALSE,
    INTEGER_DATATYPES,
    TAG_BOOLEAN,
    TAG_DATE,
    TAG_DATETIME,
    TAG_DATETIME_MICROS,
    TAG_DOUBLE,
    TAG_INTEGER,
    TAG_SHIFT,
    VALUE_BITS,
    XSD,
    ZONE_Z,
)

INSTANT = pa.timestamp("us", "UTC")
_EXACT = 1 << 53
_MOST_DIGITS = 38
"""Of a decimal; one with more is text."""
_POWERS = 10.0 ** np.arange(16)
_TEXT = pa.large_string()


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """`values` (n) with null for unbound. `datatypes` (n), where the values are of several. `misfits`: values that a given type has
    no place for, which are null."""

    values: pa.Array
    datatypes: pa.Array | None = None
    misfits: int = 0


@dataclass(frozen=True, slots=True)
class TypedShape:
    """The names and types that a program asks for. `schema`: Arrow types by column."""

    time_column: str
    sign_column: str
    schema: Mapping[str, pa.DataType]

    @classmethod
    def of(
        cls, variables: Sequence[str], time_column: str, sign_column: str, schema: Mapping[str, Any] | None
    ) -> TypedShape:
        """UsageError for names that a column has already, and for types that there are not."""
        for argument, name in (("time_column", time_column), ("sign_column", sign_column)):
            if not isinstance(name, str) or not name:
                raise UsageError(f'{argument} is the name of a column, such as "result_time", not {name!r}')
            if name in variables:
                raise UsageError(f'the query has a variable ?{name}: name the other column, {argument}="result_{name}"')
        if time_column == sign_column:
            raise UsageError(f"time_column and sign_column are both {time_column!r}")
        if schema is not None and not isinstance(schema, Mapping):
            raise UsageError(f'schema is a mapping of variables to types, such as {{"x": "int64"}}, not {schema!r}')
        types = {name: _type_of(name, given, variables) for name, given in (schema or {}).items()}
        return cls(time_column, sign_column, types)


def typed_table(
    variables: Sequence[str], batches: Sequence[ResultBatch], dictionary: Dictionary, shape: TypedShape
) -> tuple[pa.Table, dict[str, int]]:
    """Results as a table with a row each; and how many values a given type has no place for, by variable."""
    times = _joined([batch.time for batch in batches], np.int64)
    signs = _joined([batch.sign for batch in batches], np.int8)
    ids = [_joined([batch.columns[at] for batch in batches], np.int64) for at in range(len(variables))]
    columns, misfits = typed_columns(variables, ids, dictionary, shape)
    return pa.table(
        {shape.time_column: pa.array(times, INSTANT), shape.sign_column: pa.array(signs), **columns}
    ), misfits


def typed_columns(
    names: Sequence[str], columns: Sequence[Ids], dictionary: Dictionary, shape: TypedShape
) -> tuple[dict[str, pa.Array], dict[str, int]]:
    """The columns of variables by name, those of datatypes behind theirs; and how many values a given type has no place for."""
    found: dict[str, pa.Array] = {}
    misfits: dict[str, int] = {}
    for name, ids in zip(names, columns, strict=True):
        column = typed_column(ids, dictionary, shape.schema.get(name))
        found[name] = column.values
        if column.datatypes is not None:
            beside = f"{name}_datatype"
            if beside in names or beside in (shape.time_column, shape.sign_column):
                raise UsageError(
                    f"the values of ?{name} are of several types, and the column {beside} of their types is there already: "
                    f'rename the variable, or give schema={{"{name}": "string"}}'
                )
            found[beside] = column.datatypes
        if column.misfits:
            misfits[name] = column.misfits
    return found, misfits


def typed_column(ids: Ids, dictionary: Dictionary, kind: pa.DataType | None = None) -> TypedColumn:
    """One column of terms (n); 0 is unbound. `kind`: its type; without it that of its values."""
    if kind is None:
        tags = np.unique((ids[ids != 0] >> TAG_SHIFT) & 15).tolist()
        read = _INLINE.get(tuple(tags)) if tags else None
        values = None if read is None else read(ids)
        if values is not None:
            return TypedColumn(pa.array(values, mask=ids == 0) if isinstance(values, np.ndarray) else values)
    # Terms once each.
    distinct, places = np.unique(ids, return_inverse=True)
    terms = terms_of(distinct, dictionary)
    rows = pa.array(places.reshape(-1))
    if kind is not None:
        cast = cast_terms(terms, kind)
        values = cast.take(rows)
        return TypedColumn(values, None, int(np.count_nonzero(ids)) - (len(values) - values.null_count))
    return _by_datatype(terms, rows)


def _joined(arrays: Sequence[Any], kind: type) -> Any:
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


def _by_datatype(terms: Terms, rows: pa.Array) -> TypedColumn:
    kinds = pc.unique(terms.datatypes.drop_null()).to_pylist()
    if not kinds:
        return TypedColumn(pa.nulls(len(rows), _TEXT))
    kind = _KINDS.get(kinds[0]) if len(kinds) == 1 else None
    if len(kinds) > 1 and all(each in _INTEGERS for each in kinds):
        kind = pa.int64()
    if kind is None and set(kinds) <= {*_INTEGERS, XSD + "decimal"}:
        digits = terms.most_fraction_digits
        kind = pa.decimal128(_MOST_DIGITS, digits) if digits <= _MOST_DIGITS else None
    texts = terms.lexical.take(rows)
    if kind is not None:
        cast = cast_terms(terms, kind)
        if cast.null_count == terms.lexical.null_count:
            return TypedColumn(cast.take(rows))
        if all(each in _INTEGERS for each in kinds):
            return TypedColumn(texts)
    if set(kinds) <= _NODES or kinds == [XSD + "string"]:
        return TypedColumn(texts)
    return TypedColumn(texts, terms.datatypes.take(rows))


def _type_of(name: object, given: object, variables: Sequence[str]) -> pa.DataType:
    if name not in variables:
        raise UsageError(f"schema has the column {name!r}; the variables are {', '.join(map(repr, variables))}")
    try:
        kind = given if isinstance(given, pa.DataType) else pa.type_for_alias(given)
        cast_terms(terms_of(np.empty(0, np.int64), Dictionary()), kind)
    except (ValueError, TypeError, NotImplementedError):
        kinds = "int64 (and other integers), float64, float32, bool, string, date32, timestamp[us], or pyarrow.decimal128(20, 2)"
        raise UsageError(f"schema: the type of {name!r} is {kinds}, not {given!r}") from None
    return kind


# --- values in ids ------------------------------------------------------------------------------------------------------


def _payload(ids: Ids, bits: int = VALUE_BITS) -> npt.NDArray[np.int64]:
    """The lowest bits as a number in two's complement."""
    shift = 64 - bits
    found: npt.NDArray[np.int64] = (ids << shift) >> shift
    return found


def _integers(ids: Ids) -> npt.NDArray[np.int64]:
    return _payload(ids)


def _doubles(ids: Ids) -> npt.NDArray[np.float64] | None:
    """None where the digits are too many for one exact division."""
    unscaled = _payload(ids)
    if len(ids) and np.abs(unscaled).max() >= _EXACT:
        return None
    found: npt.NDArray[np.float64] = unscaled / _POWERS[(ids >> VALUE_BITS) & 15]
    return found


def _booleans(ids: Ids) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (ids - FALSE) & 1 == 1
    return found


def _instants(ids: Ids) -> pa.Array | None:
    """Microseconds, as long as all of them have Z for their zone, or none has a zone."""
    bound = ids != 0
    micro = (ids >> TAG_SHIFT) & 15 == TAG_DATETIME_MICROS
    zone = np.where(micro, (ids >> 57) & 1, (ids >> 51) & 127)
    zones = np.unique(zone[bound]).tolist()
    if zones not in ([0], [ZONE_Z]):
        return None
    times = np.where(micro, _payload(ids, 57), _payload(ids, 51) * 1000)
    return pa.array(times, pa.timestamp("us") if zones == [0] else INSTANT, mask=~bound)


def _dates(ids: Ids) -> pa.Array | None:
    bound, days = ids != 0, _payload(ids, 53)
    if ((ids[bound] >> 53) & 127).any() or (np.abs(days) >= 1 << 31).any():
        return None
    return pa.array(days.astype(np.int32), mask=~bound).cast(pa.date32())


_INLINE: dict[tuple[int, ...], Callable[[Ids], Any]] = {
    (TAG_INTEGER,): _integers,
    (TAG_DOUBLE,): _doubles,
    (TAG_BOOLEAN,): _booleans,
    (TAG_DATETIME,): _instants,
    (TAG_DATETIME_MICROS,): _instants,
    (TAG_DATETIME, TAG_DATETIME_MICROS): _instants,
    (TAG_DATE,): _dates,
}
_INTEGERS = tuple(XSD + name for name in INTEGER_DATATYPES)
_NODES = {IRI, BLANK}
_KINDS: dict[str, pa.DataType] = {
    **dict.fromkeys(_INTEGERS, pa.int64()),
    XSD + "double": pa.float64(),
    XSD + "float": pa.float32(),
    XSD + "boolean": pa.bool_(),
}
