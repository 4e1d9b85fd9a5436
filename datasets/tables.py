"""Streams as tables: one row per triple, terms in N-Triples syntax, built column by column.

The columns are `time` (microseconds since the epoch, UTC), `graph`, `subject`, `predicate` and `object`. Consecutive
rows with the same time and graph are one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SCHEMA = pa.schema(
    [
        ("time", pa.int64()),
        ("graph", pa.string()),
        ("subject", pa.string()),
        ("predicate", pa.string()),
        ("object", pa.string()),
    ]
)

XSD = "http://www.w3.org/2001/XMLSchema#"


@dataclass(frozen=True, slots=True)
class Statement:
    """One triple for every row, as columns of terms; a row with a null subject or object has no such triple."""

    subject: pa.Array
    predicate: str
    object: pa.Array


def rows(time: npt.NDArray[np.int64], graph: pa.Array, statements: Sequence[Statement]) -> pa.RecordBatch:
    """One element for each row: the statements of row 0 first, then those of row 1, and so on."""
    count = len(time)
    width = len(statements)
    order = (np.arange(width) * count + np.arange(count)[:, None]).ravel()
    subjects = pa.concat_arrays([_flat(statement.subject) for statement in statements])
    objects = pa.concat_arrays([_flat(statement.object) for statement in statements])
    present = _valid(subjects) & _valid(objects)
    order = order[present[order]]
    row = order % max(count, 1)
    predicates = pa.array([statement.predicate for statement in statements], pa.string())
    return pa.record_batch(
        [
            pa.array(time[row]),
            _flat(graph).take(pa.array(row)),
            subjects.take(pa.array(order)),
            predicates.take(pa.array(order // max(count, 1))),
            objects.take(pa.array(order)),
        ],
        schema=SCHEMA,
    )


def ntriples(statements: Sequence[Statement]) -> bytes:
    """Every statement of every row as N-Triples text."""
    texts: list[str] = []
    for statement in statements:
        subject, object_ = _flat(statement.subject), _flat(statement.object)
        lines = pc.binary_join_element_wise(subject, statement.predicate, object_, ".\n", " ").drop_null()
        as_one_list = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
        texts.append(pc.binary_join(as_one_list, "")[0].as_py())
    return "".join(texts).encode()


def iris(prefix: str, names: pa.Array, suffix: str = "") -> pa.Array:
    """`<prefix` + name + `suffix>` for every name; null if the name is null."""
    return pc.binary_join_element_wise(f"<{prefix}", _text(names), f"{suffix}>", "")


def strings(values: pa.Array) -> pa.Array:
    """Plain literals."""
    escaped = _text(values)
    for raw, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        escaped = pc.replace_substring(escaped, raw, written)
    return pc.binary_join_element_wise('"', escaped, '"', "")


def typed(values: pa.Array, datatype: str) -> pa.Array:
    """Literals of an XSD datatype; `values` are numbers, or texts in its notation."""
    return pc.binary_join_element_wise('"', _text(values), f'"^^<{XSD}{datatype}>', "")


def decimals(values: npt.NDArray[np.float64], digits: int, datatype: str = "decimal") -> pa.Array:
    """Literals with exactly `digits` fraction digits; null if the value is not a number."""
    missing = np.isnan(values)
    scaled = np.rint(np.where(missing, 0, values) * 10**digits).astype(np.int64)
    whole = pa.array(scaled, mask=missing).cast(pa.decimal128(19, 0))
    # Reinterpret the bytes with the point moved: exact, unlike arithmetic on floats.
    return typed(pa.Array.from_buffers(pa.decimal128(19, digits), len(whole), whole.buffers()), datatype)


def date_times(microseconds: npt.NDArray[np.int64]) -> pa.Array:
    """xsd:dateTime literals in UTC, whole seconds."""
    text = pc.strftime(pa.array(microseconds // 1_000_000).cast(pa.timestamp("s")), "%Y-%m-%dT%H:%M:%SZ")
    return typed(text, "dateTime")


def _text(values: pa.Array) -> pa.Array:
    return _flat(values).cast(pa.string())


def _flat(values: pa.Array) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return valid
