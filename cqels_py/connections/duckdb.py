"""DuckDB files, opened so that SQL in them reaches no other file and no network."""

from __future__ import annotations

from typing import Any

from cqels_py.connections.location import Location
from cqels_py.connections.schemes import needed


def duckdb_for(location: Location) -> Any:
    """The package. MissingExtra where it is missing."""
    return needed("duckdb", "duckdb", "duckdb", f"{location.scheme}:")


def open_duckdb(duckdb: Any, path: str, *, read_only: bool = False) -> Any:
    """A connection to a file, which is made if it is not there. The exceptions are those of the package."""
    return duckdb.connect(path, read_only=read_only, config={"enable_external_access": "false"})
