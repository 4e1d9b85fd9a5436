"""How far the files of runs have been read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cqels_py.errors import UsageError


@dataclass(slots=True)
class FilesRead:
    """The files of runs: how many elements of each have been taken in, by "stream file".

    `last`: those of the last run, as [stream, file, bytes]; `documents`: the last number of a document before it. `running`: it has
    not come to the ends of its sources.
    """

    positions: dict[str, int] = field(default_factory=dict)
    last: list[list[Any]] = field(default_factory=list)
    documents: int = 0
    running: bool = False

    def begun(self, sources: Mapping[str, object], documents: int) -> dict[str, Any]:
        """A run of these sources. UsageError for a file that has become shorter since it was begun."""
        found = {iri: path for iri, given in sources.items() if (path := _file(given)) is not None}
        files = [[iri, str(path), path.stat().st_size] for iri, path in found.items()]
        for iri, name, size in files:
            if any(known[:2] == [iri, name] and size < known[2] for known in self.last):
                raise UsageError(
                    f"{name} has become shorter since {self.positions.get(f'{iri} {name}', 0)} elements of it were taken in: it is "
                    "another file; give it another name"
                )
        same = [each[:2] for each in files] == [each[:2] for each in self.last]
        return {"files": files, "documents": self.documents if same else documents}

    def begin(self, run: Mapping[str, Any]) -> None:
        """The run begins."""
        self.last, self.documents, self.running = run["files"], run["documents"], True

    def end(self) -> None:
        """The run has come to the ends of its sources."""
        self.running = False

    def taken(self, stream: str) -> int:
        """How many elements of the stream's file have been taken in."""
        return next((self.positions.get(f"{iri} {path}", 0) for iri, path, _ in self.last if iri == stream), 0)

    def count(self, stream: str, elements: int) -> None:
        """So many elements of a stream are taken in; nothing is counted if its source is no file."""
        for iri, path, _ in self.last:
            if iri == stream:
                key = f"{iri} {path}"
                self.positions[key] = self.positions.get(key, 0) + elements


def _file(source: object) -> Path | None:
    """The file that can be read again, if the source is one."""
    if not isinstance(source, str | Path):
        return None
    path: Path = Path(str(source).removeprefix("file://"))
    return path.absolute() if path.is_file() else None
