"""Results as Parquet files with typed columns: a file is complete after a commit, or when it has its size, and the next one begins.

A file's metadata has the number of its first result, so that a run that continues writes each result once.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from cqels_py.batches.results import ResultBatch, detached, last_rows
from cqels_py.connections.location import Location
from cqels_py.errors import RunError, UsageError
from cqels_py.sinks.protocol import SinkOpening

if TYPE_CHECKING:
    import pyarrow as pa

    from cqels_py.batches.elements import Ids

TIME, SIGN = "time", "sign"
_GROUP_ROWS: Final = 1 << 16
"""Rows that are in memory until they are written as a row group."""
_FIRST, _RUN = b"cqels.first", b"cqels.run"
"""Keys of the metadata: the number of the first result, and the run, if it has an id."""


def parquet_sink(location: Location) -> ParquetConnector:
    """`parquet:PATH?size=64MB`: the files PATH-000001.parquet, PATH-000002.parquet …"""
    size = location.options.size("size", "64MB")
    path = location.url.partition("#")[0].partition("?")[0].partition(":")[2]
    base = location.path.removesuffix(".parquet")
    if path.startswith("//") or not base or base.endswith("/") or location.fragment is not None:
        raise UsageError(
            f"{location.shown} names no files: write parquet:results/alerts for results/alerts-000001.parquet"
        )
    return ParquetConnector(location.shown, Path(base), size)


@dataclass(frozen=True, slots=True)
class ParquetConnector:
    """Files as the sink of a query. `base`: their path without number and ending; `size`: bytes after which a file is complete."""

    shown: str
    base: Path
    size: int
    changelog: ClassVar[bool] = False
    keeps_number: ClassVar[bool] = True

    def open(self, opening: SinkOpening) -> ParquetSink:
        """Find the last file. UsageError for results that the files cannot hold, RunError for a file that cannot be read."""
        if opening.form == "CONSTRUCT":
            raise UsageError(
                f"{self.shown}: the columns are the variables of SELECT and ASK; write CONSTRUCT to a file such as out.jelly"
            )
        if clash := [name for name in (TIME, SIGN) if name in opening.variables]:
            raise UsageError(
                f"{self.shown}: the columns time and sign are this sink's own; rename the variable ?{clash[0]}"
            )
        if not self.base.parent.is_dir():
            raise UsageError(f"{self.shown}: there is no folder {self.base.parent}")
        return ParquetSink(self, opening)


class ParquetSink:
    """Collects results, writes them as row groups, and gives a complete file its name."""

    def __init__(self, to: ParquetConnector, opening: SinkOpening) -> None:
        from cqels_py.formats.typed_columns import TypedShape

        self._to = to
        self._opening = opening
        self._shape = TypedShape.of(opening.variables, TIME, SIGN, None)
        self._waiting: list[ResultBatch] = []
        self._rows = 0
        self._number = opening.written or 0
        self._file: _File | None = None
        self._failed = False
        last = _last_number(to.base)
        number, run = _content(to, last) if last else (None, None)
        self._held = opening.held(number, run, f"{to.shown}: the last file") or 0
        self._next = last + 1
        self._cleanup = ExitStack()
        self._cleanup.enter_context(opening.dictionary.holding(self._ids))

    def write(self, batch: ResultBatch) -> None:
        """Results that the files have already, of a run that continues, are left out."""
        new = len(batch) - max(0, min(len(batch), self._held - self._number))
        self._number += len(batch)
        if new:
            self._waiting.append(detached(last_rows(batch, new)))
            self._rows += new
        if self._rows >= _GROUP_ROWS:
            # A batch has all results of its ticks.
            self._write()

    def flush(self) -> None:
        """Nothing: a Parquet file can be read when it is complete, after a commit."""

    def commit(self) -> int:
        """Complete the file that has begun. The number of the last result, which the files have now."""
        if self._rows:
            self._write()
        self._complete()
        return self._number

    def close(self) -> None:
        """Complete the file that has begun, unless a write has failed."""
        try:
            if not self._failed:
                self.commit()
        finally:
            if self._file is not None:
                self._file.drop()
                self._file = None
            self._waiting, self._rows = [], 0
            self._cleanup.close()

    def _ids(self) -> Iterator[Ids]:
        """The terms of the rows in memory, which the dictionary must keep."""
        for batch in [*self._waiting]:
            yield from batch.columns

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """RunError for an error of the file system; after any error nothing is written any more."""
        try:
            yield
        except OSError as error:
            self._failed = True
            raise RunError(f"{self._to.shown}: {error.strerror or error}") from None
        except BaseException:
            self._failed = True
            raise

    def _write(self) -> None:
        """Write the rows in memory as a row group."""
        from cqels_py.formats.typed_columns import typed_table

        with self._reported():
            table, _ = typed_table(self._opening.variables, self._waiting, self._opening.dictionary, self._shape)
            fitting = None if self._file is None else self._file.fitted(table)
            if fitting is None:
                # Files whose values are of other types have other columns.
                self._complete()
                self._file = _File(self._to, self._next, table, self._number - self._rows + 1, self._opening.run)
                self._next += 1
                fitting = table
            assert self._file is not None
            self._file.write(fitting)
            self._waiting, self._rows = [], 0
            if self._file.size >= self._to.size:
                self._complete()

    def _complete(self) -> None:
        if self._file is not None:
            with self._reported():
                self._file.publish()
            self._file = None


class _File:
    """A file that is not complete: its name begins with a point. One process at a time writes it."""

    def __init__(self, to: ParquetConnector, number: int, table: pa.Table, first: int, run: str | None) -> None:
        import pyarrow.parquet as pq

        self._shown = to.shown
        self._path = _path(to.base, number)
        self._unfinished = self._path.with_name(f".{self._path.name}")
        metadata = {_FIRST: str(first).encode(), **({} if run is None else {_RUN: run.encode()})}
        self._schema = table.schema.with_metadata(metadata)
        descriptor = os.open(self._unfinished, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._file = os.fdopen(descriptor, "r+b")
        if not _locked(descriptor, self._unfinished):
            self._file.close()
            raise self._taken()
        # One of a process that was killed has other content.
        self._file.truncate(0)
        self._writer: Any = pq.ParquetWriter(self._file, self._schema, compression="zstd")

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._file.tell()

    def fitted(self, table: pa.Table) -> pa.Table | None:
        """The table with the types of this file: a column without values has any type. None if other types differ."""
        import pyarrow as pa

        if table.schema.names != self._schema.names:
            return None
        columns = []
        for field in self._schema:
            column = table.column(field.name)
            if column.type != field.type:
                if column.null_count < len(column):
                    return None
                column = pa.nulls(len(column), field.type)
            columns.append(column)
        return pa.table(columns, schema=self._schema)

    def write(self, table: pa.Table) -> None:
        """Write a row group."""
        self._writer.write_table(table, row_group_size=max(1, len(table)))

    def publish(self) -> None:
        """Complete the file, make it durable, and give it its name. RunError if another run has made a file of this name."""
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._path.exists():
            raise self._taken()
        self._unfinished.rename(self._path)
        self._file.close()
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def drop(self) -> None:
        """Remove the file."""
        if not self._file.closed:
            self._unfinished.unlink(missing_ok=True)
            # What could not be written is still to be written.
            with suppress(OSError):
                self._writer.close()
            with suppress(OSError):
                self._file.close()

    def _taken(self) -> RunError:
        return RunError(f"{self._shown}: another run writes {self._path}; one at a time can")


def _locked(descriptor: int, path: Path) -> bool:
    """Lock a file that was opened by this path, unless another process has the lock, or has renamed the file meanwhile."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _path(base: Path, number: int) -> Path:
    return base.with_name(f"{base.name}-{number:06}.parquet")


def _last_number(base: Path) -> int:
    """The greatest number of the files that are there; 0 if there is none."""
    name = re.compile(re.escape(base.name) + r"-(\d{6,})\.parquet")
    found = (name.fullmatch(entry.name) for entry in base.parent.iterdir())
    return max((int(match[1]) for match in found if match), default=0)


def _content(to: ParquetConnector, number: int) -> tuple[int | None, str | None]:
    """The number of the last result in a file, and the id of its run."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = _path(to.base, number)
    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"{to.shown}: {path} cannot be read: {' '.join(str(error).split())}") from None
    found = metadata.metadata or {}
    if _FIRST not in found:
        return None, None
    run = found.get(_RUN)
    return int(found[_FIRST]) + metadata.num_rows - 1, None if run is None else run.decode()
