"""`cqels bench` from end to end over a small suite, and everything that is asked for wrongly."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from cqels_py.cli import bench
from cqels_py.cli.bench_tables import outcome
from cqels_py.suites import processes
from cqels_py.suites.report import Report, Settings
from cqels_py.suites.task import Measured, Task
from tests.cli.conftest import Cqels, Finished
from tests.suites.rides import RIDES


@pytest.fixture(autouse=True)
def suites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "SUITES", (RIDES,))


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> dict[str, Measured]:
    """Outcomes by query in place of measuring."""
    outcomes: dict[str, Measured] = {}

    def measured(task: Task, tell: object) -> Measured:
        outcome = outcomes.get(task.id) or Measured(
            task.id, task.title, triples=task.triples, triples_per_second=50_000.0
        )
        outcome.window = task.window or None
        return outcome

    monkeypatch.setattr(processes, "measured", measured)
    return outcomes


def assert_bad_usage(finished: Finished, *expected: str) -> None:
    assert finished.status == 2, finished
    assert finished.out == ""
    for text in expected:
        assert text in finished.err


def test_a_query_is_measured_checked_and_written(cqels: Cqels, tmp_path: Path) -> None:
    out = {name: tmp_path / f"out.{name}" for name in ("json", "csv")}
    finished = cqels(
        "bench", "rides", "--queries", "tips-by-area", "--triples", 1_800, "--data", tmp_path / "data", "--check",
        "--json", out["json"], "--csv", out["csv"],
    )  # fmt: skip
    assert finished.status == 0, finished
    assert finished.err == ""
    assert "rides, 1,800 triples, seed 1" in finished.out
    assert "equal: pyoxigraph has the same answer" in finished.out
    (query,) = json.loads(out["json"].read_text())["queries"]
    assert (query["id"], query["triples"], query["equal"], query["paper_triples_per_second"]) == (
        "tips-by-area", 1_800, True, 25_000,
    )  # fmt: skip
    assert query["latency_p50_us"] <= query["latency_p99_us"]
    (row,) = csv.DictReader(out["csv"].open())
    assert row["equal"] == "True"


def test_an_earlier_run_beside_this_one(cqels: Cqels, rates: dict[str, Measured], tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.json"
    common = ("bench", "rides", "--queries", "earnings,tips-by-area", "--data", tmp_path)
    rates["earnings"] = Measured("earnings", triples_per_second=10_000.0)
    assert cqels(*common, "--triples", 90, "--json", earlier).status == 0
    rates["earnings"] = Measured("earnings", triples_per_second=25_000.0)
    finished = cqels(*common, "--triples", 180, "--compare", earlier)
    assert finished.status == 0
    beside = finished.out.partition("beside the run of")[2]
    row = next(line for line in beside.splitlines() if "earnings" in line)
    assert row.split() == ["earnings", "10,000", "25,000", "2.50", "–", "–"]
    assert "triples: 90 before, 180 now" in finished.err
    other = cqels(*common, "--triples", 90, "--window", 5, "--compare", earlier)
    assert other.status == 0
    assert "no query has the same windows" in other.err


def test_both_runners_side_by_side(cqels: Cqels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = {name: tmp_path / f"out.{name}" for name in ("json", "csv")}

    def measured(task: Task, tell: object) -> Measured:
        rate, results = {"local": (50_000.0, 9), "spark": (10_000.0, 9 if task.id == "earnings" else 8)}[task.runner]
        assert task.partitions == (2 if task.runner == "spark" else None)
        return Measured(task.id, task.title, triples=task.triples, triples_per_second=rate, results=results)

    monkeypatch.setattr(processes, "measured", measured)
    common = ("bench", "rides", "--runner", "both", "--partitions", 2, "--triples", 90, "--data", tmp_path)
    finished = cqels(*common, "--queries", "earnings", "--json", out["json"], "--csv", out["csv"])
    assert (finished.status, finished.err) == (0, "")
    assert "rides on both runners, 90 triples" in finished.out
    rows = [line.split() for line in finished.out.splitlines() if "earnings" in line]
    assert [(row[1], row[-1]) for row in rows] == [("local", "–"), ("spark", "0.2×")]
    wanted = [("earnings", "local", None), ("earnings", "spark", 0.2)]
    found = json.loads(out["json"].read_text())
    assert found["runner"] == "both"
    assert [(q["id"], q["runner"], q["local_ratio"]) for q in found["queries"]] == wanted
    assert [row["runner"] for row in csv.DictReader(out["csv"].open())] == ["local", "spark"]
    again = cqels(*common, "--queries", "earnings,tips-by-area", "--compare", out["json"])
    assert again.status == 1
    assert "query tips-by-area: 8 results on spark, 9 on the local runner" in again.err
    beside = again.out.partition("beside the run of")[2]
    assert [line.split()[:2] for line in beside.splitlines() if "earnings" in line] == [
        ["earnings", "local"],
        ["earnings", "spark"],
    ]


def test_several_window_sizes(cqels: Cqels, rates: dict[str, Measured], tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    finished = cqels(
        "bench",
        "rides",
        "--queries",
        "earnings",
        "--triples",
        90,
        "--data",
        tmp_path,
        "--window",
        "10,200",
        "--json",
        out,
    )
    assert finished.status == 0
    assert [query["window"] for query in json.loads(out.read_text())["queries"]] == [10, 200]


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (Measured("earnings", error="no such thing"), "query earnings: no such thing"),
        (
            Measured("earnings", equal=False, compared=3, note="at 5 µs: 2 rows"),
            "not that of re-evaluation: at 5 µs: 2 rows",
        ),
        (Measured("earnings", check_error="a bad comparison"), "could not be compared: a bad comparison"),
    ],
)
def test_what_goes_wrong_is_a_failure(
    cqels: Cqels, rates: dict[str, Measured], outcome: Measured, message: str, tmp_path: Path
) -> None:
    rates["earnings"] = outcome
    out = tmp_path / "out.json"
    finished = cqels("bench", "rides", "--triples", 90, "--data", tmp_path, "--check", "--json", out)
    assert finished.status == 1
    assert message in finished.err
    # The others are measured all the same.
    assert len(json.loads(out.read_text())["queries"]) == len(RIDES.queries())
    assert "50,000" in finished.out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "name a suite: rides"),
        (["trains"], "there are rides"),
        (["rides", "--queries", "1,4"], "no query '1'"),
        (["rides", "--queries", ","], "expected numbers"),
        (["rides", "--triples", "0"], "--triples"),
        (["rides", "--triples", "many"], "--triples"),
        (["rides", "--seed", "-1"], "--seed"),
        (["rides", "--window", "10,x"], "like 1000,10000"),
        (["rides", "--window", "0"], "like 1000,10000"),
        (["rides", "--partitions", "2"], "one part"),
        (["rides", "--runner", "flink"], "flink"),
        (["rides", "--data", "/dev/null"], "is not a folder"),
        (["rides", "--data", "/proc/nowhere"], "cannot write there"),
        (["rides", "--json", "/no/such/folder/out.json"], "--json"),
        (["rides", "--csv", "/tmp"], "--csv"),
        (["rides", "--plots", "/dev/null"], "--plots"),
        (["rides", "--compare", "/no/such/file.json"], "No such file"),
    ],
)
def test_bad_usage(cqels: Cqels, arguments: list[str], expected: str) -> None:
    assert_bad_usage(cqels("bench", *arguments), expected)


def test_runs_of_other_suites_and_queries_cannot_be_compared(
    cqels: Cqels, rates: dict[str, Measured], tmp_path: Path
) -> None:
    earlier = tmp_path / "earlier.json"
    cqels("bench", "rides", "--queries", "earnings", "--triples", 90, "--data", tmp_path, "--json", earlier)
    assert_bad_usage(cqels("bench", "rides", "--queries", "tips-by-area", "--compare", earlier), "it has earnings")
    earlier.write_text(earlier.read_text().replace('"rides"', '"trains"'))
    assert_bad_usage(cqels("bench", "rides", "--compare", earlier), "one of trains, not of rides")
    earlier.write_text("{}")
    assert_bad_usage(cqels("bench", "rides", "--compare", earlier), "not a report of `cqels bench`")


def test_plots_need_matplotlib(cqels: Cqels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    assert_bad_usage(cqels("bench", "rides", "--plots", tmp_path / "plots"), "pip install 'cqels_py[bench]'")


def test_the_suites_are_listed(cqels: Cqels) -> None:
    finished = cqels("bench", "--list")
    assert finished.status == 0
    assert "rides: taxi rides" in finished.out
    assert "What did each taxi earn" in finished.out


@pytest.mark.parametrize("width", [72, 80, 120, 200])
def test_what_a_terminal_has_no_room_for_is_left_out(width: int) -> None:
    full = Measured(
        "10", triples=1_000_000, results=500_000, seconds=12.5, triples_per_second=1_234_567.0, latency_p50_us=1_500.0,
        latency_p99_us=20_000.0, peak_rss_mb=1_300.0, equal=True, compared=16, peer_triples_per_second=1_000.0,
        paper_triples_per_second=29_463.0,
    )  # fmt: skip
    run = Report(Settings("rides", "local", None, 1_000_000, 1, check=True), "2026", {}, {}, [full])
    console = Console(width=width)
    with console.capture() as captured:
        console.print(outcome(run, console))
    text = captured.get()
    assert "…" not in text
    for always in ("1,234,567", "20,000", "42×", "1,235×", "yes", "equal"):
        assert always in text
    assert ("12.50" in text) == (width >= 120)


@pytest.mark.parametrize(("equal", "results", "shown"), [(True, 3, "yes"), (True, 0, "yes: empty"), (False, 0, "NO")])
def test_equal_answers_in_which_nothing_happens_are_told_apart(equal: bool, results: int, shown: str) -> None:
    query = Measured("1", triples=9, results=results, seconds=1.0, triples_per_second=9.0, equal=equal, compared=4)
    run = Report(Settings("rides", "local", None, 9, 1, check=True), "2026", {}, {}, [query])
    console = Console(width=200)
    with console.capture() as captured:
        console.print(outcome(run, console))
    (row,) = (line for line in captured.get().splitlines() if line.lstrip().startswith("1 "))
    assert row.rstrip().endswith(f" {shown}")
