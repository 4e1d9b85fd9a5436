"""Sinks by URL that cannot be opened: queries go on as before, and nothing stays open."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cqels_py.batches.results import ResultBatch
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.errors import CqelsError, RunError, UsageError
from cqels_py.service import query_sinks
from cqels_py.service.allowed import Allowed
from cqels_py.service.definitions import QueryDefinition, StreamDefinition
from cqels_py.service.folder import Folder
from cqels_py.service.limits import Limits
from cqels_py.service.service import Pushed, Service
from cqels_py.sinks.protocol import SinkOpening
from tests.service.support import EX, HOT, READINGS, reading
from tests.support.servers import wait_until

A, B = f"{EX}a", f"{EX}b"
OTHER = HOT.replace("?s ?t {", "?s {")


@dataclass
class Place:
    """A place for results, with one writer at a time. `away`: nobody can open it."""

    away: bool = False
    changelog: bool = False
    needs: str = "s"
    numbers: list[int] = field(default_factory=list)
    writers: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def open(self, opening: SinkOpening) -> Place:
        if self.needs not in opening.variables:
            raise UsageError(f"no variable {self.needs}")
        if self.away or self.writers:
            raise RunError("nobody is there")
        self.writers += 1
        return self

    def write(self, batch: ResultBatch) -> None:
        assert self.writers == 1
        with self.changed:
            self.numbers += range(batch.number, batch.number + len(batch))
            self.changed.notify_all()

    def flush(self) -> None: ...

    def commit(self) -> None: ...

    def close(self) -> None:
        self.writers -= 1


class RetriedPlace(Place):
    can_retry = True


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> dict[str, Place]:
    """By URL without options."""
    found = {A: Place(), B: Place()}
    monkeypatch.setattr(query_sinks, "sink_of", lambda url: found[url.partition("?")[0]])
    return found


def _service(folder: Path, paths: tuple[Path, ...] = (), **more: Any) -> Service:
    service = Service(folder, allowed=Allowed(paths, urls=(EX,)), **more)
    service.put_stream("readings", StreamDefinition.of({"iri": READINGS}))
    return service


def _push(service: Service, *sensors: str) -> None:
    body = b"".join(reading(each, 50) for each in sensors)
    (taken,) = service.push([Pushed.of(service.stream("readings"), body, "nt", None)])
    assert not isinstance(taken, CqelsError)


@pytest.mark.parametrize(
    ("text", "sinks", "at_b"),
    [
        (HOT, (B,), Place(away=True)),
        (HOT, (A, B), Place(away=True)),
        (HOT, (B,), Place(changelog=True)),
        (OTHER, (A,), Place()),
        (OTHER, (f"{A}?option=1",), Place()),
        (OTHER, (B, A), Place()),
    ],
)
def test_a_query_goes_on_with_its_sinks_if_those_of_its_next_text_fail(
    text: str, sinks: tuple[str, ...], at_b: Place, tmp_path: Path, places: dict[str, Place]
) -> None:
    places[A].needs, places[B] = "t", at_b
    service = _service(tmp_path)
    _, served = service.put_query("hot", QueryDefinition(HOT, sinks=(A,)))
    _push(service, "a")
    present = served.query
    with pytest.raises((RunError, UsageError)):
        service.put_query("hot", QueryDefinition(text, sinks=sinks))
    assert service.engine.queries == (present,) and served.query is present
    assert (served.kept.generation, served.kept.definition.sinks) == (1, (A,))
    assert service.lacking() == []
    _push(service, "b")
    assert places[A].numbers == [1, 2] and served.store.last == 2
    assert [places[A].writers, places[B].writers] == [1, 0]
    # It can still be replaced.
    service.put_query("hot", QueryDefinition(HOT.replace("30", "31"), sinks=(A,)))
    _push(service, "c")
    assert places[A].numbers == [1, 2, 1] and served.store.last == 3
    service.close()
    assert [places[A].writers, places[B].writers] == [0, 0]


def test_a_table_goes_on_after_its_last_row_if_the_next_text_cannot_write_to_it(tmp_path: Path) -> None:
    table = f"sqlite:{tmp_path}/results.db#hot"
    service = _service(tmp_path / "data", paths=(tmp_path,))
    service.put_query("hot", QueryDefinition(HOT, sinks=(table,)))
    for sensors in (["a"], ["b", "c"]):
        _push(service, *sensors)
        with pytest.raises(UsageError, match="retractions"):
            service.put_query("hot", QueryDefinition(HOT, sinks=(f"{table}?mode=upsert", f"{table}?mode=upsert")))
    service.close()
    service = _service(tmp_path / "data", paths=(tmp_path,))
    with pytest.raises(UsageError, match="retractions"):
        service.put_query("hot", QueryDefinition(HOT, sinks=(f"{table}?mode=upsert",)))
    _push(service, "d")
    assert service.lacking() == []
    service.close()
    with sqlite3.connect(tmp_path / "results.db") as database:
        assert database.execute("SELECT s FROM hot ORDER BY 1").fetchall() == [(f"{EX}{each}",) for each in "abcd"]


def test_a_sink_that_cannot_be_opened_again_is_told(tmp_path: Path, places: dict[str, Place]) -> None:
    service = _service(tmp_path)
    _, served = service.put_query("hot", QueryDefinition(HOT, sinks=(A,)))
    places[A].away = True
    with pytest.raises(RunError, match="nobody"):
        service.put_query("hot", QueryDefinition(OTHER, sinks=(A,)))
    assert served.state == "running" and "nobody is there" in service.query_figures(served)["failure"]
    _push(service, "a")
    assert served.store.last == 1
    service.close()


def _full(*_: object) -> None:
    raise StorageError("No space left on device")


@pytest.mark.parametrize("fails", ["the second sink", "the folder"])
def test_a_query_that_is_not_registered_after_all_leaves_nothing_open(
    fails: str, tmp_path: Path, places: dict[str, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = _service(tmp_path)
    places[B].away = fails == "the second sink"
    with monkeypatch.context() as patch:
        if fails == "the folder":
            patch.setattr(Folder, "write", _full)
        with pytest.raises((RunError, StorageError)):
            service.put_query("hot", QueryDefinition(HOT, sinks=(A, B)))
    assert [places[A].writers, places[B].writers] == [0, 0]
    assert not service.engine.queries and not service.queries
    service.close()


def test_after_a_restart_a_query_whose_sink_is_away_says_so_and_keeps_its_results(
    tmp_path: Path, places: dict[str, Place]
) -> None:
    service = _service(tmp_path)
    service.put_query("hot", QueryDefinition(HOT, sinks=(A, B)))
    _push(service, "a")
    service.close()
    places[A].away = True
    service = _service(tmp_path)
    served = service.queries["hot"]
    _push(service, "b")
    figures = service.query_figures(served)
    assert figures["state"] == "running" and "nobody is there" in figures["failure"]
    assert len(service.lacking()) == 1 and "nobody is there" in service.lacking()[0]
    assert served.query is not None and served.query.waiting == 0
    assert served.store.last == 2 and places[B].numbers[-1] == 2
    service.close()


def test_after_a_restart_results_wait_for_a_sink_that_can_be_tried_again(
    tmp_path: Path, places: dict[str, Place]
) -> None:
    places[A] = RetriedPlace()
    service = _service(tmp_path)
    service.put_query("hot", QueryDefinition(HOT, sinks=(A,)))
    _push(service, "a")
    service.close()
    assert places[A].numbers == [1] and not places[A].writers
    places[A].away = True
    service = _service(tmp_path)
    served = service.queries["hot"]
    _push(service, "b", "c")
    _wait_for_failure(service, "nobody is there")
    assert len(service.lacking()) == 1 and served.state == "running" and served.store.last == 3
    places[A].away = False
    with places[A].changed:
        assert places[A].changed.wait_for(lambda: places[A].numbers[-1] == 3, 60)
    assert sorted(set(places[A].numbers)) == [1, 2, 3]
    assert service.lacking() == [] and "failure" not in service.query_figures(served)
    service.close()
    assert not places[A].writers
    # What its results are not fit for is no reason to wait.
    places[A].needs = "other"
    service = _service(tmp_path)
    _wait_for_failure(service, "no variable other")
    service.close()


def _wait_for_failure(service: Service, text: str) -> None:
    """Of the query's sink, which is opened by a thread."""
    running = service.queries["hot"]
    wait_until(lambda: text in service.query_figures(running).get("failure", ""), f"the failure {text}")


def test_a_query_that_the_engine_has_stopped_can_be_replaced(tmp_path: Path, places: dict[str, Place]) -> None:
    service = _service(tmp_path, limits=Limits(state=1))
    _, served = service.put_query("hot", QueryDefinition(HOT, sinks=(A,)))
    with pytest.raises(RunError):
        _push(service, "a")
    assert served.query not in service.engine.queries
    service.put_query("hot", QueryDefinition(OTHER, sinks=(A,)))
    assert service.engine.queries == (served.query,) and places[A].writers == 1
    service.close()
