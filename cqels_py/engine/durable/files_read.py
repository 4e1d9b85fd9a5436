"""How far the files of runs have been read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cqels_py.connections.location import Location
from cqels_py.engine.durable.file_marks import FileMark
from cqels_py.errors import Place as TextPlace
from cqels_py.errors import UsageError
from cqels_py.formats.marks import Mark
from cqels_py.sources.partitions import position_behind
from cqels_py.sources.time_merge import Place
from cqels_py.sources.urls import SOURCES


@dataclass(slots=True)
class FilesRead:
    """The files of runs: how many elements of each have been taken in, by "stream file".

    `last`: those of the last run, as [stream, file, bytes]; `documents`: the last number of a document before it. `running`: it has
    not come to the ends of its sources. `live`: its sources that are no files, by stream; `places`: of those that can begin at a
    position, where that is and how many elements behind it have been taken in, by "stream source" or "stream file". `malformed`:
    how many pieces of each file have been left out, by "stream file". `marks`: how the files were when a run over them began last,
    by "stream file". `unlogged`: elements of the last run are not in the log, so it has to be called again for their results.
    """

    positions: dict[str, int] = field(default_factory=dict)
    last: list[list[Any]] = field(default_factory=list)
    documents: int = 0
    running: bool = False
    live: dict[str, str] = field(default_factory=dict)
    places: dict[str, list[Any]] = field(default_factory=dict)
    malformed: dict[str, int] = field(default_factory=dict)
    marks: dict[str, list[Any]] = field(default_factory=dict)
    unlogged: bool = False

    def begun(self, sources: Mapping[str, object], documents: int) -> dict[str, Any]:
        """A run of these sources. UsageError for a file that is no longer as it was when its elements were taken in."""
        found = {iri: path for iri, given in sources.items() if (path := _file(given)) is not None}
        self._check_gone({iri: given for iri, given in sources.items() if iri not in found})
        marks = {f"{iri} {path}": list(self._mark(iri, path)) for iri, path in found.items()}
        files = [[iri, str(path), marks[f"{iri} {path}"][0]] for iri, path in found.items()]
        same = [each[:2] for each in files] == [each[:2] for each in self.last]
        live = {iri: f"{iri} {_shown(given)}" for iri, given in sources.items() if iri not in found}
        return {"files": files, "documents": self.documents if same else documents, "live": live, "marks": marks}

    def _mark(self, stream: str, path: Path) -> FileMark:
        """The mark of a stream's file. UsageError if it has changed."""
        known, taken = self._known(stream, path)
        if known is not None:
            if path.stat().st_size < known.size:
                raise UsageError(
                    f"{path} has become shorter since {taken} elements of it were taken in: it is another file; give it another name"
                )
            if not known.is_beginning_of(path):
                raise UsageError(
                    f"{path} has changed since {taken} elements of it were taken in, and the run cannot go on behind them: restore "
                    "it, or give it another name"
                )
        return FileMark.of(path, known)

    def _known(self, stream: str, path: Path) -> tuple[FileMark | None, int]:
        """The mark of a file of which elements have been taken in, and how many."""
        key = f"{stream} {path}"
        taken = self.positions.get(key, 0)
        if not taken:
            return None, 0
        if key in self.marks:
            return FileMark(*self.marks[key]), taken
        # Checkpoints of earlier versions have the sizes alone.
        size = next((size for *names, size in self.last if names == [stream, str(path)]), 0)
        return FileMark.of(path)._replace(size=size) if path.stat().st_size < size else None, taken

    def _check_gone(self, sources: Mapping[str, object]) -> None:
        """UsageError for a file that is missing."""
        for iri, given in sources.items():
            if isinstance(given, str | Path) and not Path(str(given).removeprefix("file://")).exists():
                key = f"{iri} {_path(given)}"
                if taken := self.positions.get(key, 0):
                    raise UsageError(
                        f"{given} is missing, and the run has to go on behind the {taken} elements of it that were taken in: put it "
                        "back"
                    )

    def begin(self, run: Mapping[str, Any]) -> None:
        """The run begins."""
        self.last, self.documents, self.running = run["files"], run["documents"], True
        # Logs of earlier versions do not have them.
        self.live = run.get("live", {})
        self.marks |= run.get("marks", {})

    def stopped(self, place: TextPlace | None) -> dict[str, list[Any]]:
        """The mark of the file that could not be read any further than this place, up to there: the rest may be mended."""
        if place is None or place.source is None:
            return {}
        path = _path(place.source)
        keys = [f"{iri} {name}" for iri, name, _ in self.last if name == str(path)]
        mark = FileMark.before(path, place.line) if keys else None
        return {} if mark is None else {key: list(mark) for key in keys}

    def mended(self) -> list[str]:
        """The files in which malformed input has ended a run, and that are as they were up to there."""
        stopped = [(path, FileMark(*self.marks.get(f"{iri} {path}", FileMark(0, 0, "")))) for iri, path, _ in self.last]
        return [path for path, mark in stopped if mark.is_before_line and mark.is_beginning_of(Path(path))]

    def end(self) -> None:
        """The run has come to the ends of its sources."""
        self.running = self.unlogged = False

    def taken(self, stream: str) -> int:
        """How many elements of the stream's file have been taken in, or behind its source's position."""
        if (place := self._place(stream)) is not None:
            # Otherwise the position is told behind them.
            return 0 if place[2:] and place[2] else int(place[1])
        return next((self.positions.get(f"{iri} {path}", 0) for iri, path, _ in self.last if iri == stream), 0)

    def count(self, stream: str, elements: int) -> None:
        """So many elements of a stream are taken in; nothing is counted if its source cannot be read again."""
        if (place := self._place(stream)) is not None:
            place[1] += elements
        for iri, path, _ in self.last:
            if iri == stream:
                key = f"{iri} {path}"
                self.positions[key] = self.positions.get(key, 0) + elements

    def count_malformed(self, stream: str) -> None:
        """A piece of a stream's file is left out."""
        for iri, path, _ in self.last:
            if iri == stream:
                key = f"{iri} {path}"
                self.malformed[key] = self.malformed.get(key, 0) + 1

    def known_malformed(self) -> dict[str, int]:
        """How many pieces have been left out of the file of each stream."""
        return {iri: self.malformed.get(f"{iri} {path}", 0) - self._passed_over(iri) for iri, path, _ in self.last}

    def _passed_over(self, stream: str) -> int:
        """How many pieces that were left out are not read again."""
        place = self._place(stream)
        return 0 if place is None else Mark(*place[0][:-1]).malformed

    def position(self, stream: str) -> object:
        """The position at which the stream's source is to begin; None if it has none."""
        place = self._place(stream)
        if place is None:
            return None
        position, taken, *numbers = place
        # Logs of earlier versions have no numbers of partitions.
        return position_behind(position, numbers[0][:taken]) if numbers and numbers[0] else position

    def order(self, stream: str) -> Sequence[int] | None:
        """The order of the elements behind that position; see `Place`."""
        place = self._place(stream)
        # Logs of earlier versions do not have it.
        return None if place is None or not place[3:] else place[3]

    def _place(self, stream: str) -> list[Any] | None:
        """The place of a stream's source in the last run."""
        key = self.live.get(stream) or next((f"{iri} {path}" for iri, path, _ in self.last if iri == stream), "")
        return self.places.get(key)

    def move(self, places: Mapping[str, Place]) -> None:
        """The files of streams have been read up to these places, which the log need not have: its elements are counted from those
        of its snapshot."""
        for iri, path, _ in self.last:
            if iri in places:
                self.places[f"{iri} {path}"] = _plain(places[iri])

    def news(self, places: Mapping[str, Place]) -> dict[str, list[Any]]:
        """Where sources have got to, as plain data, of those that are not known to be there."""
        found = {self.live[iri]: _plain(place) for iri, place in places.items() if iri in self.live}
        return {key: place for key, place in found.items() if self.places.get(key) != place}


def _plain(place: Place) -> list[Any]:
    """The place as it comes back from JSON."""
    found: list[Any] = json.loads(json.dumps([place.position, place.taken, place.numbers, place.order]))
    return found


def _shown(source: object) -> str:
    """The name of a source that is no file."""
    if isinstance(source, str):
        return Location.of(source).shown if SOURCES.is_url(source) else source
    return f"{type(source).__module__}.{type(source).__qualname__}"


def _file(source: object) -> Path | None:
    """The file that can be read again, if the source is one."""
    if not isinstance(source, str | Path):
        return None
    path = _path(source)
    return path if path.is_file() else None


def _path(source: str | Path) -> Path:
    return Path(str(source).removeprefix("file://")).absolute()
