"""An operator removes the last micro-batches from Spark's checkpoint: the state goes back by as many, or says how far it can."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cqels_py.checkpoints import store
from cqels_py.checkpoints.store import SetBack
from cqels_py.errors import UsageError
from cqels_py.spark import continuous, prepare
from tests.runners.spark import simulation
from tests.runners.spark.simulation import Cluster, counted
from tests.runners.spark.test_metrics import TWO_STAGES
from tests.runners.spark.test_streaming import ELEMENTS, STREAMS, Setting, local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = 12
RETAINED = 4


def run(state: Path, first: int, last: int, kept: dict[int, list[dict[str, Any]]]) -> None:
    """Micro-batches as another run of the driver, whose sink replaces the rows of one that is repeated."""
    job, _ = prepare(TWO_STAGES, state=state, partitions=2, changelog=True)
    cluster = Cluster(replace(job, retained=RETAINED), chance=0.3, seed=first)
    size = len(ELEMENTS) // BATCHES
    for batch in range(first, last):
        piece = ELEMENTS[batch * size : (batch + 1) * size]
        kept[batch] = cluster.run(
            batch, [simulation.rows_of(piece, STREAMS, [f"{batch}x{n}" for n in range(len(piece))])]
        )


@pytest.mark.parametrize("back", range(RETAINED + 1))
def test_the_state_goes_back(back: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a snapshot in every other micro-batch or so; then it goes on, and back once more."""
    monkeypatch.setattr(store, "_outweighs", lambda inputs, snapshot: inputs > 4_000)
    kept: dict[int, list[dict[str, Any]]] = {}
    with simulation.scratch() as state:
        run(state, 0, 9, kept)
        run(state, 9 - back, BATCHES, kept)
        run(state, BATCHES - back, BATCHES, kept)
        assert len(kept) == BATCHES
        assert counted([row for rows in kept.values() for row in rows]) == local(TWO_STAGES, ELEMENTS)
        with pytest.raises(SetBack) as caught:
            run(state, 1, 2, kept)
        assert "Spark goes on with micro-batch 1, and the state in " in str(caught.value)
        told = str(caught.value).partition("can go on with ")[2].partition(":")[0]
        first, last = map(int, told.split(" to "))
        assert (first <= BATCHES - RETAINED, last) == (True, BATCHES)
        # It is true.
        run(state, first, BATCHES, kept)
        assert counted([row for rows in kept.values() for row in rows]) == local(TWO_STAGES, ELEMENTS)


def test_nothing_else_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_outweighs", lambda inputs, snapshot: True)
    with simulation.scratch() as state:
        run(state, 0, BATCHES, {})
        kept = sorted({int(path.name.partition("-")[0]) for path in state.rglob("*.snapshot")})
        assert kept == [*range(BATCHES - 1 - RETAINED, BATCHES)]
        assert all(later - one == 1 for one, later in pairwise(kept))


@pytest.mark.xdist_group("spark")
def test_a_streaming_query_goes_back(spark: SparkSession, tmp_path: Path) -> None:
    setting = Setting(spark, tmp_path)
    frames = setting.frames()
    with pytest.raises(UsageError, match="retain is 1 or more"):
        continuous(frames, TWO_STAGES, state=setting.state, retain=0)
    setting.arrive(ELEMENTS)
    setting.run(continuous(frames, TWO_STAGES, state=setting.state, changelog=True, retain=3))
    for path in (tmp_path / "out").iterdir():
        if int(path.stem) > 3:
            path.unlink()
    for log in ("offsets", "commits"):
        for number in (4, 5):
            for name in (f"{number}", f".{number}.crc"):
                (tmp_path / "checkpoint" / log / name).unlink(missing_ok=True)
    setting.run(continuous(frames, TWO_STAGES, state=setting.state, changelog=True))
    # Spark takes the files of both at once.
    assert setting.batches() == 5
    assert setting.results() == local(TWO_STAGES, ELEMENTS)
