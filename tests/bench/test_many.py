"""The benchmark of many queries: all of its kinds run, and their figures stand where they are read."""

from __future__ import annotations

import json
from pathlib import Path

from bench.suites import many


def test_quick(tmp_path: Path) -> None:
    assert many.main(["--quick", "--output", str(tmp_path)]) == 0
    cases = json.loads((tmp_path / "many.json").read_text())["figures"]["cases"]
    assert {(case["kind"], case["way"], case["queries"]) for case in cases} == {
        (kind, way, queries) for kind in many.KINDS for way in ("push", "push_batch") for queries in (1, 3)
    }
    assert all(case["cpu"] for case in cases)
    assert all(case["results_per_triple"] > 0 for case in cases if case["kind"] == "the same")
