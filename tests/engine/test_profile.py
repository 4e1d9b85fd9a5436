"""Profiles: rows of each operator, whichever way its steps go; shares of time; the table, the graph and the plain values."""

from __future__ import annotations

import json
from collections import Counter
from xml.etree import ElementTree

import pytest

from cqels_py import Engine, Query
from cqels_py.dataflow.step_program import CALLS
from cqels_py.dataflow.work import MEASURED_ONE_IN, StepTimer

STREAM = "http://ex.org/s"
JOIN = f"""SELECT ?s ?v ?w WHERE {{
  STREAM <{STREAM}> [RANGE 5s] {{ ?s <http://ex.org/a> ?v }}
  STREAM <{STREAM}> [RANGE 5s] {{ ?s <http://ex.org/b> ?w }}
}}"""
GROUP = f"SELECT ?s (COUNT(*) AS ?n) WHERE {{ STREAM <{STREAM}> [RANGE 5s] {{ ?s <http://ex.org/a> ?v }} }} GROUP BY ?s"


def elements(count: int) -> list[tuple[int, str, str, str]]:
    """One a second: its time in seconds, and a triple of it."""
    return [
        (i, f"<http://ex.org/{i % 3}>", f"<http://ex.org/{'aab'[i * 7 % 3]}>", f'"{i * 5 % 11}"') for i in range(count)
    ]


def pushed(query: Query, engine: Engine, count: int) -> Query:
    for time, *triple in elements(count):
        engine.push(STREAM, [tuple(triple)], time=time * 1_000_000)
    return query


def expected_of_join(count: int) -> dict[str, int]:
    """Insertions and retractions: of each scan, and of the join."""
    rows = Counter[str]()
    kept: list[tuple[int, str, str]] = []
    for time, s, p, _ in elements(count):
        gone = [each for each in kept if each[0] <= time - 5]
        kept = [each for each in kept if each[0] > time - 5]
        for old, subject, predicate in gone:
            rows[predicate[-2]] += 1
            # The partners that it had, which have not gone before it.
            later = [e for e in [*gone, *kept] if e[0] > old]
            rows["join"] += sum(e[1] == subject and e[2] != predicate for e in later)
        rows["join"] += sum(e[1] == s and e[2] != p for e in kept)
        rows[p[-2]] += 1
        rows[f"{p[-2]} in"] += 1
        kept.append((time, s, p))
    return dict(rows)


@pytest.mark.parametrize("steps", ["", "calls"])
def test_rows_are_counted_whichever_way_steps_go(steps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CALLS, steps)
    engine = Engine()
    query = pushed(engine.register(JOIN, changelog=True), engine, 150)
    expected = expected_of_join(150)
    profile = query.profile()
    results, join, *below = [each for each in profile.operators if not each.text.startswith("project")]
    scans = [each for each in below if each.text.startswith("scan")]
    assert [(each.rows_in, each.rows_out) for each in scans] == [
        (expected["a in"], expected["a"]),
        (expected["b in"], expected["b"]),
    ]
    assert join.rows_in == sum(profile.operators[each].rows_out for each in join.inputs)
    assert join.rows_out == expected["join"]
    assert results.rows_out == len(list(query.results()))
    assert join.probes is not None
    assert join.probes > 0


def test_batches_count_as_single_elements_do() -> None:
    counts = []
    for batch in (None, 50):
        engine = Engine(batch=batch)
        query = pushed(engine.register(GROUP), engine, 150)
        engine.flush()
        (scan,) = [each for each in query.profile().operators if each.text.startswith("scan")]
        counts.append((scan.rows_in, scan.rows_out))
    assert counts[0] == counts[1]


def test_shares_add_up_to_one_and_bytes_to_those_of_the_query() -> None:
    engine = Engine()
    query = pushed(engine.register(GROUP), engine, 40)
    profile = query.profile()
    assert profile.measured > 0
    assert sum(each.share for each in profile.operators) == pytest.approx(1)
    assert sum(each.state_bytes for each in profile.operators) == query.nbytes


def test_the_profile_of_a_query_that_is_no_longer_registered_is_its_last() -> None:
    engine = Engine()
    query = pushed(engine.register(GROUP), engine, 20)
    before = query.profile()
    engine.unregister(query)
    assert query.profile().operators == before.operators


def test_a_table_a_graph_and_plain_values() -> None:
    engine = Engine()
    query = pushed(engine.register(GROUP), engine, 20)
    profile = query.profile()
    lines = str(profile).splitlines()
    assert lines[0] == "SELECT ?s ?n, delivered as ISTREAM"
    assert lines[2].split() == ["time", "rows", "in", "rows", "out", "state", "probes", "operator"]
    assert "└─ scan [RANGE 5s] { ?s <http://ex.org/a> ?v }" in str(profile)
    values = json.loads(json.dumps(profile.as_dict()))
    assert [each["rows_out"] for each in values["operators"]] == [each.rows_out for each in profile.operators]
    dot = profile.dot()
    for each in profile.operators:
        for child in each.inputs:
            assert f'o{child} -> o{each.number} [label=" {profile.operators[child].rows_out:,}"]' in dot
    assert f'[label="<{STREAM}>\\l", shape=ellipse]' in dot
    picture = ElementTree.fromstring(profile.svg())
    texts = [found.text for found in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert all(f"{each.rows_in:,} in, {each.rows_out:,} out" in texts for each in profile.operators)


def test_of_many_small_steps_one_in_each_block_is_measured() -> None:
    timer = StepTimer()
    measured = [timer.begin(1) is not None for _ in range(100 * MEASURED_ONE_IN)]
    assert all(measured[:MEASURED_ONE_IN])
    places = [number % MEASURED_ONE_IN for number, each in enumerate(measured) if each][MEASURED_ONE_IN:]
    assert 98 <= len(places) <= 100
    # Steps at regular intervals are neither always nor never measured.
    assert len(set(places)) == MEASURED_ONE_IN
