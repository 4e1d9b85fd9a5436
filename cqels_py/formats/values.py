"""The values of terms, as CSV has them: an IRI, the text of a literal, or the label of a blank node."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary

_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "r": "\r"}


def value_of(term: str) -> str:
    """The value of a term in canonical N-Triples syntax.

    >>> value_of("<http://example.org/a>"), value_of('"21"^^<http://www.w3.org/2001/XMLSchema#integer>'), value_of("_:b1")
    ('http://example.org/a', '21', '_:b1')
    """
    if term[0] == "<":
        return term[1:-1]
    if term[0] != '"':
        return term
    text = term[1 : term.rindex('"')]
    return text if "\\" not in text else _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), text)


def columns_of_terms(columns: Sequence[Ids], dictionary: Dictionary) -> list[list[str | None]]:
    """The terms of columns of ids (n) in canonical N-Triples syntax; None where unbound. Each term is decoded once."""
    return _decoded(columns, dictionary, lambda term: term)


def columns_of_values(columns: Sequence[Ids], dictionary: Dictionary) -> list[list[str | None]]:
    """The values of columns of ids (n); None where unbound. Each term is decoded once."""
    return _decoded(columns, dictionary, value_of)


def _decoded(columns: Sequence[Ids], dictionary: Dictionary, made: Callable[[str], str]) -> list[list[str | None]]:
    if not columns:
        return []
    ids = np.unique(np.concatenate(columns))
    texts = dictionary.decode(ids)
    values = {id_: None if text is None else made(text) for id_, text in zip(ids.tolist(), texts, strict=True)}
    return [[values[id_] for id_ in column.tolist()] for column in columns]
