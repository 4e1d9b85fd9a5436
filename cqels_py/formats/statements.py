"""Triples as text, for people: of elements that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary


def statements(columns: Sequence[Ids | None], dictionary: Dictionary) -> str:
    """N-Quads, a line for each of n triples: `columns` are their subjects, predicates, objects and graphs (0 or None: no graph)."""
    texts = (repeat(None) if each is None else dictionary.decode(each) for each in columns)
    lines = zip(*texts, strict=False)
    return "".join(" ".join(term for term in line if term is not None) + " .\n" for line in lines)
