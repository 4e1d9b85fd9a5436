"""The tables of docs/figures.md: rendered from result files, and up to date with the files in bench/results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench import summary
from bench.contest import BY_HAND, ENGINE, IN_CPP, PYTHON, RETRACTING
from bench.markdown import origin
from bench.report import Rate, Report
from bench.suites.outcome import Outcome

MACHINE = {"cpu": "Some CPU", "cores": 2}


def report(name: str, *, quick: bool = False) -> Report:
    rates = [
        Rate("window 10", ENGINE, [2e6], 1.5),
        Rate("window 10", BY_HAND, [8e6], 1.5),
        Rate("window 10", IN_CPP, [10e6], 1.5),
        Rate("window 20", ENGINE, [500.0], 12.0),
        Rate("window 20", RETRACTING, [400.0], 12.0),
        Rate("window 20", PYTHON, [2.0], 12.0),
    ]
    return Report(name, "How fast?", "2026-01-02T03:04:05+00:00", quick, MACHINE, {}, rates)


def suite(name: str, figures: Mapping[str, object]) -> Outcome:
    return Outcome(name, "How fast?", "2026-01-02T03:04:05+00:00", False, MACHINE, {}, figures)


def test_the_page_is_up_to_date() -> None:
    assert summary.main(["--check"]) == 0


def test_operators_are_compared_with_their_competitors(tmp_path: Path) -> None:
    report("star_join").write(tmp_path)
    lines = summary.rendered(summary.results_in(tmp_path)).splitlines()
    assert "Some CPU, 2 cores, 2026-01-02" in lines[0]
    assert lines[2] == "| operator | engine | / C++ by hand | / numba by hand | / python dicts |"
    assert lines[4] == "| star join, window 10 | 2.00 M | 0.2 | 0.25 |  |"
    assert lines[5] == "| star join, window 20 | 500 |  |  | 250 |"
    assert lines[6] == "| star join, window 20, retracting | 400 |  |  | 200 |"


def test_quick_runs_are_left_out(tmp_path: Path) -> None:
    report("star_join", quick=True).write(tmp_path)
    assert summary.rendered(summary.results_in(tmp_path)) == "There are no figures yet.\n"


def test_tables_of_steps_memory_and_soak(tmp_path: Path) -> None:
    paces = [
        {"contender": "engine", "step": 10, "median": 3e5, "first_is_times_as_fast": 1.0},
        {"contender": "rdflib", "step": 10, "median": 200.0, "first_is_times_as_fast": 1500.0},
    ]
    case = {"name": "window alone", "leaves": 1000, "bytes_a_leaf": 31.6, "grown": 40_000}
    soaked = {"triples": 5_000, "triples_per_second": 1e6, "second_quarter_mb": 400.4, "last_quarter_mb": 401.0}
    suite("peers", {"paces": paces}).write(tmp_path)
    suite("memory", {"cases": [case]}).write(tmp_path)
    suite("soak", soaked).write(tmp_path)
    text = summary.rendered(summary.results_in(tmp_path))
    assert "|  | STEP 10 |\n" in text
    assert "| rdflib | 200 (1,500) |\n" in text
    assert "| window alone | 1,000 | 32 | 40 |\n" in text
    assert "1.00 M triples per second, 400 MB of resident memory in the second quarter" in text


def test_joins_without_windows_have_a_row_for_each_contender(tmp_path: Path) -> None:
    points = [{"events": 10**n, "per_second": 1e3 * n, "nbytes": 1_000 * n} for n in range(1, 4)]
    curves = [
        {"name": "counters", "batch": 64, "points": points},
        {"name": "DuckDB", "batch": 64, "points": [points[0] | {"nbytes": None}]},
    ]
    rates = dict.fromkeys(("from_texts", "from_ids", "kernel", "by_hand"), 2e6)
    suite("bounded", {"events": 1_000, "curves": curves, **rates}).write(tmp_path)
    text = summary.rendered(summary.results_in(tmp_path))
    assert "| counters, 64 at a time | 1,000 | 2.00 k | 3.00 k | 2,000 | 3,000 |\n" in text
    assert "| DuckDB, 64 at a time | 10 | 1.00 k | 1.00 k |  |  |\n" in text


def test_a_busy_machine_is_noted() -> None:
    found: dict[str, object] = {"machine": MACHINE | {"load": 3.1}, "date": "2026-01-02T03:04:05+00:00"}
    assert origin(found) == "Some CPU, 2 cores, 2026-01-02, busy: load 3.1"
    found["machine"] = MACHINE | {"load": 2.9}
    assert origin(found) == "Some CPU, 2 cores, 2026-01-02"


def test_only_the_text_between_the_markers_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "figures.md"
    page.write_text(f"before\n{summary.START}old\n{summary.END}after\n")
    report("average").write(tmp_path)
    where = ["--results", str(tmp_path), "--page", str(page)]
    assert summary.main([*where, "--check"]) == 1
    assert summary.main(where) == 0
    assert summary.main([*where, "--check"]) == 0
    text = page.read_text()
    assert text.startswith(f"before\n{summary.START}\nSingle operators")
    assert text.endswith(f"{summary.END}after\n")
    assert "old" not in text


def test_a_page_without_markers_is_not_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "figures.md"
    page.write_text("before\n")
    assert summary.main(["--results", str(tmp_path), "--page", str(page)]) == 2
    assert "the page needs two marker lines around the tables" in capsys.readouterr().err
    assert page.read_text() == "before\n"


def test_suites_have_one_row_per_query(tmp_path: Path) -> None:
    slow = {"id": "2", "runner": "local", "triples_per_second": None}
    for triples, rate in ((1_000_000, 5e5), (10_000_000, 4e5)):
        fast = {
            "id": "1",
            "runner": "local",
            "triples_per_second": rate,
            "paper_triples_per_second": 25_000.0,
            "peer_ratio": 40.0 if triples == 1_000_000 else None,
            "latency_p50_us": 70.4,
            "latency_p99_us": 1234.5,
            "peak_rss_mb": triples / 1e5,
        }
        on_spark = {"id": "1", "runner": "spark", "triples_per_second": 1e5}
        run = {
            "suite": "srbench",
            "runner": "both",
            "triples": triples,
            "threads": 1 if triples == 1_000_000 else 2,
            "date": "2026-01-02T03:04:05+00:00",
            "machine": MACHINE,
            "queries": [fast, slow, *([on_spark] if triples == 1_000_000 else [])],
        }
        (tmp_path / f"srbench-{triples}.json").write_text(json.dumps(run))
    lines = summary.rendered(summary.results_in(tmp_path)).splitlines()
    assert lines[0].startswith("SRBench (`cqels bench srbench`)")
    assert lines[2].startswith(
        "| query | 1.00 M triples, 1 thread | 1.00 M triples, on Spark | 10.0 M triples, 2 threads | / paper |"
    )
    assert lines[4] == "| 1 | 500 k | 100 k | 400 k | 20 | 40 | 70 | 1,234 | 100 |"
    assert lines[5] == "| 2 |  |  |  |  |  |  |  |  |"


def test_rates_by_window_size_share_one_row(tmp_path: Path) -> None:
    rates = [Rate("window 1,000", ENGINE, [2e6], 1.0), Rate("window 10,000", ENGINE, [1.9e6], 1.0)]
    Report("top", "How fast?", "2026-01-02T03:04:05+00:00", False, MACHINE, {}, rates).write(tmp_path)
    text = summary.rendered(summary.results_in(tmp_path))
    assert "| top | window 1,000: 2.00 M, window 10,000: 1.90 M |" in text


def test_tables_of_latency_startup_ingest_and_spark(tmp_path: Path) -> None:
    times = {"cpu": [70.0, 71.4, 90.0], "p50": [61.0, 60.0, 99.0], "p99": [150.0, 140.0, 151.0]}
    case = {"query": "join", "way": "push", "subscriber": "ids", **times, "pushes_per_second": 12_345.0}
    suite("latency", {"cases": [case]}).write(tmp_path)
    figures = {"push": [15.0, 14.0, 16.5], "waiting": [6.0, 6.5, 7.0], "answering": [900.0, 1100.4, 1200.0]}
    suite("pushes", {"cases": [{"question": "join", "contender": "engine, push", **figures}]}).write(tmp_path)
    start = {
        "query": "filter",
        "runner": "cqels run",
        "streams": "a",
        "cold": [14.0, 15.5, 19.0],
        "warm": [0.9, 0.81, 0.84],
    }
    suite("startup", {"cases": [start]}).write(tmp_path)
    reading = {"what": ".nt to batches", "how": "engine", "rates": [5e6, 4e6, 6e6], "to_parser": 6.25}
    suite("ingest", {"cases": [reading]}).write(tmp_path)
    spark = {
        "rows": 10_000,
        "competitor": "spark, 2 cores",
        "rate": {"median": 38_200.0},
        "milliseconds": {"p50": 272.4, "p99": 450.0},
        "to_local": 0.069,
    }
    task = {"name": "net", "routing": 0.22, "evaluation": 0.594, "bytes": 5.48, "results": 0.02}
    suite("spark", {"cases": [spark], "tasks": [task]}).write(tmp_path)
    costs = [
        {"case": "even", "parts": 1, "whole": 0.5, "busiest": 0.5, "bytes": 28.2},
        {"case": "even", "parts": 16, "whole": 1.2, "busiest": 0.1, "bytes": 37.4},
    ]
    suite("scale_out", {"costs": costs}).write(tmp_path)
    text = summary.rendered(summary.results_in(tmp_path))
    assert "| join, push, ids | 71 | 61 | 150 | 12.3 k |" in text
    assert "| join, engine, push | 15.0 | 14.0 … 16.5 | 6.5 | 1,100 |" in text
    assert "| .nt to batches, engine | 5.00 M | 4.00 M … 6.00 M | 6.2 |" in text
    assert "| filter, cqels run | 15.50 | 14.00 … 19.00 | 0.84 | 0.81 … 0.90 |" in text
    assert "| 10,000 rows, spark, 2 cores | 38.2 k | 272 | 450 | 0.07 |" in text
    assert "| net | 0.22 | 0.59 | 5.48 | 0.02 |" in text
    assert "| even | 16 | 1.20 (2.4 times) | 0.10 (0.20) | 37 |" in text
