"""Tables of notebooks that change in place: `Query.show`."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from cqels_py import Engine, Query, UsageError
from cqels_py.engine import query as query_module
from tests.engine.test_manners import QUERY, push

COUNT = "PREFIX : <urn:> SELECT ?s (COUNT(*) AS ?n) { STREAM :r [RANGE 3s] { ?s :p ?o } } GROUP BY ?s"


class Notebook:
    """What a notebook shows."""

    def __init__(self) -> None:
        self.html: list[str] = []

    def rows(self) -> list[tuple[str, ...]]:
        body = self.html[-1].partition("<tbody>")[2]
        return [tuple(re.findall(r"<td>(.*?)</td>", row)) for row in body.split("</tr>")[:-1]]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    shown = Notebook()
    monkeypatch.setattr(query_module, "notebook_display", lambda: shown.html.append)
    # Each change is drawn at once.
    monkeypatch.setattr("cqels_py.engine.live_table.INTERVAL", 0.0)
    return shown


def fed(text: str, *, changelog: bool) -> tuple[Engine, Query]:
    engine = Engine()
    return engine, engine.register(text, changelog=changelog)


def test_a_changelog_shows_the_rows_that_stand(notebook: Notebook) -> None:
    engine, query = fed(COUNT, changelog=True)
    query.show()
    assert notebook.rows() == []
    expected: Counter[tuple[str, str]] = Counter()
    for second in range(12):
        engine.push("urn:r", [(f"urn:s{second % 3 if second < 6 else 0}", "urn:p", second)], time=second * 1_000_000)
        stand = [(str(row.bindings["s"]), str(row.bindings["n"])) for row in query.current()]  # type: ignore[union-attr]
        expected = Counter(stand)
        assert Counter(notebook.rows()) == expected
    assert expected == Counter({("urn:s0", "3"): 1})


def test_rstream_shows_the_last_report(notebook: Notebook) -> None:
    report = "PREFIX : <urn:> REGISTER RSTREAM :q AS SELECT ?o FROM NAMED WINDOW :w ON :r [RANGE PT2S] { WINDOW :w { ?s :p ?o } }"
    engine, query = fed(report, changelog=False)
    query.show()
    for second in range(4):
        engine.push("urn:r", [("urn:a", "urn:p", second)], time=second * 1_000_000)
    assert Counter(notebook.rows()) == Counter({("2",): 1, ("3",): 1})


def test_a_stream_shows_the_last_results_first(notebook: Notebook) -> None:
    engine, query = fed("PREFIX : <urn:> SELECT ?o { STREAM :r [RANGE 2s] { ?s :p ?o } }", changelog=False)
    query.show(most=2)
    for second in range(4):
        engine.push("urn:r", [("urn:a", "urn:p", f'"<{second}>"')], time=second * 1_000_000)
    assert notebook.rows() == [("1970-01-01 00:00:03", "&lt;3&gt;"), ("1970-01-01 00:00:02", "&lt;2&gt;")]


def test_outside_of_a_notebook_it_says_so_and_takes_no_results() -> None:
    engine = Engine()
    query = engine.register(QUERY)
    with pytest.raises(UsageError, match="this is none: results"):
        query.show()
    with pytest.raises(UsageError, match="most is 1 or more rows, not 0"):
        query.show(most=0)
    push(engine)
    engine.finish()
    assert len(list(query.results())) == 1


def test_plans_and_analyses_are_html() -> None:
    import cqels_py as cqels

    query: Any = Engine().register(QUERY)
    assert "<details><summary>plan</summary>" in query._repr_html_()
    assert "<td>[RANGE 5m STEP 1m]</td>" in cqels.analyse(QUERY)._repr_html_()
