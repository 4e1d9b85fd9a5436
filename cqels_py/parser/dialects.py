"""The dialect of a text, and its defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from cqels_py.algebra.nodes import Dialect, Output
from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Token


@dataclass(frozen=True, slots=True)
class Defaults:
    """`bag_windows`: the same triple twice counts twice. `bare_milliseconds`: `[RANGE 5]` is in milliseconds."""

    output: Output
    bag_windows: bool
    bare_milliseconds: bool


DEFAULTS: dict[Dialect, Defaults] = {
    Dialect.CQELS_QL: Defaults(Output.ISTREAM, bag_windows=True, bare_milliseconds=False),
    Dialect.RSP_QL: Defaults(Output.ISTREAM, bag_windows=False, bare_milliseconds=True),
    Dialect.C_SPARQL: Defaults(Output.RSTREAM, bag_windows=False, bare_milliseconds=False),
}


class Clause(Enum):
    """The window clauses of each dialect, as messages show them."""

    INLINE = "STREAM <stream> [RANGE 10s] {…}"
    BLOCK = "FROM NAMED WINDOW <w> ON <stream> [RANGE 10s] and WINDOW <w> {…}"
    FROM = "FROM STREAM <stream> [RANGE 10s]"


_HOME = {Clause.INLINE: Dialect.CQELS_QL, Clause.BLOCK: Dialect.RSP_QL, Clause.FROM: Dialect.C_SPARQL}
_ALLOWED = {
    # CQELS-QL 2 writes FROM STREAM too; it is taken for C-SPARQL unless the dialect is given.
    Dialect.CQELS_QL: (Clause.INLINE, Clause.FROM),
    Dialect.RSP_QL: (Clause.BLOCK,),
    Dialect.C_SPARQL: (Clause.FROM,),
}


def clause_at(tokens: Sequence[Token], at: int) -> Clause | None:
    """The kind of the window clause whose keyword STREAM or WINDOW stands at this position."""
    token = tokens[at]
    if token.is_word("WINDOW"):
        return Clause.BLOCK
    if not token.is_word("STREAM"):
        return None
    before = tokens[at - 1] if at else token
    if before.is_word("REGISTER", "ON"):
        return None
    if before.is_word("NAMED") and at > 1:
        before = tokens[at - 2]
    return Clause.FROM if before.is_word("FROM") else Clause.INLINE


def detect(source: Source, tokens: Sequence[Token], given: Dialect | None) -> Dialect:
    """The given dialect or the one of the window clauses; raises QuerySyntaxError where clauses do not fit it.

    Without any window clause the text is taken for CQELS-QL.
    """
    dialect = given
    first: Clause | None = None
    for at, token in enumerate(tokens):
        clause = clause_at(tokens, at)
        if clause is None:
            continue
        dialect = dialect or _HOME[clause]
        if clause not in _ALLOWED[dialect] or (first or clause) is not clause:
            other = _HOME[clause].value
            raise source.error(
                f"{other} writes windows like this; the query is {dialect.value}, which writes "
                f"{_example(dialect, first)}",
                token.start,
            )
        first = clause
    return dialect or Dialect.CQELS_QL


def _example(dialect: Dialect, first: Clause | None) -> str:
    return (first or _ALLOWED[dialect][0]).value
