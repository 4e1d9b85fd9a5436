"""Files as a stream: the tasks that route the triples of a stream read them, past the driver and the JVM.

A data frame has their names; an object of a store is copied to the task's host first, unless it is a Parquet file.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as fs

from cqels_py.batches.elements import ElementBatch
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.locations import file_at
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.endings import STREAMS, format_of
from cqels_py.formats.tabular import COLUMNS, parquet_file
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening

FILE = "_cqels_file"
"""The only column of a data frame of files."""
FORMAT, SCHEMA = "binaryFile", "path string, modificationTime timestamp, length long, content binary"
"""Spark's source of whole files. It opens none where only their names are asked for."""


def files_below(source: str) -> list[tuple[str, int]]:
    """The files of a folder and those below it, by name, or the file itself, with the sizes in bytes.

    Names that begin with "." or "_" are left out, as Spark does. UsageError if nothing is left, or for a format that is not known.
    """
    try:
        system, path = file_at(source)
        if system.get_file_info(path).type == fs.FileType.File:
            found = {source: system.get_file_info(path).size}
        else:
            within = path.rstrip("/")
            listed = system.get_file_info(fs.FileSelector(within, recursive=True))
            names = {each.path[len(within) + 1 :]: each.size for each in listed if each.type == fs.FileType.File}
            base = source.rstrip("/")
            found = {f"{base}/{name}": size for name, size in sorted(names.items()) if not _is_hidden(name)}
    except (pa.ArrowException, OSError, StorageError) as error:
        raise UsageError(f"cannot list the files of {source}: {str(error).partition(chr(10))[0]}") from None
    if not found:
        raise UsageError(f"there are no files in {source}")
    for name in found:
        format_of(name, STREAMS)
    return [*found.items()]


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/"))


def is_parquet(uri: str) -> bool:
    """Is it a file whose rows `rows_of` reads?"""
    return format_of(uri, STREAMS) == "parquet"


def rows_of(uri: str) -> pa.Table:
    """The rows of a Parquet file, as of a stream. DataError for one that cannot be read."""
    try:
        system, path = file_at(uri)
        with system.open_input_file(path) as source:
            file = parquet_file(source)
            return file.read(columns=[name for name in COLUMNS if name in file.schema_arrow.names])
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{uri} cannot be read as a Parquet file: {str(error).partition(chr(10))[0]}") from None


def elements_of(uri: str, opening: Opening, scope: int) -> Iterator[ElementBatch]:
    """The elements of a file of another format. `scope`: that of its blank nodes, or the first of those of its elements.

    DataError for one that cannot be read, and for malformed input, unless the opening takes it.
    """
    system, path = file_at(uri)
    if isinstance(system, fs.LocalFileSystem):
        yield from _opened(path, opening, scope)
        return
    with tempfile.TemporaryDirectory(prefix="cqels-file-") as folder:
        copy = Path(folder, path.rpartition("/")[2])
        try:
            with system.open_input_file(path) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{uri} cannot be read: {str(error).partition(chr(10))[0]}") from None
        report = opening.report

        def named(error: DataError) -> None:
            if report is not None:
                report(_named(error, str(copy), uri))

        try:
            yield from _opened(str(copy), replace(opening, report=named), scope)
        except DataError as error:
            raise _named(error, str(copy), uri) from None


def _named(error: DataError, copy: str, uri: str) -> DataError:
    """The error with the file's own name instead of that of its copy."""
    return DataError(str(error).replace(copy, uri))


def _opened(path: str, opening: Opening, scope: int) -> Iterator[ElementBatch]:
    try:
        yield from open_source(path, opening, scope=scope)
    except UsageError as error:
        # It has gone since it was listed.
        raise DataError(str(error)) from None
