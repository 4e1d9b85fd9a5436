"""The triples in the windows of queries, against a list of all elements."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cqels_py import Engine
from cqels_py.engine.contents import WindowGraph, as_n_quads, windows_of
from cqels_py.engine.query import Query

S = 1_000_000
W = "STREAM <urn:s> "


def _in_range(size: int, step: int = 0) -> Callable[[int, int, int], bool]:
    """Is the element with this time, at this place from the end, in the window now?"""

    def inside(time: int, _: int, now: int) -> bool:
        # Others may come at this instant: its boundary has not passed.
        end = (now - 1) // step * step if step else now
        return end - size < time <= end

    return inside


JOIN = "{ ?x <urn:a> ?y . ?x <urn:b> ?z }"
CASES: dict[str, tuple[str, str, Callable[[int, int, int], bool]]] = {
    "join": (f"SELECT * {{ {W}[RANGE 10s] {JOIN} }}", "ab", _in_range(10 * S)),
    "one": (f"SELECT * {{ {W}[RANGE 10s] {{ ?x <urn:a> ?y }} }}", "a", _in_range(10 * S)),
    "steps": (f"SELECT * {{ {W}[RANGE 10s STEP 5s] {JOIN} }}", "ab", _in_range(10 * S, 5 * S)),
    "groups": (
        f"SELECT ?x (MAX(?y) AS ?n) (MAX(?z) AS ?m) {{ {W}[RANGE 10s] {JOIN} }} GROUP BY ?x",
        "ab",
        _in_range(10 * S),
    ),
    "negation": (
        f"SELECT * {{ {W}[RANGE 10s] {{ ?x <urn:a> ?y . ?y <urn:c> ?u MINUS {{ ?x <urn:b> ?y }} }} }}",
        "abc",
        _in_range(10 * S),
    ),
    "optional": (
        f"SELECT * {{ {W}[RANGE 10s] {{ ?x <urn:a> ?y OPTIONAL {{ ?x <urn:b> ?z }} }} }}",
        "ab",
        _in_range(10 * S),
    ),
    "rows": (f"SELECT * {{ {W}[COUNT 3] {JOIN} }}", "ab", lambda time, place, now: place < 3),
    "partitioned": (
        f"SELECT * {{ {W}[COUNT 100 PARTITION BY ?x] {{ ?x <urn:a> ?y . ?x <urn:b> ?z }} }}",
        "ab",
        lambda time, place, now: True,
    ),
    "all": (f"SELECT * {{ {W}[ALL] {JOIN} }}", "ab", lambda time, place, now: True),
    "distinct": (f"SELECT DISTINCT ?x ?y ?z {{ {W}[RANGE 10s] {JOIN} }}", "ab", _in_range(10 * S)),
}

_elements = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from("xyz"), st.sampled_from("abcd"), st.sampled_from("xy")), max_size=25
)


def _held(engine: Engine, query: Query, window: int = 0) -> set[str]:
    return set(b"".join(as_n_quads(engine, [WindowGraph(query, window, "urn:g")], (), (), 1000)).decode().splitlines())


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=15, deadline=None)
@given(drawn=_elements)
def test_windows_have_the_triples_that_match(name: str, drawn: list[tuple[int, str, str, str]]) -> None:
    text, predicates, inside = CASES[name]
    with Engine() as engine:
        # Another query shares the scans.
        query, _ = engine.register(text), engine.register(CASES["join"][0])
        taken, now = [], 0
        for gap, s, p, o in drawn:
            now += gap * S
            triple = (f"<urn:{s}>", f"<urn:{p}>", f"<urn:{o}>")
            engine.push("urn:s", [triple], time=now)
            taken.append((now, triple))
        engine.flush()
        expected = {
            " ".join((*triple, "<urn:g> ."))
            for place, (time, triple) in enumerate(reversed(taken))
            if inside(time, place, now) and triple[1][5] in predicates
        }
        assert windows_of(query)[0].unkept is None
        assert _held(engine, query) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"SELECT * {{ {W}[ALL] {{ ?x <urn:a> ?y }} }}", "never leave"),
        (f"SELECT ?x {{ {W}[RANGE 1s] {{ ?x <urn:a> ?y }} }}", "does not keep ?y"),
        (
            "SELECT * { MATCH WITHIN 5m { EVENT ON <urn:s> { ?x <urn:a> ?y } SEQ EVENT ON <urn:s> { ?x <urn:b> ?z } } }",
            "runs",
        ),
    ],
)
def test_windows_that_keep_no_triples_say_why(text: str, reason: str) -> None:
    with Engine() as engine:
        assert reason in str(windows_of(engine.register(text))[0].unkept)


def test_static_data_is_the_default_graph() -> None:
    with Engine() as engine:
        static = b"<urn:x> <urn:c> <urn:y> .\n<urn:x> <urn:c> <urn:z> <urn:h> .\n"
        query = engine.register(f"SELECT * {{ {W}[RANGE 1s] {{ ?x <urn:a> ?y }} ?x <urn:c> ?u }}", static=static)
        assert as_n_quads(engine, (), [query], (), 10) == [b"<urn:x> <urn:c> <urn:y>  .\n"]
        with pytest.raises(OverflowError):
            as_n_quads(engine, (), [query], (), 0)
