"""Limits on values of expressions: error values, reports, and other queries that get their results."""

from __future__ import annotations

import pytest

from cqels_py import Engine
from cqels_py.engine.query import Query
from cqels_py.errors import CqelsError, RunError, UsageError
from cqels_py.functions import table
from cqels_py.functions.table import Function
from cqels_py.functions.terms import Term

STREAM = "http://ex.org/s"
PREFIX = "PREFIX : <http://ex.org/> "
WINDOW = "STREAM :s [NOW] { ?x :says ?v }"


class Run:
    """An engine with a limit, its reports, and elements pushed one per microsecond."""

    def __init__(self, max_text: int = 100) -> None:
        self.reports: list[CqelsError] = []
        self.engine = Engine(max_text=max_text, report=self.reports.append)
        self._time = 0

    def register(self, select: str) -> Query:
        return self.engine.register(PREFIX + select)

    def push(self, *texts: str) -> None:
        self._time += 1
        triples = [(f"<http://ex.org/{i}>", "<http://ex.org/says>", f'"{text}"') for i, text in enumerate(texts)]
        self.engine.push(STREAM, triples, time=self._time)


def bound(query: Query, name: str) -> list[str | None]:
    return [None if result.bindings.get(name) is None else str(result.bindings[name]) for result in query.results()]


@pytest.mark.parametrize(
    ("expression", "fits", "exceeds"),
    [
        ("CONCAT(?v, ?v)", "a" * 50, "a" * 51),
        ("CONCAT(?v, ?v)", "é" * 25, "é" * 26),
        ("REPLACE(?v, 'a', '12345')", "a" * 20, "a" * 21),
        ("REPLACE(?v, 'a', 'é')", "a" * 50, "a" * 51),
        ("ENCODE_FOR_URI(?v)", "é" * 16, "é" * 17),
        ("UCASE(?v)", "ŉ" * 33, "ŉ" * 34),
        ("STRDT(?v, xsd:string)", "a" * 100, "a" * 101),
        ("STR(CONCAT(?v, ?v))", "a" * 50, "a" * 51),
        ("SUBSTR(?v, 1)", "a" * 100, "a" * 101),
    ],
)
def test_a_text_that_would_be_longer_is_an_error_value_and_reported(expression: str, fits: str, exceeds: str) -> None:
    run = Run()
    select = f"PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ({expression} AS ?y) WHERE {{ {WINDOW} }}"
    query = run.register(select)
    run.push(fits)
    (found,) = bound(query, "y")
    assert found is not None
    assert not run.reports
    run.push(exceeds)
    assert bound(query, "y") == [None]
    (report,) = run.reports
    assert "would make a text of more than 100 bytes (max_text)" in str(report)
    assert f"a query over <{STREAM}>" in str(report)
    assert f'where ?v is "{exceeds}"' in str(report) or "characters more" in str(report)


def test_errors_within_an_expression_are_seen_to_by_it_and_reported_all_the_same() -> None:
    run = Run()
    query = run.register(f"SELECT (COALESCE(CONCAT(?v, ?v), 'long') AS ?y) WHERE {{ {WINDOW} }}")
    run.push("a" * 60, "a")
    assert sorted(map(str, bound(query, "y"))) == ["aa", "long"]
    assert len(run.reports) == 1


def test_joined_texts_are_unbound_as_long_as_they_would_be_longer() -> None:
    run = Run()
    query = run.register(
        "SELECT (GROUP_CONCAT(?v; SEPARATOR = '-') AS ?y) WHERE { STREAM :s [ELEMENTS 3] { ?x :says ?v } }"
    )
    for text in ("a" * 49, "b" * 50, "c", "d", "e"):
        run.push(text)
    found = bound(query, "y")
    assert found == ["a" * 49, "a" * 49 + "-" + "b" * 50, None, "b" * 50 + "-c-d", "c-d-e"]
    assert "GROUP_CONCAT would make a text of more than 100 bytes" in str(run.reports[0])


def test_doublings_end_at_the_limit_and_other_queries_get_their_results() -> None:
    run = Run(max_text=1 << 20)
    binds = " ".join(f"BIND(CONCAT(?v{i}, ?v{i}) AS ?v{i + 1})" for i in range(33))
    doubled = run.register(
        f"SELECT (STRLEN(?v20) AS ?at) (STRLEN(?v33) AS ?end) WHERE {{ STREAM :s [NOW] {{ ?x :says ?v0 }} {binds} }}"
    )
    other = run.register(f"SELECT ?v WHERE {{ {WINDOW} }}")
    run.push("a")
    (result,) = doubled.results()
    assert str(result.bindings["at"]) == str(1 << 20)
    assert result.bindings.get("end") is None
    assert bound(other, "v") == ["a"]
    (report,) = run.reports
    assert "CONCAT would make" in str(report)
    assert 'where ?v20 is "aaaa' in str(report)


def test_a_pattern_beyond_a_limit_is_reported_with_query_pattern_and_element() -> None:
    run = Run()
    query = run.register(f"REGISTER STREAM :twice AS SELECT ?v WHERE {{ {WINDOW} FILTER(REGEX(?v, '^(a+)+-\\\\1$')) }}")
    run.push("a" * 64, "aa-aa")
    assert bound(query, "v") == ["aa-aa"]
    (report,) = run.reports
    for part in ("http://ex.org/twice", "'^(a+)+-\\\\1$'", '?v is "aaaa', "64", "back-references"):
        assert part in str(report)


def test_running_out_of_memory_is_an_error_of_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(term: Term) -> Term:
        if term.text == "all":
            raise MemoryError
        return term

    monkeypatch.setitem(table.FUNCTIONS, "UCASE", Function(greedy, 1, 1))
    run = Run()
    first, query, last = (
        run.register(f"SELECT {what} WHERE {{ {WINDOW} }}") for what in ("?v", "(UCASE(?v) AS ?y)", "?x ?v")
    )
    run.push("some")
    with pytest.raises(RunError, match=f"a query over <{STREAM}> has run out of memory"):
        run.push("all")
    run.push("none")
    assert bound(first, "v") == ["some", "all", "none"]
    assert len(list(last.results())) == 3
    assert bound(query, "y") == ["some"]
    with pytest.raises(UsageError, match="not registered"):
        run.engine.unregister(query)


@pytest.mark.parametrize("size", [0, -1, True, "1", 2.5])
def test_the_limit_is_a_number_of_bytes(size: object) -> None:
    with pytest.raises(UsageError, match="max_text"):
        Engine(max_text=size)  # type: ignore[arg-type]
