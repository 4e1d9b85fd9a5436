"""A state as bytes: an Arrow IPC stream with a row for each value, behind a digest. It contains no code.

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

import numpy as np
import pyarrow as pa

from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.state.named_values import Array, NamedValues, Plain

State = Mapping[str, NamedValues]

FORMAT = 2
"""Raised whenever the layout of the file changes; that of the values has numbers of its own."""
_MAGIC = b"CQELS-CHECKPOINT\n"
_DIGEST = 32
_SCHEMA = pa.schema(
    [
        pa.field("part", pa.string(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("plain", pa.string()),
        pa.field("array", pa.large_binary()),
    ],
    metadata={"format": str(FORMAT)},
)


def to_bytes(state: State) -> bytes:
    """The state, with the digest of its content."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, _SCHEMA) as writer:
        for part, values in state.items():
            writer.write_batch(_row(part, None, None))
            for name, value in values.items():
                writer.write_batch(_row(part, name, value))
    content = out.getbuffer()
    return b"".join((_MAGIC, _digest(content), content))


def from_bytes(data: bytes) -> dict[str, NamedValues]:
    """The state. StorageError for data that is damaged, or of another format."""
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
            for row in batch.to_pylist():
                if row["name"] is None:
                    state[row["part"]] = {}
                else:
                    state[row["part"]][row["name"]] = _value(row["plain"], row["array"])
    return state


def _row(part: str, name: str | None, value: Array | Plain) -> pa.RecordBatch:
    plain = array = None
    if isinstance(value, np.ndarray):
        out = io.BytesIO()
        np.save(out, value, allow_pickle=False)
        array = out.getvalue()
    else:
        plain = json.dumps(value)
    columns = [pa.array([each], field.type) for each, field in zip((part, name, plain, array), _SCHEMA, strict=True)]
    return pa.record_batch(columns, schema=_SCHEMA)


def _value(plain: str | None, array: bytes | None) -> Array | Plain:
    if array is not None:
        found: Array = np.load(io.BytesIO(array), allow_pickle=False)
        return found
    value: Plain = json.loads(plain or "null")
    return value


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
