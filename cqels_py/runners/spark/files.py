"""Parquet files as a stream: Spark hands out their names, and the tasks that route their rows read them, past the JVM."""

from __future__ import annotations

import pyarrow as pa

from cqels_py.checkpoints.locations import file_at
from cqels_py.errors import DataError
from cqels_py.formats.tabular import COLUMNS, parquet_file

FILE = "_cqels_file"
"""The only column of a data frame of files."""
FORMAT, SCHEMA = "binaryFile", "path string, modificationTime timestamp, length long, content binary"
"""Spark's source of whole files. It opens none where only their names are asked for."""


def rows_of(uri: str) -> pa.Table:
    """The rows of a Parquet file, as of a stream. DataError for one that cannot be read."""
    try:
        system, path = file_at(uri)
        with system.open_input_file(path) as source:
            file = parquet_file(source)
            return file.read(columns=[name for name in COLUMNS if name in file.schema_arrow.names])
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{uri} cannot be read as a Parquet file: {str(error).partition(chr(10))[0]}") from None
