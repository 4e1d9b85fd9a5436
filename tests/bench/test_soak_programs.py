"""A slice of the soak of programs: as by calls and by the oracle, while queries come and go and subscribers disturb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.suites import soak_programs


@pytest.mark.parametrize("seed", range(7))
def test_a_slice(seed: int, tmp_path: Path) -> None:
    arguments = ["--quick", "--seed", str(seed), "--rounds", "5", "--output", str(tmp_path)]
    assert soak_programs.main(arguments) == 0
    figures = json.loads((tmp_path / "soak_programs.json").read_text())["figures"]
    assert figures["differences"] == [] and figures["results"] > 500 and figures["asked_of_the_oracle"] > 1
    assert figures["records_left"] < 100
    assert min(figures[name] for name in ("pushed_within", "raised", "restarts")) > 0
