"""The sink of Parquet files."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import RunError, UsageError
from cqels_py.sinks import parquet
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.urls import sink_of
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening

XSD = "http://www.w3.org/2001/XMLSchema#"


def opening(dictionary: Dictionary, **more: Any) -> SinkOpening:
    return SinkOpening(**{"dictionary": dictionary, "form": "SELECT", "variables": ("v",), **more})


def batch(dictionary: Dictionary, terms: list[str | None], second: int = 1) -> ResultBatch:
    size = len(terms)
    return ResultBatch(("v",), np.full(size, second * 1_000_000), np.ones(size, np.int8), (dictionary.encode(terms),))


def opened(url: str, dictionary: Dictionary, **more: Any) -> Any:
    return sink_of(url).open(opening(dictionary, **more))


def number(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def values(folder: Path) -> list[list[Any]]:
    """The column v of each file that is complete."""
    return [pq.read_table(folder / name).column("v").to_pylist() for name in names(folder) if name[0] != "."]


def test_a_commit_completes_a_file(tmp_path: Path) -> None:
    dictionary = Dictionary()
    sink = opened(f"parquet:{tmp_path}/out", dictionary)
    assert sink.commit() == 0
    assert names(tmp_path) == [], "no file without rows"
    sink.write(batch(dictionary, [number(1), number(2)]))
    sink.flush()
    assert names(tmp_path) == []
    assert sink.commit() == 2
    sink.write(batch(dictionary, [number(3)], second=2))
    sink.close()
    sink.close()
    assert names(tmp_path) == ["out-000001.parquet", "out-000002.parquet"]
    first, second = (pq.read_table(tmp_path / name) for name in names(tmp_path))
    assert first.schema.names == ["time", "sign", "v"]
    assert first.schema.types == [pa.timestamp("us", "UTC"), pa.int8(), pa.int64()]
    assert first.column("v").to_pylist() == [1, 2]
    assert second.to_pylist() == [{"time": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), "sign": 1, "v": 3}]


def test_a_file_is_complete_when_it_has_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 100)
    dictionary = Dictionary()
    sink = opened(f"parquet:{tmp_path}/out?size=4KB", dictionary)
    for start in range(0, 2_000, 50):
        sink.write(batch(dictionary, [f'"{n * 7919 % 100_003}"' for n in range(start, start + 50)]))
        if start == 100:
            assert names(tmp_path) == [".out-000001.parquet"]
    complete = [name for name in names(tmp_path) if name[0] != "."]
    assert len(complete) > 2
    assert all(4_000 < (tmp_path / name).stat().st_size < 8_000 for name in complete)
    sink.close()
    assert [*chain(*values(tmp_path))] == [str(n * 7919 % 100_003) for n in range(2_000)]
    assert not [name for name in names(tmp_path) if name[0] == "."]


def test_values_of_other_types_begin_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 1)
    dictionary = Dictionary()
    sink = opened(f"parquet:{tmp_path}/out", dictionary)
    groups: list[list[str | None]] = [
        [number(1)], [None], [number(2)], [f'"1.5"^^<{XSD}decimal>'], ["<http://e/a>", number(3)], ['"x"']
    ]  # fmt: skip
    for group in groups:
        sink.write(batch(dictionary, group))
    sink.close()
    assert values(tmp_path) == [[1, None, 2], [Decimal("1.5")], ["http://e/a", "3"], ["x"]]
    third = pq.read_table(tmp_path / "out-000003.parquet")
    assert third.schema.names == ["time", "sign", "v", "v_datatype"]


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=8),
    killed=st.integers(0, 8),
    back=st.integers(0, 3),
    rows=st.integers(1, 5),
)
def test_a_run_that_continues_writes_each_result_once(
    tmp_path_factory: Any, steps: list[tuple[int, bool]], killed: int, back: int, rows: int
) -> None:
    """Steps of so many results, after some of which there is a commit; killed after a step, results are made again from an
    earlier commit on."""
    folder = tmp_path_factory.mktemp("parquet")
    url, dictionary = f"parquet:{folder}/out.parquet", Dictionary()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_GROUP_ROWS", rows)
        made, commits = 0, [0]
        sink = opened(url, dictionary, written=0, run="r")
        for size, commit in steps[:killed]:
            sink.write(batch(dictionary, [number(made + n) for n in range(size)]))
            made += size
            if commit:
                commits.append(sink.commit())
        # What is in memory is lost, and the lock is released.
        if sink._file is not None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, sink._file._file.fileno())
            os.close(nowhere)
        begin = commits[-1 - min(back, len(commits) - 1)]
        again = opened(url, dictionary, written=begin, run="r", made=made)
        total = sum(size for size, _ in steps)
        for start in range(begin, total, 2):
            again.write(batch(dictionary, [number(n) for n in range(start, min(start + 2, total))]))
        again.close()
    assert [*chain(*values(folder))] == list(range(total))


@settings(max_examples=25, deadline=None)
@given(ticks=st.lists(st.integers(1, 3), min_size=1, max_size=12), killed=st.integers(0, 12), rows=st.integers(1, 8))
def test_graphs_are_rows_that_can_be_read_as_a_stream(
    tmp_path_factory: Any, ticks: list[int], killed: int, rows: int
) -> None:
    """Also of a run that was killed: each graph is there once, of which some have no triples."""
    folder = tmp_path_factory.mktemp("graphs")
    dictionary = Dictionary()
    template = (("?v", "<http://ex.org/p>", "?v"), ("?v", "<http://ex.org/q>", '"ü\\n"@de'))
    terms = [
        [f"<http://ex.org/{second}/{at}>" if second % 4 else '"no subject"' for at in range(n)]
        for second, n in enumerate(ticks)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_GROUP_ROWS", rows)
        for begin, end in ((0, min(killed, len(ticks))), (0, len(ticks))):
            sink = opened(
                f"parquet:{folder}/out",
                dictionary,
                form="CONSTRUCT",
                template=template,
                written=0,
                run="r",
                made=sum(ticks),
            )
            for second in range(begin, end):
                sink.write(batch(dictionary, list(terms[second]), second))
                if second % 2:
                    sink.commit()
            if end < len(ticks):
                sink._failed = True
            sink.close()
    expected = [
        (
            second * 1_000_000,
            sorted([(term, "p", term) for term in found] + [(term, "q", '"ü\\n"@de') for term in found]),
        )
        for second, found in enumerate(terms)
        if second % 4
    ]
    read = []
    for name in names(folder):
        for part in open_source(str(folder / name), Opening(stream="", number=0, dictionary=dictionary)):
            columns = [dictionary.decode(column) for column in (part.subject, part.predicate, part.object)]
            for at, time in enumerate(part.time.tolist()):
                own = range(part.first[at], part.first[at + 1])
                triples = sorted((str(columns[0][row]), str(columns[1][row])[-2], str(columns[2][row])) for row in own)
                read.append((time, triples))
    assert read == expected


def test_a_new_run_goes_on_with_new_files(tmp_path: Path) -> None:
    for value in (1, 2):
        dictionary = Dictionary()
        sink = opened(f"parquet:{tmp_path}/out", dictionary)
        sink.write(batch(dictionary, [number(value)]))
        sink.close()
    assert values(tmp_path) == [[1], [2]]


def test_two_runs_do_not_write_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 1)
    dictionary = Dictionary()
    one, other = (opened(f"parquet:{tmp_path}/out", dictionary) for _ in range(2))
    one.write(batch(dictionary, [number(1)]))
    with pytest.raises(RunError, match=r"another run writes .*out-000001\.parquet; one at a time can"):
        other.write(batch(dictionary, [number(2)]))
    other.close()
    late = opened(f"parquet:{tmp_path}/out", dictionary)
    one.close()
    late.write(batch(dictionary, [number(3)]))
    with pytest.raises(RunError, match="another run writes"):
        late.commit()
    late.close()
    assert values(tmp_path) == [[1]]
    assert names(tmp_path) == ["out-000001.parquet"]


def test_the_terms_of_rows_in_memory_are_kept(tmp_path: Path) -> None:
    dictionary = Dictionary()
    sink = opened(f"parquet:{tmp_path}/out", dictionary)
    sink.write(batch(dictionary, ["<http://e/kept>"]))
    dictionary.collect([])
    sink.close()
    assert values(tmp_path) == [["http://e/kept"]]
    dictionary.encode(["<http://e/other>"])
    assert dictionary.collect([]) == 2, "closed, it keeps nothing"


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends, and no part of a file is left."""

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    dictionary = Dictionary()
    sink = opened(f"parquet:{tmp_path}/out", dictionary)
    sink.write(batch(dictionary, [number(1)]))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="out: No space left on device"):
        sink.commit()
    sink.close()
    assert names(tmp_path) == []


def test_a_query_of_an_engine(tmp_path: Path) -> None:
    engine = Engine()
    select = engine.register("SELECT ?v { STREAM <http://e/s> [NOW] { ?s <http://e/p> ?v } }")
    ask = engine.register("ASK { STREAM <http://e/s> [NOW] { ?s <http://e/p> ?v } }")
    select.write_to(f"parquet:{tmp_path}/select")
    ask.write_to(f"parquet:{tmp_path}/ask")
    engine.push("http://e/s", [("<http://e/a>", "<http://e/p>", number(7))], time=0)
    engine.commit()
    assert pq.read_table(tmp_path / "select-000001.parquet").column("v").to_pylist() == [7]
    assert pq.read_table(tmp_path / "ask-000001.parquet").column("boolean").to_pylist() == [True]
    engine.close()


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    for url, message in [
        ("parquet:", "names no files: write parquet:results/alerts"),
        ("parquet://host/x", "names no files"),
        (f"parquet:{tmp_path}/", "names no files"),
        ("parquet:x#t", "names no files"),
        ("parquet:x?size=big", "the option size is a size, such as 64MB or 2GiB, not 'big'"),
        ("parquet:x?size=0", "the option size is a size"),
        ("parquet:x?roll=1m", "there is no option 'roll'; there are size"),
    ]:
        with pytest.raises(UsageError, match=message):
            sink_of(url)
    dictionary = Dictionary()
    with pytest.raises(UsageError, match=r"rename the variable \?sign"):
        opened(f"parquet:{tmp_path}/x", dictionary, variables=("sign",))
    with pytest.raises(UsageError, match="there is no folder"):
        opened(f"parquet:{tmp_path}/there/x", dictionary)
    (tmp_path / "x-000007.parquet").write_bytes(b"PAR1")
    with pytest.raises(RunError, match=r"x-000007\.parquet cannot be read"):
        opened(f"parquet:{tmp_path}/x", dictionary)
