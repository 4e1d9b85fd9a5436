"""A SPARQL query made continuous: its default graph becomes the content of one window, and its data elements of a stream."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from functools import cache

from rdflib import BNode, URIRef

from cqels_py.errors import QueryError, QuerySyntaxError
from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Kind, Token, tokenize
from tests.oracle.naive import Element
from tests.oracle.naive_algebra import Triple
from tests.support import harness

STREAM = URIRef("http://stream.example/data")
HOUR = 3_600_000_000
SECOND = 1_000_000

_ESCAPE = re.compile(r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}")
_CLAUSE = f" FROM STREAM <{STREAM}> [RANGE 1h] "
_NEVER = "OPTIONAL { <urn:never> <urn:never> <urn:never> }"
_AFTER_DATASET = ("WHERE", "FROM", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")


@cache
def continuous(text: str, base: str | None = None) -> str:
    """The query over a window of an hour, as C-SPARQL writes it; line numbers stay.

    A query that asks the default graph nothing is not registered: it gets an optional pattern that never matches.
    """
    prologue = "" if base is None else f"BASE <{base}> "
    # Escapes are taken for letters, so that places are those of the text.
    tokens = tokenize(Source(_ESCAPE.sub(lambda found: "u" * len(found[0]), text), None)).tokens
    at = _before_dataset(tokens)
    made = f"{prologue}{text[:at]}{_CLAUSE}{text[at:]}"
    if _asks_no_window(made):
        body = _body(tokens, at)
        if body is not None:
            start, end = body
            made = f"{prologue}{text[:at]}{_CLAUSE}{text[at:start]}{{ {_NEVER} {text[start:end]} }}{text[end:]}"
    return made


def _asks_no_window(text: str) -> bool:
    try:
        harness.parse(text)
    except QuerySyntaxError as error:
        return "no pattern reads" in error.message
    except QueryError:
        pass
    return False


def _body(tokens: Sequence[Token], after: int) -> tuple[int, int] | None:
    """From where to where the query's pattern goes, braces included."""
    start, depth = None, 0
    for token in tokens:
        if token.start < after or token.kind is not Kind.MARK:
            continue
        if token.text == "{":
            start = token.start if start is None else start
            depth += 1
        elif token.text == "}" and depth:
            depth -= 1
            if depth == 0 and start is not None:
                return start, token.end
    return None


def _before_dataset(tokens: Sequence[Token]) -> int:
    """Where a dataset clause may stand: behind the projection or the template, before the pattern."""
    form = next((i for i, t in enumerate(tokens) if t.is_word("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")), None)
    if form is None:
        return tokens[-1].end
    template = tokens[form].is_word("CONSTRUCT") and tokens[form + 1].is_mark("{")
    depth = 0
    for token in tokens[form + 1 :]:
        opened = token.kind is Kind.MARK and token.text in "({"
        closed = token.kind is Kind.MARK and token.text in ")}"
        if depth == 0 and not template and (token.is_mark("{") or token.is_word(*_AFTER_DATASET)):
            return token.start
        depth += opened - closed
        template = template and not (depth == 0 and closed)
    return tokens[-1].end


def at_once(triples: Iterable[Triple]) -> list[Element]:
    """Nothing, then all of them in one element, then nothing again: ticks at hours 1, 3, 4 (it expires) and 6."""
    return [Element(1 * HOUR, STREAM, ()), Element(3 * HOUR, STREAM, tuple(triples)), Element(6 * HOUR, STREAM, ())]


def one_by_one(triples: Sequence[Triple], seed: int) -> list[Element]:
    """In random order from hour 3 on, a second between two; triples that share a blank node have to be one element.

    Around them there is nothing at hours 1 and 6, so that they expire one by one too.
    """
    parts = _connected(triples)
    random.Random(seed).shuffle(parts)
    arriving = [Element(3 * HOUR + i * SECOND, STREAM, tuple(part)) for i, part in enumerate(parts)]
    return [Element(1 * HOUR, STREAM, ()), *arriving, Element(6 * HOUR, STREAM, ())]


def _connected(triples: Sequence[Triple]) -> list[list[Triple]]:
    """Triples in parts that share no blank node."""
    parts: list[tuple[set[BNode], list[Triple]]] = []
    for triple in triples:
        blanks = {term for term in triple if isinstance(term, BNode)}
        joined = [part for part in parts if part[0] & blanks]
        parts = [part for part in parts if not part[0] & blanks]
        merged = blanks.union(*(each for each, _ in joined))
        parts.append((merged, [t for _, each in joined for t in each] + [triple]))
    return [part for _, part in parts]
