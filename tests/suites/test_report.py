"""Reports: JSON there and back, CSV, ratios to an earlier run, and files that are no reports."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from cqels_py.errors import UsageError
from cqels_py.suites.report import BOTH, Report, Settings, beside_local, compared, differences, read_report
from cqels_py.suites.task import Measured

SETTINGS = Settings("rides", "local", None, 1_000, 1, check=True)
ONE = Measured(
    "1", "What?", triples=1_000, results=5, seconds=0.5, triples_per_second=2_000.0, latency_p50_us=10.0,
    latency_p99_us=40.0, peak_rss_mb=200.0, equal=True, compared=16, latency_quantiles=[1.0, 2.0], memory=[(0.1, 5, 1.5)],
)  # fmt: skip
BROKEN = Measured("2", "Why?", error="no")


@pytest.fixture
def run() -> Report:
    return Report.here(SETTINGS, [ONE, BROKEN])


def test_json_has_measurements_and_machine(run: Report) -> None:
    found = json.loads(run.as_json())
    assert found["machine"]["cores"] >= 1
    assert {"python", "numba", "pyoxigraph", "cqels_py"} <= set(found["versions"])
    assert (found["suite"], found["seed"], found["runner"]) == ("rides", 1, "local")
    required = ("id", "triples", "results", "seconds", "triples_per_second", "peak_rss_mb", "equal")
    latencies = ("latency_p50_us", "latency_p99_us")
    assert [[query[name] for name in required + latencies] for query in found["queries"]] == [
        ["1", 1_000, 5, 0.5, 2_000.0, 200.0, True, 10.0, 40.0],
        ["2", 0, 0, None, None, None, None, None, None],
    ]
    assert found["queries"][1]["error"] == "no"


def test_without_a_check_nothing_is_said_of_it(run: Report) -> None:
    unchecked = replace(run, settings=replace(SETTINGS, check=False))
    for query in json.loads(unchecked.as_json())["queries"]:
        assert not {"equal", "compared", "note", "peer_ratio"} & set(query)


def test_json_is_read_back(run: Report, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(run.as_json())
    again = read_report(path)
    assert again.as_json() == run.as_json()


def test_csv_has_a_row_a_query(run: Report) -> None:
    first, second = csv.DictReader(io.StringIO(run.as_csv()))
    assert (first["id"], first["triples_per_second"], first["equal"]) == ("1", "2000.0", "True")
    assert (second["id"], second["triples_per_second"], second["error"]) == ("2", "", "no")
    assert "memory" not in first


def test_ratios_to_an_earlier_run(run: Report) -> None:
    slower = replace(ONE, triples_per_second=500.0, latency_p99_us=80.0, peak_rss_mb=None)
    other_window = replace(ONE, window=50)
    (row,) = compared(replace(run, queries=[slower, other_window]), run)
    assert (row.id, row.before, row.now) == ("1", 500.0, 2_000.0)
    assert (row.throughput, row.latency, row.memory) == (4.0, 0.5, None)
    assert compared(replace(run, queries=[other_window]), run) == []


def test_differences_between_the_settings_of_runs_are_named() -> None:
    assert differences(SETTINGS, SETTINGS) == []
    assert differences(SETTINGS, replace(SETTINGS, triples=5, check=False)) == ["triples: 1000 before, 5 now"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read it"),
        ("no json", "is not JSON"),
        ("[]", "is not a report"),
        ('{"suite": "rides"}', "it has no 'runner'"),
        (b"\xff\xfe\x00", "is not JSON"),
    ],
)
def test_a_file_that_is_no_report(text: str | bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=message):
        read_report(path)


@pytest.mark.parametrize("queries", ["x", [3], [{"title": "?"}], [{"id": "1", "triples_per_second": "fast"}], None])
def test_a_report_with_queries_that_are_none(run: Report, queries: object, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**json.loads(run.as_json()), "queries": queries}))
    with pytest.raises(UsageError, match="is not a report"):
        read_report(path)


def test_a_run_on_both_runners_is_compared_runner_by_runner() -> None:
    queries = [replace(ONE, triples_per_second=100.0), replace(ONE, runner="spark", triples_per_second=20.0)]
    both = Report.here(replace(SETTINGS, runner=BOTH), queries)
    local = Report.here(SETTINGS, [replace(ONE, triples_per_second=50.0)])
    assert [(row.runner, row.throughput) for row in compared(local, both)] == [("local", 2.0)]
    assert [(row.runner, row.throughput) for row in compared(both, local)] == [("local", 0.5)]
    assert [(row.runner, row.throughput) for row in compared(both, both)] == [("local", 1.0), ("spark", 1.0)]
    # Two runs of one runner each are beside each other, whichever they are.
    spark = Report.here(replace(SETTINGS, runner="spark"), queries[1:])
    assert [row.throughput for row in compared(local, spark)] == [0.4]


def test_reports_from_when_queries_did_not_name_their_runner(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    found = json.loads(Report.here(replace(SETTINGS, runner="spark"), [ONE]).as_json())
    del found["queries"][0]["runner"]
    path.write_text(json.dumps(found))
    assert [query.runner for query in read_report(path).queries] == ["spark"]


def test_runners_side_by_side_deliver_the_same_number_of_results() -> None:
    queries = [
        replace(ONE, triples_per_second=100.0),
        replace(ONE, runner="spark", triples_per_second=20.0),
        replace(ONE, id="2", results=7),
        replace(ONE, id="2", results=8, runner="spark"),
        replace(BROKEN, id="3"),
        replace(ONE, id="3", runner="spark"),
    ]
    assert beside_local(queries) == ["query 2: 8 results on spark, 7 on the local runner"]
    assert [query.local_ratio for query in queries[:2] + queries[4:]] == [None, 0.2, None, None]
