"""Long lists of terms, as IN and VALUES have them: they are read here, and one IRI stands for each in the text that the grammar
reads, which takes up to a millisecond for a term.

A list with anything but terms in it is left to the grammar, which reports the error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rdflib import XSD, Literal, URIRef

from cqels_py.algebra.nodes import Term
from cqels_py.parser.prologue import Prologue
from cqels_py.parser.source import Edit
from cqels_py.parser.tokens import Kind, Token
from cqels_py.terms.rdf import exact_literal

_LEAST = 64
"""Lists of fewer tokens are left to the grammar."""
_INTEGER, _DECIMAL = re.compile(r"[0-9]+"), re.compile(r"[0-9]*\.[0-9]+")
_DOUBLE = re.compile(r"[0-9]+(\.[0-9]*)?[eE][+-]?[0-9]+")
Rows = tuple[tuple[Term | None, ...], ...]


@dataclass(frozen=True, slots=True)
class LongLists:
    """`edits` put IRIs in the places of lists; `rows`: the list for each IRI. A list of IN has rows of one term."""

    edits: list[Edit] = field(default_factory=list)
    rows: dict[URIRef, Rows] = field(default_factory=dict)


class _Other(Exception):
    """The list has something else in it."""


def lift_long_lists(tokens: Sequence[Token], prologue: Prologue) -> LongLists:
    """The long lists among the tokens of a query."""
    found = LongLists()
    at = 0
    while at < len(tokens):
        try:
            if tokens[at].is_word("VALUES"):
                at = _values(found, tokens, at + 1, prologue)
            elif tokens[at].is_word("IN") and tokens[at + 1].is_mark("("):
                at = _choices(found, tokens, at + 2, prologue)
            else:
                at += 1
        except _Other:
            at += 1
    return found


def _values(found: LongLists, tokens: Sequence[Token], at: int, prologue: Prologue) -> int:
    """VALUES ?v { … } or VALUES (?v …) { (…) … }, from behind the word; returns the position after it."""
    single = tokens[at].kind is Kind.VARIABLE
    width = 1
    if not single:
        start = at = _mark(tokens, at, "(")
        while tokens[at].kind is Kind.VARIABLE:
            at += 1
        width = at - start
        if len({token.text[1:] for token in tokens[start:at]}) < width or not width:
            raise _Other
        at -= 1
        at = _mark(tokens, at + 1, ")")
    else:
        at += 1
    first = at = _mark(tokens, at, "{")
    rows: list[tuple[Term | None, ...]] = []
    while not tokens[at].is_mark("}"):
        if not single:
            at = _mark(tokens, at, "(")
        row: list[Term | None] = []
        for _ in range(width):
            term, at = (None, at + 1) if tokens[at].is_word("UNDEF") else _term(tokens, at, prologue)
            row.append(term)
        if not single:
            at = _mark(tokens, at, ")")
        rows.append(tuple(row))
    _replace(found, tokens, first, at, tuple(rows), "{}" if single else f"({{}}{' UNDEF' * (width - 1)})")
    return at + 1


def _choices(found: LongLists, tokens: Sequence[Token], at: int, prologue: Prologue) -> int:
    """The list of IN, from behind its parenthesis."""
    first = at
    rows: list[tuple[Term | None, ...]] = []
    while True:
        term, at = _term(tokens, at, prologue)
        rows.append((term,))
        if tokens[at].is_mark(")"):
            break
        at = _mark(tokens, at, ",")
    _replace(found, tokens, first, at, tuple(rows), "{}")
    return at + 1


def _replace(found: LongLists, tokens: Sequence[Token], first: int, last: int, rows: Rows, text: str) -> None:
    if last - first >= _LEAST:
        name = URIRef(f"urn:cqels:list:{len(found.rows) + 1}")
        found.rows[name] = rows
        found.edits.append((tokens[first].start, tokens[last - 1].end, text.format(f"<{name}>")))


def _mark(tokens: Sequence[Token], at: int, mark: str) -> int:
    if not tokens[at].is_mark(mark):
        raise _Other
    return at + 1


def _term(tokens: Sequence[Token], at: int, prologue: Prologue) -> tuple[Term, int]:
    """The term at a place, and the place behind it."""
    token = tokens[at]
    signed = token.is_mark("-") or token.is_mark("+")
    if signed and tokens[at + 1].kind is Kind.NUMBER and tokens[at + 1].start == token.end:
        return _number(token.text, tokens[at + 1].text), at + 2
    match token.kind:
        case Kind.IRI:
            return prologue.resolve(token), at + 1
        case Kind.NAME if token.text.partition(":")[0] in prologue.prefixes:
            return prologue.resolve(token), at + 1
        case Kind.NUMBER:
            return _number("", token.text), at + 1
        case Kind.WORD if token.is_word("TRUE", "FALSE"):
            return exact_literal(token.text.lower(), datatype=XSD.boolean), at + 1
        case Kind.STRING if "\\" not in token.text and token.text[:3] not in ('"""', "'''"):
            return _string(tokens, at, prologue)
        case _:
            raise _Other


def _string(tokens: Sequence[Token], at: int, prologue: Prologue) -> tuple[Term, int]:
    quoted, _, language = tokens[at].text.rpartition(tokens[at].text[0])
    text = quoted[1:]
    if not (tokens[at + 1].is_mark("^") and tokens[at + 2].is_mark("^")):
        return exact_literal(text, language[1:] or None), at + 1
    if language or tokens[at + 3].kind not in (Kind.IRI, Kind.NAME):
        raise _Other
    datatype, behind = _term(tokens, at + 3, prologue)
    return exact_literal(text, datatype=None if datatype == XSD.string else str(datatype)), behind


def _number(sign: str, text: str) -> Literal:
    for form, datatype in ((_INTEGER, XSD.integer), (_DECIMAL, XSD.decimal), (_DOUBLE, XSD.double)):
        if form.fullmatch(text):
            return exact_literal(sign + text, datatype=datatype)
    raise _Other
