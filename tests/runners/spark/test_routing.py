"""Triples go to the parts that need them, and to no others; plans say by what they are divided."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.batches.elements import ElementBatch
from cqels_py.dataflow.ownership import owner_of
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.engine import compile_query
from cqels_py.planner.partitioning import division_of
from cqels_py.runners.spark.describe import describe
from cqels_py.runners.spark.routing import Route, Routing, Share, combine, routing_of, shares
from tests.runners.spark.test_simulated import EX

S = "STREAM :s [RANGE 10s]"
TERMS = [f"<{EX}{name}>" for name in "abcdp"] + ['"5"^^<http://www.w3.org/2001/XMLSchema#integer>', '"text"', "_:x"]


def plan(text: str):  # type: ignore[no-untyped-def]
    return compile_query(f"PREFIX : <{EX}> {text}")


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
    assert division_of(plan(text)).variable == variable


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"ASK WHERE {{ {S} {{ ?a :p ?b }} }}", "ASK has one answer"),
        (
            f"SELECT ?a ?b ?c ?d WHERE {{ {S} {{ ?a :p ?b . ?b :q ?c . ?c :r ?d }} }}",
            "no variable is in every triple pattern",
        ),
        (f"SELECT ?b WHERE {{ {S} {{ ?a :p ?b . ?a :q ?c }} }}", r"\?a is no variable of the results"),
        (f"SELECT (COUNT(*) AS ?n) WHERE {{ {S} {{ ?a :p ?b }} }}", "no variable is in every triple pattern"),
        ("SELECT ?a WHERE { STREAM :s [TRIPLES 9] { ?a :p ?b } }", r"what \[TRIPLES 9\] holds depends on triples"),
        (
            f"SELECT ?a ?b WHERE {{ {S} {{ ?a :p ?b }} }} ORDER BY ?b LIMIT 3",
            "^LIMIT and OFFSET compare results of all values$",
        ),
        (f"SELECT ?a ?b WHERE {{ {S} {{ ?a :p+ ?b }} }}", "^no variable of the results is in every triple pattern"),
        (f"SELECT ?a ?b WHERE {{ {S} {{ :x ?a ?c }} {S} {{ :y ?b ?d }} }}", "no variable is in every"),
        (f"SELECT DISTINCT ?b WHERE {{ {S} {{ ?a :p ?b . ?a :q ?c }} }}", "no variable of the results"),
    ],
)
def test_not_divided_because(text: str, reason: str) -> None:
    found = division_of(plan(text))
    assert found.variable is None
    assert re.search(reason, found.reason), found.reason


def test_the_reason_is_shown() -> None:
    shown = describe(plan(f"ASK WHERE {{ {S} {{ ?a :p ?b }} }}"), 8)
    assert "the state is in one part: ASK has one answer about everything" in shown
    assert "evaluate (1 task)" in shown


def test_routes_are_shown() -> None:
    shown = describe(plan(f"SELECT ?b WHERE {{ {S} {{ ?a :p ?b . ?b :q ?c }} }}"), 8)
    assert "divided by ?b: 8 parts" in shown
    assert f"<{EX}s>: triples ?a <{EX}p> ?b go to the part of their object" in shown
    assert f"<{EX}s>: triples ?b <{EX}q> ?c go to the part of their subject" in shown


triples = st.lists(st.tuples(*[st.integers(0, len(TERMS) - 1)] * 3), max_size=6)


@given(st.lists(st.tuples(st.integers(0, 1), triples), max_size=6), st.integers(1, 5))
def test_each_part_gets_what_it_needs(elements: list[tuple[int, list[tuple[int, int, int]]]], parts: int) -> None:
    dictionary = Dictionary(strict=True)
    ids = dictionary.encode(TERMS, scope=7)
    batch = batch_of(elements, ids)
    p = dictionary.encode_one(f"<{EX}p>")
    routing = Routing(parts, (Route(0, (0, p, 0), 0), Route(0, (0, 0, int(ids[0])), 1), Route(1, (0, 0, 0), 2)))
    element = np.repeat(np.arange(len(batch)), np.diff(batch.first))
    for part, share in enumerate(shares(batch, routing, dictionary)):
        wanted = [
            (e, s, q, o)
            for e, s, q, o in zip(
                element.tolist(), batch.subject.tolist(), batch.predicate.tolist(), batch.object.tolist(), strict=True
            )
            if (batch.stream[e] == 0 and q == p and owner(s, parts) == part)
            or (batch.stream[e] == 0 and o == ids[0] and owner(q, parts) == part)
            or (batch.stream[e] == 1 and owner(o, parts) == part)
        ]
        received = combine([Share.unpack(share.pack())], Dictionary(strict=True))
        assert received.time.tolist() == batch.time.tolist(), "every part learns all times"
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


def test_texts_come_along_with_hashed_ids() -> None:
    dictionary = Dictionary(strict=True)
    ids = dictionary.encode(TERMS, scope=7)
    batch = batch_of([(0, [(0, 4, 5), (1, 4, 6), (7, 4, 0)])], ids)
    share = shares(batch, Routing(1, ()), dictionary)[0]
    other = Dictionary(strict=True)
    received = combine([share], other)
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


def test_the_same_pattern_of_two_windows_is_one_route() -> None:
    found = plan(f"SELECT ?a WHERE {{ {S} {{ ?a :p ?b }} STREAM :s [COUNT 9] {{ ?a :p ?c }} }}")
    assert len(routing_of(found, "a", 2, Dictionary()).routes) == 1
