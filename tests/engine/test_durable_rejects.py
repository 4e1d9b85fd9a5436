"""Engine(checkpoint=, rejects=): wherever a process ends, the file of rejects is that of an engine that never ended."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

import cqels_py as cqels
from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.engine import backlog
from cqels_py.engine.durable import logged
from cqels_py.engine.url_sinks import opened_sink
from cqels_py.errors import RunError, UsageError
from tests.engine.test_backlog import EX, TEXT, Away
from tests.support.faults import Crash, Faults, crash

LONG = f'"{"z" * 4_000}"'


@pytest.fixture(autouse=True)
def many_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged, "LEAST", 2_500)
    monkeypatch.setattr(logged, "APART", 0.0)
    monkeypatch.setattr("cqels_py.connections.retry.MOST", 0.01)
    monkeypatch.setattr(backlog, "FIRST", 0.001)


class Refusing(Away):
    """Refuses results with every fourth number, each time that it gets them, before it holds those beside them."""

    def __init__(self, *, can_retry: bool) -> None:
        super().__init__()
        self.can_retry = can_retry
        self.refusals = 0

    def flush(self) -> None:
        for number, row in list(self._collected.items()):
            if number % 4 == 0:
                self.refusals += 1
                assert self._opening.report is not None
                self._opening.report(cqels.errors.RefusedResult("an odd one").about(number, row))
                del self._collected[number]
        super().flush()


def elements(count: int) -> list[int]:
    """Times, some of which are late."""
    random = Random(5)
    return [max(1, number - random.choice([0, 0, 0, 4])) * 10 for number in range(1, count + 1)]


def push(engine: cqels.Engine, value: int, time: int) -> None:
    """An element whose text in the log is longer than it is in the state."""
    triples = [(f"<{EX}x>", f"<{EX}p>", f'"{value}"'), (f"<{EX}x>", f"<{EX}q>", LONG)]
    engine.push(f"{EX}a", triples, time=time)


def program(folder: Path, rejects: Path, to: Away | None = None, *, count: int = 40) -> list[int]:
    """Push the elements that an engine does not have. With a number of subscriber errors."""
    engine = cqels.Engine(checkpoint=folder, rejects=rejects, lateness=20, on_error="skip", report=lambda _: None)
    try:
        query = engine.register(TEXT, name="q")
        if to is not None:
            limit = query.backlog(1 << 20)
            query.write_to(opened_sink(to, query.plan, engine.dictionary, query.refused, query.continued, limit))
        for number, time in enumerate(elements(count)):
            if number >= engine.statistics.elements:
                push(engine, number, time)
        engine.checkpoint()
        return [engine.statistics.late, engine.statistics.subscriber_errors]
    except BaseException:
        with contextlib.suppress(BaseException):
            engine._inputs._saving.wait()  # type: ignore[attr-defined]
        raise
    finally:
        engine._reports.close()
        engine._inputs._resources.close()  # type: ignore[attr-defined]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def cut_off(faults: Faults, at: int, run: Callable[[], list[int]]) -> list[int]:
    """Run it, cut off at an operation, and again, cut off once more."""
    for place in (at, 11):
        faults.count, faults.at = 0, place
        try:
            return run()
        except Crash:
            gc.collect()
    faults.at = -1
    return run()


def test_late_elements_wherever_the_process_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = Faults(monkeypatch, crash)
    told = program(tmp_path / "whole", tmp_path / "whole.rejects")
    operations, whole = faults.count, (tmp_path / "whole.rejects").read_bytes()
    assert told[0] == whole.count(b"\n") > 5
    assert max(int(path.stem) for path in (tmp_path / "whole").glob("*.snapshot")) > 1
    for at in range(2, operations, operations // 6):
        name = tmp_path / f"{at}.rejects"
        assert cut_off(faults, at, lambda at=at, name=name: program(tmp_path / str(at), name)) == told  # type: ignore[misc]
        # The path is one of the options.
        assert name.read_bytes() == whole, at


@pytest.mark.parametrize("can_retry", [True, False], ids=["backlog", "waited for"])
def test_refused_results_wherever_the_process_ends(
    can_retry: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is told once, though the other side refuses it each time that it comes."""
    faults = Faults(monkeypatch, crash)
    whole, again = Refusing(can_retry=can_retry), 0
    told = program(tmp_path / "whole", tmp_path / "whole.rejects", whole)
    operations, wanted = faults.count, lines(tmp_path / "whole.rejects")
    refused = [line for line in wanted if line["reason"] == "refused"]
    assert told[1] == len(refused) == whole.refusals > 5
    assert [line["number"] for line in refused] == [*range(4, 4 * len(refused) + 1, 4)]
    for at in range(2, operations, operations // 6):
        to, name = Refusing(can_retry=can_retry), tmp_path / f"{at}.rejects"
        counted = cut_off(faults, at, lambda at=at, to=to, name=name: program(tmp_path / str(at), name, to))  # type: ignore[misc]
        assert counted == told
        assert to.held == whole.held
        found = lines(name)
        # A thread writes those that are refused.
        assert sorted(found, key=str) == sorted(wanted, key=str)
        assert [line for line in found if line["reason"] == "refused"] == refused
        again += to.refusals - len(refused)
    assert again > 0 or can_retry


def test_a_refused_result_that_cannot_be_logged_is_kept_when_it_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    engine = cqels.Engine(checkpoint=tmp_path / "state", rejects=tmp_path / "rejects", report=lambda _: None)
    query = engine.register(TEXT, name="q")
    refused = cqels.errors.RefusedResult("an odd one").about(1, "a row")
    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "append", full)
        with pytest.raises(StorageError, match="No space left on device"):
            query.refused(refused)
    for _ in range(2):
        query.refused(refused)
    assert [line["number"] for line in lines(tmp_path / "rejects")] == [1]
    assert engine.statistics.subscriber_errors == 1
    engine.close()


def test_another_file_of_rejects_is_refused(tmp_path: Path) -> None:
    program(tmp_path / "state", tmp_path / "rejects", count=3)
    for other in (tmp_path / "other", None):
        with pytest.raises(UsageError, match=r"differs in: .*rejects"):
            cqels.Engine(checkpoint=tmp_path / "state", rejects=other)


def test_a_snapshot_waits_until_results_are_safe(tmp_path: Path) -> None:
    """Files of Parquet have results when they are complete, at a commit: one comes before each snapshot."""
    engine = cqels.Engine(checkpoint=tmp_path / "state")
    query = engine.register(TEXT, name="q")
    query.write_to(f"parquet:{tmp_path}/out")
    for time in range(100):
        push(engine, time, time)
    assert max(int(path.stem) for path in (tmp_path / "state").glob("*.snapshot")) > 1
    # The process ends here, and completes no file.
    engine._inputs._saving.wait()  # type: ignore[attr-defined]
    engine._inputs._resources.close()  # type: ignore[attr-defined]
    following = cqels.Engine(checkpoint=tmp_path / "state")
    query = following.register(TEXT, name="q")
    query.write_to(f"parquet:{tmp_path}/out")
    following.close()
    written = [row["o"] for path in sorted(tmp_path.glob("out-*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert written == [str(time) for time in range(100)]


def test_a_snapshot_is_not_written_before_a_failing_commit(tmp_path: Path) -> None:
    """A disk that is full, say: the call fails, and nothing is lost."""
    engine, to = cqels.Engine(checkpoint=tmp_path / "state"), Away()
    to.can_retry = False
    query = engine.register(TEXT, name="q")
    query.write_to(opened_sink(to, query.plan, engine.dictionary, query.refused, query.continued))
    monkey = pytest.MonkeyPatch()
    monkey.setattr(to, "commit", lambda: (_ for _ in ()).throw(RunError("no room")))
    with pytest.raises(RunError, match="no room"):
        for time in range(100):
            push(engine, time, time)
    assert [path.name for path in (tmp_path / "state").glob("*.snapshot")] == ["000000000000.snapshot"]
    monkey.undo()
    taken = engine.statistics.elements
    push(engine, 100, 200)
    engine.close()
    assert [*to.held] == [*range(1, taken + 2)]
