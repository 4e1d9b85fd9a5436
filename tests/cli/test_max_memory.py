"""`cqels explain` prints the memory verdict, and `cqels run --max-memory` refuses queries that keep more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import QUERY, STREAM, Cqels

JOIN = "SELECT ?s { STREAM <http://ex.org/s> [ALL] { ?s <http://ex.org/v> ?v . ?s <http://ex.org/w> ?w } }"
COUNT = "SELECT (COUNT(*) AS ?n) { STREAM <http://ex.org/s> [ALL] { ?s <http://ex.org/v> ?v } }"
GROWS = "memory: not bounded, the join keeps all of <http://ex.org/s>. "


def test_explain_prints_the_verdict_also_where_run_would_refuse(cqels: Cqels) -> None:
    finished = cqels("explain", "-q", JOIN)
    assert (finished.status, finished.err) == (0, "")
    assert any(line.startswith(GROWS) for line in finished.out.splitlines())


@pytest.mark.parametrize(
    ("text", "limit", "status"),
    [(JOIN, "window", 2), (JOIN, "constant", 2), (QUERY, "constant", 2), (QUERY, "window", 0), (COUNT, "constant", 0)],
)
def test_run_refuses_what_keeps_more(cqels: Cqels, stream: Path, text: str, limit: str, status: int) -> None:
    finished = cqels("run", "-q", text, "--stream", f"{STREAM}={stream}", "--max-memory", limit)
    assert finished.status == status
    assert (f"--max-memory {limit} refuses the query. memory: " in finished.err) == (status == 2)
    assert (finished.out == "") == (status == 2)


def test_a_verdict_is_not_about_entailment(cqels: Cqels, stream: Path) -> None:
    given = ("--stream", f"{STREAM}={stream}", "--max-memory", "window", "--entailment", "rdfs")
    finished = cqels("run", "-q", QUERY, *given)
    assert finished.status == 2 and "leave one out" in finished.err
