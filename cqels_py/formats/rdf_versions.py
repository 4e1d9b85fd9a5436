"""What RDF 1.2 has and RDF 1.1 has not: it is refused, as terms of it are not supported yet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyoxigraph

_DIRECTION = re.compile(rb'"@[A-Za-z0-9-]+--(?:ltr|rtl)\b')


def first_beyond(nquads: bytes, quads: Sequence[Any]) -> int | None:
    """The number of the first statement that RDF 1.1 cannot say, of those that are `nquads` in a text; None if there is none."""
    if b"<<(" not in nquads and (b"--" not in nquads or _DIRECTION.search(nquads) is None):
        return None
    return next((number for number, quad in enumerate(quads) if is_beyond(quad.object)), None)


def is_beyond(term: Any) -> bool:
    """Is this term of the RDF library one that RDF 1.1 does not have?"""
    return type(term) is pyoxigraph.Triple or getattr(term, "direction", None) is not None
