"""Texts after edits, and positions in the user's original text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.errors import Place, QuerySyntaxError
from cqels_py.parser.source import Edit, EditedText, Source
from cqels_py.parser.tokens import Kind, tokenize


@st.composite
def edits_of(draw: st.DrawFn, text: str) -> list[Edit]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return [(start, end, draw(st.text("xyz", max_size=4))) for start, end in pairs]


@given(st.data(), st.text("abc\n", max_size=30))
def test_what_is_kept_finds_its_origin(data: st.DataObject, text: str) -> None:
    edits = data.draw(edits_of(text))
    edited = EditedText(text, edits)
    expected = text
    for start, end, replacement in reversed(edits):
        expected = expected[:start] + replacement + expected[end:]
    assert edited.text == expected
    for offset, character in enumerate(edited.text):
        origin = edited.origin(offset)
        replaced = any(start <= origin < end for start, end, _ in edits)
        assert replaced or text[origin] == character
    assert edited.origin(len(edited.text)) == len(text)


@pytest.mark.parametrize(
    ("text", "offset", "line", "column"),
    [
        ("abc", 0, 1, 1),
        ("abc", 3, 1, 4),
        ("a\nbc", 2, 2, 1),
        ("a\r\nbc", 3, 2, 1),
        ("a\rbc", 3, 2, 2),
        ("\ta", 1, 1, 2),
        (r"\u00e9x", 1, 1, 7),
        (r"\U0001F600\u0041" + "\nx", 3, 2, 1),
        (r"\\u0041x", 7, 1, 8),
    ],
)
def test_places_are_those_of_the_original(text: str, offset: int, line: int, column: int) -> None:
    assert Source(text, "q.rq").place(offset) == Place(line, column, "q.rq")


@pytest.mark.parametrize("text", [r"\u12", r"x\U0011FFFF", r"\uDC00", r"\\\u004"])
def test_bad_escapes(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        Source(text, None)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("STREAM stream:STREAM ?STREAM '''STREAM''' <STREAM>", "WORD NAME VARIABLE STRING IRI"),
        ("""'a' "a\\"" '''a'b''' \"\"\"a"b\n\"\"\" '' "" """, "STRING " * 6),
        ('"x"@en-GB @en', "STRING MARK WORD"),
        ("# 'no string\n<a#b> # ?c", "IRI"),
        ("[RANGE 1h30m@:p]", "MARK WORD NUMBER MARK NAME MARK"),
        ("ex:a.b. ex:a\\.b :p% _:x.y. $v", "NAME MARK NAME NAME MARK BLANK MARK VARIABLE"),
        ("?a<?b>", "VARIABLE IRI"),
        ("?a < ?b", "VARIABLE MARK VARIABLE"),
        ("1.STREAM 1.5e3", "NUMBER MARK WORD NUMBER"),
        ("ex:p?/ex:q", "NAME MARK MARK NAME"),
        ("été:ö ö", "NAME WORD"),
    ],
)
def test_tokens(text: str, kinds: str) -> None:
    tokens = tokenize(Source(text, None)).tokens
    assert [token.kind for token in tokens] == [*(Kind[kind] for kind in kinds.split()), Kind.END]
    assert all(text[token.start : token.end] == token.text for token in tokens)
