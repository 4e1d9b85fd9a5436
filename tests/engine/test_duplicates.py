"""Elements that come again: with duplicates="drop" the answers are those of a stream in which each comes once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cqels_py import Engine
from cqels_py.errors import UsageError

STREAM, OTHER = "http://example.org/readings", "http://example.org/rooms"
P = "<http://example.org/p>"
COUNTS = f"SELECT ?s (COUNT(?v) AS ?n) WHERE {{ STREAM <{STREAM}> [RANGE 5s] {{ ?s {P} ?v }} }} GROUP BY ?s"
ROWS = f"SELECT ?s ?v WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ ?s {P} ?v }} }}"
JOIN = f"SELECT ?s ?v ?w WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ ?s {P} ?v }} STREAM <{OTHER}> [RANGE 4s] {{ ?s {P} ?w }} }}"
STEPS = f"SELECT (COUNT(*) AS ?n) WHERE {{ STREAM <{STREAM}> [RANGE 4s STEP 2s] {{ ?s {P} ?v }} }}"
QUERIES = (COUNTS, ROWS, JOIN, STEPS)

Element = tuple[str, int, tuple[tuple[str, str, str], ...]]


def elements(random: Random, count: int) -> list[Element]:
    """Different elements of two streams, in order of time, some with several triples or blank nodes."""
    found: dict[Element, None] = {}
    while len(found) < count:
        subject = random.choice(["<http://example.org/a>", "<http://example.org/b>", "_:x", "_:y"])
        triples = tuple((subject, P, f'"{random.randrange(4)}"') for _ in range(random.choice([1, 1, 2])))
        stream = random.choice([STREAM, STREAM, OTHER])
        found[stream, random.randrange(count) * 500_000, tuple(dict.fromkeys(triples))] = None
    # The labels of blank nodes say nothing.
    different = {json.dumps(each).replace("_:y", "_:x"): each for each in found}
    return sorted(different.values(), key=lambda each: each[1])


def redelivered(random: Random, given: Sequence[Element]) -> tuple[list[Element], int]:
    """The elements, some of which come again later, with other labels of blank nodes; and how many of these are not late."""
    found: list[Element] = []
    again = 0
    for at, (stream, time, triples) in enumerate(given):
        found.append((stream, time, triples))
        while random.random() < 0.4:
            other = given[random.randrange(max(at - 5, 0), at + 1)]
            # The lateness is of 2 seconds.
            if other[1] >= time - 2_000_000:
                again += 1
                renamed = tuple((s.replace("_:x", "_:z"), p, o) for s, p, o in other[2])
                found.append((other[0], other[1], tuple(reversed(renamed)) if "_:" not in str(renamed) else renamed))
    return found, again


def answers(
    given: Sequence[Element], batch: int | None, queries: Sequence[str] = QUERIES, **options: Any
) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in queries]
    with Engine(lateness="2s", batch=batch, **options) as engine:
        for query, results in zip(queries, found, strict=True):
            told = results.append
            engine.register(query, changelog=True).subscribe(lambda result, told=told: told(_shown(result)))  # type: ignore[misc]
        for stream, time, triples in given:
            engine.push(stream, list(triples), time=time)
    return [sorted(each) for each in found]


def _shown(result: Any) -> str:
    values = {name: "_" if type(term).__name__ == "BNode" else str(term) for name, term in result.bindings.items()}
    return f"{result.time} {result.sign} {sorted(values.items())}"


@pytest.mark.parametrize("seed", range(8))
def test_answers_are_those_of_a_stream_without_duplicates(seed: int) -> None:
    random = Random(seed)
    once = elements(random, 40)
    given, again = redelivered(random, once)
    assert again
    expected = answers(once, None)
    for batch in (None, 1, 7, 1000):
        assert answers(given, batch, duplicates="drop") == expected
    assert answers(given, 1) != expected


def test_they_are_counted_and_kept_as_rejects(tmp_path: Path) -> None:
    triples = [("<http://example.org/a>", P, '"1"')]
    for batch in (None, 5):
        engine = Engine(batch=batch, rejects=tmp_path / "rejects")
        engine.declare(STREAM, duplicates="drop")
        engine.register(ROWS)
        engine.register(COUNTS)
        for time in (1_000_000, 1_000_000, 2_000_000, 2_000_000, 1_500_000):
            engine.push(STREAM, triples, time=time)
        engine.finish()
        statistics = engine.statistics
        assert statistics.elements == 5
        assert statistics.late == 1
        assert statistics.rejected == {(STREAM, "duplicate"): 2, (STREAM, "late"): 1}
        lines = [json.loads(line) for line in (tmp_path / "rejects").read_text().splitlines()]
        assert [(line["reason"], line["position"]) for line in lines] == [
            ("duplicate", 2),
            ("duplicate", 4),
            ("late", 5),
        ]
        engine.close()
        (tmp_path / "rejects").unlink()


def test_another_graph_or_another_blank_node_is_another_element() -> None:
    engine = Engine()
    engine.declare(STREAM, duplicates="drop", lateness="1s")
    engine.register(f"SELECT (COUNT(*) AS ?n) WHERE {{ STREAM <{STREAM}> [NOW] {{ ?s {P} ?v }} }}")
    for triples, graph in (
        ([("_:a", P, "_:b")], None),
        ([("_:b", P, "_:a")], None),
        ([("_:b", P, "_:b")], None),
        ([("_:b", P, "_:b")], "<http://example.org/g>"),
        ([("_:b", P, "_:b")], "<http://example.org/h>"),
        ([("_:c", P, "_:c")], "<http://example.org/h>"),
        ([("_:a", P, '"1"'), ("_:b", P, '"1"')], None),
        ([("_:a", P, '"1"'), ("_:a", P, '"1"')], None),
    ):
        engine.push(STREAM, triples, time=5_000_000, graph=graph)
    engine.finish()
    assert engine.statistics.rejected == {(STREAM, "duplicate"): 2}


def test_over_restarts(tmp_path: Path) -> None:
    """Whatever the process had taken in when it ended, from a snapshot or the log."""
    random = Random(3)
    once = elements(random, 40)
    given, again = redelivered(random, once)
    found: dict[int, str] = {}
    done = 0
    while done < len(given):
        engine = Engine(lateness="2s", checkpoint=tmp_path / "state", durable="off")
        engine.declare(STREAM, duplicates="drop", lateness="2s")
        engine.declare(OTHER, duplicates="drop", lateness="2s")
        query = engine.register(COUNTS, changelog=True, name="q")
        query.subscribe(lambda result: found.update({result.number: _shown(result)}))
        engine.register(JOIN, name="join")
        for stream, time, triples in given[done : done + 9]:
            engine.push(stream, list(triples), time=time)
        done += 9
        if random.random() < 0.5:
            engine.checkpoint()
        if done >= len(given):
            engine.finish()
            assert (
                sum(count for (_, reason), count in engine.statistics.rejected.items() if reason == "duplicate")
                == again
            )
        engine.close()
    assert sorted(found.values()) == answers(once, None, [COUNTS, JOIN])[0]


def test_options_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="duplicates is 'keep' or 'drop', not 'ignore'"):
        Engine(duplicates="ignore")
    engine = Engine()
    with pytest.raises(UsageError, match="duplicates is 'keep' or 'drop'"):
        engine.declare(STREAM, duplicates="all")
    engine.register(ROWS)
    with pytest.raises(UsageError, match="with lateness 0, clock 'events' and duplicates 'keep': remove them first"):
        engine.declare(STREAM, duplicates="drop")
