"""Where the grammar gave up, said in the user's words: the offending text, its place, and what was expected."""

from __future__ import annotations

from collections.abc import Sequence

from cqels_py.errors import QuerySyntaxError
from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Kind, Token

_CLOSING = {"{": "}", "[": "]", "(": ")"}
_MANY = 7
_OF_EXPRESSIONS = ("BOUND", "REGEX")


def explain(source: Source, tokens: Sequence[Token], offset: int, expected: Sequence[str]) -> QuerySyntaxError:
    """The error for text that is no SPARQL at this offset of the source."""
    unbalanced = _unbalanced(source, tokens)
    token = _token_at(tokens, offset)
    if unbalanced is not None and (token.kind is Kind.END or token.text in _CLOSING.values()):
        return unbalanced
    wanted = _words(expected)
    found = "the query ends too early" if token.kind is Kind.END else f"unexpected {token}"
    if token.is_mark("<"):
        found += ", which begins an IRI that never ends"
    return source.error(f"{found}; expected {wanted}" if wanted else found, token.start)


def _token_at(tokens: Sequence[Token], offset: int) -> Token:
    """The token at an offset, or the first behind it."""
    return next((token for token in tokens if token.end > offset), tokens[-1])


def _words(expected: Sequence[str]) -> str:
    """What was expected, shortened where it is every function there is."""
    words = list(dict.fromkeys(expected))
    if all(each in words for each in _OF_EXPRESSIONS):
        parts_of_expressions = {"a string", "a number", "a variable", "an IRI", "'('", "'!'", "'+'", "'-'", "NOT"}
        words = [word for word in words if not (word.isupper() or word.isalpha() or word in parts_of_expressions)]
        words.insert(0, "an expression")
    if len(words) > _MANY:
        return ""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


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
