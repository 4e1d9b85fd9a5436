"""A few kills of a server under load: the long run is bench.suites.service_kills."""

from __future__ import annotations

import json
from pathlib import Path

from bench.suites import service_kills
from tests.support.amount import long


@long
def test_a_few_kills(tmp_path: Path) -> None:
    assert service_kills.main(["--quick", "--output", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "service_kills.json").read_text())["figures"]
    assert figures["kills"] == 2 and figures["elements"] > 0 and figures["wrong"] == []


def test_a_reader_notices_gaps_doubles_and_changes() -> None:
    reader = service_kills.Reader("q")
    for line in ('{"number":1}', '{"number":3}', '{"number":3}', '{"number":1,"x":2}'):
        reader.take(line)
    assert len(reader.wrong) == 3
