"""Tables of an answer whose groups differ as terms, and not as values of the table's key."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.values import value_of
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.urls import sink_of
from tests.sinks.test_file_databases import execute
from tests.support.servers import PostgresServer

XSD = "http://www.w3.org/2001/XMLSchema#"
NAMES = ('"Paris"@fr', '"Paris"@en', None)
NUMBERS = (
    f'"3"^^<{XSD}integer>',
    f'"3.0"^^<{XSD}decimal>',
    '"3"',
    f'"03"^^<{XSD}integer>',
    f'"4"^^<{XSD}integer>',
    None,
)
Term = str | None
Result = tuple[int, Term, Term, int]
"""Of a changelog: the sign, the two terms of the key, and a number."""


class Place:
    """A table of a database."""

    def __init__(self, url: str, rows: Callable[..., list[Any]], number: str) -> None:
        self.url = f"{url}#answer?mode=upsert"
        self.rows = rows
        self.number = number

    def empty(self, kind: str) -> None:
        """Make it anew, with a key of texts or of a text and a number."""
        for table in ("answer", "answer_cqels_groups", "_cqels_progress"):
            self.rows(f"DROP TABLE IF EXISTS {table}")
        if kind == "numbers":
            self.rows(f"CREATE TABLE answer (city text, k {self.number}, n int, note text)")


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgresql")
        return Place(server.emptied(), server.execute, "numeric")
    file = tmp_path / "results.db"
    number = "numeric" if request.param == "sqlite" else "decimal(9, 2)"
    return Place(f"{request.param}:{file}", lambda text: execute(request.param, file, text), number)


def drawn(data: st.DataObject) -> list[list[Result]]:
    """Batches of a changelog, each of whose groups has at most one row."""
    standing: dict[tuple[Term, Term], int] = {}
    batches = []
    for _ in range(data.draw(st.integers(2, 7))):
        found: list[Result] = []
        for _ in range(data.draw(st.integers(1, 5))):
            group = data.draw(st.sampled_from(NAMES)), data.draw(st.sampled_from(NUMBERS))
            new = data.draw(st.sampled_from([1, 2, None]))
            if group in standing:
                found.append((-1, *group, standing.pop(group)))
            if new is not None:
                standing[group] = new
                found.append((1, *group, new))
        batches.append(found)
    return batches


def shown_rows(results: Sequence[Result], kind: str) -> list[tuple[Any, Any, int]]:
    """One row for each key: the one that was written last of those that stand."""
    standing: dict[tuple[Term, Term], int] = {}
    for sign, *group, n in results:
        if sign > 0:
            standing[group[0], group[1]] = n
        else:
            del standing[group[0], group[1]]
        if sign > 0:
            standing[group[0], group[1]] = standing.pop((group[0], group[1]))
    found: dict[tuple[Any, Any], int] = {}
    for (one, other), n in standing.items():
        text = None if other is None else value_of(other)
        found[None if one is None else value_of(one), Decimal(text) if text and kind == "numbers" else text] = n
    return sorted(((*key, n) for key, n in found.items()), key=str)


def table_rows(place: Place) -> list[tuple[Any, Any, int]]:
    rows = place.rows("SELECT city, k, n FROM answer")
    numbers = [
        (city, k if k is None or isinstance(k, str) else Decimal(str(k)).normalize(), int(n)) for city, k, n in rows
    ]
    return sorted(numbers, key=str)


def normal(rows: list[tuple[Any, Any, int]]) -> list[tuple[Any, Any, int]]:
    return sorted(((a, b.normalize() if isinstance(b, Decimal) else b, n) for a, b, n in rows), key=str)


class Run:
    """A run with a checkpoint, whose sink is opened again and again."""

    def __init__(self, place: Place, key: tuple[str, ...] | None = ("city", "k")) -> None:
        self._place = place
        self._key = key
        self._dictionary = Dictionary()
        self._results: list[Result] = []
        self._sink: Any = self._opened(None)

    def _opened(self, written: int | None) -> Any:
        opening = SinkOpening(
            dictionary=self._dictionary, form="SELECT", variables=("city", "k", "n"), key=self._key, changelog=True,
            run="a", written=written, made=None,
        )  # fmt: skip
        return sink_of(self._place.url).open(opening)

    def again(self, written: int) -> None:
        """A new process gets the results behind the number `written` again."""
        self._sink.close()
        self._dictionary = Dictionary()
        self._sink = self._opened(written)
        self._write(self._results[written:])

    def add(self, results: list[Result], *, flush: bool) -> None:
        self._results += results
        self._write(results)
        if flush:
            self._sink.commit()

    def _write(self, results: list[Result]) -> None:
        if results:
            columns = [[each[at] for each in results] for at in (1, 2)]
            numbers = [f'"{n}"^^<{XSD}integer>' for *_, n in results]
            ids = tuple(self._dictionary.encode(list(column)) for column in (*columns, numbers))
            signs = np.array([each[0] for each in results], np.int8)
            self._sink.write(ResultBatch(("city", "k", "n"), np.zeros(len(results), np.int64), signs, ids))

    def close(self) -> None:
        self._sink.close()


@pytest.mark.parametrize("kind", ["texts", "numbers"])
@given(data=st.data())
@settings(
    max_examples=5, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_key_shows_the_row_written_last_of_its_groups_that_stand(
    place: Place, kind: str, data: st.DataObject
) -> None:
    place.empty(kind)
    run = Run(place)
    results: list[Result] = []
    try:
        for batch in drawn(data):
            flush = data.draw(st.booleans())
            results += batch
            run.add(batch, flush=flush)
            if flush:
                assert table_rows(place) == normal(shown_rows(results, kind)), results
                if data.draw(st.booleans()):
                    run.again(data.draw(st.integers(0, len(results))))
        run.add([], flush=True)
        assert table_rows(place) == normal(shown_rows(results, kind)), results
        standing = {each[1:3]: each for each in results if each[0] > 0}
        gone = [(-1, *group, n) for group, (_, _, _, n) in standing.items() if is_standing(results, group)]
        run.add(gone, flush=True)
        assert table_rows(place) == []
        assert place.rows("SELECT * FROM answer_cqels_groups") == []
    finally:
        run.close()


def is_standing(results: Sequence[Result], group: tuple[Term, Term]) -> bool:
    return sum(sign for sign, *of, _ in results if tuple(of) == group) > 0


def test_a_key_of_several_groups_is_reported_once(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    run = Run(place)
    with caplog.at_level(logging.WARNING, "cqels_py"):
        run.add([(1, '"Paris"@fr', None, 1), (1, '"Paris"@en', None, 2), (1, '"Rome"', None, 3)], flush=True)
        run.add([(-1, '"Paris"@fr', None, 1)], flush=True)
        run.add([(1, '"Paris"@fr', None, 1)], flush=True)
        run.again(4)
        run.add([(-1, '"Paris"@fr', None, 1), (1, '"Paris"@fr', None, 2)], flush=True)
    run.close()
    (said,) = [record.getMessage() for record in caplog.records]
    assert "several groups of the answer have the key city = Paris, k = None" in said


def test_equal_rows_whose_texts_differ_are_counted_as_one(place: Place) -> None:
    """Without a key a row is found by all columns, as the database compares them."""
    for table in ("answer", "_cqels_progress"):
        place.rows(f"DROP TABLE IF EXISTS {table}")
    place.rows(f"CREATE TABLE answer (city text, k {place.number}, n int, _count int)")
    run = Run(place, key=None)
    run.add([(1, '"Paris"@fr', NUMBERS[0], 1), (1, '"Paris"@en', NUMBERS[1], 1), (1, None, None, 2)], flush=True)
    assert sorted(place.rows("SELECT n, _count FROM answer")) == [(1, 2), (2, 1)]
    run.add([(-1, '"Paris"@fr', NUMBERS[0], 1), (1, None, NUMBERS[3], 2), (-1, None, None, 2)], flush=True)
    assert sorted(place.rows("SELECT n, _count FROM answer")) == [(1, 1), (2, 1)]
    run.add([(-1, '"Paris"@en', NUMBERS[1], 1), (-1, None, NUMBERS[3], 2)], flush=True)
    assert place.rows("SELECT * FROM answer") == []
    run.close()
