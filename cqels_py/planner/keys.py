"""Keys that are always bound, also for variables that may be unbound."""

from __future__ import annotations

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import Call, Constant, Extend, Pattern, VariableRef
from cqels_py.algebra.variables import certain_variables
from cqels_py.planner.planning import Planning

UNBOUND = Constant(URIRef("urn:cqels-py:unbound"))
"""The value of an unbound variable in a key."""


def with_exact_key(
    planner: Planning, pattern: Pattern, variables: frozenset[Variable]
) -> tuple[Pattern, dict[Variable, Variable]]:
    """The pattern with a key of the variables, and the key's column for each variable.

    The column is the variable where it is always bound; otherwise a hidden copy, as a later join may bind the variable.
    """
    certain = certain_variables(pattern)
    key = {variable: variable for variable in sorted(variables & certain)}
    for variable in sorted(variables - certain):
        copy = planner.fresh(f"own.{variable}")
        pattern = Extend(pattern, copy, Call("COALESCE", (VariableRef(variable), UNBOUND)))
        key[variable] = copy
    return pattern, key
