"""The rewrites: tests/golden/rewrites/NAME.rq gives NAME.rules, the algebra as parsed and after each rule that changes it.

After a change that is meant: CQELS_UPDATE_GOLDEN=1 python -m pytest tests/rewrites/test_rules.py, and read the difference.
Golden rewrites are executed too: the oracle gives the same answers before and after, tick by tick.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, reduce
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import URIRef

from cqels_py.algebra.nodes import ContinuousQuery, Dialect, Filter, Pattern
from cqels_py.algebra.printer import algebra_text, pattern_text
from cqels_py.algebra.traverse import bottom_up
from cqels_py.parser import parse
from cqels_py.rewrites import OPTIONAL, REQUIRED, rewrite
from cqels_py.rewrites.push_filters import conjuncts
from tests.oracle import naive
from tests.oracle.naive import Element, Static
from tests.oracle.naive_algebra import Triple
from tests.support import traces
from tests.support.drawn_windows import WINDOWS
from tests.support.generators import (
    FEATURES,
    FEW,
    LABEL,
    LINK,
    NODES,
    Scenario,
    element_lists,
    scenarios,
    static_data,
    triple_of,
)
from tests.support.traces import EX, STREAMS

GOLDEN = Path(__file__).parents[1] / "golden" / "rewrites"
QUERIES = sorted(GOLDEN.glob("*.rq"))
PREDICATES = ("int", "dec", LINK)

UNTOUCHED = {
    "push_windows": ["windows-in-union"],
    "flatten_joins": ["filters-over-slices", "windows-in-union"],
    "push_filters": [
        "filters-over-failing-bind",
        "filters-over-groups",
        "filters-over-half-a-union",
        "filters-over-minus",
        "filters-over-optional",
        "filters-over-slices",
        "filters-over-distinct",
        "filters-of-optional",
        "filters-without-variables",
    ],
}
"""Where a rule must not apply, although the query has what it looks for."""

RARE = {"join_events", "expand_window_variables", "graph_by_graph", "absent_graphs"}
"""Rules that golden files name only where they change the pattern."""


@cache
def read(name: str) -> ContinuousQuery:
    return parse((GOLDEN / f"{name}.rq").read_text(encoding="utf-8"), source=f"{name}.rq")


def steps(query: ContinuousQuery) -> Iterator[tuple[str, Pattern]]:
    """The pattern after each of the rules; after those that apply to few queries, if it has changed."""
    before = query.pattern
    for rule in (*REQUIRED, *OPTIONAL):
        after = rule(before)
        if rule.__name__ not in RARE or after != before:
            yield rule.__name__, after
        before = after


def rules_text(query: ContinuousQuery) -> str:
    """The algebra, then the pattern after each rule that changes it."""
    parts = [algebra_text(query)]
    before = query.pattern
    for name, after in steps(query):
        parts.append(f"--- {name}\n{'the same' if after == before else pattern_text(after)}")
        before = after
    return "\n".join(parts) + "\n"


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_rewrites_stay_what_they_are(path: Path) -> None:
    found = rules_text(read(path.stem))
    golden = path.with_suffix(".rules")
    if os.environ.get("CQELS_UPDATE_GOLDEN") == "1":
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


def test_every_golden_file_has_its_query() -> None:
    assert {path.stem for path in GOLDEN.glob("*.rules")} == {path.stem for path in QUERIES}
    assert {name for names in UNTOUCHED.values() for name in names} <= {path.stem for path in QUERIES}
    assert set(UNTOUCHED) == {rule.__name__ for rule in (*REQUIRED, *OPTIONAL)} - RARE


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, names in UNTOUCHED.items() for name in names])
def test_where_a_rule_must_not_apply(rule: str, name: str) -> None:
    before = read(name).pattern
    for done, pattern in steps(read(name)):
        if done == rule:
            assert pattern == bottom_up(before, split)
            return
        before = pattern


def split(pattern: Pattern) -> Pattern:
    """A filter for each part of a conjunction, all in the same place."""
    if not isinstance(pattern, Filter):
        return pattern
    return reduce(Filter, conjuncts(pattern.condition), pattern.pattern)


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_rewriting_twice_changes_nothing_more(path: Path) -> None:
    once = rewrite(read(path.stem))
    assert rewrite(once) == once


# --- executed ------------------------------------------------------------------------------------------------------


def assert_same_answers(query: ContinuousQuery, elements: Sequence[Element], static: Static) -> int:
    """Every rule leaves the answers of all ticks as they are; how many rows there were."""
    before = naive.ticks(query, elements, static)
    for name, pattern in steps(query):
        after = naive.ticks(replace(query, pattern=pattern), elements, static)
        for one, other in zip(before, after, strict=True):
            assert one.answer == other.answer, f"{name} changes the answer at {one.time}\n{pattern_text(pattern)}"
    return sum(len(tick.rows) for tick in before)


STREAM = element_lists(PREDICATES, ["one", "two"], {}, most=12)


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_golden_rewrites_answer_alike(path: Path) -> None:
    query = read(path.stem)

    @FEW
    @given(STREAM, static_data())
    def check(elements: tuple[Element, ...], static: Static) -> None:
        assert_same_answers(query, elements, static)

    check()


def many_elements(count: int) -> tuple[list[Element], Static]:
    """A stream and static data that leave few patterns without a match."""
    rng = random.Random(7)

    values = {"int": ("0", "1", "2", "3"), "dec": ("0.1", "1.5", "2.5"), LINK: NODES}
    elements = []
    for i in range(count):
        chosen = rng.sample(PREDICATES, 2)
        content = ", ".join(f"{rng.choice(NODES)} {p} {rng.choice(values[p])}" for p in chosen)
        graph = rng.choice([None, URIRef(EX + "g"), URIRef(EX + "h")])
        elements.append(
            Element(500_000 * i, URIRef(STREAMS + rng.choice(["one", "two"])), traces.triples(content), graph)
        )
    labels = traces.triples(f"a {LABEL} 'x', b {LABEL} 'y', b {LABEL} 'z', c {LABEL} 'w', a {LINK} a, b {LINK} c")
    named: dict[URIRef, Sequence[Triple]] = {
        URIRef(EX + "g"): labels[:3],
        URIRef(EX + "h"): (*labels[1:2], *labels[3:]),
    }
    return elements, Static(labels, named)


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_golden_rewrites_answer_something(path: Path) -> None:
    """Or that they answer alike would say nothing."""
    rows = assert_same_answers(read(path.stem), *many_elements(40))
    assert (rows > 0) == (path.stem != "graphs-whose-variable-is-seen")


@given(scenarios(FEATURES, WINDOWS, most_elements=8))
def test_generated_queries_answer_alike(scenario: Scenario) -> None:
    assert_same_answers(parse(scenario.texts[Dialect.CQELS_QL]), scenario.elements, scenario.static)


@pytest.mark.parametrize("feature", ["filter", "optional", "union", "minus", "not_exists", "bind", "graph", "subquery"])
def test_filters_beside_each_feature_answer_alike(feature: str) -> None:
    @FEW
    @given(scenarios({"join", "filter", feature}, {"range", "count", "all"}, most_elements=8))
    def check(scenario: Scenario) -> None:
        for text in scenario.texts.values():
            assert_same_answers(parse(text), scenario.elements, scenario.static)

    check()


CONDITIONS = (
    "?n > 1",
    "?g = :g",
    "!BOUND(?n)",
    "BOUND(?k) && ?k > 1",
    "?n < ?m || !BOUND(?m)",
    "?a != ?b && ?n > 0",
    "EXISTS { ?b :label ?l }",
    "NOT EXISTS { ?a :link ?g } && ?n != 2",
    "COALESCE(?k, 1) = 1",
)


@st.composite
def groups(draw: st.DrawFn, depth: int = 2) -> str:
    """A group's inside: patterns, and filters anywhere between them over whatever may or may not be bound there."""
    parts = [draw(st.sampled_from(["?a :int ?n .", "?a :link ?b .", "?b :int ?m .", "?b :dec ?k ."]))]
    for _ in range(draw(st.integers(1, 3))):
        inner = draw(groups(depth - 1)) if depth else "?b :int ?m . ?a :link ?b"
        choices = [
            *("?a :int ?n .", "?b :int ?m .", "?a :link ?b ."),
            *(f"OPTIONAL {{ {inner} }}", f"MINUS {{ {inner} }}", f"{{ {inner} }} UNION {{ ?a :int ?n }}"),
            *(f"GRAPH ?g {{ {inner} }}", f"GRAPH :g {{ {inner} }}", f"{{ {inner} }}"),
            *(f"{{ SELECT DISTINCT ?a ?n {{ {inner} }} }}", "VALUES (?a ?n) { (:a 1) (:b UNDEF) }"),
            *(
                f"{{ SELECT ?a ?n {{ {inner} }} ORDER BY DESC(?n) LIMIT 2 }}",
                f"{{ SELECT (COUNT(?n) AS ?c{depth}) {{ {inner} }} }}",
            ),
        ]
        parts.append(draw(st.sampled_from(choices)))
        if draw(st.booleans()):
            parts.append(f"FILTER({draw(st.sampled_from(CONDITIONS))})")
    return " ".join(parts)


GRAPHS = st.lists(triple_of(PREDICATES), min_size=3, max_size=8)


@pytest.mark.parametrize("around", ["STREAM", "GRAPH ?g", "GRAPH :g"])
def test_groups_of_everything_answer_alike(around: str) -> None:
    window = f"STREAM <{STREAMS}one> [ALL]"
    names = [URIRef(EX + name) for name in ("g", "h")]

    @given(groups(), STREAM, GRAPHS, GRAPHS)
    def check(body: str, elements: tuple[Element, ...], one: list[Triple], other: list[Triple]) -> None:
        block = f"{window} {{ {body} }}" if around == "STREAM" else f"{window} {{ ?a ?p ?o }} {around} {{ {body} }}"
        static = Static(one, dict(zip(names, (one, other), strict=True)))
        assert_same_answers(parse(f"PREFIX : <{EX}> SELECT * {{ {block} }}"), elements[-3:], static)

    check()
