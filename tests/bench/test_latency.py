"""The latency benchmark runs, and writes the figures that it prints."""

from __future__ import annotations

import json
from pathlib import Path

from bench.suites import latency


def test_it_measures_every_query_by_both_ways_in(tmp_path: Path) -> None:
    assert latency.main(["--quick", "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "latency.json").read_text())
    assert found["quick"] and found["machine"] and found["versions"]
    assert {(case["way"], case["subscriber"]) for case in found["figures"]["cases"]} == {
        ("push", "ids"),
        ("push", "decoded"),
        ("push, by calls", "ids"),
        ("push_batch", "ids"),
    }
    for case in found["figures"]["cases"]:
        assert 0 < case["p50"][0] <= case["p99"][0] <= case["p999"][0]
