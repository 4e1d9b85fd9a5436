"""Duplicates dropped below a join under DISTINCT: where the plan does it, and that answers stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.engine import compile_query
from cqels_py.plan.nodes import DistinctRowsOf, JoinAll, Node, Scan, inputs_of
from tests import harness
from tests.generators import FEW
from tests.naive import Element, Static
from tests.test_factorised_against_oracle import KEYS, PREFIX, WINDOWS, element_lists
from tests.traces import STREAMS

ONE, TWO = f"STREAM <{STREAMS}one>", f"STREAM <{STREAMS}two>"


def made_distinct(node: Node) -> int:
    """How many inputs of joins are made distinct."""
    below = inputs_of(node)
    here = isinstance(node, JoinAll) and sum(isinstance(i, DistinctRowsOf) and isinstance(i.input, Scan) for i in below)
    return here + sum(map(made_distinct, below))


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        pytest.param(
            f"DISTINCT ?k {{ {ONE} [COUNT 9] {{ ?k :p ?x }} {TWO} [COUNT 9] {{ ?y :q ?k }} }}", 1, id="subject"
        ),
        pytest.param(f"?k {{ {ONE} [COUNT 9] {{ ?k :p ?x }} {TWO} [COUNT 9] {{ ?y :q ?k }} }}", 0, id="all"),
        pytest.param(f"DISTINCT ?y {{ {ONE} [COUNT 9] {{ ?k :p ?x }} {TWO} [COUNT 9] {{ ?y :q ?k }} }}", 0, id="asked"),
        pytest.param(f"DISTINCT ?k {{ {TWO} [COUNT 9] {{ ?y :q ?k }} }}", 0, id="no join"),
        pytest.param(
            f"DISTINCT ?k {{ {ONE} [COUNT 9] {{ ?k :p ?x }} {TWO} [COUNT 9] {{ ?y :q :o }} }}", 0, id="no column"
        ),
        pytest.param(
            f"DISTINCT ?k {{ {ONE} [COUNT 9] {{ ?k :p ?x }} {TWO} [COUNT 9] {{ ?y :q ?k }} FILTER(?y != ?k) }}",
            0,
            id="filter",
        ),
    ],
)
def test_where_copies_are_dropped(text: str, inputs: int) -> None:
    assert made_distinct(compile_query(f"{PREFIX}SELECT {text}").root) == inputs


BODIES = (
    "?k { A { ?k :p ?x } B { ?y :q ?k } }",
    "?x { A { ?k :p ?x . ?z :r ?x } B { ?y :q ?k } }",
    "?x (STR(?k) AS ?t) { A { ?k :p ?x } B { ?y :q ?k FILTER(?y != :a) } }",
    "?k ?m { A { ?k :p ?x } B { ?y :q ?k } ?n :r ?m . ?k :p ?m }",
    "?x { A { ?k :p ?x } OPTIONAL { B { ?y :q ?k } } B { ?z :r ?x } }",
)


@pytest.mark.parametrize("body", BODIES)
def test_answers_stay(body: str) -> None:
    triples = st.tuples(st.sampled_from(KEYS), st.sampled_from(KEYS), st.sampled_from(KEYS))

    @FEW
    @given(
        st.sampled_from(WINDOWS),
        st.sampled_from(WINDOWS),
        element_lists(KEYS),
        st.lists(triples, max_size=4, unique=True),
    )
    def check(one: str, two: str, elements: list[Element], static: list[tuple[object, ...]]) -> None:
        text = body.replace("A {", f"{ONE} {one} {{").replace("B {", f"{TWO} {two} {{")
        harness.assert_engine_right(f"{PREFIX}SELECT DISTINCT {text}", elements, Static(static), batches=(1, 3, None))

    check()
