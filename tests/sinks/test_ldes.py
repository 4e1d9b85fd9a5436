"""The sink that publishes an event stream: read back over HTTP by the source, and compared with what was written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from time import monotonic
from typing import Any

import numpy as np
import pyoxigraph
import pytest

from cqels_py import Engine
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError, UsageError
from cqels_py.sinks import ldes
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.urls import sink_of
from tests.support.live_runs import run_until
from tests.support.servers import needed_module

VALUE = "http://example.org/v"
STREAM = "http://example.org/stream"
TEMPLATE = (("?v", f"<{VALUE}>", "_:b"), ("_:b", f"<{VALUE}>", "?v"))
Made = tuple[int, tuple[int, ...]]
"""The second of a tick, and its results' numbers."""


def opened(folder: Path, members: int, dictionary: Dictionary, **more: Any) -> Any:
    return sink_of(f"ldes:{folder}?members={members}").open(
        SinkOpening(dictionary=dictionary, form="CONSTRUCT", variables=("v",), template=TEMPLATE, **more)
    )


def batch(dictionary: Dictionary, ticks: Sequence[Made]) -> ResultBatch:
    time = np.array([second for second, values in ticks for _ in values], np.int64) * 1_000_000
    ids = dictionary.encode([f"<http://example.org/{value}>" for _, values in ticks for value in values])
    return ResultBatch(("v",), time, np.ones(len(time), np.int8), (ids,))


def drawn(random: Random, count: int) -> list[Made]:
    return [(second, tuple(range(3 * second, 3 * second + random.randint(1, 3)))) for second in range(count)]


def read(folder: Path) -> list[Made]:
    """The members that a reader finds: from the first page on, as the pages say; each page is RDF, and has its own members only."""
    found: list[Made] = []
    name = "000001.trig"
    while name:
        base = "http://h/"
        text = (folder / name).read_bytes()
        quads = list(pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.TRIG, base_iri=base + name))
        of = {(str(q.subject), q.predicate.value): q.object for q in quads}
        for member in [q.object for q in quads if q.predicate.value == "https://w3id.org/tree#member"]:
            time = of[str(member), "http://www.w3.org/ns/prov#generatedAtTime"].value
            values = [
                int(q.subject.value.rpartition("/")[2])
                for q in quads
                if q.graph_name == member and isinstance(q.subject, pyoxigraph.NamedNode)
            ]
            found.append((int(np.datetime64(time[:-1], "s").astype(int)), tuple(sorted(values))))
        following = [q.object.value for q in quads if q.predicate.value == "https://w3id.org/tree#node"]
        stated = [q for q in quads if q.predicate.value == "https://w3id.org/ldes#immutable"]
        assert len(following) == len(stated) <= 1
        name = following[0].removeprefix(base) if following else ""
    return found


def immutable(folder: Path) -> dict[str, bytes]:
    pages = {path.name: path.read_bytes() for path in folder.glob("*.trig")}
    return {name: text for name, text in pages.items() if b"ldes:immutable" in text}


@pytest.mark.parametrize("seed", range(6))
def test_commits_make_members_visible_and_immutable_pages_stay(seed: int, tmp_path: Path) -> None:
    random, dictionary = Random(seed), Dictionary()
    made = drawn(random, 40)
    members = random.randint(1, 12)
    sink = opened(tmp_path / "out", members, dictionary)
    written = committed = 0
    known: dict[str, bytes] = {}
    while written < len(made):
        count = random.randint(1, 12)
        sink.write(batch(dictionary, made[written : written + count]))
        written = min(written + count, len(made))
        sink.flush()
        assert read(tmp_path / "out") == made[:committed]
        if random.random() < 0.6:
            sink.commit()
            committed = written
            assert read(tmp_path / "out") == made[:committed]
            now = immutable(tmp_path / "out")
            assert {name: now[name] for name in known} == known
            known = now
    sink.close()
    sink.close()
    assert read(tmp_path / "out") == made
    for path in (tmp_path / "out").glob("0*.trig"):
        assert path.read_text().count("\n<#") <= 2 * members + 1


@pytest.mark.parametrize("seed", range(8))
def test_a_run_that_is_killed_goes_on_with_each_member_once(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends at any replacement of a file, before or after it; a reader sees what one of the commits left."""
    random = Random(seed)
    made = drawn(random, 30)
    results = [len(values) for _, values in made]
    left = 0

    def replace(folder: Path, name: str, content: bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0 and random.random() < 0.5:
            raise InterruptedError
        whole(folder, name, content)
        if left < 0:
            raise InterruptedError

    whole = ldes._replace
    monkeypatch.setattr(ldes, "_replace", replace)
    tops = [0]
    for _ in range(200):
        left = random.randint(1, 6)
        dictionary = Dictionary()
        sink: Any = None
        try:
            sink = opened(tmp_path / "out", 4, dictionary, run="r", written=0, made=sum(results))
            at = 0
            while at < len(made):
                count = random.randint(1, 5)
                sink.write(batch(dictionary, made[at : at + count]))
                at = min(at + count, len(made))
                if random.random() < 0.5 or at == len(made):
                    tops.append(at)
                    sink.commit()
            sink.close()
            break
        except RunError:
            if sink is not None:
                assert sink._failed
                sink.close()
        if (tmp_path / "out" / "000001.trig").exists():
            found = read(tmp_path / "out")
            assert found == made[: len(found)]
            assert len(found) in tops
    assert read(tmp_path / "out") == made


def test_another_run_appends_unless_its_times_go_back(tmp_path: Path) -> None:
    for second in (1, 2):
        dictionary = Dictionary()
        sink = opened(tmp_path / "out", 10, dictionary)
        sink.write(batch(dictionary, [(second, (second,))]))
        sink.close()
    assert read(tmp_path / "out") == [(1, (1,)), (2, (2,))]
    sink = opened(tmp_path / "out", 10, dictionary)
    with pytest.raises(
        RunError, match="has members up to 1970-01-01T00:00:02Z, and the first of this run is of 1970-01-01T00:00:01Z"
    ):
        sink.write(batch(dictionary, [(1, (1,))]))
    sink.close()
    assert len(read(tmp_path / "out")) == 2


def test_the_source_reads_what_the_sink_publishes(tmp_path: Path) -> None:
    """A query's graphs, by a server of files, as the stream of another query, while the first goes on."""
    needed_module("httpx", "http")
    maker = Engine()
    query = maker.register(
        f"CONSTRUCT {{ ?s <{VALUE}2> ?v }} WHERE {{ STREAM <{STREAM}> [NOW] {{ ?s <{VALUE}> ?v }} }}"
    )
    query.write_to(f"ldes:{tmp_path / 'out'}?members=3")

    def push(numbers: Sequence[int]) -> None:
        for number in numbers:
            maker.push(STREAM, [("http://example.org/a", VALUE, number)], time=number * 1_000_000)
        maker.commit()

    push(range(8))
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "out"))
    found: list[tuple[int, int]] = []
    reader = Engine()
    reader.register(f"SELECT ?v WHERE {{ STREAM <{STREAM}> [NOW] {{ ?s <{VALUE}2> ?v }} }}").subscribe(
        lambda result: found.append((result.time, result.bindings["v"].toPython()))
    )

    def is_enough(_: object) -> bool:
        if len(found) == 8 and not maker_done:
            maker_done.append(True)
            push(range(8, 12))
        assert monotonic() < until
        return len(found) == 12

    until = monotonic() + 120
    maker_done: list[bool] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"ldes+http://127.0.0.1:{server.server_port}/stream.trig#refresh=20ms"
        run_until(reader, {STREAM: url}, is_enough)
        server.shutdown()
    maker.close()
    assert found == [(number * 1_000_000, number) for number in range(12)]


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    dictionary = Dictionary()
    with pytest.raises(UsageError, match="names no folder: write ldes:alerts"):
        sink_of("ldes://host/alerts")
    with pytest.raises(UsageError, match="write SELECT to another output"):
        sink_of(f"ldes:{tmp_path}").open(SinkOpening(dictionary=dictionary, form="SELECT", variables=("v",)))
    with pytest.raises(UsageError, match="there is no folder"):
        opened(tmp_path / "none" / "out", 1, dictionary)
    first = opened(tmp_path / "out", 1, dictionary)
    with pytest.raises(RunError, match="another run writes into this folder"):
        opened(tmp_path / "out", 1, dictionary)
    first.close()
    (tmp_path / "out" / "000001.trig").write_text("nonsense")
    with pytest.raises(RunError, match=r"000001\.trig is no page of this sink"):
        opened(tmp_path / "out", 1, dictionary)
    assert ".000001.trig.new" not in os.listdir(tmp_path / "out")
