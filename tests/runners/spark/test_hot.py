"""Hot states that one worker leaves for others."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.checkpoints.state_file import State
from cqels_py.runners.spark import hot, stage
from cqels_py.runners.spark.hot import HotCopy, HotFolders, folder_of_executor
from cqels_py.spark import loads, prepare
from cqels_py.state.named_values import NamedValues
from tests.checkpoints.test_store import BATCHES, ELEMENTS, QUERY, tasks
from tests.oracle.naive import Static
from tests.runners.spark import simulation

NUMBERS: State = {"query": {"numbers": np.arange(100)}}


def copy(folder: Path, part: int = 0, host: Path | None = None) -> HotCopy:
    return HotCopy(HotFolders(folder, host), "mark", 0, part)


def taken(one: HotCopy, name: str) -> dict[str, NamedValues] | None:
    """The copied state of that name."""
    found = one.latest()
    return found.state if found is not None and found.name == name else None


def test_a_copy_equals_the_state(tmp_path: Path) -> None:
    state: State = {"query": {"table": np.arange(12).reshape(3, 4), "none": np.empty(0), "text": "é"}, "empty": {}}
    copy(tmp_path).leave("1-a", state)
    found = taken(copy(tmp_path), "1-a")
    assert found is not None
    assert list(found) == list(state)
    assert {
        name: np.array_equal(state["query"][name], found["query"][name]) for name in state["query"]
    } == dict.fromkeys(state["query"], True)


def test_another_micro_batch_or_part_has_no_copy(tmp_path: Path) -> None:
    copy(tmp_path).leave("1-a", {})
    assert taken(copy(tmp_path), "1-b") is None
    assert taken(copy(tmp_path, part=1), "1-a") is None
    copy(tmp_path).leave("2-a", {})
    assert taken(copy(tmp_path), "1-a") is None
    assert len(list(tmp_path.iterdir())) == 1


def test_executors_that_run_in_folders_of_their_own_find_each_others_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster Spark's folder for files is the one where an executor runs."""
    one, two, host = (tmp_path / name for name in ("one", "two", "host"))
    for folder in (one, two, host):
        folder.mkdir()
    monkeypatch.delenv("SPARK_EXECUTOR_DIRS", raising=False)
    monkeypatch.chdir(one)
    copy(folder_of_executor(Path()), host=host).leave("1-a", NUMBERS)
    monkeypatch.chdir(two)
    assert taken(copy(folder_of_executor(Path()), host=host), "1-a") is not None


def test_copies_lie_where_spark_removes_what_an_application_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", os.pathsep.join(["/no/such/folder", str(tmp_path)]))
    assert folder_of_executor(tmp_path / "files") == tmp_path / "files"
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", os.pathsep.join([str(tmp_path), "/another"]))
    assert folder_of_executor(tmp_path / "files") == tmp_path


def test_executors_of_a_host_have_one_copy(tmp_path: Path) -> None:
    one, two, host = (tmp_path / name for name in ("one", "two", "host"))
    for folder in (one, two, host):
        folder.mkdir()
    copy(one, host=host).leave("1-a", NUMBERS)
    assert taken(copy(two, host=host), "1-a") is not None
    copy(two, host=host).leave("2-a", NUMBERS)
    assert taken(copy(one, host=host), "2-a") is not None
    assert list(one.iterdir()) == []
    shutil.rmtree(two)
    assert taken(copy(one, host=host), "2-a") is None
    copy(one, host=host).leave("3-a", NUMBERS)
    assert taken(copy(one, host=host), "3-a") is not None
    assert len(list(host.iterdir())) == 1


def test_the_folder_of_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is of this user alone, and has no links of executors that have ended."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = hot.folder_of_host.__wrapped__()
    assert folder is not None
    assert folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "own").mkdir()
    copy(tmp_path / "own", host=folder).leave("1-a", NUMBERS)
    (folder / "of one that has ended").symlink_to(tmp_path / "gone")
    assert hot.folder_of_host.__wrapped__() == folder
    assert [link.name for link in folder.iterdir()] == ["cqels-mark-0-0.hot"]
    folder.chmod(0o770)
    assert hot.folder_of_host.__wrapped__() is None


@pytest.mark.parametrize("cut", [0, 3, 8, 30, -1])
def test_an_incomplete_copy_is_ignored(tmp_path: Path, cut: int) -> None:
    copy(tmp_path).leave("1-a", NUMBERS)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:cut])
    assert taken(copy(tmp_path), "1-a") is None


@pytest.mark.parametrize("place", [1, 4, 30, 60, -5])
def test_a_damaged_copy_is_ignored(tmp_path: Path, place: int) -> None:
    copy(tmp_path).leave("1-a", NUMBERS)
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[place] ^= 0x80
    file.write_bytes(data)
    assert taken(copy(tmp_path), "1-a") is None


class Stranger:
    """Code that a pickle would run."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path(os.environ["CQELS_RAN"]),)


def test_a_copy_of_a_stranger_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CQELS_RAN", str(tmp_path / "ran"))
    copy(tmp_path).leave("1-a", NUMBERS)
    (file,) = tmp_path.iterdir()
    file.write_bytes(pickle.dumps(Stranger()))
    assert taken(copy(tmp_path), "1-a") is None
    assert not (tmp_path / "ran").exists()


def test_no_copy_is_left_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy(tmp_path / "missing").leave("1-a", {})
    copy(tmp_path).leave("1-a", {})
    monkeypatch.setattr(hot, "LARGEST", 100)
    copy(tmp_path).leave("2-a", NUMBERS)
    assert list(tmp_path.iterdir()) == []


def test_two_executors_of_a_host() -> None:
    """Each micro-batch of a part goes to either, whose workers have no states in memory; one of them ends in between."""
    with simulation.scratch() as folder:
        job, _ = prepare(QUERY, state=folder, partitions=1, changelog=True)
        own = [folder.parent / name for name in ("one", "two")]
        host = folder.parent / "host"
        host.mkdir()
        rows: list[dict[str, Any]] = []
        for batch in range(BATCHES):
            each = own[batch % 2]
            each.mkdir(exist_ok=True)
            cluster = simulation.Cluster(job, chance=0, near=HotFolders(each, host))
            rows += cluster.run(batch, tasks(batch), final=batch == BATCHES - 1)
            if batch == 2:
                shutil.rmtree(each)
        ((load,),) = loads(folder)
    assert load.rebuilt == 3
    assert simulation.counted(rows) == simulation.expected(QUERY, ELEMENTS, Static(), Output.CHANGELOG)


@pytest.mark.parametrize("snapshots", [0.0, 0.3])
@pytest.mark.parametrize("chance", [0, 0.5])
def test_two_hosts(snapshots: float, chance: float) -> None:
    """Each keeps its last copy of a part that moves to and fro, and reads only the inputs since: after their first turns nothing
    else is read back. `snapshots`: the chance of one after a micro-batch."""
    with simulation.scratch() as folder:
        job, _ = prepare(QUERY, state=folder, partitions=1, changelog=True)
        hosts = []
        for name in ("one", "two"):
            near = HotFolders(folder.parent / name, folder.parent / f"{name} host")
            near.own.mkdir()
            assert near.host is not None
            near.host.mkdir()
            hosts.append((simulation.Cluster(job, chance=chance, snapshots=snapshots, near=near), Memory()))
        rows: list[dict[str, Any]] = []
        for batch in range(BATCHES):
            cluster, memory = hosts[batch % 2]
            with memory:
                rows += cluster.run(batch, tasks(batch), final=batch == BATCHES - 1)
        ((load,),) = loads(folder)
    if chance == 0:
        assert load.rebuilt + load.caught_up == BATCHES
    if chance == snapshots == 0:
        # The first host has left no copy in the first micro-batch.
        assert load.caught_up == BATCHES - 3
    assert simulation.counted(rows) == simulation.expected(QUERY, ELEMENTS, Static(), Output.CHANGELOG)


class Memory:
    """The memory of the workers of a host, while it works."""

    def __init__(self) -> None:
        self._states: dict[Any, Any] = {}

    def __enter__(self) -> None:
        stage._HOT.clear()
        stage._HOT.update(self._states)

    def __exit__(self, *_: object) -> None:
        self._states = dict(stage._HOT)
        stage._HOT.clear()


def test_a_worker_without_the_state_takes_the_copy_of_another() -> None:
    """Each micro-batch goes to a worker without the state: from the second time on it is no longer restored from the
    store."""
    with simulation.scratch() as folder:
        job, _ = prepare(QUERY, state=folder, partitions=1, changelog=True)
        cluster = simulation.Cluster(job, chance=0, near=folder.parent)
        rows: list[dict[str, Any]] = []
        for batch in range(BATCHES):
            rows += cluster.run(batch, tasks(batch), final=batch == BATCHES - 1)
        ((load,),) = loads(folder)
    assert BATCHES > 3
    assert load.rebuilt == 2
    assert simulation.counted(rows) == simulation.expected(QUERY, ELEMENTS, Static(), Output.CHANGELOG)


def test_the_copy_of_a_repeated_micro_batch_is_not_taken() -> None:
    """It starts from the state before it, while the copy is the state after it."""
    with simulation.scratch() as folder:
        job, _ = prepare(QUERY, state=folder, partitions=1, changelog=True)
        cluster = simulation.Cluster(job, chance=0, near=folder.parent)
        rows: list[dict[str, Any]] = []
        for batch in range(BATCHES):
            final = batch == BATCHES - 1
            once = cluster.run(batch, tasks(batch), final=final)
            again = cluster.run(batch, tasks(batch), final=final)
            assert simulation.counted(once) == simulation.counted(again)
            rows += again
        assert len(list(folder.parent.glob("*.hot"))) == 1
    assert simulation.counted(rows) == simulation.expected(QUERY, ELEMENTS, Static(), Output.CHANGELOG)
