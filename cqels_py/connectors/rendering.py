"""Results to bytes, without a loop over rows in Python: whole lines by a kernel, or columns of texts for Arrow."""

from __future__ import annotations

import codecs
import io
from collections.abc import Sequence
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.kernels import rendering as kernel

_ROOM = 1 << 18
"""Bytes that are written to the file together: small enough to stay in the processor's cache."""


class LineWriter:
    """A line for each result: `opening` time `before_sign` sign `before_terms` (`before` term)… `closing`.

    `form`: what terms are rendered as, of kernels.rendering; `before`: a text for each column. Where a column is unbound, in
    JSON objects its text is left out too; there commas stand between the others.
    """

    def __init__(
        self,
        file: IO[str],
        dictionary: Dictionary,
        form: int,
        before: Sequence[str],
        *,
        opening: str = "",
        before_sign: str,
        before_terms: str = "",
        closing: str,
    ) -> None:
        self._file = file
        self._dictionary = dictionary
        self._form = form
        texts = [text.encode() for text in (opening, before_sign, before_terms, closing, *before)]
        self._texts = np.frombuffer(b"".join(texts), np.uint8)
        self._bounds = np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64)
        self._scratch = np.empty(kernel.LONGEST_INLINE, np.uint8)
        self._out = np.empty(_ROOM, np.uint8)

    def write(self, batch: ResultBatch) -> None:
        """Write the results and flush."""
        columns = np.stack(batch.columns) if batch.columns else np.empty((0, len(batch)), np.int64)
        row = 0
        while row < len(batch):
            row, end, known = kernel.write_lines(
                self._form,
                row,
                batch.time,
                batch.sign,
                columns,
                self._texts,
                self._bounds,
                self._dictionary.table,
                self._dictionary.arena,
                self._scratch,
                self._out,
            )
            if not known:
                # This raises what is to be said.
                self._dictionary.decode(columns[:, row])
            if end:
                write_utf8(self._file, self._out[:end])
            elif row < len(batch):
                self._out = np.empty(2 * len(self._out), np.uint8)
        self._file.flush()


def write_utf8(file: IO[str], data: npt.NDArray[np.uint8]) -> None:
    """Write UTF-8, past the text layer of a file that has one and would only encode it again."""
    if isinstance(file, io.TextIOWrapper) and codecs.lookup(file.encoding).name == "utf-8":
        file.flush()
        file.buffer.write(data)
    else:
        file.write(data.tobytes().decode())


def render_terms(ids: Ids, dictionary: Dictionary) -> pa.Array:
    """The N-Triples texts of ids (n), null for unbound."""
    data, offsets = dictionary.decode_bytes(ids)
    bound = np.diff(offsets) > 0
    valid = None if bound.all() else pa.py_buffer(np.packbits(bound, bitorder="little"))
    return pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(data), valid)


def render_times(times: npt.NDArray[np.int64]) -> pa.Array:
    """ISO 8601 in UTC for microseconds (n), with a fraction only where there is one.

    >>> render_times(np.array([1_500_000, 2_000_000])).to_pylist()
    ['1970-01-01T00:00:01.5Z', '1970-01-01T00:00:02Z']
    """
    data = np.empty(len(times) * kernel.LONGEST_TIME, np.uint8)
    offsets = np.empty(len(times) + 1, np.int64)
    kernel.write_times(times, data, offsets)
    return pa.LargeStringArray.from_buffers(len(times), pa.py_buffer(offsets), pa.py_buffer(data))


def constant(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def join(*parts: pa.Array | str, separator: str = "") -> pa.Array:
    """Row by row, the parts one after another; null where one of them is."""
    columns = [constant(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*columns, constant(separator))


def write_rows(file: IO[str], rows: pa.Array) -> None:
    """Write the texts (none null) one after another."""
    if not len(rows):
        return
    _, offsets, data = rows.buffers()
    bounds = np.frombuffer(offsets, np.int64)[rows.offset : rows.offset + len(rows) + 1]
    write_utf8(file, np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]])
