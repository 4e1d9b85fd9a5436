"""The soak of a durable engine: a few kills, and the figures that it writes."""

from __future__ import annotations

import json
from pathlib import Path

from bench.suites import durable
from tests.support.amount import long


@long
def test_a_few_kills(tmp_path: Path) -> None:
    assert durable.main(["--quick", "--output", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "durable.json").read_text())["figures"]
    assert figures["soak"]["kills"] == 3
    assert figures["soak"]["differing"] == []
    assert figures["soak"]["results"] > 1000
    assert set(figures["triples_per_second"]) == {"none", "off", "sync"}


def test_elements_are_the_same_in_every_process() -> None:
    assert durable.element(7) == durable.element(7)
    assert len({str(durable.element(number)) for number in range(50)}) == 50
