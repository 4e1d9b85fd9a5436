"""The terms of generated cases: few of each kind, so that patterns join and values are equal.

Literals have the lexical form that pyoxigraph returns (it keeps values, not forms), and sums of doubles are exact, so
that no answer depends on a store's order of addition.
"""

from __future__ import annotations

import re

from bench.suites.fuzz.case import EX

NODES = (":a", ":b", ":c")
BLANKS = ("_:x", "_:y")
LINKS = ("link", "other")
POOLS = {
    "int": ("0", "1", "2", "3"),
    "dec": ("0.1", "1.5", '"-2.25"^^xsd:decimal'),
    "dbl": ('"0.25"^^xsd:double', '"-1.5"^^xsd:double', '"2"^^xsd:double'),
    "num": ("1", '"1"^^xsd:decimal', '"1"^^xsd:double', "2", "1.5", '"7"^^xsd:int', '"0.5"^^xsd:float'),
    "str": ('"x"', '"y"', '"xy"', '"X y"', '""', '"é€"'),
    "lang": ('"x"@en', '"x"@fr', '"y"@en', '"x"@en-gb'),
    "when": (
        '"2024-01-01T00:00:00Z"^^xsd:dateTime',
        '"2024-01-01T01:00:00+01:00"^^xsd:dateTime',
        '"2024-01-01T00:00:00.5Z"^^xsd:dateTime',
        '"2024-03-01T12:30:00Z"^^xsd:dateTime',
    ),
    "bool": ("true", "false"),
    "mix": ("1", '"x"', ":a", '"x"@en', "true", "1.5", '"2"^^xsd:double', '"2024-01-01T00:00:00Z"^^xsd:dateTime'),
    "label": ('"x"', '"y"', '"xy"'),
}
"""By predicate: its objects in SPARQL's syntax. Objects of LINKS are nodes."""

EXACT = ("int", "dec")
"""Kinds of exact numbers: sums do not depend on the order."""
REAL = ("int", "dbl", "num")
"""Kinds of numbers with short binary fractions: their promotion is exact."""
_XSD = "http://www.w3.org/2001/XMLSchema#"


def ntriples(term: str) -> str:
    """A term of the pools in N-Triples syntax."""
    if term.startswith(":"):
        return f"<{EX}{term[1:]}>"
    if term in ("true", "false"):
        return f'"{term}"^^<{_XSD}boolean>'
    if re.fullmatch(r"\d+", term):
        return f'"{term}"^^<{_XSD}integer>'
    if re.fullmatch(r"\d+\.\d+", term):
        return f'"{term}"^^<{_XSD}decimal>'
    return re.sub(r"\^\^xsd:(\w+)$", rf"^^<{_XSD}\1>", term)
