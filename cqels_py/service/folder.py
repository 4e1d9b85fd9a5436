"""The folder of the service.

engine/              the checkpoint of the engine
streams/NAME.json    a stream's definition
queries/NAME.json    a query's definition
results/NAME/        a query's results, see `result_store`
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError

FORMAT = 2
"""Raised when the layout of definitions changes. The one before, without digests, is read too."""
STREAMS, QUERIES = "streams", "queries"
_OWN = 0o600
"""Definitions may have passwords: their owner alone reads them."""
_TEMPORARY = ".tmp"


class Folder:
    """Writes and reads definitions; each write is durable when it returns. StorageError where that fails."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine = path / "engine"
        self.results = path / "results"
        self._kinds = {kind: path / kind for kind in (STREAMS, QUERIES)}
        try:
            for each in (self.engine, self.results, *self._kinds.values()):
                durable_files.make_folder(each, 0o700)
        except OSError as error:
            raise StorageError(f"{path} cannot be the folder of the service: {error.strerror}") from None

    def write(self, kind: str, name: str, plain: dict[str, Any]) -> None:
        """Keep a definition, in the place of one of the same name."""
        path = self._path(kind, name)
        temporary = path.with_name(path.name + _TEMPORARY)
        try:
            durable_files.write_synced(temporary, _with_digest(kind, name, plain), _OWN)
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
                digest = plain.pop("digest") if found == FORMAT else None
            except (ValueError, KeyError, AttributeError, OSError) as error:
                raise StorageError(f"{path} cannot be read: {error}") from None
            if found not in (FORMAT - 1, FORMAT):
                raise StorageError(f"{path} has the format {found}; this version reads {FORMAT - 1} and {FORMAT}")
            name = path.name.removesuffix(".json")
            if found == FORMAT and digest != _digest(kind, name, plain):
                raise StorageError(f"{path} is damaged, or another definition's: put the file back, or remove it")
            yield name, plain

    def remove_results(self, name: str) -> None:
        """Remove the results of a query."""
        shutil.rmtree(self.results / name, ignore_errors=True)

    def _path(self, kind: str, name: str) -> Path:
        return self._kinds[kind] / f"{name}.json"


def _with_digest(kind: str, name: str, plain: dict[str, Any]) -> bytes:
    return json.dumps({"format": FORMAT, "digest": _digest(kind, name, plain), **plain}).encode()


def _digest(kind: str, name: str, plain: dict[str, Any]) -> str:
    """Of a definition, whatever the order of its members, and of what it defines."""
    text = json.dumps([kind, name, plain], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
