"""Sessions, steps and PARTITION BY in all their combinations, against the oracle at any batch size."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import URIRef

from cqels_py.algebra.nodes import Output
from tests.oracle.naive import Element
from tests.support import harness, traces
from tests.support.generators import FEW
from tests.support.traces import EX, STREAMS

pytestmark = pytest.mark.usefixtures("unmeasured")

TRIPLES = traces.triples(
    "a p 1, a p 2, b p 1, b p 2, c p 1, c q b, a q b, a q a, b q c, "
    "o1 of a, o1 kind i, o2 of b, o2 kind j, o1 of b, o2 kind i"
)
EXTENTS = (
    *("SESSION 1s", "SESSION 1s STEP 1s", "SESSION 2s STEP 3s START 500000", "SESSION 500ms STEP 2s"),
    *("COUNT 1 STEP 2", "COUNT 2 STEP 3", "COUNT 3 STEP 1", "TRIPLES 1 STEP 3", "TRIPLES 4 STEP 2", "TRIPLES 2 STEP 5"),
)
BY_ONE_PATTERN = (
    *(("?s :p ?n", ""), ("?s :p ?n", "?s"), ("?s ?x ?n . ?s :q ?o", "?s"), ("?s ?x ?o", "?o")),
    *(("?s :p ?n OPTIONAL { ?s :q ?o }", "?s ?n"), ("?s :p ?n FILTER NOT EXISTS { ?s :q ?o }", "?s")),
)
BY_SEVERAL = (("?o :of ?s . ?o :kind ?k", "?s ?k"), ("?s :q ?o . ?o :p ?n", "?s ?n"))


def window(extent: str, by: str) -> str:
    return f"STREAM <{STREAMS}s> [{extent}{f' PARTITION BY {by}' if by else ''}]"


@st.composite
def arriving(draw: st.DrawFn) -> list[Element]:
    one = st.tuples(
        st.sampled_from([0, 1, 1, 2, 3, 8]), st.sampled_from("sst"), st.lists(st.sampled_from(TRIPLES), max_size=4)
    )
    drawn = draw(st.lists(one, max_size=12))
    times = accumulate(halves for halves, _, _ in drawn)
    return [
        Element(time * 500_000, URIRef(STREAMS + stream), tuple(triples))
        for time, (_, stream, triples) in zip(times, drawn, strict=True)
    ]


@pytest.mark.parametrize("extent", EXTENTS)
def test_a_window(extent: str) -> None:
    blocks = BY_ONE_PATTERN if extent.startswith("TRIPLES") else (*BY_ONE_PATTERN, *BY_SEVERAL)

    @FEW
    @given(
        st.sampled_from(blocks),
        st.sampled_from(["", "", "[RANGE 2s]", "[RANGE 2s STEP 3s]"]),
        st.booleans(),
        arriving(),
    )
    def check(block: tuple[str, str], other: str, reported: bool, elements: list[Element]) -> None:
        body, by = block
        beside = f"STREAM <{STREAMS}t> {other} {{ ?y :p ?z }}" if other else ""
        query = f"PREFIX : <{EX}> SELECT * {{ {window(extent, by)} {{ {body} }} {beside} }}"
        streams = {URIRef(STREAMS + "s"), *([URIRef(STREAMS + "t")] if other else [])}
        mine = [element for element in elements if element.stream in streams]
        text = query.replace("SELECT", "REGISTER RSTREAM :o AS SELECT") if reported else query
        harness.assert_engine_right(text, mine, None, None if reported else Output.CHANGELOG)

    check()


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("by", ["", "?s"])
def test_a_window_over_nothing(extent: str, by: str) -> None:
    text = f"PREFIX : <{EX}> SELECT (COUNT(*) AS ?k) {{ {window(extent, by)} {{ ?s :p ?n }} }}"
    harness.assert_engine_right(text, [])
    harness.assert_engine_right(text, [Element(0, URIRef(STREAMS + "s"), ())])
