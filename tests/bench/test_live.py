"""The suite of live engines: every part runs, and writes its figures."""

from __future__ import annotations

import json
from pathlib import Path

from bench.suites import live
from tests.support.amount import long


@long
def test_silence_is_told_and_a_day_with_kills_ends(tmp_path: Path) -> None:
    assert live.main(["--quick", "--output", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "live.json").read_text())["figures"]
    assert figures["pushing"]["told"] > 5
    assert figures["piping"]["told"] > 5
    assert figures["day"]["kills"] == 2
