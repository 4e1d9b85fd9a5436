"""An hour of a server's stream time with restarts: the day is bench.suites.service_day."""

from __future__ import annotations

import json
from pathlib import Path

from bench.suites import service_day
from bench.suites.faults import Reader
from tests.support.amount import long


@long
def test_an_hour(tmp_path: Path) -> None:
    assert service_day.main(["--quick", "--output", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "service_day.json").read_text())["figures"]
    assert figures["wrong"] == [] and figures["restarts"] == 2
    assert set(figures["results"]) == set(service_day.QUERIES) and all(figures["results"].values())


def test_other_results_are_told() -> None:
    reader = Reader("q")
    reader.take('{"number":1,"sign":"+"}')
    assert service_day.differences(reader, ['{"sign":"+"}']) == []
    assert service_day.differences(reader, ['{"sign":"-"}']) == [
        "q: result 1 is {'sign': '+'}, not {'sign': '-'}",
    ]
    assert service_day.differences(reader, []) == ["q: 1 results instead of 0"]
