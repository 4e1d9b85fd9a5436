"""The suite that counts memory, and its bar at a size that is quick."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.suites import memory
from cqels_py.kernels.windows import varint_queue as varints
from cqels_py.state.leaf_buffer import LeafBuffer
from tests.support.amount import long


def _words(buffer: LeafBuffer) -> int:
    return buffer._table._words.nbytes


def test_an_array_counts_once_and_whole() -> None:
    buffer = LeafBuffer(2, capacity=16)
    view = buffer.live_ids()
    held = buffer.nbytes + 8 * varints.FIELDS + buffer.counters.nbytes + _words(buffer)
    found = memory.arrays_of([buffer, view, {"again": buffer}])
    assert sum(found.values()) == held
    assert found["ArrayTable._words"] == _words(buffer)
    assert found["LeafBuffer.columns"] == buffer.columns.nbytes
    assert sum(memory.arrays_of((buffer, np.zeros(3))).values()) == held + 24


@pytest.mark.parametrize(
    ("window", "keys"),
    [
        (30_000, 300),
        pytest.param(250_000, 50_000, marks=long),
        (280_000, 280_000),
        pytest.param(360_000, 360_000, marks=long),
    ],
)
@pytest.mark.parametrize("timed", [False, True])
def test_a_leaf_with_one_ring_index_is_within_the_bar(timed: bool, window: int, keys: int) -> None:
    """One mapping a key as with the windows of 1,000,000, and many; at whatever size the arrays have grown last. Of windows with few
    places rings do not move, which are within the bar with many mappings a key only."""
    kept = memory.measure(memory.star(2, window, keys, timed=timed))
    assert kept.bar is not None
    assert kept.a_leaf < kept.bar
    assert kept.total == pytest.approx(kept.reported, rel=0.1)
    assert kept.results == pytest.approx(window * window // keys, rel=0.1)


def test_the_suite_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert memory.main(["--quick", "--output", str(tmp_path)]) == 0
    assert "8-way join" in capsys.readouterr().out
    written = json.loads((tmp_path / "memory.json").read_text())
    assert written["quick"] is True
    assert written["machine"]["cores"] >= 1
    assert all(case["bytes_a_leaf"] > 16 for case in written["figures"]["cases"])
