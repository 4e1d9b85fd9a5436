"""While a step goes on, every query can be looked at, paused and removed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from cqels_py.runners.running import QueriesOnScans
from tests.service.support import declare, reading, register, send, served

PREFIX = "PREFIX : <http://ex.org/> "
HOSTILE = PREFIX + f"SELECT * {{ {' '.join(f'STREAM :readings [RANGE 1h] {{ ?s{n} :t ?t{n} }}' for n in range(6))} }}"
PLAIN = PREFIX + "SELECT * { STREAM :readings [RANGE 1h] { ?s :t ?t } }"
BODY = b"".join(reading(f"s{n}", n) for n in range(60))


class Step:
    """Inside of `held`, steps wait until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.let_go = Event(), Event()
        self.let_go.set()
        push = QueriesOnScans.push

        def held(queries: QueriesOnScans, *given: Any) -> int:
            self.begun.set()
            self.let_go.wait()
            return push(queries, *given)

        monkeypatch.setattr(QueriesOnScans, "push", held)

    @contextmanager
    def held(self) -> Iterator[None]:
        self.begun.clear()
        self.let_go.clear()
        try:
            yield
        finally:
            self.let_go.set()


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> Step:
    return Step(monkeypatch)


def test_queries_are_told_paused_and_removed_in_a_step(tmp_path: Path, step: Step) -> None:
    with served(tmp_path) as client, ThreadPoolExecutor(12) as others:
        declare(client)
        for name, text in {"hostile": HOSTILE, "plain": PLAIN, "other": PLAIN}.items():
            assert register(client, name, text).status_code == 201
        with step.held():
            pushed = others.submit(send, client, BODY)
            step.begun.wait()
            # Requests that wait for the step keep nobody else waiting.
            waiting = [others.submit(client.get, "/queries/plain/answer") for _ in range(8)]
            new = others.submit(register, client, "new", PLAIN)
            for path in (
                "/queries",
                "/queries/hostile",
                "/streams",
                "/streams/readings",
                "/healthz",
                "/livez",
                "/metrics",
            ):
                assert client.get(path).status_code == 200, path
            assert client.post("/queries/plain/pause").json()["state"] == "paused"
            assert client.post("/queries/plain/resume").json()["state"] == "running"
            assert client.delete("/queries/other").status_code == 204
            assert client.get("/queries/other").status_code == 404
            assert client.delete("/queries/hostile").status_code == 204
            assert client.get("/queries/hostile").status_code == 404
            assert [each["name"] for each in client.get("/queries").json()] == ["plain"]
            assert not pushed.done() and not new.done()
        assert pushed.result().status_code == 200 and new.result().status_code == 201
        for each in waiting:
            assert each.result().status_code in (200, 409)
        # Their names are free, and the others have all that they would have had.
        assert register(client, "hostile", PLAIN).status_code == 201
        assert client.get("/queries/plain").json()["results"] == 60
    with served(tmp_path) as client:
        assert {each["name"] for each in client.get("/queries").json()} == {"plain", "new", "hostile"}
        assert client.get("/healthz").status_code == 200


def test_a_removal_in_a_step_outlives_the_process(tmp_path: Path, step: Step) -> None:
    """Also if the process ends before the step does."""
    with served(tmp_path / "data") as client, ThreadPoolExecutor(1) as others:
        declare(client)
        register(client, "plain", PLAIN)
        with step.held():
            pushed = others.submit(send, client, reading("a", 1))
            step.begun.wait()
            assert client.delete("/queries/plain").status_code == 204
            assert not (tmp_path / "data" / "queries" / "plain.json").exists()
        assert pushed.result().status_code == 200


def test_a_step_ends_for_the_query_that_is_removed(tmp_path: Path, step: Step) -> None:
    """Six windows with 60 mappings each: 4.7e10 rows."""
    with served(tmp_path) as client, ThreadPoolExecutor(1) as others:
        declare(client)
        register(client, "plain", PLAIN)
        register(client, "hostile", HOSTILE)
        pushed = others.submit(send, client, BODY)
        step.begun.wait()
        assert client.delete("/queries/hostile").status_code == 204
        assert pushed.result(120).status_code == 200
        assert client.get("/queries/plain").json()["results"] == 60
