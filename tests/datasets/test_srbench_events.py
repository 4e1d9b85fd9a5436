"""The join of events in docs/memory.md over SRBench's observations, generated ones and a part of the official dumps, by hand."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import cqels_py as cqels
from cqels_py.datasets import srbench
from tests.datasets.test_srbench import SHARED

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"


def text() -> str:
    (found,) = (
        block.partition("```")[0]
        for block in PAGE.read_text(encoding="utf-8").split("```sparql\n")[1:]
        if "SRBench" in block.partition("```")[0]
    )
    return found


def answer(observations: Any, static: bytes | Path) -> list[str]:
    engine = cqels.Engine()
    found: list[cqels.Result] = []
    query = engine.register(text(), static=[static])
    query.subscribe(found.append)
    engine.push_batch(srbench.OBSERVATIONS, observations)
    engine.finish()
    return sorted(str(each.bindings["station"]) for each in found)


def by_hand(observations: Any) -> set[str]:
    seen: dict[str, dict[str, Any]] = {}
    columns = (observations[name].to_pylist() for name in ("time", "subject", "predicate", "object"))
    for time, subject, predicate, term in zip(*columns, strict=True):
        seen.setdefault(subject, {"time": time})[predicate[1:-1].rsplit("#", 1)[-1]] = term
    windy: dict[str, int] = {}
    expected = set()
    for each in sorted(seen.values(), key=lambda observation: int(observation["time"])):
        kind, result = each.get("observedProperty", ""), seen.get(each.get("result", ""), {})
        if "floatValue" not in result:
            continue
        value, station = float(result["floatValue"].split('"')[1]), each["procedure"]
        if kind.endswith("#_WindSpeed>") and value > 10:
            windy.setdefault(station, each["time"])
        if kind.endswith("#_RelativeHumidity>") and value > 90 and windy.get(station, each["time"]) < each["time"]:
            expected.add(station[1:-1])
    return expected


def test_generated_observations() -> None:
    assert cqels.analyse(text()).memory.kind == "bounded"
    observations = srbench.streams(20_000, stations=12, minutes=60, pace=4.0)[srbench.OBSERVATIONS].read_all()
    found = answer(observations, srbench.static(stations=12))
    assert found == sorted(by_hand(observations))
    assert found


@pytest.mark.skipif(not SHARED.is_dir(), reason="no part of the official dumps is here (CQELS_SHARED_DATA)")
def test_official_observations(tmp_path: Path) -> None:
    (dump,) = SHARED.glob("charley*.nt.gz")
    shutil.copy(dump, tmp_path / "part.nt.gz")
    observations = srbench.official(tmp_path)[srbench.OBSERVATIONS].read_all()
    found = answer(observations, SHARED / "lsd_stations.nt.gz")
    assert found == sorted(by_hand(observations))
    assert len(found) == 5
