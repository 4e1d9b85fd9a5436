"""The soak benchmark: blocks of observations are right, growing memory is detected, and terms are released."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.suites import soak
from bench.suites.observations import table
from bench.suites.soak import PROPERTIES, Sample


def test_a_block_has_every_observation_with_its_triples() -> None:
    rows = table(99_999, 2, PROPERTIES).to_pylist()
    assert [row["time"] for row in rows] == [100_000_000] * 3 + [100_001_000] * 3
    assert rows[0]["subject"] == "<http://ex.org/observation/0000099999>"
    assert rows[5]["subject"] == "<http://ex.org/observation/0000100000>"
    assert [row["predicate"] for row in rows[3:]] == [
        f"<http://ex.org/{name}>" for name in ("sensor", "result", "note")
    ]
    # The generation of sensors that begins with observation 100,000.
    assert rows[3]["object"].startswith("<http://ex.org/sensor/00000002")
    assert rows[4]["object"].endswith('"^^<http://www.w3.org/2001/XMLSchema#integer>')
    assert rows[5]["object"] == '"note 0000100000"'


def test_blocks_do_not_depend_on_where_they_are_cut() -> None:
    whole = table(0, 50, PROPERTIES)
    parts = [table(first, 10, PROPERTIES) for first in range(0, 50, 10)]
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()


def test_growth_is_from_the_second_quarter_to_the_last() -> None:
    resident = np.array([1, 5, 10, 10, 20, 20, 15, 15])
    samples = [Sample(i, float(i), float(mb), 0, 0.0, 0.0) for i, mb in enumerate(resident)]
    assert soak.growth(samples) == 0.5


def test_the_suite_runs_and_terms_are_released(tmp_path: Path) -> None:
    assert soak.main(["--quick", "--output", str(tmp_path)]) == 0
    written = json.loads((tmp_path / "soak.json").read_text())
    samples = written["figures"]["samples"]
    assert written["figures"]["triples"] == samples[-1]["triples"] == soak.QUICK
    # Two of three triples bring a new term.
    assert samples[-1]["terms"] < soak.QUICK / 2
    assert samples[-1]["query_mb"] < 10


def test_a_run_that_is_too_short_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        soak.main(["--triples", "1000"])
    assert stopped.value.code == 2
    assert "say nothing" in capsys.readouterr().err
