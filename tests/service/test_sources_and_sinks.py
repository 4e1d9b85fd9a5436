"""Streams with sources, queries with sinks: they go on after a restart, and only those that are allowed."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from cqels_py.service.allowed import Allowed
from tests.service.support import HOT, READINGS, reading, results, send, served


def line(sensor: str, value: float) -> str:
    return json.dumps({"@id": f"http://ex.org/{sensor}", "http://ex.org/t": {"@value": value}}) + "\n"


def put_stream(client: httpx.Client, source: str) -> httpx.Response:
    return client.put("/streams/readings", json={"iri": READINGS, "source": source, "clock": "events"})


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_growing_file_is_read_on_behind_what_was_taken_in(tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    file = folder / "readings.csv"
    row = '2026-05-01T00:00:0{0},<http://ex.org/{1}>,<http://ex.org/t>,"""4{0}""^^<http://www.w3.org/2001/XMLSchema#integer>"\n'
    file.write_text("time,subject,predicate,object\n" + row.format(1, "a") + row.format(2, "b") + row.format(3, "c"))
    allowed = Allowed((folder,))
    with served(tmp_path / "data", allowed=allowed) as client:
        assert put_stream(client, f"tail:{tmp_path}/elsewhere.csv").status_code == 403
        assert put_stream(client, f"tail:{file}").status_code == 201
        client.put("/queries/hot", json={"text": HOT})
        first = [each["bindings"]["s"]["value"][-1] for each in results(client, 2)]
        assert first == ["a", "b"]
        # It is pushed to as well.
        assert send(client, reading("z", 1)).status_code == 200
    with file.open("a") as more:
        more.write(row.format(4, "d") + row.format(5, "e") + row.format(6, "f"))
    with served(tmp_path / "data", allowed=allowed) as client:
        assert client.get("/streams/readings").json()["read"]["failure"] is None
        wait_for(lambda: client.get("/streams/readings").json()["read"]["elements"] >= 2)


def test_results_go_to_a_table(tmp_path: Path) -> None:
    folder = tmp_path / "outputs"
    folder.mkdir()
    sink = f"sqlite:{folder}/results.db#hot"
    with served(tmp_path / "data", allowed=Allowed((folder,))) as client:
        client.put("/streams/readings", json={"iri": READINGS})
        refused = client.put("/queries/hot", json={"text": HOT, "sinks": [f"sqlite:{tmp_path}/x.db#hot"]})
        assert refused.status_code == 403
        assert client.put("/queries/hot", json={"text": HOT, "sinks": ["nonsense:x"]}).status_code == 403
        answer = client.put("/queries/hot", json={"text": HOT, "sinks": [sink]})
        assert answer.status_code == 201, answer.text
        send(client, reading("a", 50))
        assert len(results(client, 1)) == 1
    with served(tmp_path / "data", allowed=Allowed((folder,))) as client:
        send(client, reading("b", 51))
        assert len(results(client, 2)) == 2
        assert client.get("/healthz").json() == {"status": "ok", "lacking": []}
    with sqlite3.connect(folder / "results.db") as database:
        assert database.execute("SELECT s FROM hot ORDER BY 1").fetchall() == [
            ("http://ex.org/a",),
            ("http://ex.org/b",),
        ]


def test_a_sink_whose_other_side_is_away_holds_nothing_up(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:1/results"
    with served(tmp_path / "data", allowed=Allowed(urls=("http://127.0.0.1:1/",))) as client:
        client.put("/streams/readings", json={"iri": READINGS})
        assert client.put("/queries/hot", json={"text": HOT, "sinks": [nowhere]}).status_code == 201
        for number in range(3):
            assert send(client, reading(f"s{number}", 50)).status_code == 200
        assert len(results(client, 3)) == 3
    with served(tmp_path / "data", allowed=Allowed(urls=("http://127.0.0.1:1/",))) as client:
        send(client, reading("s3", 50))
        assert [each["number"] for each in results(client, 4)] == [1, 2, 3, 4]
