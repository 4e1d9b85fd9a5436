"""The figures of the service: everything runs, with tiny sizes."""

from __future__ import annotations

import json
from pathlib import Path

from bench.suites import service


def test_tiny_sizes(tmp_path: Path) -> None:
    assert service.main(["--quick", "--seconds", "0.3", "--output", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "service.json").read_text())["figures"]
    assert figures["ingest"]["triples_per_second"] > 0
    assert figures["latency"]["lost"] == figures["subscribers"]["lost"] == 0
    beside = figures["registering"]
    assert beside["alone"]["lost"] == beside["beside"]["lost"] == 0
    assert set(figures["queries"]) >= {"elements_per_second_ten", "elements_per_second_many"}
