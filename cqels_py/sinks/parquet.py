"""Results as Parquet files: a file is complete after a commit, or when it has its size, and the next one begins.

The metadata of a file says which results it has, so that a run that continues writes each result once.
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

import numpy as np

from cqels_py.batches.results import ResultBatch, detached, last_rows
from cqels_py.connections.location import Location
from cqels_py.errors import RunError, UsageError
from cqels_py.formats.construction import Construction
from cqels_py.sinks.protocol import SinkOpening

if TYPE_CHECKING:
    import pyarrow as pa

    from cqels_py.batches.elements import ElementBatch, Ids

TIME, SIGN = "time", "sign"
_GROUP_ROWS: Final = 1 << 16
"""Rows that are in memory until they are written as a row group."""
_FIRST, _LAST, _RUN = b"cqels.first", b"cqels.last", b"cqels.run"
"""Keys of the metadata: the numbers of the first result and of the last, and the run, if it has an id."""


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
        if opening.form != "CONSTRUCT" and (clash := [name for name in (TIME, SIGN) if name in opening.variables]):
            raise UsageError(
                f"{self.shown}: the columns time and sign are this sink's own; rename the variable ?{clash[0]}"
            )
        if not self.base.parent.is_dir():
            raise UsageError(f"{self.shown}: there is no folder {self.base.parent}")
        return ParquetSink(self, opening)


class ParquetSink:
    """Collects results, writes them as row groups, and gives a complete file its name."""

    def __init__(self, to: ParquetConnector, opening: SinkOpening) -> None:
        self._to = to
        self._opening = opening
        self._waiting = _Graphs(opening) if opening.form == "CONSTRUCT" else _Solutions(opening)
        self._number = opening.written or 0
        self._first = self._number + 1
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
            first = self._number - new + 1
            if not self._waiting.rows:
                self._first = first
            self._waiting.add(last_rows(batch, new), first)
        if self._waiting.rows >= _GROUP_ROWS:
            # A batch has all results of its ticks.
            self._write()

    def flush(self) -> None:
        """Nothing: a Parquet file can be read when it is complete, after a commit."""

    def commit(self) -> int:
        """Complete the file that has begun. The number of the last result, which the files have now."""
        if self._waiting.rows:
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
            self._waiting.clear()
            self._cleanup.close()

    def _ids(self) -> Iterator[Ids]:
        """The terms of the rows in memory, which the dictionary must keep."""
        yield from self._waiting.live_ids()

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
        with self._reported():
            table = self._waiting.table()
            fitting = None if self._file is None else self._file.fitted(table)
            if fitting is None:
                # Files whose values are of other types have other columns.
                self._complete()
                self._file = _File(self._to, self._next, table, self._first, self._opening.run)
                self._next += 1
                fitting = table
            assert self._file is not None
            self._file.write(fitting, self._number)
            self._waiting.clear()
            if self._file.size >= self._to.size:
                self._complete()

    def _complete(self) -> None:
        if self._file is not None:
            with self._reported():
                self._file.publish()
            self._file = None


class _Solutions:
    """Results of SELECT and ASK that wait to be written: a row each, with columns of their values' types."""

    def __init__(self, opening: SinkOpening) -> None:
        from cqels_py.formats.typed_columns import TypedShape

        self._opening = opening
        self._shape = TypedShape.of(opening.variables, TIME, SIGN, None)
        self._batches: list[ResultBatch] = []
        self.rows = 0

    def add(self, batch: ResultBatch, first: int) -> None:
        """Results, the first of which has this number."""
        self._batches.append(detached(batch))
        self.rows += len(batch)

    def table(self) -> pa.Table:
        from cqels_py.formats.typed_columns import typed_table

        return typed_table(self._opening.variables, self._batches, self._opening.dictionary, self._shape)[0]

    def clear(self) -> None:
        self._batches, self.rows = [], 0

    def live_ids(self) -> Iterator[Ids]:
        for batch in [*self._batches]:
            yield from batch.columns


class _Graphs:
    """Graphs of CONSTRUCT that wait to be written: a row for each triple, in the form in which streams are read."""

    def __init__(self, opening: SinkOpening) -> None:
        self._dictionary = opening.dictionary
        self._construction = Construction(opening.template, opening.dictionary)
        self._graphs: list[tuple[ElementBatch, Ids]] = []
        self.rows = 0

    def add(self, batch: ResultBatch, first: int) -> None:
        """Results, the first of which has this number. A graph has that of its own first one."""
        graphs, places = self._construction.graphs(batch)
        if len(graphs):
            self._graphs.append((graphs, first + places))
            self.rows += len(graphs.subject)

    def table(self) -> pa.Table:
        import pyarrow as pa

        from cqels_py.formats.rendering import render_terms
        from cqels_py.formats.typed_columns import INSTANT

        sizes = [np.diff(graphs.first) for graphs, _ in self._graphs]
        times = np.concatenate(
            [graphs.time.repeat(size) for (graphs, _), size in zip(self._graphs, sizes, strict=True)]
        )
        numbers = np.concatenate([number.repeat(size) for (_, number), size in zip(self._graphs, sizes, strict=True)])
        names = pa.array([f"<urn:cqels:result:{number}>" for number in numbers.tolist()], pa.large_string())
        terms = {
            name: render_terms(np.concatenate([getattr(graphs, name) for graphs, _ in self._graphs]), self._dictionary)
            for name in ("subject", "predicate", "object")
        }
        return pa.table({TIME: pa.array(times, INSTANT), **terms, "graph": names})

    def clear(self) -> None:
        self._graphs, self.rows = [], 0

    def live_ids(self) -> Iterator[Ids]:
        for graphs, _ in [*self._graphs]:
            yield from graphs.live_ids()


class _File:
    """A file that is not complete: its name begins with a point. One process at a time writes it."""

    def __init__(self, to: ParquetConnector, number: int, table: pa.Table, first: int, run: str | None) -> None:
        import pyarrow.parquet as pq

        self._shown = to.shown
        self._last = first
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

    def write(self, table: pa.Table, last: int) -> None:
        """Write a row group, up to the result with the number `last`."""
        self._writer.write_table(table, row_group_size=max(1, len(table)))
        self._last = last

    def publish(self) -> None:
        """Complete the file, make it durable, and give it its name. RunError if another run has made a file of this name."""
        self._writer.add_key_value_metadata({_LAST: str(self._last).encode()})
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
            # Rows that could not be written are still to be written.
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
    # Files of earlier versions do not have it.
    last = int(found.get(_LAST, int(found[_FIRST]) + metadata.num_rows - 1))
    return last, None if run is None else run.decode()
