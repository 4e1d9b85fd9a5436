"""A suite's data as files: the rows of its streams, once for each size and seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from cqels_py.datasets.tables import SCHEMA
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening
from cqels_py.suites import data
from cqels_py.suites.contents import elements_of
from cqels_py.suites.suite import Suite
from tests.suites.rides import RIDES

STREAM = "http://ex.org/s"
SECOND = 1_000_000

Row = tuple[int, str | None, str, str, str]


def suite_of(monkeypatch: pytest.MonkeyPatch, *batches: list[Row]) -> Suite:
    """A suite of one stream with these rows."""
    tables = [
        pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
        for rows in batches
    ]
    dataset = SimpleNamespace(
        streams=lambda triples, *, seed: {STREAM: pa.RecordBatchReader.from_batches(SCHEMA, tables)},
        static=lambda *, seed: b"<http://ex.org/a> <http://ex.org/b> <http://ex.org/c> .\n",
    )
    monkeypatch.setattr(Suite, "data", lambda self: dataset)
    monkeypatch.setattr(data, "_version", lambda suite: "v")
    return Suite("made", "", "", "")


def row(time: int, graph: str | None, subject: str) -> Row:
    return time, graph and f"<http://ex.org/{graph}>", f"<http://ex.org/{subject}>", "<http://ex.org/p>", '"a b\\n"'


def read(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(time, subjects) of each element, as the engine reads them."""
    dictionary = Dictionary()
    for batch in open_source(str(path), Opening(stream="", number=0, dictionary=dictionary)):
        subjects = dictionary.decode(batch.subject)
        for e in range(len(batch)):
            named = [str(text).rpartition("/")[2][:-1] for text in subjects[batch.first[e] : batch.first[e + 1]]]
            yield int(batch.time[e]), named


def test_elements_are_written_as_the_engine_reads_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    suite = suite_of(
        monkeypatch,
        [row(SECOND, "g", "a"), row(SECOND, "g", "b"), row(SECOND, "h", "c"), row(2 * SECOND, "h", "d")],
        # The first row goes on with the last element, the second is another one of the same graph.
        [row(2 * SECOND, "h", "e"), row(2 * SECOND + 5, "h", "f"), row(2 * SECOND + 5, "g", "g")],
    )
    made = data.prepared(suite, 7, 1, tmp_path)
    expected = [(1, "ab"), (1, "c"), (2, "de")]
    found = list(read(made.streams[STREAM]))
    assert found[:3] == [(time * SECOND, list(subjects)) for time, subjects in expected]
    assert found[3:] == [(2 * SECOND + 5, ["f"]), (2 * SECOND + 5, ["g"])]
    assert (made.triples, made.elements) == (7, 5)
    assert made.marks == {STREAM: [time for time, _ in found]}
    assert made.static.read_bytes().endswith(b"<http://ex.org/c> .\n")


def test_elements_without_a_graph_get_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    batches = [
        [row(SECOND, None, "a"), row(SECOND, None, "b"), row(3 * SECOND, None, "c")],
        [row(3 * SECOND, None, "d")],
    ]
    made = data.prepared(suite_of(monkeypatch, *batches), 4, 1, tmp_path)
    assert list(read(made.streams[STREAM])) == [(SECOND, ["a", "b"]), (3 * SECOND, ["c", "d"])]


def test_the_checks_reader_sees_the_same_elements(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = data.prepared(
        suite_of(monkeypatch, [row(t // 2 * SECOND, f"g{t // 2}", f"s{t}") for t in range(2, 9)]), 7, 1, tmp_path
    )
    found = [
        (element.time, [quad.subject.value.rpartition("/")[2] for quad in element.quads])  # type: ignore[union-attr]
        for element in elements_of({STREAM: str(made.streams[STREAM])})
    ]
    assert found == list(read(made.streams[STREAM]))


def test_files_are_written_once_for_each_size_and_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    first = data.prepared(RIDES, 90, 1, tmp_path, written.append)
    assert written[-1] == first.triples == 90
    written.clear()
    assert data.prepared(RIDES, 90, 1, tmp_path, written.append) == first
    assert written == []
    others = [data.prepared(RIDES, 180, 1, tmp_path), data.prepared(RIDES, 90, 2, tmp_path)]
    assert len({str(each.static.parent) for each in (first, *others)}) == 3
    assert others[1].streams[next(iter(first.streams))].read_bytes() != next(iter(first.streams.values())).read_bytes()


def test_truncated_files_are_not_taken_for_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, rows: pa.RecordBatch, file: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(data._Writer, "_write", fail)
        with pytest.raises(KeyboardInterrupt):
            data.prepared(RIDES, 90, 1, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert data.prepared(RIDES, 90, 1, tmp_path).elements == 10


def test_another_generator_writes_anew(tmp_path: Path) -> None:
    other = replace(RIDES, dataset="cqels_py.datasets.taxi")
    assert data._version(other) != data._version(RIDES)


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="is not a folder"):
        data.folder_for(file)
    with pytest.raises(UsageError, match="cannot write there"):
        data.folder_for(file / "below")
    with pytest.raises(UsageError, match="cannot write there"):
        data.folder_for(Path("/proc/data"))
    assert data.folder_for(tmp_path / "new" / "one").is_dir()


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    made = data.prepared(RIDES, 90, 1, tmp_path)
    (made.static.parent / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match="remove the folder"):
        data.prepared(RIDES, 90, 1, tmp_path)
