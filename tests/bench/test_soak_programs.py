"""A slice of the soak of programs: as by calls, while queries come and go and subscribers disturb, and with as many records."""

from __future__ import annotations

import json
from pathlib import Path

from bench.suites import soak_programs


def test_a_slice(tmp_path: Path) -> None:
    assert soak_programs.main(["--quick", "--elements", "2000", "--compared", "600", "--output", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "soak_programs.json").read_text())["figures"]
    assert figures["equal"] and figures["results"] > 4_000
    assert min(figures[name] for name in ("unregistered", "unregistered_within", "pushed_within", "raised")) > 0
    samples = figures["samples"]
    # Terms of a second are within reach; they are released when there are some thousands.
    assert max(sample["terms"] for sample in samples) < 10_000
    assert figures["growth_of_records"] < 0.5
