"""Columns that tell mappings apart exactly, also where variables may be unbound."""

from __future__ import annotations

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import Call, Constant, Extend, Pattern, VariableRef
from cqels_py.algebra.variables import certain_variables
from cqels_py.planner.planning import Planning

UNBOUND = Constant(URIRef("urn:cqels-py:unbound"))
"""Stands in a key for no value, so that keys are always bound."""


def with_exact_key(
    planner: Planning, pattern: Pattern, variables: frozenset[Variable]
) -> tuple[Pattern, dict[Variable, Variable]]:
    """The pattern, and which column of it says what a variable's value is there, and stays that in a join.

    That is the variable itself where it is always bound; else a hidden copy, as a join may bind the variable.
    """
    certain = certain_variables(pattern)
    key = {variable: variable for variable in sorted(variables & certain)}
    for variable in sorted(variables - certain):
        copy = planner.fresh(f"own.{variable}")
        pattern = Extend(pattern, copy, Call("COALESCE", (VariableRef(variable), UNBOUND)))
        key[variable] = copy
    return pattern, key
