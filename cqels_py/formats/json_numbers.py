"""Numbers of plain JSON that was read as JSON-LD, where 21.5 is 2.15E1: in the text that they have wherever else they come from."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pyoxigraph

from cqels_py.terms.layout import XSD
from cqels_py.terms.values import double_text

_FLOATS = (pyoxigraph.NamedNode(XSD + "double"), pyoxigraph.NamedNode(XSD + "float"))
_DECIMAL = pyoxigraph.NamedNode(XSD + "decimal")
_CANONICAL = re.compile(r"-?\d\.\d+E-?\d{1,3}", re.ASCII)


def plain_numbers(quads: list[Any]) -> list[Any]:
    """The statements, so that equal values are equal terms: doubles as of a pushed float, and decimals without an exponent.

    >>> [quad.object.value for quad in plain_numbers(list(pyoxigraph.parse('<a:s> <a:p> 2.15E1 .', pyoxigraph.RdfFormat.TURTLE)))]
    ['21.5']
    """
    return [_plain(quad) for quad in quads]


def _plain(quad: Any) -> Any:
    term = quad.object
    if not isinstance(term, pyoxigraph.Literal) or _CANONICAL.fullmatch(term.value) is None:
        return quad
    if term.datatype in _FLOATS:
        text = double_text(float(term.value))
    elif term.datatype == _DECIMAL:
        text = format(Decimal(term.value), "f")
    else:
        return quad
    return pyoxigraph.Quad(
        quad.subject, quad.predicate, pyoxigraph.Literal(text, datatype=term.datatype), quad.graph_name
    )
