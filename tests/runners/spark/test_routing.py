"""Triples go to the partitions that need them, and to no others; plans tell by which variables they are partitioned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.batches.elements import ElementBatch
from cqels_py.dataflow.ownership import cell, owner_of
from cqels_py.dictionary import Dictionary
from cqels_py.distribution.hypercube import HypercubeShares
from cqels_py.distribution.stages import PlannedStage, stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.plan.nodes import Plan
from cqels_py.runners.spark.describe import describe
from cqels_py.runners.spark.routing import PartitionSlice, Route, Routing, combine, routing_of, slices
from tests.runners.spark.test_simulated import EX

S = "STREAM :s [RANGE 10s]"
TERMS = [f"<{EX}{name}>" for name in "abcdp"] + ['"5"^^<http://www.w3.org/2001/XMLSchema#integer>', '"text"', "_:x"]


def plan(text: str):  # type: ignore[no-untyped-def]
    return compile_query(f"PREFIX : <{EX}> {text}").plan


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        (f"SELECT ?a ?b WHERE {{ {S} {{ ?a :p ?b }} }}", "a"),
        (f"SELECT ?b WHERE {{ {S} {{ ?a :p ?b }} }}", "b"),
        (f"SELECT ?a ?b ?c WHERE {{ {S} {{ ?a :p ?b . ?b :q ?c }} }}", "b"),
        (f"SELECT ?b (COUNT(*) AS ?n) WHERE {{ {S} {{ ?a :p ?b }} }} GROUP BY ?b", "b"),
        (f"CONSTRUCT {{ ?a :r ?b }} WHERE {{ {S} {{ ?a :p ?b }} }}", "a"),
    ],
)
def test_divided_by(text: str, variable: str) -> None:
    (stage,) = stages_of(plan(text), 4)
    assert stage.shares is not None
    assert stage.shares.axes == ((variable, 4),)


CHAIN = f"{{ {S} {{ ?a :p ?b . ?b :q ?c . ?c :r ?d }} }}"
STAR = f"{{ {S} {{ ?a :p ?b . ?a :q ?c }} }}"


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        (f"SELECT ?a ?b ?c ?d WHERE {CHAIN}", ["b=2 c=2"]),
        (f"SELECT ?a ?d WHERE {CHAIN}", ["b=2 c=2", "a d"]),
        (f"SELECT ?a ?b ?c WHERE {{ {S} {{ ?a :p ?b . ?b :q ?c . ?c :r ?a }} }}", ["a=2 b=2"]),
        (f"SELECT ?a ?b ?c ?d WHERE {{ {S} {{ ?a :p ?b }} {S} {{ ?c :q ?d }} }}", ["a=2 c=2"]),
        (f"SELECT ?b WHERE {STAR}", ["a=4", "b"]),
        (f"SELECT DISTINCT ?b WHERE {STAR}", ["a=4", "b"]),
        (f"SELECT ?b (COUNT(*) AS ?n) WHERE {STAR} GROUP BY ?b", ["a=4", "b"]),
        (f"SELECT ?b ?c (SUM(?d) AS ?n) WHERE {CHAIN} GROUP BY ?b ?c", ["b=2 c=2"]),
        (f"SELECT ?a ?d (SUM(?b) AS ?n) WHERE {CHAIN} GROUP BY ?a ?d", ["b=2 c=2", "a d"]),
        (f"SELECT (SUM(?b) AS ?n) WHERE {STAR}", ["a=4", "without GROUP BY all is one group"]),
        (f"ASK WHERE {STAR}", ["a=4", "ASK has one answer about everything"]),
        (f"SELECT ?a ?b WHERE {STAR} ORDER BY ?b LIMIT 3", ["a=4", "LIMIT and OFFSET compare results of all values"]),
        (
            f"SELECT ?b (SUM(?c) AS ?n) WHERE {STAR} GROUP BY ?b ORDER BY ?n LIMIT 3",
            ["a=4", "b", "LIMIT and OFFSET compare results of all values"],
        ),
        (f"SELECT (COUNT(DISTINCT *) AS ?n) WHERE {STAR}", ["a=4", "without GROUP BY all is one group"]),
        (f"SELECT ?a ?b WHERE {{ {S} {{ ?a :p+ ?b }} }}", ["a path that repeats leads over triples of all values"]),
        (
            "SELECT ?a WHERE { STREAM :s [TRIPLES 9] { ?a :p ?b } }",
            ["the content of [TRIPLES 9] depends on triples of all parts"],
        ),
        (
            f"""SELECT ?a ?n WHERE {{ {S} {{ ?a :p ?b }}
            {{ SELECT (COUNT(*) AS ?n) WHERE {{ {S} {{ ?a :q ?c }} }} }} }}""",
            ["b=4", "a n"],
        ),
        (
            f"SELECT ?a ?b WHERE {{ {{ {S} {{ ?a :p :x }} }} UNION {{ {S} {{ ?b :p :x }} }} }}",
            ["?a is not in every part of the query; ?b is not in every part of the query"],
        ),
        (
            f"SELECT ?a ?b ?c WHERE {{ {S} {{ ?a :p ?b }} FILTER NOT EXISTS {{ {S} {{ ?b :q ?c }} }} }}",
            ["b=4"],
        ),
        (f"SELECT ?a ?b WHERE {{ {S} {{ ?a :p ?b }} MINUS {{ {S} {{ ?b :q ?c . ?c :r ?d }} }} }}", ["b=4"]),
        (f"SELECT ?a ?b ?x WHERE {{ {S} {{ ?a :p ?b }} VALUES (?a ?x) {{ (UNDEF 1) (:a 2) }} }}", ["a=4"]),
    ],
)
def test_stages(text: str, stages: list[str]) -> None:
    """By which variables each of them is partitioned, or why it is not."""
    found = []
    for stage in stages_of(plan(text), 4):
        axes = stage.shares.axes if stage.shares else ()
        found.append(" ".join(f"{name}={share}" for name, share in axes) or " ".join(stage.by) or stage.reason)
    assert found == stages


def test_one_partition_is_one_stage() -> None:
    (stage,) = stages_of(plan(f"SELECT ?b WHERE {STAR}"), 1)
    assert (stage.parts, stage.shares, stage.reason) == (1, None, "")


def test_the_reason_is_shown() -> None:
    shown = describe(plan(f"SELECT ?a ?b WHERE {{ {S} {{ ?a :p+ ?b }} }}"), 8)
    assert "the state is in one partition: a path that repeats leads over triples of all values" in shown
    assert "evaluate (1 task)" in shown


def test_stages_are_shown() -> None:
    shown = describe(plan(f"SELECT ?d (SUM(?a) AS ?n) WHERE {CHAIN} GROUP BY ?d ORDER BY ?n LIMIT 5"), 13)
    for line in (
        "partitioned by ?b (4) x ?c (3): 12 partitions of 13",
        f"<{EX}s>: triples ?a <{EX}p> ?b go to the 3 partitions of their object",
        f"<{EX}s>: triples ?b <{EX}q> ?c go to the partition of their subject and object",
        f"<{EX}s>: triples ?c <{EX}r> ?d go to the 4 partitions of their subject",
        "if equally many triples match each pattern there are 2.67 copies of a triple, and each partition has 22% of the triples",
        "stage 2, partitioned by ?d: 13 partitions",
        "gets the changes of ?d ?a, after join",
        "evaluates aggregates and the first rows",
        "stage 3, in one partition: LIMIT and OFFSET compare results of all values",
        "evaluate (12 tasks) ─ shuffle ─ stage 2 (13 tasks) ─ shuffle ─ stage 3 (1 task)",
    ):
        assert line in shown, shown


def test_routes_are_shown() -> None:
    shown = describe(plan(f"SELECT ?b WHERE {{ {S} {{ ?a :p ?b . ?b :q ?c }} }}"), 8)
    assert "partitioned by ?b: 8 partitions" in shown
    assert f"<{EX}s>: triples ?a <{EX}p> ?b go to the partition of their object" in shown
    assert f"<{EX}s>: triples ?b <{EX}q> ?c go to the partition of their subject" in shown


triples = st.lists(st.tuples(*[st.integers(0, len(TERMS) - 1)] * 3), max_size=6)


@given(st.lists(st.tuples(st.integers(0, 1), triples), max_size=6), st.integers(1, 5))
def test_each_partition_gets_the_triples_it_needs(
    elements: list[tuple[int, list[tuple[int, int, int]]]], parts: int
) -> None:
    dictionary = Dictionary(strict=True)
    ids = dictionary.encode(TERMS, scope=7)
    batch = batch_of(elements, ids)
    p = dictionary.encode_one(f"<{EX}p>")
    routes = [((0, p, 0), 0), ((0, 0, int(ids[0])), 1)]
    routing = Routing(
        parts,
        (*(Route(0, constants, ((at, parts, 1),)) for constants, at in routes), Route(1, (0, 0, 0), ((2, parts, 1),))),
    )
    element = np.repeat(np.arange(len(batch)), np.diff(batch.first))
    for part, slice_ in enumerate(slices(batch, routing, dictionary)):
        wanted = [
            (e, s, q, o)
            for e, s, q, o in zip(
                element.tolist(), batch.subject.tolist(), batch.predicate.tolist(), batch.object.tolist(), strict=True
            )
            if (batch.stream[e] == 0 and q == p and owner(s, parts) == part)
            or (batch.stream[e] == 0 and o == ids[0] and owner(q, parts) == part)
            or (batch.stream[e] == 1 and owner(o, parts) == part)
        ]
        received = combine([PartitionSlice.unpack(slice_.pack())], Dictionary(strict=True))
        assert received.time.tolist() == batch.time.tolist(), "every partition gets all times"
        assert received.stream.tolist() == batch.stream.tolist()
        mine = np.repeat(np.arange(len(received)), np.diff(received.first)).tolist()
        found = zip(mine, received.subject.tolist(), received.predicate.tolist(), received.object.tolist(), strict=True)
        assert list(found) == wanted


def batch_of(elements: list[tuple[int, list[tuple[int, int, int]]]], ids: np.ndarray) -> ElementBatch:  # type: ignore[type-arg]
    flat = np.array([triple for _, each in elements for triple in each], np.int64).reshape(-1, 3)
    first = np.cumsum([0, *(len(each) for _, each in elements)]).astype(np.int64)
    columns = [ids[flat[:, place]].copy() for place in range(3)]
    return ElementBatch(np.arange(len(elements)), np.array([s for s, _ in elements], np.int32), first, *columns)


def owner(identifier: int, parts: int) -> int:
    return int(owner_of(np.array([identifier]), parts)[0])


def test_hashed_ids_are_sent_with_their_texts() -> None:
    dictionary = Dictionary(strict=True)
    ids = dictionary.encode(TERMS, scope=7)
    batch = batch_of([(0, [(0, 4, 5), (1, 4, 6), (7, 4, 0)])], ids)
    slice_ = slices(batch, Routing(1, ()), dictionary)[0]
    other = Dictionary(strict=True)
    received = combine([slice_], other)
    for mine, theirs in ((received.subject, batch.subject), (received.object, batch.object)):
        assert other.decode(mine) == dictionary.decode(theirs)


def test_owners_are_spread_evenly() -> None:
    dictionary = Dictionary()
    for texts in (
        [f"<{EX}c{n}>" for n in range(4000)],
        [f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in range(4000)],
    ):
        counts = np.bincount(owner_of(dictionary.encode(texts), 8), minlength=8)
        assert counts.min() > 350
        assert counts.max() < 650


def divided(plan: Plan, axes: Sequence[tuple[str, int]]) -> PlannedStage:
    shares = HypercubeShares(tuple(axes), ())
    return PlannedStage(plan.root, shares.cells, shares)


def test_the_same_pattern_of_two_windows_is_one_route() -> None:
    found = plan(f"SELECT ?a WHERE {{ {S} {{ ?a :p ?b }} STREAM :s [COUNT 9] {{ ?a :p ?c }} }}")
    assert len(routing_of(found, divided(found, [("a", 2)]), Dictionary()).routes) == 1


@given(st.lists(st.tuples(st.integers(0, 0), triples), max_size=6), st.integers(1, 3), st.integers(1, 3))
def test_triples_that_agree_meet_in_one_cell(
    elements: list[tuple[int, list[tuple[int, int, int]]]], b: int, c: int
) -> None:
    """Each combination that a chain joins is in exactly one partition, and no partition gets a triple it does not need."""
    dictionary = Dictionary(strict=True)
    batch = batch_of(elements, dictionary.encode(TERMS, scope=7))
    found = plan(f"SELECT * WHERE {{ {S} {{ ?a ?x ?b . ?b :p ?c . ?c ?y ?d }} }}")
    axes = [("b", b), ("c", c)]
    routing = routing_of(found, divided(found, axes), dictionary)
    rows, parts = routing.owners(batch)
    p, s, o = dictionary.encode_one(f"<{EX}p>"), batch.subject, batch.object
    where = {(int(row), int(part)) for row, part in zip(rows, parts, strict=True)}
    assert len(where) == len(rows)
    needed = set()
    for part in range(b * c):
        at_b, at_c = cell(axes, part)
        for row in range(batch.triples):
            middle = batch.predicate[row] == p and at_b.mine(s[[row]])[0] and at_c.mine(o[[row]])[0]
            if at_b.mine(o[[row]])[0] or at_c.mine(s[[row]])[0] or middle:
                needed.add((row, part))
    assert where == needed
    for row in range(batch.triples):
        if batch.predicate[row] == p:
            cells = [
                n for n in range(b * c) if all((cell(axes, n)[0].mine(s[[row]])[0], cell(axes, n)[1].mine(o[[row]])[0]))
            ]
            assert len(cells) == 1
            assert (row, cells[0]) in where
