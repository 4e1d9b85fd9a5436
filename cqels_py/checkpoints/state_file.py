"""A state as bytes: an Arrow IPC stream with a batch of one row for each value, behind a digest. It contains no code.

part    string         the path of a part of the state, such as query/Project/0:Join
name    string         the name of the value in it
plain   string         a plain value as JSON, else null
array   large binary   an array in NumPy's format .npy (without objects), else null
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.state.named_values import Array, NamedValues, Plain

if TYPE_CHECKING:
    import pyarrow as pa

State = Mapping[str, NamedValues]

FORMAT = 3
"""Raised whenever the layout of the file changes; that of the values has numbers of its own."""
_MAGIC = b"CQELS-CHECKPOINT\n"
_DIGEST = 32
_LARGE = 1 << 20
_HEADER = 1 << 16
"""Bytes that have the header of an array in them."""


def to_bytes(state: State) -> memoryview:
    """The state, with the digest of its content."""
    # Here, because an engine without a checkpoint starts without it.
    import pyarrow as pa

    schema = pa.schema(
        [
            pa.field("part", pa.string(), nullable=False),
            pa.field("name", pa.string()),
            pa.field("plain", pa.string()),
            pa.field("array", pa.large_binary()),
        ],
        metadata={"format": str(FORMAT)},
    )
    out = io.BytesIO()
    start = out.write(_MAGIC + bytes(_DIGEST))
    with pa.ipc.new_stream(out, schema) as writer:
        for part, values in state.items():
            writer.write_batch(_row(schema, part, None, None))
            for name, value in values.items():
                writer.write_batch(_row(schema, part, name, value))
    data = out.getbuffer()
    data[len(_MAGIC) : start] = _digest(data[start:])
    return data


def from_bytes(data: bytes) -> dict[str, NamedValues]:
    """The state. StorageError for data that is damaged, or of another format.

    Large arrays are views of the data, not aligned and not writable: who keeps one copies it.
    """
    import pyarrow as pa

    start = len(_MAGIC) + _DIGEST
    content = memoryview(data)[start:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != _digest(content):
        raise StorageError("it is damaged: its digest does not fit its content")
    state: dict[str, NamedValues] = {}
    with pa.ipc.open_stream(content) as reader:
        found = (reader.schema.metadata or {}).get(b"format", b"?").decode()
        if found != str(FORMAT):
            raise StorageError(f"it has the format {found}; this version reads {FORMAT}")
        for batch in reader:
            *texts, array = batch.columns
            part, name, plain = (text[0].as_py() for text in texts)
            if name is None:
                state[part] = {}
            else:
                # Not by the array's values, which are copies.
                state[part][name] = _value(plain, None if array.null_count else array.buffers()[2])
    return state


def _row(schema: pa.Schema, part: str, name: str | None, value: Array | Plain) -> pa.RecordBatch:
    import pyarrow as pa

    plain = array = None
    if isinstance(value, np.ndarray):
        out = io.BytesIO()
        np.save(out, value, allow_pickle=False)
        array = _one_binary(out.getbuffer())
    else:
        plain = json.dumps(value)
    texts = [pa.array([each], pa.string()) for each in (part, name, plain)]
    arrays = pa.array([None], pa.large_binary()) if array is None else array
    return pa.record_batch([*texts, arrays], schema=schema)


def _one_binary(data: memoryview) -> pa.Array:
    """An Arrow array of one value, without a copy of it."""
    import pyarrow as pa

    offsets = pa.py_buffer(np.array([0, len(data)], np.int64))
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(data)])


def _value(plain: str | None, array: pa.Buffer | None) -> Array | Plain:
    if array is not None:
        return _array(memoryview(array))
    value: Plain = json.loads(plain or "null")
    return value


def _array(data: memoryview) -> Array:
    """The array in a file of NumPy's format: a copy, or a view if it is large."""
    if len(data) < _LARGE:
        found: Array = np.load(io.BytesIO(data), allow_pickle=False)
        return found
    file = io.BytesIO(data[:_HEADER])
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(file)
    if dtype.hasobject:
        raise StorageError("it has an array of objects, which is not read")
    flat = np.frombuffer(data, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if by_columns else "C")


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.sha256(content).digest()
