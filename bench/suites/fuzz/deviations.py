"""Deviations of pyoxigraph from the specifications, and how the suite handles each.

Some are expressed in SPARQL that it answers correctly (`texts.Plain`), some are compared by value, and some are never
generated. A case with one of the rest is excluded and counted under its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.suites.fuzz.case import Case, Expression, Filter, Minus, Optional
from bench.suites.fuzz.tree import inside


@dataclass(frozen=True)
class Deviation:
    """`section`: the specification that decides; `dealt_with`: written out, by value, never generated, or excluded."""

    what: str
    section: str
    dealt_with: str


MINUS_IN_EXISTS = Deviation("in EXISTS, MINUS sees the outer variables", "SPARQL 1.1, 18.6 (substitute)", "not asked")
FILTER_IN_OPTIONALS = Deviation(
    "the FILTER of an OPTIONAL in another one sees variables of neither, if there is a join around",
    "SPARQL 1.1, 18.2.2.6 (LeftJoin)",
    "not asked",
)
DEVIATIONS = (
    Deviation("p|q gives each pair once", "SPARQL 1.1, 18.4 (Alternative: a union of bags)", "written out as UNION"),
    Deviation("!(p|^q) gives each pair once", "SPARQL 1.1, 18.4 (NegatedPropertySet: a bag)", "written out as FILTER"),
    Deviation("p*, p? of a constant that the graph has not: nothing", "SPARQL 1.1, 18.4 (ZeroLengthPath)", "not drawn"),
    Deviation("a text with a language tag has no truth value", "SPARQL 1.1, 17.2.2", "not drawn"),
    Deviation("equal terms of any type are <= and not <", "SPARQL 1.1, 17.3 (no operator for them)", "not drawn"),
    Deviation("\\w is Rust's", "XML Schema 2, F.1.1", "not drawn"),
    Deviation("quotients are cut after 18 digits", "XPath F&O 4.2.4 (op:numeric-divide)", "by value"),
    Deviation("literals lose their lexical form, integers their type", "RDF 1.1 Concepts, 3.3", "by value"),
    MINUS_IN_EXISTS,
    FILTER_IN_OPTIONALS,
    Deviation("booleans have no order", "SPARQL 1.1, 17.3 (op:boolean-less-than)", "not drawn"),
    Deviation("64-bit integers, decimals of 128 bits with 18 digits", "XPath F&O 4.2", "not drawn"),
    Deviation("NOW() is the clock's", "this engine: the tick's time", "written out as the time"),
)


def deviation(case: Case) -> str | None:
    """The deviation that would make the case's answers differ, if any."""
    for each in inside(case.query):
        if isinstance(each, Expression) and any(
            isinstance(part, Minus) for group in each.groups for part in inside(group)
        ):
            return MINUS_IN_EXISTS.what
    if any(map(_sees_outer_variables, _optionals_in_optionals(case))):
        return FILTER_IN_OPTIONALS.what
    return None


def _optionals_in_optionals(case: Case) -> Iterator[Optional]:
    for outer in inside(case.query):
        if isinstance(outer, Optional):
            yield from (inner for inner in inside(outer.inner) if isinstance(inner, Optional))


def _sees_outer_variables(optional: Optional) -> bool:
    """Does one of its filters name a variable that the rest of its group does not?"""
    filters = [each for each in optional.inner if isinstance(each, Filter)]
    others = [each for each in optional.inner if not isinstance(each, Filter)]
    return not _variables(filters) <= _variables(others)


def _variables(clauses: list[Any]) -> set[str]:
    return set(re.findall(r"\?\w+", repr(clauses)))
