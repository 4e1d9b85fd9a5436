"""Values that are in very many triples are divided by other variables; results are as on one machine."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest
from rdflib import URIRef

from cqels_py.algebra.nodes import Output
from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.errors import UsageError
from cqels_py.runners.spark.describe import describe
from cqels_py.runners.spark.frequent import sampled, watched_of
from cqels_py.runners.spark.heavy import Noted
from cqels_py.spark import heavy_values, loads, migrate, prepare, stages, statistics
from tests.oracle.naive import Element
from tests.runners.spark import simulation
from tests.runners.spark.test_migration import COUNT, piece
from tests.runners.spark.test_simulated import DIVIDED, EX, STATIC, drawn
from tests.runners.spark.test_stages import BY_SHARES, MERGED

HEAVY = {"c": [f"<{EX}c0>", f"<{EX}c3>"]}
NOT_DIVIDED = {
    "step": "groups have several values of ?v",
    "count": "groups have several values of ?v",
    "having": "groups have several values of ?v",
    "minus": "results do not have ?v; MINUS does not compare ?w",
    "filter, bind": "results do not have ?v",
    "optional": "OPTIONAL without a match does not compare ?v",
}
QUERIES: dict[str, tuple[str, dict[str, list[str]]]] = {
    **{name: (text, HEAVY) for name, text in DIVIDED.items() if name not in NOT_DIVIDED},
    "chain": (BY_SHARES["chain"], {"b": [f"<{EX}c0>"], "?c": [f"<{EX}c0>", f"<{EX}c1>"]}),
    "ends of a chain": (BY_SHARES["ends of a chain"], {"c": [f"<{EX}c0>"]}),
    "triangle": (BY_SHARES["triangle"], {"a": [f"<{EX}c0>"], "b": [f"<{EX}c0>", f"<{EX}c1>"]}),
    "chain without": (BY_SHARES["chain without"], {"b": [f"<{EX}c1>"]}),
    "rstream of a chain": (BY_SHARES["rstream of a chain"], {"c": [f"<{EX}c1>"]}),
    "counts of groups": (MERGED["counts of groups"], HEAVY),
    "groups": (MERGED["groups"], HEAVY),
    "counts by subject": (
        "SELECT ?c (COUNT(*) AS ?n) WHERE { STREAM :s [RANGE 60us] { ?c :v ?v ; :w ?w } } GROUP BY ?c",
        HEAVY,
    ),
}


def skewed(seed: int, count: int = 60, subjects: int = 6) -> list[Element]:
    """Half of the triples are about one subject."""
    chance = random.Random(f"skew {seed}")
    found = []
    for each in drawn(seed, count, subjects=subjects):
        triples = [(URIRef(EX + "c0") if chance.random() < 0.5 else s, p, o) for s, p, o in each.triples]
        found.append(replace(each, triples=tuple(dict.fromkeys(triples))))
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_results(name: str) -> None:
    (query, heavy), chance = QUERIES[name], random.Random(name)
    text = f"PREFIX : <{EX}> {query}"
    changelog = "REGISTER" not in text
    elements = skewed(chance.randrange(999))
    wanted = simulation.expected(text, elements, STATIC, Output.CHANGELOG if changelog else None)
    assert wanted, "a query that never answers shows nothing"
    found = simulation.run(
        text,
        elements,
        STATIC,
        changelog=changelog,
        cuts=[chance.randrange(60) for _ in range(chance.randrange(6))],
        tasks=chance.randrange(1, 4),
        parts=chance.choice((4, 5)),
        seed=chance.randrange(9),
        heavy=heavy,
    )
    assert found == wanted


@pytest.mark.parametrize("name", NOT_DIVIDED)
def test_what_cannot_be_divided_is_refused(name: str) -> None:
    reason = f"<{EX}c0> cannot be divided: {NOT_DIVIDED[name]}"
    with pytest.raises(UsageError, match=re.escape(reason)):
        stages(f"PREFIX : <{EX}> {DIVIDED[name]}", 4, changelog=True, heavy=HEAVY)


def test_mistakes() -> None:
    star = f"PREFIX : <{EX}> {DIVIDED['three patterns']}"
    with pytest.raises(UsageError, match=r"\?v has no heavy values, as it does not divide the state: \?c does"):
        stages(star, 4, changelog=True, heavy={"v": "<http://ex.org/x>"})
    with pytest.raises(UsageError, match=r"N-Triples texts, as '<http://ex.org/s1>': .*c0"):
        stages(star, 4, changelog=True, heavy={"c": ":c0"})
    with pytest.raises(UsageError, match="heavy has values by variable"):
        stages(star, 4, changelog=True, heavy=["<http://ex.org/s1>"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="heavy values cannot be divided: there is one partition"):
        stages(star, 1, changelog=True, heavy=HEAVY)
    with simulation.scratch() as place:
        prepare(star, state=place, partitions=4, changelog=True, heavy=HEAVY)
        with pytest.raises(UsageError, match="was made with other heavy values"):
            prepare(star, state=place, partitions=4, changelog=True, heavy={})
        job, _ = prepare(star, state=place, partitions=4, changelog=True, heavy=HEAVY)
        assert prepare(star, state=place, partitions=4, changelog=True)[0].parts == job.parts


def test_blocks_are_shown() -> None:
    text = f"PREFIX : <{EX}> {DIVIDED['three patterns']}"
    plan = compile_query(text, changelog=True).plan
    values = Noted().values({"c": f"<{EX}c0>"}, 16, Dictionary(strict=True))
    shown = describe(plan, 16, values)
    assert "the state is partitioned by ?c: 16 partitions" in shown
    assert f"mappings whose ?c is <{EX}c0> have 16 partitions of their own, by " in shown
    assert ": each has 42% of them" in shown
    assert "evaluate (16 tasks)" in shown


def test_half_of_the_triples_with_one_value() -> None:
    """The busiest of 16 tasks gets less than a third of the triples; without parts of their own one would get more than half."""
    elements = [each for each in skewed(5, 2000, subjects=500) if str(each.stream) == EX + "s"]
    text = f"PREFIX : <{EX}> SELECT ?c ?v ?w ?u WHERE {{ STREAM :s [NOW] {{ ?c :v ?v . ?c :w ?w . ?c :link ?u }} }}"
    busiest = {}
    for heavy in (None, {"c": f"<{EX}c0>"}):
        with simulation.scratch() as place:
            job, plan = prepare(text, state=place, partitions=16, changelog=True, heavy=heavy)
            rows = simulation.rows_of(elements, plan.streams, [f"g{i}" for i in range(len(elements))])
            simulation.Cluster(job, chance=1).run(0, [rows])
            tasks = [0] * 16
            for number, part in enumerate(loads(place)[0]):
                tasks[number % 16] += part.rows
            busiest[heavy is not None] = max(tasks) / statistics(place).triples
    assert busiest[False] > 0.5
    assert busiest[True] < 1 / 3


def test_heavy_values_are_found(caplog: pytest.LogCaptureFixture) -> None:
    """By the tasks together, though none of them alone has seen enough; those that are declared are not found again."""
    elements = [each for each in skewed(5, 3000, subjects=500) if str(each.stream) == EX + "s"]
    text = f"PREFIX : <{EX}> SELECT ?c ?v ?w ?u WHERE {{ STREAM :s [NOW] {{ ?c :v ?v . ?c :w ?w . ?c :link ?u }} }}"
    triples = [triple for each in elements for triple in each.triples]
    share = sum(str(subject) == f"{EX}c0" for subject, _, _ in triples) / len(triples)
    found: dict[str, dict[str, float]] | None = None
    for _ in range(2):
        with simulation.scratch() as place:
            job, plan = prepare(text, state=place, partitions=4, changelog=True, heavy=found)
            cluster, told = simulation.Cluster(job, chance=0.5, snapshots=0.5), []
            for batch, start in enumerate(range(0, len(elements), 300)):
                pieces = [elements[start + 100 * task : start + 100 * task + 100] for task in range(3)]
                tables = [
                    simulation.rows_of(each, plan.streams, [f"g{batch}x{task}x{n}" for n in range(len(each))])
                    for task, each in enumerate(pieces)
                ]
                cluster.run(batch, tables)
                told.append(heavy_values(place))
        if found is None:
            assert told[0] == {}, "of few triples nothing is said"
            assert list(told[-1]) == ["c"]
            assert told[-1]["c"] == {f"<{EX}c0>": pytest.approx(share, abs=0.001)}
            found = told[-1]
        else:
            assert told[-1] == {}
    messages = [each.message for each in caplog.records if "very many triples" in each.message]
    assert len(messages) == 1
    assert f"?c has values in very many triples, which heavy= can divide: <{EX}c0> {share:.0%}"[:-3] in messages[0]


def test_a_sample_of_a_large_task() -> None:
    """Counts are those of all triples, and of graphs and of a second pattern, too."""
    dictionary = Dictionary(strict=True)
    text = f"PREFIX : <{EX}> SELECT ?c WHERE {{ STREAM :s [NOW] {{ ?c :v ?v }} STREAM :t [NOW] {{ GRAPH ?c {{ ?x :w ?w }} }} }}"
    plan = compile_query(text, changelog=True).plan
    watched = watched_of(plan, stages_of(plan, 8)[0], dictionary)
    assert {(each.variable, each.position) for each in watched} == {("c", 0), ("c", 3)}
    a, b, v, w = dictionary.encode([f"<{EX}{name}>" for name in "abvw"]).tolist()
    n = 90_000
    rows = np.arange(n)
    batch = ElementBatch(
        rows,
        np.where(rows % 3 == 0, plan.streams.index(EX + "s"), plan.streams.index(EX + "t")).astype(np.int32),
        np.arange(n + 1),
        np.where(rows % 3 == 0, a, b),
        np.where(rows % 3 == 0, v, w),
        np.full(n, b),
        np.where(rows % 3 == 0, 0, b),
    )
    (found,) = sampled(batch, watched, 8, dictionary)
    assert found.all == pytest.approx(n, rel=0.02)
    assert found.values == {f"<{EX}a>": pytest.approx(n / 3, rel=0.05), f"<{EX}b>": pytest.approx(2 * n / 3, rel=0.05)}


@pytest.mark.parametrize("name", ["three patterns", "chain"])
def test_a_value_becomes_heavy(name: str) -> None:
    """Parts are split, and a value gets its own, between two micro-batches."""
    query, heavy = QUERIES[name]
    text, chance = f"PREFIX : <{EX}> {query}", random.Random(name)
    options: dict[str, Any] = {"changelog": True, "static": [list(STATIC.default)]}
    elements, rows = skewed(chance.randrange(99), COUNT), list[list[dict[str, Any]]]()
    with simulation.scratch() as place:
        parts, given, state = 4, None, place
        for batch in range(8):
            if batch in (3, 6):
                before, state = state, place.with_name(f"{place.name}-{batch}")
                migrate(before, text, to=state, partitions=parts * (4 if batch == 6 else 1), heavy=heavy, **options)
                parts, given = parts * (4 if batch == 6 else 1), heavy
            job, plan = prepare(text, state=state, partitions=parts, heavy=given, **options)
            rows.append(piece(simulation.Cluster(job, seed=batch, snapshots=0.3), plan, elements, batch))
        with pytest.raises(UsageError, match="heavy values of before stay heavy"):
            migrate(state, text, to=place.with_name(f"{place.name}-0"), partitions=parts, heavy={}, **options)
    wanted = simulation.expected(text, elements, STATIC, Output.CHANGELOG)
    assert wanted
    assert simulation.counted(list(chain.from_iterable(rows))) == wanted
