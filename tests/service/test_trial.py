"""A query that is tried gives the results of one that is registered and gets the same elements, and stays within its limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cqels_py.engine.documents import Document
from cqels_py.engine.engine import Engine
from cqels_py.engine.last_elements import LastElements, SeenElement
from cqels_py.errors import DataError, QuerySyntaxError
from cqels_py.service.dashboard import trial
from cqels_py.service.dashboard.trial import Sample, Trial, Trials, sample_of
from cqels_py.service.definitions import QueryDefinition, StreamDefinition
from cqels_py.service.failures import Forbidden
from cqels_py.service.service import Service
from tests.service.support import EX, READINGS

OTHER = f"{EX}other"
JOIN = f"""PREFIX : <{EX}> SELECT ?s ?t ?u
{{ STREAM :readings [RANGE 10s] {{ ?s :t ?t }} STREAM :other [RANGE 10s] {{ ?s :u ?u }} }}"""
EACH = f"PREFIX : <{EX}> SELECT ?s ?t {{ STREAM :readings [RANGE 10s] {{ ?s :t ?t }} }}"


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[Trials]:
    service = Service(tmp_path)
    service.put_stream("readings", StreamDefinition(READINGS))
    yield Trials(service)
    assert not service.queries and not service.engine.queries
    service.close()


def element(second: int, predicate: str, value: int) -> SeenElement:
    triple = (f"<{EX}s>", f"<{EX}{predicate}>", f'"{value}"', None)
    return SeenElement(second * 1_000_000, [triple], whole=True)


def shown(found: Trial) -> list[tuple[str, ...]]:
    return [(row["time"], *(row[name] for name, _ in found.columns[3:])) for row in found.rows]


def test_samples_are_merged_by_time(trials: Trials) -> None:
    readings = sample_of([element(second, "t", second) for second in (1, 20, 40)])
    others = sample_of([element(second, "u", second) for second in (5, 39)])
    found = trials.tried(QueryDefinition(JOIN), {READINGS: Sample(readings), OTHER: Sample(others)})
    with Engine() as engine:
        query = engine.register(JOIN)
        for second, name in [(1, "t"), (5, "u"), (20, "t"), (39, "u"), (40, "t")]:
            stream = READINGS if name == "t" else OTHER
            engine.push(stream, [(f"{EX}s", f"{EX}{name}", f'"{second}"')], time=second * 1_000_000)
        expected = [tuple(str(result.bindings[name]) for name in query.variables) for result in query.results()]
    assert [row[1:] for row in shown(found)] == [(f":{s.removeprefix(EX)}", t, u) for s, t, u in expected]
    assert [row[1:] for row in shown(found)] == [(":s", "1", "5"), (":s", "40", "39")]
    assert (found.elements, found.late, found.ended) == (5, 0, "")


def test_what_a_stream_has_had_is_a_sample(trials: Trials) -> None:
    with Engine(on_unread="ignore") as engine:
        seen = LastElements(engine.dictionary)
        engine.watched = seen
        body = f'<{EX}s> <{EX}t> "a \\"b\\""@en .\n<{EX}s> <{EX}t> _:b .\n'
        engine.push_document(READINGS, Document(body.encode(), "nt"))
        text = sample_of(seen.of(READINGS))
    first, second = shown(trials.tried(QueryDefinition(EACH), {READINGS: Sample(text)}))
    assert first[2] == 'a "b"'
    assert second[2]


@pytest.mark.parametrize(
    ("sample", "problem"),
    [
        (Sample(f"<{EX}s> <{EX}t> .", "nt"), "line 1"),
        (Sample("x" * (trial.MOST_CHARACTERS + 1)), "at most"),
        (Sample('{"t": 1}', "json"), "map"),
    ],
)
def test_a_wrong_sample_is_told_with_its_stream(trials: Trials, sample: Sample, problem: str) -> None:
    with pytest.raises(DataError) as raised:
        trials.tried(QueryDefinition(EACH), {READINGS: sample})
    assert raised.value.stream == READINGS
    assert problem in f"line {raised.value.place and raised.value.place.line}: {raised.value.message}"


def test_triples_without_graphs_need_no_format(trials: Trials) -> None:
    found = trials.tried(QueryDefinition(EACH), {READINGS: Sample(f'<{EX}s> <{EX}t> "1" .\n<{EX}u> <{EX}t> "2" .')})
    assert [row[1:] for row in shown(found)] == [(":s", "1"), (":u", "2")]


def test_limits_and_errors_of_the_query(trials: Trials) -> None:
    triples = "".join(f'<{EX}s{n}> <{EX}t> "{n}" .\n' for n in range(trial.MOST_RESULTS + 50))
    found = trials.tried(QueryDefinition(EACH), {READINGS: Sample(triples, "nt")})
    assert (len(found.rows), found.ended) == (trial.MOST_RESULTS, "the first 200 results; there are more")
    with pytest.raises(DataError, match="elements, and a trial takes"):
        trials.tried(QueryDefinition(EACH), {READINGS: Sample(triples * 9, "nt")})
    with pytest.raises(QuerySyntaxError):
        trials.tried(QueryDefinition("SELECT"), {})
    with pytest.raises(Forbidden):
        trials.tried(QueryDefinition(EACH.replace("{ STREAM", "FROM </etc/passwd> { STREAM", 1)), {})
    assert trials.tried(QueryDefinition(EACH), {}).rows == []
