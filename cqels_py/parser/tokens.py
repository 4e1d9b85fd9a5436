"""A tokenizer that is only used to find window clauses; SPARQL's grammar parses the rest.

In SPARQL a bare word is a keyword, so a token `STREAM` or `WINDOW` always begins a window clause; within strings, IRIs,
comments, prefixed names and variables these words are not tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from cqels_py.parser.keywords import KEYWORDS
from cqels_py.parser.source import Source
from cqels_py.suggestions import did_you_mean

MOST_BRACKETS = 100
"""The deepest that brackets of a query are nested: grammars are recursive, and take time that grows faster than the depth."""


class Kind(Enum):
    IRI = auto()
    STRING = auto()
    VARIABLE = auto()
    BLANK = auto()
    NAME = auto()
    NUMBER = auto()
    WORD = auto()
    MARK = auto()
    END = auto()


_LOCAL_ESCAPE = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_TOKEN = re.compile(
    rf"""
      (?P<space>[\s\ufeff]+)
    | (?P<comment>\#[^\r\n]*)
    | (?P<IRI><[^<>"{{}}|^`\\\x00-\x20]*>)
    | (?P<STRING>(?: \"\"\" (?:"{{0,2}}(?:[^"\\]|\\.))* \"\"\" | ''' (?:'{{0,2}}(?:[^'\\]|\\.))* '''
                   | " (?:[^"\\\r\n]|\\.)* " (?!") | ' (?:[^'\\\r\n]|\\.)* ' (?!') )
                 (?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*)?)
    | (?P<VARIABLE>[?$]\w[\w\u00b7\u203f\u2040]*)
    | (?P<BLANK>_:\w(?:[\w.\-]*[\w\-])?)
    | (?P<NAME>(?:[^\W\d_](?:[\w.\-]*[\w\-])?)?:
               (?:(?:[\w:]|{_LOCAL_ESCAPE})(?:(?:[\w\-.:\u00b7]|{_LOCAL_ESCAPE})*(?:[\w\-:]|{_LOCAL_ESCAPE}))?)?)
    | (?P<NUMBER>\d(?:\w|\.(?=\d))*)
    | (?P<WORD>[^\W\d]\w*)
    | (?P<MARK>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the source's text. The end of the text is a token too, and empty."""

    kind: Kind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """One of these keywords, in any case."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_mark(self, mark: str) -> bool:
        return self.kind is Kind.MARK and self.text == mark

    @property
    def suggestion(self) -> str:
        """The end of a message about this unexpected token: the keyword that a misspelt word probably means, or nothing."""
        misspelt = self.kind is Kind.WORD and not self.is_word(*KEYWORDS)
        return did_you_mean(self.text, KEYWORDS) if misspelt else ""

    def __str__(self) -> str:
        if self.is_mark("<"):
            return "'<', which begins an IRI that never ends"
        return "the end of the query" if self.kind is Kind.END else f"'{self.text}'"


@dataclass(frozen=True, slots=True)
class Tokens:
    """All tokens, the last of them the end, and where comments are."""

    tokens: tuple[Token, ...]
    comments: tuple[tuple[int, int], ...]


def tokenize(source: Source) -> Tokens:
    """Cut the text into tokens. Raises QuerySyntaxError for a string that never ends."""
    tokens: list[Token] = []
    comments: list[tuple[int, int]] = []
    for match in _TOKEN.finditer(source.text):
        kind = match.lastgroup
        assert kind is not None
        if kind == "comment":
            comments.append(match.span())
        elif kind != "space":
            token = Token(Kind[kind], match[0], *match.span())
            if token.is_mark('"') or token.is_mark("'"):
                raise source.error(f"the string that begins here never ends: {token.text} is missing", token.start)
            tokens.append(token)
    end = len(source.text.rstrip()) if source.text.strip() else 0
    tokens.append(Token(Kind.END, "", end, end))
    return Tokens(tuple(tokens), tuple(comments))


def check_brackets(source: Source, tokens: Sequence[Token]) -> None:
    """QuerySyntaxError, with the place, where brackets are nested more than MOST_BRACKETS deep."""
    depth = 0
    for token in tokens:
        if token.kind is Kind.MARK and token.text in "([{":
            depth += 1
            if depth > MOST_BRACKETS:
                raise source.error(
                    f"the query is nested too deeply: it has more than {MOST_BRACKETS} open brackets", token.start
                )
        elif token.kind is Kind.MARK and token.text in ")]}":
            depth = max(depth - 1, 0)


class Cursor:
    """Walks over tokens; an unexpected one is an error at its place."""

    def __init__(self, source: Source, tokens: Sequence[Token]) -> None:
        self.source = source
        self._tokens = tokens
        self._at = 0

    @property
    def here(self) -> Token:
        return self._tokens[self._at]

    def ahead(self, count: int = 1) -> Token:
        """A token further on; the end stands behind itself."""
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    @property
    def position(self) -> int:
        """How many tokens have been passed."""
        return self._at

    @property
    def before(self) -> Token:
        """The token just passed."""
        return self._tokens[self._at - 1]

    @property
    def at_end(self) -> bool:
        return self.here.kind is Kind.END

    def take(self) -> Token:
        token = self.here
        if not self.at_end:
            self._at += 1
        return token

    def take_word(self, *words: str) -> Token | None:
        """The next token if it is one of these words."""
        return self.take() if self.here.is_word(*words) else None

    def take_mark(self, mark: str) -> Token | None:
        return self.take() if self.here.is_mark(mark) else None

    def expect_word(self, word: str, after: str) -> Token:
        return self.take_word(word) or self.fail(f"expected {word} after {after}")

    def expect_mark(self, mark: str, where: str) -> Token:
        return self.take_mark(mark) or self.fail(f"expected '{mark}' {where}")

    def fail(self, expected: str) -> Token:
        """Raise an error that names the token that is here instead; never returns (typed so that `or` can be used)."""
        raise self.source.error(f"{expected}, found {self.here}{self.here.suggestion}", self.here.start)
