"""The folder of the service.

engine/              the checkpoint of the engine
streams/NAME.json    a stream's definition
queries/NAME.json    a query's definition
results/NAME/        a query's results, see `result_store`
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError

FORMAT = 1
_OWN = 0o600
"""Definitions may have passwords: their owner alone reads them."""
_TEMPORARY = ".tmp"


class Folder:
    """Writes and reads definitions; each write is durable when it returns. StorageError where that fails."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine = path / "engine"
        self.results = path / "results"
        self._kinds = {kind: path / kind for kind in ("streams", "queries")}
        try:
            for each in (self.engine, self.results, *self._kinds.values()):
                each.mkdir(0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{path} cannot be the folder of the service: {error.strerror}") from None

    def write(self, kind: str, name: str, plain: dict[str, Any]) -> None:
        """Keep a definition, in the place of one of the same name."""
        path = self._path(kind, name)
        temporary = path.with_name(path.name + _TEMPORARY)
        try:
            durable_files.write_synced(temporary, json.dumps({"format": FORMAT, **plain}).encode(), _OWN)
            durable_files.rename(temporary, path)
            durable_files.sync_entries(path.parent)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error

    def remove(self, kind: str, name: str) -> None:
        """Keep a definition no longer."""
        path = self._path(kind, name)
        try:
            durable_files.remove(path)
            durable_files.sync_entries(path.parent)
        except OSError as error:
            raise StorageError(f"cannot remove {path}: {error.strerror}") from error

    def all(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The definitions by name."""
        for path in sorted(self._kinds[kind].glob("*.json")):
            try:
                plain = json.loads(path.read_bytes())
                found = plain.pop("format")
            except (ValueError, KeyError, AttributeError, OSError) as error:
                raise StorageError(f"{path} cannot be read: {error}") from None
            if found != FORMAT:
                raise StorageError(f"{path} has the format {found}; this version reads {FORMAT}")
            yield path.name.removesuffix(".json"), plain

    def remove_results(self, name: str) -> None:
        """Remove the results of a query."""
        shutil.rmtree(self.results / name, ignore_errors=True)

    def _path(self, kind: str, name: str) -> Path:
        return self._kinds[kind] / f"{name}.json"
