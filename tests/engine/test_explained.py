"""The plan of a query as JSON and as a picture."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cqels_py import Engine, UsageError
from cqels_py.engine.explained import ExplainedOperator, operators_of, with_prefixes

QUERIES = Path(__file__).parents[2] / "queries"
NAMES = (
    "flights/delay-by-carrier", "flights/top-delays", "flights/late-in-fine-weather", "lsbench/05", "patterns/potassium",
    "patterns/breakdown", "rules/network", "srbench/09",
)  # fmt: skip


def lines_of(node: ExplainedOperator) -> Iterator[str]:
    """The tree as `explain` draws it."""
    yield from node.operator.split("\n")
    for place, each in enumerate(node.inputs):
        last = place == len(node.inputs) - 1
        for number, line in enumerate(lines_of(each)):
            yield (("└─ " if last else "├─ ") if number == 0 else ("   " if last else "│  ")) + line


@pytest.mark.parametrize("name", NAMES)
def test_the_tree_of_operators_is_that_of_the_text(name: str) -> None:
    engine = Engine()
    query = engine.register((QUERIES / f"{name}.rq").read_text(encoding="utf-8"))
    text = query.explain()
    shown = text.partition("\nplan\n")[2].partition("\n\n")[0].splitlines()
    found = operators_of(text)
    # Lines of one operator may be indented by the lead of its inputs.
    assert [line.strip(" │├└─") for line in lines_of(found)] == [line.strip(" │├└─") for line in shown]
    if "MATCH" not in text:
        assert [f"  {line}" for line in lines_of(found)] == shown
    parsed = json.loads(query.explain("json"))
    assert parsed["streams"] == list(query.streams)
    assert parsed["memory"]["verdict"] == str(query.memory)
    assert len(parsed["plan"]["inputs"]) == len(found.inputs)


def test_the_picture_has_an_edge_for_each_input() -> None:
    query = Engine().register(
        'PREFIX : <http://ex.org/> SELECT ?s { STREAM :r [RANGE 5m] { ?s :p ?o ; :q "a\\"b" } FILTER(?o > 3) }'
    )
    dot = query.explain("dot")
    assert dot.startswith("digraph plan {")
    assert dot.count(" -> ") == dot.count("label=") - 1
    assert ':q \\"a\\\\\\"b\\"' in dot
    with pytest.raises(UsageError, match="'text', 'json', 'dot' or 'svg', not 'png'"):
        query.explain("png")


def test_names_stand_for_iris_where_they_can() -> None:
    text = "prefix a: <urn:x:> PREFIX : <urn:x:y/> SELECT ?s { }"
    explained = "<urn:x:b> <urn:x:y/c> <urn:x:y/c/d> <urn:x:> <urn:z> <urn:x:1-2>"
    assert with_prefixes(explained, text) == "a:b :c <urn:x:y/c/d> a: <urn:z> a:1-2"
