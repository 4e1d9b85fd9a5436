"""A few kills of a server under load: the long run is bench.suites.faults."""

from __future__ import annotations

import json
from pathlib import Path

from bench.suites import faults
from tests.support.amount import long


@long
def test_a_few_kills_and_a_failing_disk(tmp_path: Path) -> None:
    assert faults.main(["--quick", "--output", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "faults.json").read_text())["figures"]
    assert (figures["kills"], figures["failing_disks"]) == (2, 1) and figures["elements"] > 0 and figures["wrong"] == []


def test_a_reader_notices_gaps_doubles_and_changes() -> None:
    reader = faults.Reader("q")
    for line in ('{"number":1}', '{"number":3}', '{"number":3}', '{"number":1,"x":2}'):
        reader.take(line)
    assert len(reader.wrong) == 3
