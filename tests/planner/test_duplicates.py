"""Duplicates dropped below a join under DISTINCT: where the plan does it, and that answers stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.engine.compile import compile_query
from cqels_py.plan.nodes import DistinctRowsOf, JoinAll, Node, inputs_of
from tests.oracle.naive import Element, Static
from tests.oracle.naive_algebra import Triple
from tests.support import harness
from tests.support.generators import FEW
from tests.support.traces import STREAMS
from tests.test_factorised_against_oracle import KEYS, PREFIX, WINDOWS, element_lists, triple

ONE, TWO = f"STREAM <{STREAMS}one>", f"STREAM <{STREAMS}two>"


def made_distinct(node: Node) -> int:
    """How many inputs of joins are made distinct."""
    below = inputs_of(node)
    here = isinstance(node, JoinAll) and sum(isinstance(i, DistinctRowsOf) for i in below)
    return here + sum(map(made_distinct, below))


CASES = {
    "subject": ("DISTINCT ?k { A { ?k :p ?x } B { ?y :q ?k } }", 1),
    "all": ("?k { A { ?k :p ?x } B { ?y :q ?k } }", 0),
    "asked": ("DISTINCT ?y { A { ?k :p ?x } B { ?y :q ?k } }", 0),
    "no join": ("DISTINCT ?k { B { ?y :q ?k } }", 0),
    "no column": ("DISTINCT ?k { A { ?k :p ?x } B { ?y :q :o } }", 0),
    "filter": ("DISTINCT ?k { A { ?k :p ?x } B { ?y :q ?k } FILTER(?y != ?k) }", 0),
    "linked in one window": ("DISTINCT ?k ?z { A { ?k :p ?x . ?x :q ?y } B { ?y :r ?z } }", 1),
    "linked in two windows": ("DISTINCT ?k ?z { A { ?k :p ?x } B { ?x :q ?y . ?y :r ?z } }", 1),
    "linked and asked": ("DISTINCT ?x { A { ?k :p ?x . ?x :q ?y } B { ?y :r ?z } }", 1),
    "all linked": ("DISTINCT ?k ?z { A { ?k :p ?x . ?x :q ?y . ?y :r ?z } }", 0),
    "star": ("DISTINCT ?x ?y { A { ?k :p ?x ; :q ?y } B { ?x :r ?y } }", 1),
    "condition": ("DISTINCT ?x ?y { A { ?k :p ?x ; :q ?y . ?x :r ?y . ?y :p ?x } B { ?z :r ?k } }", 2),
    "condition of all but one": ("DISTINCT ?x ?y { A { ?k :p ?x ; :q ?y . ?x :r ?y } B { ?z :r ?k } }", 1),
    "no subject": ("DISTINCT ?x ?y { A { ?x :p ?k . ?y :q ?k } B { ?x :r ?y } }", 0),
}


def in_windows(text: str, one: str = "[COUNT 9]", two: str = "[COUNT 9]") -> str:
    return f"{PREFIX}SELECT " + text.replace("A {", f"{ONE} {one} {{").replace("B {", f"{TWO} {two} {{")


@pytest.mark.parametrize("case", CASES)
def test_where_copies_are_dropped(case: str) -> None:
    text, inputs = CASES[case]
    assert made_distinct(compile_query(in_windows(text)).plan.root) == inputs


BODIES = (
    "?k { A { ?k :p ?x } B { ?y :q ?k } }",
    "?x { A { ?k :p ?x . ?z :r ?x } B { ?y :q ?k } }",
    "?x (STR(?k) AS ?t) { A { ?k :p ?x } B { ?y :q ?k FILTER(?y != :a) } }",
    "?k ?m { A { ?k :p ?x } B { ?y :q ?k } ?n :r ?m . ?k :p ?m }",
    "?x { A { ?k :p ?x } OPTIONAL { B { ?y :q ?k } } B { ?z :r ?x } }",
    "?k ?z { A { ?k :p ?x . ?x :q ?y } B { ?y :r ?z } }",
    "?k ?y ?z { A { ?k :p ?x . ?x :q ?y } B { ?y :r ?z . ?w :p ?k } }",
    "?x ?y { A { ?k :p ?x ; :q ?y ; :r ?z } B { ?x :r ?y . ?y :p ?n } }",
    "?k ?x { A { ?k :p ?x ; :q ?y . ?x :r ?y } B { ?z :r ?k } }",
    "?k ?x ?w { A { ?k :p ?x ; :q ?y } B { ?z :r ?k } ?w :p ?x . B { ?w :q ?y } }",
)


@pytest.mark.parametrize("body", BODIES)
def test_answers_stay(body: str) -> None:
    @FEW
    @given(
        st.sampled_from(WINDOWS),
        st.sampled_from(WINDOWS),
        element_lists(KEYS),
        st.lists(triple(KEYS), max_size=4, unique=True),
    )
    def check(one: str, two: str, elements: list[Element], static: list[Triple]) -> None:
        harness.assert_engine_right(
            in_windows(f"DISTINCT {body}", one, two), elements, Static(static), batches=(1, 3, None)
        )

    check()
