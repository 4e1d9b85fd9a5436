"""Queries in every form of the dialects, and their algebra: tests/golden/parser/NAME.rq gives NAME.algebra.

After a change that is meant: CQELS_UPDATE_GOLDEN=1 python -m pytest tests/parser/test_golden_files.py, and read the difference.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from cqels_py.algebra.printer import algebra_text
from cqels_py.parser import parse

GOLDEN = Path(__file__).parents[1] / "golden" / "parser"
QUERIES = sorted(GOLDEN.glob("*.rq"))


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_algebra(path: Path) -> None:
    query = parse(path.read_text(encoding="utf-8"), source=path.name)
    found = algebra_text(query) + "\n"
    golden = path.with_suffix(".algebra")
    if os.environ.get("CQELS_UPDATE_GOLDEN") == "1":
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_reading_twice_gives_the_same(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert parse(text) == parse(text)
    assert hash(parse(text)) == hash(parse(text))


def test_a_query_travels() -> None:
    query = parse((GOLDEN / "cqels-everywhere.rq").read_text(encoding="utf-8"))
    assert pickle.loads(pickle.dumps(query)) == query


def test_every_golden_file_has_its_query() -> None:
    assert len(QUERIES) >= 20
    assert {path.stem for path in GOLDEN.glob("*.algebra")} == {path.stem for path in QUERIES}
