"""Files that are renamed into a folder: each is read once, in any format of streams."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine, Statistics
from cqels_py.errors import DataError, RunError, UsageError
from cqels_py.formats.input_wait import InputWait
from cqels_py.sources import folder as module
from cqels_py.sources.protocol import Opening, Source
from cqels_py.sources.urls import source_of
from cqels_py.testing import check_source
from tests.sources.test_tail import GENERATED, MAP, STREAM, V, seconds, settled, text
from tests.support.live_runs import run_until

INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InputWait, "pause", 0.001)


def put(folder: Path, name: str, *numbers: int) -> Path:
    """A file, as it should be written: under a hidden name, then renamed."""
    form = name.rpartition(".")[2]
    hidden, path = folder / f".{name}", folder / name
    if form == "parquet":
        rows = {"time": [n * 1_000_000 for n in numbers], "subject": [f"<g:s{n}>" for n in numbers]}
        pq.write_table(
            pa.table({**rows, "predicate": [V] * len(numbers), "object": [f'"{n}"' for n in numbers]}), hidden
        )
    elif form == "ttl":
        hidden.write_text("".join(f'<g:s{n}> {GENERATED} "{n}"{INTEGER} ; {V} "{n}" .\n' for n in numbers))
    else:
        hidden.write_text(text(form, *numbers))
    return hidden.rename(path)


def opened(url: str, **more: Any) -> Source:
    wait = InputWait(0.0, 30)
    return source_of(url).open(Opening(stream=STREAM, number=0, dictionary=Dictionary(), wait=wait, **more))


def test_it_keeps_the_protocol(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    for folder in (right, wrong):
        folder.mkdir()
        put(folder, "a.nq", 1, 2)
        put(folder, "b.parquet", 3)
        put(folder, "c.nq", 4, 5)
    (wrong / "c.nq").write_text(text("nq", 4) + "nonsense\n" + text("nq", 5))
    expected = [(n * 1_000_000, [(f"<g:s{n}>", V, f'"{n}"')]) for n in range(1, 6)]
    check_source(lambda: source_of(f"dir:{right}"), expected, malformed=lambda: source_of(f"dir:{wrong}"), seconds=5)
    url = f"dir:{right}?position={tmp_path / 'at'}"
    check_source(lambda: source_of(url), expected, resumes=True, seconds=5)


def test_files_as_they_come(tmp_path: Path) -> None:
    """In order of names where several are there; hidden ones when they get a name."""
    source = opened(f"dir:{tmp_path}")
    assert settled(source) == []
    put(tmp_path, "b.nq", 3, 4)
    put(tmp_path, "a.nq.nq", 1, 2)
    (tmp_path / ".c.nq").write_text(text("nq", 5))
    (tmp_path / "folder.nq").mkdir()
    assert settled(source) == [1, 2, 3, 4]
    (tmp_path / ".c.nq").rename(tmp_path / "0.nq")
    assert seconds(source, 1) == [5]
    assert settled(source) == []
    source.close()


def test_another_file_of_the_same_name(tmp_path: Path) -> None:
    source = opened(f"dir:{tmp_path}")
    put(tmp_path, "a.nq", 1)
    assert seconds(source, 1) == [1]
    put(tmp_path, "a.nq", 2)
    assert seconds(source, 1) == [2]
    source.commit(source.position())
    put(tmp_path, "a.nq", 3)
    assert seconds(source, 1) == [3]
    source.close()


def test_a_file_that_is_replaced_before_it_is_read(tmp_path: Path) -> None:
    """It is read once; and so is one that was away when its turn came."""
    source = opened(f"dir:{tmp_path}")
    for n, name in enumerate("abc", 1):
        put(tmp_path, f"{name}.nq", n)
    assert seconds(source, 1) == [1]
    put(tmp_path, "b.nq", 4)
    (tmp_path / "c.nq").rename(tmp_path / ".c.nq")
    assert settled(source) == [4]
    (tmp_path / ".c.nq").rename(tmp_path / "c.nq")
    assert settled(source) == [3]
    source.close()


def test_committed_files_are_deleted(tmp_path: Path) -> None:
    """Those that were read to their ends, not the one that is being read, and not another of the same name."""
    source = opened(f"dir:{tmp_path}?after=delete&pattern=*.nq")
    for n, name in enumerate("abc", 1):
        put(tmp_path, f"{name}.nq", n)
    put(tmp_path, "d.ttl", 9)
    assert seconds(source, 2) == [1, 2]
    put(tmp_path, "a.nq", 4)
    source.commit(source.position())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nq", "b.nq", "c.nq", "d.ttl"]
    assert settled(source) == [3, 4]
    source.commit(source.position())
    assert [path.name for path in tmp_path.iterdir()] == ["d.ttl"]
    source.close()


def test_a_restart_goes_on_behind_the_commit(tmp_path: Path) -> None:
    """Within a file, too; names that are gone are forgotten."""
    folder = tmp_path / "in"
    folder.mkdir()
    url = f"dir:{folder}?position={tmp_path / 'at'}"
    put(folder, "a.nq", 1)
    put(folder, "b.parquet", 2, 3)
    source = opened(url)
    assert seconds(source, 1) == [1]
    source.poll()
    (first,) = seconds(source, 1)
    source.commit(source.position())
    source.close()
    put(folder, "0.nq", 4)
    source = opened(url)
    assert sorted([first, *settled(source)]) == [2, 3, 4]
    source.commit(source.position())
    (folder / "a.nq").unlink()
    put(folder, "c.nq", 5)
    assert seconds(source, 1) == [5]
    assert settled(source) == []
    source.commit(source.position())
    assert '"a.nq"' not in (tmp_path / "at").read_text()
    source.close()


def test_other_files_are_left_out_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "notes.txt").write_text("no stream")
    put(tmp_path, "a.nq", 1)
    source = opened(f"dir:{tmp_path}")
    with caplog.at_level(logging.WARNING):
        assert settled(source) == [1]
        put(tmp_path, "b.nq", 2)
        assert settled(source) == [2]
    assert caplog.text.count("notes.txt is left out: the ending '.txt'") == 1
    source.close()


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no table")
    put(tmp_path, "b.nq", 2)
    source = opened(f"dir:{tmp_path}")
    with pytest.raises(DataError, match=r"a.parquet is not a valid Parquet file"):
        settled(source)
    source.close()
    told: list[DataError] = []
    source = opened(f"dir:{tmp_path}", on_error="skip", report=told.append)
    assert settled(source) == [2]
    assert len(told) == 1
    source.close()


def test_rows_through_a_map_in_an_engine(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,sensor,value\n1000000,s1,1\n")
    engine = Engine()
    query = engine.register(f"SELECT ?v {{ STREAM <{STREAM}> [RANGE 10s] {{ ?s {V} ?v }} }}")

    def is_enough(statistics: Statistics) -> bool:
        if statistics.elements == 1:
            (tmp_path / "b.ndjson").write_text('{"time": 2000000, "sensor": "s1", "value": 2}\n')
        return statistics.elements >= 2

    run_until(engine, {STREAM: f"dir:{tmp_path}"}, is_enough, maps={STREAM: MAP})
    assert [int(result.bindings["v"]) for result in query.results()] == [1, 2]
    engine.close()


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        opened(f"dir:{tmp_path / 'no'}")
    with pytest.raises(UsageError, match="names no folder"):
        source_of("dir:")
    with pytest.raises(UsageError, match="the option after is one of keep, delete"):
        source_of(f"dir:{tmp_path}?after=move")
    monkeypatch.setattr(module, "MOST_FILES", 1)
    put(tmp_path, "a.nq", 1)
    put(tmp_path, "b.nq", 1)
    source = opened(f"dir:{tmp_path}")
    with pytest.raises(RunError, match="more than 1 files"):
        source.poll()
    source.close()
    (tmp_path / "sub").mkdir()
    source = opened(f"dir:{tmp_path / 'sub'}")
    (tmp_path / "sub").rmdir()
    with pytest.raises(RunError, match="cannot read the folder"):
        source.poll()
