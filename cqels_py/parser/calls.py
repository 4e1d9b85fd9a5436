"""The places of calls in a query's text, for errors that are found after parsing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from cqels_py.errors import Place
from cqels_py.parser.prologue import read_prologue
from cqels_py.parser.services import closing
from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Kind, Token, tokenize


def place_of_call(text: str, source: str | None, function: str) -> Place | None:
    """Where the text calls the function with this IRI first. None: nowhere.

    `text` was parsed without an error. `source` names it. Calls in SERVICE are the endpoint's.
    """
    read = Source(text, source)
    tokens = tokenize(read).tokens
    prologue = read_prologue(read, tokens, None)
    for name, following in pairwise(_own(tokens)):
        if name.kind in (Kind.IRI, Kind.NAME) and following.is_mark("(") and str(prologue.resolve(name)) == function:
            return read.place(name.start)
    return None


def _own(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens that are not in a group of SERVICE."""
    at = 0
    while at < len(tokens):
        yield tokens[at]
        if tokens[at].is_word("SERVICE"):
            brace = next(place for place in range(at, len(tokens)) if tokens[place].is_mark("{"))
            at = closing(tokens, brace) or at
        at += 1
