"""Checks of a mapping's text: a CONSTRUCT over the columns of a table or the members of JSON objects."""

from __future__ import annotations

from collections.abc import Sequence

from cqels_py.algebra.nodes import BGP, ContinuousQuery, Exists, Extend, Filter, Pattern
from cqels_py.algebra.validate import walk
from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Kind, Token

_EXAMPLE = 'CONSTRUCT { ?s :temperature ?t } WHERE { BIND(IRI(CONCAT("http://ex.org/", ?sensor)) AS ?s) }'
_OTHERS = (
    "OPTIONAL",
    "UNION",
    "MINUS",
    "GRAPH",
    "SERVICE",
    "VALUES",
    "SELECT",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "FROM",
)


def check_mapping(query: ContinuousQuery, source: Source, tokens: Sequence[Token]) -> None:
    """QuerySyntaxError for another form than CONSTRUCT; UnsupportedQuery for anything in WHERE besides BIND and FILTER."""
    if query.form != "CONSTRUCT":
        raise source.error(f"a mapping is a CONSTRUCT, as in {_EXAMPLE}", _first(tokens, (query.form,)))
    if not query.template:
        raise source.error(
            f"the mapping has no template, so that it makes nothing: write {_EXAMPLE}", _first(tokens, ())
        )
    if not _is_plain(query.pattern) or query.static_from or query.static_named:
        raise source.refusal(
            "the WHERE of a mapping holds BIND and FILTER alone: one row becomes one element, and triples of the template "
            "with an unbound term are left out",
            _first(tokens, _OTHERS),
        )
    if any(isinstance(node, Exists) for node, _ in walk(query.pattern)):
        raise source.refusal(
            "EXISTS has nothing to look into in a mapping; test a column with BOUND", _first(tokens, ("EXISTS",))
        )


def _is_plain(pattern: Pattern) -> bool:
    """Is it made of BIND and FILTER alone?"""
    while isinstance(pattern, Extend | Filter):
        pattern = pattern.pattern
    return pattern == BGP(())


def _first(tokens: Sequence[Token], words: tuple[str, ...]) -> int:
    """The place of the first of these words; else that of the first variable within WHERE, or of the text."""
    named = next((token.start for token in tokens if token.is_word(*words)), None) if words else None
    if named is not None:
        return named
    where = next((at for at, token in enumerate(tokens) if token.is_word("WHERE")), 0)
    return next((token.start for token in tokens[where:] if token.kind is Kind.VARIABLE), tokens[0].start)
