"""The position of a source in a file of its own: for sources that keep none, such as files and folders."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cqels_py.errors import RunError, UsageError


class PositionFile:
    """A JSON value that is replaced as a whole: after a crash the file has the value before or the one after.

    `shown`: the URL of the source, which is part of the file; a file of another source is refused.
    """

    def __init__(self, path: Path, shown: str) -> None:
        self._path = path
        self._shown = shown

    def load(self) -> Any:
        """The value that was saved last; None if there is none. UsageError for a file that is no such value."""
        try:
            found = json.loads(self._path.read_bytes())
            of, value = found["of"], found["position"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UsageError(
                f"{self._shown}: {self._path} holds no position ({error}): remove it, or name another"
            ) from None
        if of != self._shown:
            raise UsageError(f"{self._shown}: {self._path} holds the position of {of}: name another file")
        return value

    def save(self, value: object) -> None:
        """Replace the value, durably. RunError if it cannot be written."""
        new = self._path.with_name(f".{self._path.name}.new")
        try:
            with new.open("wb") as file:
                file.write(json.dumps({"of": self._shown, "position": value}).encode())
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise RunError(f"{self._shown}: cannot write {self._path}: {error.strerror or error}") from None
