"""The current answer as a table."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from rich.console import Console

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.cli.table import Answer, AnswerTable, Heading, readable

XSD = "http://www.w3.org/2001/XMLSchema#"


def changes(*rows: tuple[int, int, int]) -> ResultBatch:
    """(sign, first id, second id) …"""
    sign, one, two = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return ResultBatch(("a", "b"), np.zeros(len(rows), np.int64), sign.astype(np.int8), (one, two))


def content(answer: Answer) -> list[tuple[int, ...]]:
    return [(*map(int, row), int(count)) for row, count in zip(answer.rows, answer.counts, strict=True)]


def test_rows_come_and_go_and_keep_their_places() -> None:
    answer = Answer(2)
    answer.apply(changes((1, 9, 1), (1, 3, 1), (1, 5, 5)))
    answer.apply(changes((-1, 3, 1), (1, 4, 1)))
    assert content(answer) == [(9, 1, 1), (5, 5, 1), (4, 1, 1)]


def test_an_answer_is_a_bag() -> None:
    answer = Answer(2)
    answer.apply(changes((1, 9, 1), (1, 9, 1)))
    assert content(answer) == [(9, 1, 2)]
    assert len(answer) == 2
    answer.apply(changes((-1, 9, 1)))
    assert content(answer) == [(9, 1, 1)]
    answer.apply(changes((1, 9, 1), (-1, 9, 1), (-1, 9, 1)))
    assert content(answer) == []


def test_only_the_last_of_many_changes_counts() -> None:
    answer = Answer(2)
    answer.apply(changes((1, 1, 1), (-1, 1, 1), (1, 1, 2), (-1, 1, 2), (1, 1, 3)))
    assert content(answer) == [(1, 3, 1)]


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("<http://a/b>", "http://a/b"),
        ("<http://cqels.example/flights/airline/UA>", "…/airline/UA"),
        ('"plain"', "plain"),
        (r'"a \"quoted\" word\nand more"', 'a "quoted" word and more'),
        ('"hallo"@de', "hallo@de"),
        (f'"12"^^<{XSD}integer>', "12"),
        (f'"12.5"^^<{XSD}decimal>', "12.5"),
        (f'"12.333333333333333333"^^<{XSD}decimal>', "12.33"),
        (f'"1.0E6"^^<{XSD}double>', "1000000.00"),
        (f'"NaN"^^<{XSD}double>', "NaN"),
        ("_:b12", "_:b12"),
        ("", ""),
        ('"\x1b]0;title\x07 \x9b2J \x7f"', r"\u001b]0;title\u0007 \u009b2J \u007f"),
        ("<http://a/\x1b[2J>", r"http://a/\u001b[2J"),
    ],
)
def test_terms_are_readable(term: str, text: str) -> None:
    assert readable(term) == text


def decode(ids: Ids) -> list[str]:
    return [f'"{value}"^^<{XSD}integer>' for value in ids]


def rendered(table: AnswerTable, console: Console) -> str:
    table.close("the end")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("text", ["[bold]x[/bold]", "[/no]", ":smile:", "[link=file:///x]y[/link]"])
def test_literals_are_no_markup(text: str) -> None:
    console = Console(file=io.StringIO(), width=80)
    table = AnswerTable(Heading("", ("a", "b")), lambda ids: [f'"{text}"' for _ in ids], console)
    table.write(changes((1, 1, 1)))
    assert rendered(table, console).count(f"│ {text} ") == 2


def test_off_a_terminal_the_answer_is_written_once_at_the_end() -> None:
    console = Console(file=io.StringIO(), width=80)
    table = AnswerTable(Heading("What?", ("a", "b")), decode, console)
    table.write(changes((1, 10, 1), (1, 9, 2)))
    table.show("now")
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]
    text = rendered(table, console)
    assert text.index("9") < text.index("10")
    assert "What?" in text
    assert "more" not in text


def test_rows_follow_the_querys_order_by_value() -> None:
    console = Console(file=io.StringIO(), width=80)
    table = AnswerTable(Heading("", ("a", "b"), (("b", True), ("a", False))), decode, console)
    table.write(changes((1, 10, 1), (1, 9, 2), (1, 2, 10), (1, 100, 2)))
    assert re.findall(r"│ +(\d+) │ +(\d+) │", rendered(table, console)) == [
        ("2", "10"),
        ("9", "2"),
        ("100", "2"),
        ("10", "1"),
    ]


def test_a_long_answer_is_cut_to_the_screen_and_says_so() -> None:
    console = Console(file=io.StringIO(), width=80, height=16, force_terminal=True)
    table = AnswerTable(Heading("What is this?", ("a", "b")), decode, console)
    table.write(changes(*[(1, number, 1) for number in range(1000, 1500)]))
    text = rendered(table, console)
    assert "What is this?" in text
    shown = set(re.findall(r"│ (1\d{3}) │", text))
    assert len(shown) == 8
    assert "… 492 more" in text
