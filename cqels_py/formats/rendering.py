"""Results to bytes without a Python loop over rows: by kernels that write whole lines, or as Arrow columns of texts."""

from __future__ import annotations

import codecs
import io
import os
import stat
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary, released
from cqels_py.kernels.text import result_lines as kernel
from cqels_py.kernels.text.rendering import LONGEST_INLINE

if TYPE_CHECKING:
    import pyarrow as pa

_ROOM = 1 << 18
"""Bytes written to the file at once; small enough to stay in the processor's cache."""


class LineBuffer:
    """The buffer between the kernels that write lines and a file. `texts`: the fixed texts of lines."""

    def __init__(self, file: IO[str], dictionary: Dictionary, texts: Sequence[str]) -> None:
        self._file = file
        self._dictionary = dictionary
        encoded = [text.encode() for text in texts]
        self._texts = np.frombuffer(b"".join(encoded), np.uint8)
        self._bounds = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        self._scratch = np.empty(LONGEST_INLINE, np.uint8)
        self._out = np.empty(_ROOM, np.uint8)

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The last arguments of the kernels: fixed texts and their bounds, those of the dictionary, scratch space, and
        the output.
        """
        return self._texts, self._bounds, *self._dictionary.texts, self._scratch, self._out

    def take(self, end: int, known: bool) -> None:
        """Take the bytes written so far. If there are none, enlarge the buffer. `known`: the next term is in the dictionary."""
        if not known:
            raise released()
        if end:
            write_utf8(self._file, self._out[:end])
        else:
            self._out = np.empty(2 * len(self._out), np.uint8)


class TextOutput:
    """A text file for results. Its opener closes it."""

    STATE: ClassVar[tuple[str, ...]] = ()

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def flush(self) -> None:
        """Flush to the operating system. Errors such as BrokenPipeError are raised."""
        self._file.flush()

    def commit(self) -> int | None:
        """Flush, and make a file durable; returns its length in bytes. A pipe or a terminal has none: None."""
        self.flush()
        try:
            descriptor = self._file.fileno()
        except (OSError, ValueError):
            # In memory.
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size


class LineWriter(TextOutput):
    """Writes a line for each result: `opening` time `before_sign` sign `before_terms` (`before` term)… `closing`.

    `form`: how terms are rendered, of kernels.rendering. `before`: the text before each column. In JSON objects, the
    text of an unbound column is left out too, and commas separate the others.
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
        super().__init__(file)
        self._form = form
        self._buffer = LineBuffer(file, dictionary, (opening, before_sign, before_terms, closing, *before))

    def write(self, batch: ResultBatch) -> None:
        """Write a line for each result."""
        columns = np.stack(batch.columns) if batch.columns else np.empty((0, len(batch)), np.int64)
        row = 0
        while row < len(batch):
            row, end, known = kernel.write_lines(
                self._form, row, batch.time, batch.sign, columns, *self._buffer.arrays()
            )
            self._buffer.take(end, known)


def write_utf8(file: IO[str], data: npt.NDArray[np.uint8]) -> None:
    """Write UTF-8 bytes below the text layer of a file, which would only encode them again."""
    if isinstance(file, io.TextIOWrapper) and codecs.lookup(file.encoding).name == "utf-8":
        file.flush()
        file.buffer.write(data)
    else:
        file.write(data.tobytes().decode())


def render_terms(ids: Ids, dictionary: Dictionary) -> pa.Array:
    """The N-Triples texts of ids (n); null for unbound."""
    import pyarrow as pa

    data, offsets = dictionary.decode_bytes(ids)
    bound = np.diff(offsets) > 0
    valid = None if bound.all() else pa.py_buffer(np.packbits(bound, bitorder="little"))
    return pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(data), valid)
