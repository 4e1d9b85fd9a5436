"""Syntax errors in the user's words: the offending text, its place, and the expected tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from cqels_py.algebra.function_names import AGGREGATES, FUNCTIONS, instead_of, is_not_yet, meant_by
from cqels_py.errors import QuerySyntaxError
from cqels_py.parser.keywords import KEYWORDS
from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Kind, Token
from cqels_py.terms.versions import refusal

_VALUES = (Kind.VARIABLE, Kind.NUMBER, Kind.STRING)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SCHEME = re.compile(r"<[A-Za-z][A-Za-z0-9+.\-]*:")
_DIRECTION = re.compile(r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*--\w*")
_LONGEST_TAG = 64
_VERSION = re.compile(r"version\s+[\"']", re.IGNORECASE)
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_MOST_WORDS = 7
_LITERALS = {"a string", "a number", "true", "false", "'+'", "'-'"}
_TERMS = _LITERALS | {"a variable", "an IRI", "a blank node", "a", "'['", "'('", "'!'", "'^'", "'/'", "'|'"}
_OPERATORS = {"'+'", "'-'", "'*'", "'/'", "'='", "'!='", "'>'", "'<='", "'>='", "'&&'", "'||'", "IN", "NOT", "an IRI"}
_PATTERNS = {"OPTIONAL", "FILTER", "MINUS", "GRAPH", "SERVICE", "BIND", "VALUES", "'{'", "'.'"}
_STRUCTURE = {"AS", "DISTINCT", "ASC", "DESC", "FROM", "WHERE", "LIMIT", "OFFSET", "VALUES", "HAVING", "ORDER", "GROUP"}


def explain(source: Source, tokens: Sequence[Token], offset: int, expected: Sequence[str]) -> QuerySyntaxError:
    """The error for text that is no SPARQL at this offset of the source."""
    unbalanced = _unbalanced(source, tokens)
    token = _token_at(tokens, offset)
    if (newer := _newer(source, token.start)) is not None:
        return newer
    if unbalanced is not None and (token.kind is Kind.END or token.text in _CLOSING.values()):
        return unbalanced
    place = tokens.index(token)
    before = tokens[max(0, place - 1)]
    if (call := _call(source, tokens, place)) is not None:
        return call
    if (duration := _DURATION.fullmatch(token.text)) is not None:
        return source.error(f"unexpected {token}; {_as_literal(*duration.groups())}", token.start)
    wanted = "a prefix with its colon, such as ex:" if before.is_word("PREFIX") else _words(expected)
    found = "the query ends too early" if token.kind is Kind.END else f"unexpected {token}"
    meant = token.suggestion
    return source.error(f"{found}; expected {wanted}{meant}" if wanted else f"{found}{meant}", token.start)


def _newer(source: Source, at: int) -> QuerySyntaxError | None:
    """The error for syntax of SPARQL 1.2 at this offset."""
    text = source.text
    if text[max(0, at - 1) :].startswith("{|"):
        at -= 1
    direction = _DIRECTION.search(text, max(0, at - _LONGEST_TAG))
    if direction is not None and direction.start() <= at < direction.end():
        at = direction.start()
    if text[at:].lower().startswith("version") and _VERSION.match(text, at) is None:
        return None
    message = refusal(text[at:])
    return None if message is None else source.error(message, at)


def _as_literal(number: str, unit: str) -> str:
    """How a duration of a window is written in an expression."""
    if unit == "ms":
        number, unit = f"{float(number) / 1000:g}", "s"
    text = f"P{number}D" if unit == "d" else f"PT{number}{unit.upper()}"
    return f'a duration outside of a window\'s brackets is a literal: write "{text}"^^xsd:dayTimeDuration'


def _call(source: Source, tokens: Sequence[Token], place: int) -> QuerySyntaxError | None:
    """The error in a function call at or before a token: its name, its parentheses, or those around it."""
    for at in (place, place - 1):
        if at < 0 or tokens[at].kind is not Kind.WORD:
            continue
        word, name = tokens[at], tokens[at].text.upper()
        following = tokens[at + 1] if at + 1 < len(tokens) else tokens[-1]
        known = name in AGGREGATES or name in FUNCTIONS
        argument = following.kind is Kind.VARIABLE or following.is_word("DISTINCT")
        if known and at == place - 1 and argument:
            distinct = following.is_word("DISTINCT")
            variable = tokens[at + 2] if distinct else following
            inner = f"{'DISTINCT ' if distinct else ''}{variable.text if variable.kind is Kind.VARIABLE else '?x'}"
            return source.error(f"{name} takes its argument in parentheses: write {name}({inner})", following.start)
        if known and at == place and _selects(tokens, place) and (argument or following.is_mark("(")):
            return source.error(
                f"an expression in SELECT must be in parentheses, with a name: write ({name}(…) AS ?name)", word.start
            )
        in_expression = at > 0 and (at == place or tokens[at - 1].kind is Kind.MARK)
        if not known and following.is_mark("(") and in_expression and not word.is_word(*KEYWORDS):
            if is_not_yet(word.text):
                message = f"{word.text} is a function of SPARQL 1.2, which is not supported yet"
                return source.error(message, word.start)
            meant = "" if meant_by(word.text) else word.suggestion
            return source.error(f"there is no function {word.text}{meant or f': {instead_of(word.text)}'}", word.start)
    return None


def _selects(tokens: Sequence[Token], place: int) -> bool:
    """Is a token in the SELECT clause, and not within parentheses?"""
    for token in reversed(tokens[:place]):
        if token.is_word("SELECT"):
            return True
        if not (token.kind is Kind.VARIABLE or token.is_mark(")") or token.is_word("DISTINCT", "REDUCED")):
            return False
    return False


def check_comparisons(source: Source, tokens: Sequence[Token]) -> None:
    """The longest token counts (SPARQL 1.1, 19.8): `?x<5&&?y>3` has an IRI in it, which the grammar takes for operators."""
    opened: list[str] = []
    for before, token in pairwise(tokens):
        if before.kind is Kind.MARK and before.text in _CLOSING:
            opened.append(before.text)
        elif before.kind is Kind.MARK and before.text in _CLOSING.values() and opened:
            opened.pop()
        touching = before.end == token.start and (before.kind in _VALUES or before.is_mark(")"))
        if token.kind is Kind.IRI and touching and opened[-1:] == ["("] and not _SCHEME.match(token.text):
            raise source.error(
                f"'{token.text}' reads as an IRI here: to compare, write spaces around '<' and '>'", token.start
            )


def _token_at(tokens: Sequence[Token], offset: int) -> Token:
    """The token at an offset, or the first behind it."""
    return next((token for token in tokens if token.end > offset), tokens[-1])


def _words(expected: Sequence[str]) -> str:
    """The expected tokens, by their kind if they are all tokens of a kind."""
    words = set(expected)
    kinds: list[str] = []
    if {"BOUND", "REGEX"} <= words:
        kinds.append("an expression" if "a variable" in words else "an expression in parentheses or a function")
        words -= {word for word in words if word.isidentifier() and word not in _STRUCTURE} | _TERMS
    elif {"OPTIONAL", "FILTER"} <= words:
        kinds.append("a pattern")
        words -= _PATTERNS | _TERMS | _OPERATORS
    elif {"a string", "a number"} <= words:
        kinds.append("a term")
        words -= _TERMS
    elif {"'+'", "'*'"} <= words:
        kinds.append("an operator")
        words -= _OPERATORS
    kinds += [word for word in dict.fromkeys(expected) if word in words]
    if len(kinds) > _MOST_WORDS:
        return ""
    return " or ".join(filter(None, [", ".join(kinds[:-1]), *kinds[-1:]]))


def _unbalanced(source: Source, tokens: Sequence[Token]) -> QuerySyntaxError | None:
    """The first bracket that is not closed, or closes nothing."""
    opened: list[Token] = []
    for token in tokens:
        if token.kind is not Kind.MARK:
            continue
        if token.text in _CLOSING:
            opened.append(token)
        elif token.text in _CLOSING.values():
            if not opened:
                return source.error(f"{token} closes nothing", token.start)
            if _CLOSING[opened[-1].text] != token.text:
                return _never_closed(source, opened[-1])
            opened.pop()
    return _never_closed(source, opened[-1]) if opened else None


def _never_closed(source: Source, token: Token) -> QuerySyntaxError:
    return source.error(f"{token} is never closed: expected '{_CLOSING[token.text]}'", token.start)
