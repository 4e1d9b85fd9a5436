"""Results of CONSTRUCT as a Linked Data Event Stream: a folder of TriG pages that any server of files can publish.

Each page leads to the next one, and is immutable once it does. A commit makes pages visible by replacing one file: the page that was
the last one, which leads to the new ones from then on. A page's first line has the number of the last result, so that a run that
continues writes each result once.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import slice_elements
from cqels_py.batches.results import ResultBatch, last_rows
from cqels_py.connections.location import Location
from cqels_py.errors import RunError, UsageError
from cqels_py.formats.construction import Construction
from cqels_py.formats.graphs import GraphWriter
from cqels_py.formats.kernel_calls import calls_to_write
from cqels_py.functions.dates import instant_text
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.sinks.protocol import SinkOpening

_MOST_MEMBERS: Final = 100_000
_STREAM: Final = "stream.trig"
_LOCK: Final = ".lock"
_BEFORE_MEMBERS: Final = b"\n# members\n"
_PREFIXES: Final = """@prefix tree: <https://w3id.org/tree#> .
@prefix ldes: <https://w3id.org/ldes#> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
_STATED: Final = (
    "<stream.trig#stream> a ldes:EventStream ; ldes:timestampPath prov:generatedAtTime ; tree:view <000001.trig> .\n"
)


def ldes_sink(location: Location) -> LdesConnector:
    """`ldes:FOLDER?members=1000`: the pages FOLDER/000001.trig and so on, and FOLDER/stream.trig, which describes the stream."""
    members = location.options.whole("members", 1000, 1, _MOST_MEMBERS)
    if location.url.partition(":")[2].startswith("//") or not location.path or location.fragment is not None:
        raise UsageError(
            f"{location.shown} names no folder: write ldes:alerts for the pages alerts/000001.trig and so on"
        )
    return LdesConnector(location.shown, Path(location.path), members)


@dataclass(frozen=True, slots=True)
class LdesConnector:
    """A folder as the sink of a query. `members`: of a page."""

    shown: str
    folder: Path
    members: int
    changelog: ClassVar[bool] = False
    keeps_number: ClassVar[bool] = True

    def open(self, opening: SinkOpening) -> LdesSink:
        """Find the last page, or make the first. UsageError for results that are no graphs, RunError for a page of others."""
        if opening.form != "CONSTRUCT":
            raise UsageError(
                f"{self.shown}: the members are graphs of CONSTRUCT; write {opening.form} to another output"
            )
        if not self.folder.parent.is_dir():
            raise UsageError(f"{self.shown}: there is no folder {self.folder.parent}")
        return LdesSink(self, opening)


@dataclass(slots=True)
class _Page:
    """A page: its number, that of its first member, how many there are, the time of the last one in microseconds, their text."""

    number: int
    first: int
    members: int = 0
    last: int | None = None
    text: bytearray = field(default_factory=bytearray)

    @property
    def name(self) -> str:
        return _name(self.number)

    def content(self, results: int, run: str | None, *, full: bool) -> bytes:
        """The file. `full`: it is immutable, and the next page follows."""
        state = {
            "first": self.first,
            "members": self.members,
            "last": self.last,
            "results": results,
            "run": run,
            "full": full,
        }
        lines = [f"# {json.dumps(state)}\n", _PREFIXES, _STATED]
        if self.members:
            names = ", ".join(f"<#{number}>" for number in range(self.first, self.first + self.members))
            lines.append(f"<stream.trig#stream> tree:member {names} .\n")
        if full:
            promise = "a tree:Relation"
            if self.last is not None:
                promise = (
                    "a tree:GreaterThanOrEqualToRelation ; tree:path prov:generatedAtTime ; "
                    f'tree:value "{instant_text(self.last)}"^^xsd:dateTime'
                )
            lines.append(
                f"<> ldes:immutable true ; tree:relation [ {promise} ; tree:node <{_name(self.number + 1)}> ] .\n"
            )
        return "".join(lines).removesuffix("\n").encode() + _BEFORE_MEMBERS + self.text


class LdesSink:
    """Collects graphs into pages. `_head`: the last page that readers see; `_page`: the one that is being filled."""

    def __init__(self, to: LdesConnector, opening: SinkOpening) -> None:
        prepare(calls_to_write("trig"))
        self._to = to
        self._run = opening.run
        self._construction = Construction(opening.template, opening.dictionary)
        self._bytes = io.BytesIO()
        self._writer = GraphWriter(io.TextIOWrapper(self._bytes, encoding="utf-8"), opening.dictionary, "ldes")
        self._number = opening.written or 0
        self._changed = self._failed = False
        with self._reported():
            to.folder.mkdir(exist_ok=True)
            self._lock: io.BufferedWriter | None = _locked(to)
        try:
            self._page, state = self._found()
            number, run = (None, None) if state is None else (int(state["results"]), state["run"])
            self._held = opening.held(number, run, f"{to.shown}: the last page") or 0
        except BaseException:
            self._lock.close()
            raise
        self._head = self._page
        # Blank nodes of another process may have the labels of this one's.
        self._is_closed = self._page.members > 0

    def write(self, batch: ResultBatch) -> None:
        """Results that the pages have already, of a run that continues, are left out. RunError for times that go back."""
        new = len(batch) - max(0, min(len(batch), self._held - self._number))
        self._number += len(batch)
        if new:
            with self._reported():
                self._add(self._construction.graphs(last_rows(batch, new))[0])

    def flush(self) -> None:
        """Nothing: members can be read after a commit."""

    def commit(self) -> int:
        """Make the members visible. The number of the last result, which the pages have now."""
        if self._changed and not self._failed:
            with self._reported():
                self._put(self._page, full=False)
                if self._page is not self._head:
                    self._put(self._head, full=True)
                self._head, self._changed = self._page, False
        return self._number

    def close(self) -> None:
        """Make the members visible, unless a write has failed."""
        if self._lock is None:
            return
        try:
            self.commit()
        finally:
            self._lock.close()
            self._lock = None

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

    def _add(self, graphs: ElementBatch) -> None:
        if len(graphs) and self._page.last is not None and int(graphs.time[0]) < self._page.last:
            raise RunError(
                f"{self._to.shown} has members up to {instant_text(self._page.last)}, and the first of this run is of "
                f"{instant_text(int(graphs.time[0]))}: name another folder"
            )
        at = 0
        while at < len(graphs):
            if self._is_closed or self._page.members >= self._to.members:
                self._begin()
            page, end = self._page, min(len(graphs), at + self._to.members - self._page.members)
            self._writer.number_from(page.first + page.members)
            self._writer.write(slice_elements(graphs, at, end))
            page.text += self._bytes.getvalue()
            self._bytes.seek(0)
            self._bytes.truncate()
            page.members += end - at
            page.last = int(graphs.time[end - 1])
            self._changed = True
            at = end

    def _begin(self) -> None:
        """Begin a page. The one before is written now; nobody sees it until the head leads there."""
        former = self._page
        self._page = _Page(former.number + 1, former.first + former.members, last=former.last)
        self._is_closed = False
        if former is not self._head:
            self._put(former, full=True)

    def _put(self, page: _Page, *, full: bool) -> None:
        """Write a page, durably, in place of its former content."""
        content = page.content(self._number, self._run, full=full)
        _replace(self._to.folder, page.name, content)

    def _found(self) -> tuple[_Page, dict[str, Any] | None]:
        """The last page that readers see, and its state; the first one is made. Pages that nobody sees are removed."""
        with self._reported():
            page, state = None, None
            while True:
                number = 1 if page is None else page.number + 1
                path = self._to.folder / _name(number)
                if not path.exists():
                    break
                page, state = self._read(path, number)
                if not state["full"]:
                    break
            if page is None or state is None:
                page = _Page(1, 1)
                _replace(self._to.folder, page.name, page.content(0, self._run, full=False))
                description = f"{_PREFIXES}{_STATED}<> ldes:immutable true .\n"
                _replace(self._to.folder, _STREAM, description.encode())
                return page, None
            if state["full"]:
                raise RunError(
                    f"{self._to.shown}: {_name(page.number)} leads to {_name(page.number + 1)}, which is missing"
                )
            for path in self._to.folder.glob("[0-9]*.trig"):
                with suppress(ValueError):
                    if int(path.stem) > page.number:
                        path.unlink()
            return page, state

    def _read(self, path: Path, number: int) -> tuple[_Page, dict[str, Any]]:
        head, separator, text = path.read_bytes().partition(_BEFORE_MEMBERS)
        try:
            state = json.loads(head.partition(b"\n")[0].removeprefix(b"# "))
            page = _Page(number, state["first"], state["members"], state["last"], bytearray(text))
        except (ValueError, TypeError, KeyError):
            separator = b""
        if not separator:
            raise RunError(f"{self._to.shown}: {path} is no page of this sink: name another folder")
        return page, state


def _name(number: int) -> str:
    return f"{number:06}.trig"


def _replace(folder: Path, name: str, content: bytes) -> None:
    """Replace a file, durably: a crash leaves the old content, or the new one."""
    new = folder / f".{name}.new"
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / name)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _locked(to: LdesConnector) -> io.BufferedWriter:
    """The lock of the folder. RunError if another run has it."""
    file = (to.folder / _LOCK).open("wb")
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise RunError(f"{to.shown}: another run writes into this folder; one at a time can") from None
    return file
