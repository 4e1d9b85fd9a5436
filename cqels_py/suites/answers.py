"""Comparable answers of different engines: rows of terms as plain values, and the equality of two bags of rows.

Numbers are equal within a tolerance: pyoxigraph computes decimals with 18 digits, and xsd:float in 32 bits, where sums
of many numbers differ in the fourth digit. Blank nodes are equal whatever their labels. All integer types count as
xsd:integer, as in pyoxigraph. Times are compared as text, without trailing zeros.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyoxigraph as ox

Cell: TypeAlias = tuple[str, str] | tuple[str, float] | None
Row: TypeAlias = tuple[Cell, ...]

_XSD = "http://www.w3.org/2001/XMLSchema#"
# fmt: off
_INTEGERS = frozenset(_XSD + name for name in (
    "integer", "nonPositiveInteger", "negativeInteger", "long", "int", "short", "byte", "nonNegativeInteger",
    "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "positiveInteger",
))
# fmt: on
_TOLERANCE = {_XSD + "float": 1e-3, _XSD + "double": 1e-9, _XSD + "decimal": 1e-9, _XSD + "integer": 0.0}
_FRACTION = re.compile(r"(\.\d*?)0+(?=Z|[+-]|$)")


def cell(term: Any) -> Cell:
    """A term of pyoxigraph, or None where unbound."""
    if term is None:
        return None
    if isinstance(term, ox.BlankNode):
        return ("blank", "")
    if isinstance(term, ox.NamedNode):
        return ("iri", term.value)
    datatype = _XSD + "integer" if term.datatype.value in _INTEGERS else term.datatype.value
    if term.language:
        return (f"@{term.language.lower()}", term.value)
    if datatype in _TOLERANCE:
        try:
            return (datatype, float(term.value))
        except ValueError:
            return (datatype, term.value)
    if datatype == _XSD + "boolean":
        return (datatype, {"1": "true", "0": "false"}.get(term.value, term.value))
    if datatype in (_XSD + "dateTime", _XSD + "time"):
        return (datatype, _FRACTION.sub(_shorter, term.value).replace("+00:00", "Z"))
    return (datatype, term.value)


def _shorter(found: re.Match[str]) -> str:
    return "" if found[1] == "." else found[1]


def read_terms(texts: Sequence[str | None]) -> list[Cell]:
    """Terms in N-Triples syntax; None if unbound."""
    statements = "".join(f"<x:s> <x:p> {text} .\n" for text in texts if text is not None)
    parsed = iter(ox.parse(statements, format=ox.RdfFormat.N_TRIPLES))
    return [None if text is None else cell(next(parsed).object) for text in texts]


def difference(ours: Counter[Row], theirs: Counter[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that only one of two bags has, after rows that differ within the tolerance have been paired."""
    only_ours: list[Row] = []
    groups: dict[Row, list[Row]] = {}
    for row in sorted((theirs - ours).elements(), key=_first_number):
        groups.setdefault(_without_numbers(row), []).append(row)
    for row in (ours - theirs).elements():
        others = groups.get(_without_numbers(row), [])
        found = next((at for at in _near(row, others) if alike(row, others[at])), None)
        if found is None:
            only_ours.append(row)
        else:
            del others[found]
    return only_ours, [row for others in groups.values() for row in others]


def alike(left: Row, right: Row) -> bool:
    """Whether two rows are equal, with numbers within their type's tolerance."""
    return len(left) == len(right) and all(map(_alike, left, right))


def _alike(left: Cell, right: Cell) -> bool:
    if left is None or right is None or left[0] != right[0]:
        return left == right
    if isinstance(left[1], str) or isinstance(right[1], str):
        return left == right
    if math.isnan(left[1]) or math.isnan(right[1]):
        return math.isnan(left[1]) and math.isnan(right[1])
    tolerance = _TOLERANCE[left[0]]
    return math.isclose(left[1], right[1], rel_tol=tolerance, abs_tol=tolerance * 1e-3)


def _near(row: Row, others: Sequence[Row]) -> range:
    """The range of rows, ordered by their first number, that may equal this one."""
    number = _first_number(row)
    slack = max(_TOLERANCE.values()) * abs(number) + 1e-6
    return range(
        bisect_left(others, number - slack, key=_first_number), bisect_right(others, number + slack, key=_first_number)
    )


def _without_numbers(row: Row) -> Row:
    return tuple((each[0], "") if each is not None and not isinstance(each[1], str) else each for each in row)


def _first_number(row: Row) -> float:
    """Used for ordering only; 0 if the row has no number."""
    numbers = (each[1] for each in row if each is not None and not isinstance(each[1], str))
    return next((number for number in numbers if math.isfinite(number)), 0.0)
