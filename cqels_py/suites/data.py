"""A suite's data as files: streams in N-Quads, written once for each size and seed.

N-Triples have no place for times, and an element may have several subjects. A stream therefore is N-Triples with the
element's name as fourth term, and a line before each element that gives its time: the form of event graphs that the
engine reads.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.errors import RunError, UsageError
from cqels_py.suites.suite import Suite

GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"

_FORM = 2
"""Increased when the form of the files changes: older files are then written again."""
_ROWS = 1 << 15
_MARKS = 256
_MANIFEST = "manifest.json"

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Data:
    """The files of `triples` triples in `elements` elements. `marks`: times of some elements of each stream, in order,
    with the first and the last.
    """

    streams: dict[str, Path]
    static: Path
    triples: int
    elements: int
    marks: dict[str, list[int]]


def folder_for(given: Path | None) -> Path:
    """The folder for the data: the given one, or one for temporary files. UsageError if it cannot be written to."""
    folder = given or Path(tempfile.gettempdir()) / "cqels-bench"
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--data {folder} is not a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"--data {folder}: cannot write there: {error.strerror}") from None
    return folder


def prepared(suite: Suite, triples: int, seed: int, folder: Path, tell: Tell = lambda written: None) -> Data:
    """The suite's data, from the folder or written there now. `tell` gets the number of triples written so far."""
    place = folder / f"{suite.name}-{triples}-{seed}-{_version(suite)}"
    if not (place / _MANIFEST).is_file():
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder))
        try:
            _write(suite, triples, seed, unfinished, tell)
            _move(unfinished, place)
        except OSError as error:
            raise RunError(f"cannot write the data of {suite.name} to {folder}: {error.strerror}") from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return _read(place)


def _version(suite: Suite) -> str:
    """Distinguishes the data from those of another form or generator."""
    digest = hashlib.sha256(str(_FORM).encode())
    for source in suite.sources():
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _move(unfinished: Path, place: Path) -> None:
    try:
        unfinished.rename(place)
    except OSError:
        # Another process was faster.
        if not (place / _MANIFEST).is_file():
            raise


def _read(place: Path) -> Data:
    try:
        found = json.loads((place / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{place / _MANIFEST} cannot be read ({error}): remove the folder {place}") from None
    streams = {iri: place / name for iri, name in found["streams"].items()}
    return Data(streams, place / "static.nq", found["triples"], found["elements"], found["marks"])


def _write(suite: Suite, triples: int, seed: int, folder: Path, tell: Tell) -> None:
    dataset = suite.data()
    (folder / "static.nq").write_bytes(dataset.static(seed=seed))
    names: dict[str, str] = {}
    counted = np.zeros(2, np.int64)
    marks: dict[str, list[int]] = {}
    for number, (iri, batches) in enumerate(dataset.streams(triples, seed=seed).items()):
        names[iri] = f"stream-{number}.nq"
        writer = _Writer(f"urn:cqels:{suite.name}:{number}:")
        with (folder / names[iri]).open("wb") as file:
            for size in writer.write(batches, file):
                tell(int(counted[0]) + size)
        counted += (writer.triples, writer.elements)
        marks[iri] = writer.marks()
    manifest = {
        "suite": suite.name,
        "seed": seed,
        "triples": int(counted[0]),
        "elements": int(counted[1]),
        "streams": names,
        "marks": marks,
    }
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


class _Writer:
    """Writes record batches as N-Quads; an element without a graph gets a name that begins with `prefix`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._last: tuple[int, str | None] | None = None
        self._times: list[npt.NDArray[np.int64]] = []
        self.triples = 0
        self.elements = 0

    def write(self, batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> Iterator[int]:
        """Yields the number of triples written so far."""
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS):
                self._write(batch.slice(start, _ROWS), file)
                yield self.triples

    def marks(self) -> list[int]:
        times = np.concatenate([np.empty(0, np.int64), *self._times])
        chosen = np.linspace(0, len(times) - 1, min(_MARKS, len(times)), dtype=np.int64)
        found: list[int] = times[chosen].tolist()
        return found

    def _write(self, rows: pa.RecordBatch, file: IO[bytes]) -> None:
        time = rows.column("time").to_numpy()
        graph = rows.column("graph")
        new = self._begins(time, graph)
        if graph.null_count:
            numbers = pa.array(self.elements + np.cumsum(new))
            made = pc.binary_join_element_wise(f"<{self._prefix}", numbers.cast(pa.string()), ">", "")
            graph = pc.coalesce(graph, made)
        starts = np.flatnonzero(new)
        ahead = pc.binary_join_element_wise(
            graph.take(pa.array(starts)), GENERATED_AT, _date_times(time[starts]), ".\n", " "
        )
        # The first line of each element is preceded by the line with its time.
        place = np.where(new, np.cumsum(new), 0)
        before = pa.concat_arrays([pa.array([""]), ahead]).take(pa.array(place))
        terms = (rows.column(name) for name in ("subject", "predicate", "object"))
        _put(pc.binary_join_element_wise(before, pc.binary_join_element_wise(*terms, graph, ".\n", " "), ""), file)
        self._times.append(time[starts])
        self.elements += len(starts)
        self.triples += rows.num_rows

    def _begins(self, time: npt.NDArray[np.int64], graph: pa.Array) -> npt.NDArray[np.bool_]:
        """The rows at which an element begins: their time or graph differs from that of the row before."""
        codes = graph.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
        new = np.ones(len(time), np.bool_)
        new[1:] = (np.diff(time) != 0) | (np.diff(codes) != 0)
        new[0] = self._last != (int(time[0]), graph[0].as_py())
        self._last = (int(time[-1]), graph[-1].as_py())
        return new


def _date_times(microseconds: npt.NDArray[np.int64]) -> pa.Array:
    """xsd:dateTime texts, with as many digits as the times have."""
    unit = "s" if not (microseconds % 1_000_000).any() else "us"
    stamps = pa.array(microseconds // (1_000_000 if unit == "s" else 1)).cast(pa.timestamp(unit))
    text = pc.strftime(stamps, "%Y-%m-%dT%H:%M:%SZ")
    return pc.binary_join_element_wise('"', text, '"^^<http://www.w3.org/2001/XMLSchema#dateTime>', "")


def _put(lines: pa.StringArray, file: IO[bytes]) -> None:
    """The texts one after another, as they lie in memory."""
    _, offsets, text = lines.buffers()
    bounds = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    file.write(memoryview(text)[bounds[0] : bounds[-1]])
