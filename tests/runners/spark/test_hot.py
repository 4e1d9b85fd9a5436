"""Hot states that one worker leaves for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.runners.spark import hot
from cqels_py.runners.spark.hot import HotCopy
from cqels_py.spark import loads, prepare
from tests.checkpoints.test_store import BATCHES, ELEMENTS, QUERY, tasks
from tests.oracle.naive import Static
from tests.runners.spark import simulation


def copy(folder: Path, part: int = 0) -> HotCopy[dict[str, Any]]:
    return HotCopy(folder, "mark", 0, part)


def test_a_copy_equals_the_state(tmp_path: Path) -> None:
    table = np.arange(12).reshape(3, 4)
    state = {
        "table": table,
        "flat": table.reshape(-1),
        "turned": np.asfortranarray(table),
        "none": np.empty(0),
        "text": "é",
    }
    copy(tmp_path).leave("1-a", state)
    found = copy(tmp_path).take("1-a")
    assert found is not None
    assert {name: np.array_equal(state[name], found[name]) for name in state} == dict.fromkeys(state, True)
    found["flat"][5] = 77
    assert found["table"][1, 1] == 77
    assert found["flat"].flags.aligned
    assert table[1, 1] == 5


def test_another_micro_batch_or_part_has_no_copy(tmp_path: Path) -> None:
    copy(tmp_path).leave("1-a", {})
    assert copy(tmp_path).take("1-b") is None
    assert copy(tmp_path).take(None) is None
    assert copy(tmp_path, part=1).take("1-a") is None
    copy(tmp_path).leave("2-a", {})
    assert copy(tmp_path).take("1-a") is None
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("cut", [0, 3, 8, 30, -1])
def test_an_incomplete_copy_is_ignored(tmp_path: Path, cut: int) -> None:
    copy(tmp_path).leave("1-a", {"numbers": np.arange(100)})
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:cut])
    assert copy(tmp_path).take("1-a") is None


@pytest.mark.parametrize("place", [1, 4, 11, 30, -5])
def test_a_damaged_copy_is_ignored(tmp_path: Path, place: int) -> None:
    copy(tmp_path).leave("1-a", {"numbers": np.arange(100)})
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[place] ^= 0x80
    file.write_bytes(data)
    assert copy(tmp_path).take("1-a") is None


def test_no_copy_is_left_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy(tmp_path / "missing").leave("1-a", {})
    copy(tmp_path).leave("1-a", {})
    monkeypatch.setattr(hot, "LARGEST", 100)
    copy(tmp_path).leave("2-a", {"numbers": np.arange(100)})
    assert list(tmp_path.iterdir()) == []


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
