"""While a step goes on, every query can be looked at, paused and removed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from cqels_py.errors import UsageError
from cqels_py.runners.running import QueriesOnScans
from cqels_py.service.definitions import QueryDefinition, StreamDefinition
from cqels_py.service.server import Server, Serving
from cqels_py.service.service import Pushed, Service
from tests.service.support import READINGS, declare, reading, register, send, served

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


@pytest.fixture
def in_a_step(tmp_path: Path, step: Step) -> Path:
    """A folder of a process that ended in a step that goes on for ever, as it would again at each start."""
    service = Service(tmp_path / "first")
    service.put_stream("readings", StreamDefinition(READINGS))
    for name, text in {"hostile": HOSTILE, "plain": PLAIN}.items():
        service.put_query(name, QueryDefinition(text))
    stream = service.stream("readings")
    with ThreadPoolExecutor(1) as others:
        service.push([Pushed.of(stream, reading("before", 1), "nt", None)])
        with step.held():
            pushed = others.submit(service.push, [Pushed.of(stream, BODY, "nt", None)])
            step.begun.wait()
            service.engine._inputs.sync()
            for store in service._stores.values():
                store.sync()
            shutil.copytree(tmp_path / "first", tmp_path / "copy")
            service.engine.stop(service.registered("hostile"))
        pushed.result()
    service.close()
    step.begun.clear()
    return tmp_path / "copy"


def results_of(client: httpx.Client, name: str) -> int:
    found = client.get(f"/queries/{name}").json()["results"]
    assert isinstance(found, int)
    return found


def test_a_server_starts_without_a_query(in_a_step: Path) -> None:
    with served(in_a_step, without=("hostile",)) as client:
        found = client.get("/queries/hostile").json()
        assert found["state"] == "failed" and "left out (--without)" in found["failure"] and found["results"] == 1
        assert results_of(client, "plain") == 61
    # Without the option it begins anew: the log says that it has gone. Its numbers go on.
    with served(in_a_step) as client:
        assert client.get("/queries/hostile").json()["state"] == "running"
        assert results_of(client, "plain") == 61 and results_of(client, "hostile") == 1
        send(client, reading("later", 2))
        assert results_of(client, "plain") == 62 and results_of(client, "hostile") == 2
    with served(in_a_step, without=("hostile", "plain")) as client:
        assert {each["state"] for each in client.get("/queries").json()} == {"failed"}
        assert register(client, "plain", PLAIN).status_code == 200
        send(client, reading("later", 3))
        assert results_of(client, "plain") == 63


def test_a_query_is_removed_while_its_steps_are_replayed(in_a_step: Path, step: Step) -> None:
    server = Server(Serving(data=in_a_step, port=0))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    # There have been two steps: the second one is that which goes on.
    step.begun.wait()
    while not server.started:
        server.ready.wait(0.01)
    with httpx.Client(base_url=server.address, timeout=60) as client:
        assert {each["state"] for each in client.get("/queries").json()} == {"starting"}
        assert client.get("/queries/plain").json()["text"] == PLAIN
        assert client.get("/queries/none").status_code == 404 and client.delete("/queries/none").status_code == 404
        assert client.get("/livez").status_code == 200
        for path in ("/healthz", "/streams", "/queries/plain/plan"):
            assert client.get(path).status_code == 503 and not server.ready.is_set()
        assert client.delete("/queries/hostile").status_code == 204
        assert [each["name"] for each in client.get("/queries").json()] == ["plain"]
        assert server.ready.wait(120) and server.failure is None
        assert results_of(client, "plain") == 61
        assert client.get("/queries/hostile").status_code == 404
    server.should_exit = True
    thread.join(60)
    with served(in_a_step) as client:
        assert [each["name"] for each in client.get("/queries").json()] == ["plain"]


def test_a_query_that_was_removed_is_not_evaluated_in_a_replay(in_a_step: Path) -> None:
    """As where the process ended before the step did, which went on for others."""
    (in_a_step / "queries" / "hostile.json").unlink()
    with served(in_a_step) as client:
        assert results_of(client, "plain") == 61


def test_names_of_queries_to_leave_out_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--without: .*'none'"), served(tmp_path, without=("none",)):
        pass


def test_a_query_whose_stream_others_read_is_left_out_with_these(tmp_path: Path) -> None:
    feeds = (
        PREFIX + "REGISTER STREAM :made AS CONSTRUCT { ?s :u ?t } WHERE { STREAM :readings [RANGE 1h] { ?s :t ?t } }"
    )
    with served(tmp_path) as client:
        declare(client)
        register(client, "feeds", feeds)
        register(client, "fed", PREFIX + "SELECT * { STREAM :made [RANGE 1h] { ?s :u ?t } }")
        send(client, BODY)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"eave (these|it) out too"), served(tmp_path, without=("feeds",)):
            pass
    with served(tmp_path, without=("feeds", "fed")) as client:
        assert {each["state"] for each in client.get("/queries").json()} == {"failed"}
