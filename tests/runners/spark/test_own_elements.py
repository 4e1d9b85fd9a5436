"""Parts that get only the elements with triples of their own have the results of those that get the times of all."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.engine.compile import compile_query
from cqels_py.runners.spark import stage
from cqels_py.spark import prepare, statistics
from tests.runners.spark import simulation
from tests.runners.spark.test_simulated import DIVIDED, EX, STATIC, drawn
from tests.runners.spark.test_stages import MERGED

ALONE = (
    "by the object",
    "dstream",
    "filter, bind",
    "having",
    "not exists",
    "now",
    "optional",
    "rstream",
    "static",
    "step",
    "three patterns",
    "tumbling",
    "union",
    "values",
)
"""Of the queries that are divided, those whose windows depend on time only."""
STAGES = {
    **{name: text for name, text in MERGED.items() if name not in ("extremes",)},
    "ends of a chain": "SELECT ?a ?d WHERE { STREAM :s [RANGE 50us] { ?a :link ?b . ?b :link ?c . ?c :v ?d } }",
    "step of several": """SELECT ?v (COUNT(*) AS ?n) WHERE { STREAM :s [RANGE 60us STEP 20us] { ?c :v ?v }
                          STREAM :t [RANGE 60us STEP 30us] { ?c :w ?w } } GROUP BY ?v""",
    "step and range": """SELECT ?v (COUNT(*) AS ?n) WHERE { STREAM :s [RANGE 60us STEP 20us] { ?c :v ?v }
                         STREAM :t [RANGE 60us] { ?c :w ?w } } GROUP BY ?v""",
}
ALL_ELEMENTS = {"step and range"}


def text_of(name: str) -> str:
    return f"PREFIX : <{EX}> {DIVIDED[name]}"


def changelog(name: str) -> bool:
    return name not in ("rstream", "dstream")


def test_which_queries_keep_to_own_elements() -> None:
    found = []
    for name in DIVIDED:
        with simulation.scratch() as place:
            job, _ = prepare(text_of(name), state=place, partitions=4, changelog=changelog(name))
            in_order, _ = prepare(
                text_of(name), state=place / "in_order", partitions=4, changelog=changelog(name), in_order=True
            )
        assert not in_order.routing.own_elements
        found += [name] if job.routing.own_elements else []
    assert set(ALONE) <= set(found)
    others = {"join of windows", "count", "count step", "minus"}
    assert not others & set(found)


@pytest.mark.parametrize("lateness", [0, 25])
@pytest.mark.parametrize("name", ALONE)
def test_results(name: str, lateness: int) -> None:
    """Many subjects, so that most elements have triples of one part only; several tasks, and micro-batches of any size."""
    text, chance = text_of(name), random.Random(f"{name}{lateness}")
    elements = drawn(chance.randrange(1000), 120, subjects=15)
    wanted = simulation.expected(text, elements, STATIC, Output.CHANGELOG if changelog(name) else None)
    assert wanted
    for parts in (2, 5):
        found = simulation.run(
            text,
            elements,
            STATIC,
            changelog=changelog(name),
            cuts=[chance.randrange(120) for _ in range(chance.randrange(6))],
            tasks=chance.randrange(1, 4),
            parts=parts,
            lateness=lateness,
            seed=chance.randrange(10),
        )
        assert found == wanted


@pytest.mark.parametrize("name", STAGES)
def test_ticks_of_parts_are_combined(name: str) -> None:
    """Also where elements have the same times: the n-th ticks of an instant are one."""
    text = f"PREFIX : <{EX}> {STAGES[name]}"
    changes, chance = "REGISTER" not in text, random.Random(name)
    streams = compile_query(text, changelog=changes).plan.streams
    for coarse in (1, 10):
        elements = [
            replace(each, time=each.time // coarse * coarse)
            for each in drawn(chance.randrange(1000), 80, subjects=9)
            if str(each.stream) in streams
        ]
        elements = simulation.in_spark_order(elements, streams)
        with simulation.scratch() as place:
            job, _ = prepare(text, state=place, partitions=3, changelog=changes)
            assert job.routing.own_elements == job.routing.instants == (name not in ALL_ELEMENTS)
        cuts = [chance.randrange(80) for _ in range(4)] if coarse == 1 else []
        found = simulation.run(
            text, elements, STATIC, changelog=changes, cuts=cuts, tasks=1, parts=3, seed=chance.randrange(10)
        )
        wanted = simulation.expected(text, elements, STATIC, Output.CHANGELOG if changes else None)
        assert wanted
        assert found == wanted


@pytest.mark.parametrize("lateness", [0, 12])
def test_elements_are_counted_as_if_each_part_had_all(lateness: int) -> None:
    """All parts drop the same elements, though each sees only its own; what waits at the end has not been counted as processed."""
    streams = ["http://ex.org/s"]
    elements = [each for each in drawn(3, 200, disorder=60, subjects=40) if str(each.stream) in streams]
    counts = []
    for parts in (1, 4):
        with simulation.scratch() as place:
            job, plan = prepare(
                text_of("three patterns"), state=place, partitions=parts, changelog=True, lateness=lateness
            )
            assert job.routing.own_elements == (parts > 1)
            cluster = simulation.Cluster(job, seed=parts)
            for batch in range(12):
                piece = elements[batch * 6 : batch * 6 + 6]
                cluster.run(
                    batch, [simulation.rows_of(piece, plan.streams, [f"g{batch}x{i}" for i in range(len(piece))])]
                )
                found = statistics(place)
                counts.append((found.elements, found.late, found.event_time))
    assert counts[:12] == counts[12:]
    assert counts[11][1] > 0


def test_bytes_of_elements() -> None:
    """With 16 parts fewer bytes are sent than if each part got the times of all elements."""
    with simulation.scratch() as place:
        job, plan = prepare(text_of("by the object"), state=place, partitions=16, changelog=True)
    elements = [each for each in drawn(5, 4000, subjects=500) if str(each.stream) in plan.streams]
    rows = simulation.rows_of(elements, plan.streams, [f"g{i}" for i in range(len(elements))])
    sizes = []
    for own in (True, False):
        each = replace(job, routing=replace(job.routing, own_elements=own))
        made = list(stage.route(each, [rows], 0, 0))
        sizes.append(sum(len(data) for batch in made for data in batch.column("data").to_pylist()))
    assert sizes[0] < 0.9 * sizes[1]
