"""`cqels rules`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cqels

PROGRAM = """Alarm(X):-Boxminus[0,2]Hot(X)
Alarm(X):-Diamondminus[0,1]Alarm(X),Warm(X)
"""
FACTS = "Hot(a)@[0,5)\nWarm(a)@[0,20]\nHot(b)@[3,4]\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "program").write_text(PROGRAM)
    (tmp_path / "facts").write_text(FACTS)
    return [str(tmp_path / "program"), str(tmp_path / "facts")]


def test_facts_are_printed_as_maximal_intervals(cqels: Cqels, files: list[str]) -> None:
    finished = cqels("rules", *files)
    assert (finished.status, finished.err) == (0, "")
    assert finished.out == "Alarm(a)@[2,20]\nHot(a)@[0,5)\nHot(b)@[3,4]\nWarm(a)@[0,20]\n"


def test_facts_that_go_on_end_at_until(cqels: Cqels, files: list[str]) -> None:
    assert (
        cqels("rules", *files, "--until", "3.5").out
        == "Alarm(a)@[2,3.5]\nHot(a)@[0,3.5]\nHot(b)@[3,3.5]\nWarm(a)@[0,3.5]\n"
    )


def test_a_fact_that_never_ends_is_written_with_inf(cqels: Cqels, files: list[str]) -> None:
    Path(files[0]).write_text("Been(X):-Diamondminus[0,inf)Hot(X)\n")
    assert "Been(a)@[0,inf)\n" in cqels("rules", *files).out


def test_a_recursion_that_ends_after_the_facts_needs_no_until(cqels: Cqels, files: list[str]) -> None:
    Path(files[0]).write_text(f"{PROGRAM}Boxplus[0,5]Watched(X):-Alarm(X)\n")
    assert cqels("rules", *files).out.endswith("Watched(a)@[2,20]\n")


def test_a_recursion_that_may_go_on_for_ever_asks_for_until(cqels: Cqels, files: list[str]) -> None:
    Path(files[0]).write_text("Hot(X):-Diamondminus[0,1]Hot(X)\n")
    finished = cqels("rules", *files)
    assert (finished.status, finished.out) == (2, "")
    assert "Hot still holds at " in finished.err
    assert cqels("rules", *files, "--until", "21").out.startswith("Hot(a)@[0,21]\nHot(b)@[3,21]\n")


@pytest.mark.parametrize(
    ("program", "facts", "said"),
    [
        ("P(X):-Boxplus[0,1]Q(X)", FACTS, "program:1:7: Boxplus looks ahead"),
        ("P(X):-Q(Y)", FACTS, "program:1:1: X is not bound"),
        (PROGRAM, "Hot(a)@[2,1]", "facts:1:"),
        (PROGRAM, "Hot(a)@[0.1234567,1]", "facts:1:"),
    ],
)
def test_faults_are_named_with_their_place(cqels: Cqels, files: list[str], program: str, facts: str, said: str) -> None:
    for file, text in zip(files, (program, facts), strict=True):
        Path(file).write_text(text)
    finished = cqels("rules", *files)
    assert finished.status in (1, 2)
    assert finished.out == ""
    assert said in finished.err
    assert "Traceback" not in finished.err


@pytest.mark.parametrize(
    ("until", "said"),
    [("soon", "a time in seconds"), ("0.1234567", "six decimals"), ("nan", "a time"), ("1e99", "a time")],
)
def test_a_wrong_until_is_refused(cqels: Cqels, files: list[str], until: str, said: str) -> None:
    finished = cqels("rules", *files, "--until", until)
    assert finished.status == 2
    assert said in finished.err


def test_a_missing_file_is_named(cqels: Cqels, files: list[str]) -> None:
    finished = cqels("rules", files[0], "absent.facts")
    assert finished.status == 2
    assert "cannot read the facts absent.facts" in finished.err
