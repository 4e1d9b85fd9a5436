"""Plans as golden text: windows, probing, what each operator keeps. And what is refused, by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cqels_py.dataflow import Dataflow, explain
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import compile_query
from cqels_py.errors import UnsupportedQuery

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "plans"
QUERIES = sorted((ROOT / "queries").glob("*/*.rq"))


def plan_text(text: str) -> str:
    """The plan as explain prints it, over no static data."""
    return explain(Dataflow(compile_query(text).plan, Dictionary(), StaticData()))


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_plans_stay_what_they_are(file: Path) -> None:
    golden = GOLDEN / f"{file.parent.name}-{file.stem}.txt"
    found = plan_text(file.read_text(encoding="utf-8"))
    if os.environ.get("CQELS_UPDATE_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


WINDOW = "STREAM <http://ex.org/s> [RANGE 10s]"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"SELECT * {{ {WINDOW} {{ ?a ?b ?c }} BIND(RAND() AS ?n) }}", "RAND"),
        (f"SELECT * {{ {WINDOW} {{ ?a ?b ?c }} SERVICE ?a {{ ?a ?d ?e }} }}", "SERVICE"),
        ("SELECT * { STREAM <http://ex.org/s> [RANGE 10s PARTITION BY ?a] { ?a ?b ?c } }", "PARTITION BY"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UnsupportedQuery, match=named):
        compile_query(text)
