"""A query with windows of another size: `[COUNT n]` instead of their own."""

from __future__ import annotations

from collections.abc import Iterator

from cqels_py.errors import UnsupportedQuery
from cqels_py.parser.source import Edit, EditedText, Source
from cqels_py.parser.tokens import Token, tokenize


def with_windows_of(text: str, elements: int) -> str:
    """The query with windows of the last `elements` elements of their streams; times of `@ :property` stay.

    UnsupportedQuery if a window has PARTITION BY, or is reported by a period.

    >>> with_windows_of("SELECT ?s { STREAM <http://s> [RANGE 5m STEP 1m @ <http://p>] { ?s ?p ?o } }", 10)
    'SELECT ?s { STREAM <http://s> [COUNT 10 @ <http://p>] { ?s ?p ?o } }'
    """
    source = Source(text, None)
    tokens = tokenize(source).tokens
    for token in tokens:
        if token.is_word("PARTITION", "COMPUTED"):
            raise UnsupportedQuery(
                f"--window cannot resize windows of a query with {token.text.upper()}", source.place(token.start)
            )
    return EditedText(source.text, _edits(tokens, elements)).text


def _edits(tokens: tuple[Token, ...], elements: int) -> Iterator[Edit]:
    for at in range(2, len(tokens)):
        # In SPARQL, only a window stands in brackets after STREAM <iri> or ON <iri>.
        if tokens[at].is_mark("[") and tokens[at - 2].is_word("STREAM", "ON"):
            end = next(i for i in range(at, len(tokens)) if tokens[i].is_mark("]"))
            timed = next((i for i in range(at, end) if tokens[i].is_mark("@")), end)
            space = " " if timed < end else ""
            yield tokens[at].end, tokens[timed].start, f"COUNT {elements}{space}"
