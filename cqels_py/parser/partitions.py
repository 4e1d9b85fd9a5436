"""PARTITION BY: the clause, and its variables against the window's patterns, which are known when all of a query is read."""

from __future__ import annotations

from collections.abc import Sequence

from rdflib import Variable

from cqels_py.algebra.nodes import ContinuousQuery, ElementCount, Extent, Session, TripleCount, WindowDefinition
from cqels_py.algebra.partitions import partition_of
from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Cursor, Kind, Token


def read_partition(cursor: Cursor, extent: Extent) -> tuple[Token, ...]:
    """The variables of `PARTITION BY ?v …` behind the extent; none where there is no such clause."""
    word = cursor.take_word("PARTITION")
    if word is None:
        return ()
    cursor.expect_word("BY", "PARTITION")
    variables: list[Token] = []
    while cursor.here.kind is Kind.VARIABLE:
        variables.append(cursor.take())
        cursor.take_mark(",")
    if not variables:
        cursor.fail("expected the variables after PARTITION BY, such as ?sensor")
    if not isinstance(extent, ElementCount | TripleCount | Session):
        raise cursor.source.refusal(
            "PARTITION BY keeps the last n, or a session, for each value: write it in a window of elements, triples or "
            f"sessions, such as [COUNT 10 PARTITION BY {variables[0].text}]",
            word.start,
        )
    return tuple(variables)


def partition_variables(tokens: tuple[Token, ...]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(Variable(token.text[1:]) for token in tokens))


def check_partitions(source: Source, query: ContinuousQuery, clauses: Sequence[tuple[Token, ...]]) -> None:
    """Every variable of every PARTITION BY gets its values from triple patterns of the window.

    `clauses`: the variables of the clauses, in the order of the windows that have one. Raises QuerySyntaxError and
    UnsupportedQuery, at the variable.
    """
    partitioned = [window for window in query.windows if window.partition_by]
    for window, tokens in zip(partitioned, clauses, strict=True):
        _check(source, query, window, tokens)


def _check(source: Source, query: ContinuousQuery, window: WindowDefinition, tokens: tuple[Token, ...]) -> None:
    found = partition_of(query.pattern, window)
    for token in tokens:
        if token.text[1:] in map(str, found.missing):
            raise source.error(
                f"no triple pattern of this window has {token.text}, so its elements have no such value: PARTITION BY a "
                "variable of one of its triple patterns",
                token.start,
            )
    names = " ".join(token.text for token in tokens)
    if not found.alternatives:
        raise source.refusal(
            f"no triple patterns of this window connect {names}: PARTITION BY variables of one triple pattern, or of "
            "patterns that share variables",
            tokens[0].start,
        )
    if len(found.alternatives[0]) > 1 and isinstance(window.extent, TripleCount):
        raise source.refusal(
            f"no triple pattern has all of {names}, so a single triple has no such values: count elements instead, as in "
            "[COUNT 10 PARTITION BY …]",
            tokens[0].start,
        )
