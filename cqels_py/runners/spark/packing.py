"""Arrays and plain values as bytes, between tasks and in the log: an Arrow IPC stream of one batch with a row for each. It contains
no code.

    name  string        of the value, or none
    type  string        NumPy's name of the array's type; "json" for a plain value, "bytes" for data as it is
    data  large binary  the array's memory, or the value

Long arrays of 64-bit integers have a shorter form where there is one, with another type: "steps <i1" for the first value and the
differences of each to the one before, as times and offsets; "places <u2" for the number of different values, these, and the
place of each among them, as ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.errors import RunError
from cqels_py.state.named_values import Array, Plain

FORMAT = 2
"""Raised whenever the layout changes."""
_VERSION = b"format"
_LEAST = 1 << 12
"""Arrays of so many bytes are compressed: the time that it takes is less than that of storing and sending them."""
_LONG = 1 << 9
"""Of fewer numbers no shorter form is looked for."""
_SAMPLE, _REPEATING = 1 << 14, 0.75
"""The first numbers of an array repeat if the different ones among so many are fewer than this share of them, and the whole if they
are fewer than half of it."""
_SHORT = (np.int8, np.uint8, np.int16, np.uint16)
_STEPS, _PLACES = "steps", "places"
_INT64 = np.dtype(np.int64)
_SCHEMA = pa.schema(
    [pa.field("name", pa.string()), pa.field("type", pa.string()), pa.field("data", pa.large_binary())],
    metadata={_VERSION: str(FORMAT)},
)
_PLAIN, _BYTES = "json", "bytes"
_Row: TypeAlias = "tuple[str | None, str, bytes]"


def packed(arrays: Mapping[str, Array | None], plain: Mapping[str, Plain] | None = None) -> bytes:
    """The arrays (n each; None are left out) and the values.

    >>> found, plain = unpacked(packed({"ids": np.array([3, 1]), "graph": None}, {"needed": 2}))
    >>> found, plain
    ({'ids': array([3, 1])}, {'needed': 2})
    """
    rows: list[_Row] = [(name, *_shortened(each.reshape(-1))) for name, each in arrays.items() if each is not None]
    size = sum(len(data) for _, _, data in rows)
    return _written([*rows, (None, _PLAIN, json.dumps(plain or {}).encode())], compressed=size >= _LEAST)


def unpacked(data: bytes) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays, which are copies, and the plain values."""
    *rows, (_, _, plain) = _read(data)
    return {str(name): _array(type_, each) for name, type_, each in rows}, json.loads(plain)


def _shortened(array: Array) -> tuple[str, bytes]:
    """The type and data of an array (n)."""
    if array.dtype == _INT64 and len(array) >= _LONG:
        steps = np.diff(array)
        for short in [np.iinfo(each) for each in _SHORT]:
            if short.min <= steps.min() and steps.max() <= short.max:
                return f"{_STEPS} {short.dtype.str}", array[:1].tobytes() + steps.astype(short.dtype).tobytes()
        if len(pc.unique(pa.array(array[:_SAMPLE]))) < _REPEATING * min(len(array), _SAMPLE):
            coded = pa.array(array).dictionary_encode()
            values, places = coded.dictionary.to_numpy(), coded.indices.to_numpy()
            if len(values) < len(array) / 2:
                type_ = np.min_scalar_type(len(values))
                blocks = np.array([len(values)]).tobytes(), values.tobytes(), places.astype(type_).tobytes()
                return f"{_PLACES} {type_.str}", b"".join(blocks)
    return array.dtype.str, array.tobytes()


def _array(type_: str, data: bytes) -> Array:
    """The array of which `_shortened` made these. Kernels are compiled for arrays that are aligned and writable."""
    form, _, short = type_.rpartition(" ")
    if form == _STEPS:
        found = np.empty(1 + (len(data) - 8) // np.dtype(short).itemsize, np.int64)
        found[0] = np.frombuffer(data, np.int64, 1)[0]
        found[1:] = np.frombuffer(data, short, offset=8)
        return np.cumsum(found, out=found)
    if form == _PLACES:
        count = int(np.frombuffer(data, np.int64, 1)[0])
        values = np.frombuffer(data, np.int64, count, 8)
        places = np.frombuffer(data, short, offset=8 * (1 + count))
        return values.take(places)
    return np.frombuffer(data, short).copy()


def packed_list(data: Sequence[bytes], plain: Mapping[str, Plain]) -> bytes:
    """Several pieces of data, and plain values."""
    rows: list[_Row] = [(None, _BYTES, each) for each in data]
    # The pieces are compressed already.
    return _written([*rows, (None, _PLAIN, json.dumps(plain).encode())], compressed=False)


def unpacked_list(data: bytes) -> tuple[list[bytes], dict[str, Any]]:
    """The pieces and values that `packed_list` was given."""
    *rows, (_, _, plain) = _read(data)
    return [each for _, _, each in rows], json.loads(plain)


def _written(rows: Sequence[_Row], *, compressed: bool) -> bytes:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)]
    out = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None)
    with pa.ipc.new_stream(out, _SCHEMA, options=options) as writer:
        writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
    return bytes(memoryview(out.getvalue()))


def _read(data: bytes) -> list[_Row]:
    with pa.ipc.open_stream(data) as reader:
        found = (reader.schema.metadata or {}).get(_VERSION, b"?").decode()
        if found != str(FORMAT):
            raise RunError(f"data of the format {found}; this version reads {FORMAT}: are all workers of one version?")
        columns = reader.read_next_batch().columns
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
