"""What RDF 1.2 has and RDF 1.1 has not: it is refused, as terms of it are not supported yet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyoxigraph

_DIRECTION = re.compile(rb'"@[A-Za-z0-9-]+--(?:ltr|rtl)\b')
_KINDS = (
    (re.compile(r"<<\(|\)>>"), "a triple term"),
    (re.compile(r"<<|>>|~"), "a reifier"),
    (re.compile(r"\{\||\|\}"), "an annotation"),
    (re.compile(r'(?:"(?:[^"\\]|\\.)*")?@[A-Za-z0-9-]+--[A-Za-z]*'), "a base direction"),
    (re.compile(r"@?version\b", re.IGNORECASE), "an announcement"),
)


def refusal(text: str) -> str | None:
    """The message about a text that begins with a token of RDF 1.2; None if it does not.

    >>> refusal("<<( :s :p :o )>> .")
    "'<<(' is a triple term of RDF 1.2, which is not supported yet"
    >>> refusal(":s :p :o .")
    """
    for pattern, kind in _KINDS:
        found = pattern.match(text)
        if found is not None:
            return f"{found[0]!r} is {kind} of RDF 1.2, which is not supported yet"
    return None


def first_beyond(nquads: bytes, quads: Sequence[Any]) -> int | None:
    """The number of the first statement that RDF 1.1 cannot say, of those that are `nquads` in a text; None if there is none."""
    if b"<<(" not in nquads and (b"--" not in nquads or _DIRECTION.search(nquads) is None):
        return None
    return next((number for number, quad in enumerate(quads) if is_beyond(quad.object)), None)


def is_beyond(term: Any) -> bool:
    """Is this term of the RDF library one that RDF 1.1 does not have?"""
    return type(term) is pyoxigraph.Triple or getattr(term, "direction", None) is not None
