"""A benchmark's report: medians, ratios and the table, from rates that are known."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from bench import compare
from bench.contest import BY_HAND, ENGINE, IN_CPP, PYTHON, SAME_WORK
from bench.operators.bench_negation import CONTEST
from bench.plots import draw
from bench.report import Rate, Report, table
from cqels_py.suites.machine import machine, versions

RATES = [
    Rate("window 10", ENGINE, [2e6, 1e6, 4e6], 1.5),
    Rate("window 10", BY_HAND, [8e6, 8e6, 9e6], 1.5),
    Rate("window 10", IN_CPP, [4e6, 4e6, 5e6], 1.5),
    Rate("window 10", SAME_WORK, [8e6, 8e6, 8e6], 1.5),
    Rate("window 20", ENGINE, [500.0, 400.0, 300.0], 12.0),
]


@pytest.fixture
def report() -> Report:
    return Report("rings", "How fast?", "2026-01-02T03:04:05+00:00", False, machine(), versions(), RATES)


def test_ratios_are_of_medians(report: Report) -> None:
    assert report.ratio("window 10", ENGINE) == 0.25
    assert report.ratio("window 10", ENGINE, to=IN_CPP) == 0.5
    assert report.ratio("window 20", ENGINE) is None


def test_the_table_has_medians_and_spread(report: Report) -> None:
    console = Console(width=100)
    with console.capture() as captured:
        console.print(table([report]))
    text = captured.get()
    assert "rings, window 10" in text
    row = next(line for line in text.splitlines() if "engine" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")][1:] == [
        "2.00 M",
        "1.00 M … 4.00 M",
        "0.25",
        "0.5",
        "0.25",
        "1.5",
    ]


def test_json_has_machine_and_figures(report: Report, tmp_path: Path) -> None:
    written = json.loads(report.write(tmp_path).read_text())
    assert written["summary"]["window 10"]["engine_to_by_hand"] == 0.25
    assert written["summary"]["window 20"]["arrivals_per_second"][ENGINE] == {
        "median": 400.0,
        "slowest": 300.0,
        "fastest": 500.0,
    }
    assert written["machine"]["cores"] >= 1
    assert {"python", "numba", "numpy", "cqels_py"} <= set(written["versions"])


def test_a_plot_is_drawn(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawing = draw(Report.read(report.write(tmp_path)), tmp_path).read_text()
    # matplotlib writes letters as paths, and each text before them as a comment.
    assert set(re.findall(r"<!-- (.*) -->", drawing)) >= {"window 10", "window 20", ENGINE, IN_CPP, "2.00 M", "400"}


def test_one_benchmark_runs_from_start_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main(["--quick", "--only", "negation", "--rounds", "1", "--output", str(tmp_path)]) == 0
    assert PYTHON in capsys.readouterr().out
    written = json.loads((tmp_path / "negation.json").read_text())
    assert written["quick"] is True
    assert written["question"].startswith("How many arrivals per second does negation")
    assert [len(rate["rates"]) for rate in written["rates"]] == [1] * 2 * len(CONTEST.entries)


def test_an_unknown_name_is_answered_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        compare.main(["--only", "nothing"])
    assert stopped.value.code == 2
    assert "star_join" in capsys.readouterr().err
