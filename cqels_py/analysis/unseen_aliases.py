"""Variables in HAVING that SELECT computes: HAVING is evaluated before SELECT, so they are unbound there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rdflib import Literal, Variable

from cqels_py.algebra.nodes import (
    Call,
    Constant,
    ContinuousQuery,
    Expression,
    Extend,
    Filter,
    Group,
    OrderBy,
    Pattern,
    VariableRef,
)
from cqels_py.algebra.printer import aggregate_text, expression_text
from cqels_py.algebra.validate import walk
from cqels_py.algebra.variables import expression_variables, replaced


def unseen_aliases(query: ContinuousQuery) -> tuple[str, ...]:
    """A message for each such variable, with a HAVING that has the effect that was probably meant."""
    found: list[str] = []
    below: set[int] = set()
    for node, _ in walk(query.pattern):
        if isinstance(node, Extend | OrderBy):
            # A chain of computed columns is looked at once, from its top.
            below.add(id(node.pattern))
            if id(node) not in below:
                found += _warnings(node)
    return tuple(dict.fromkeys(found))


def _warnings(pattern: Pattern) -> Iterator[str]:
    computed: list[tuple[Variable, Expression]] = []
    while isinstance(pattern, Extend | OrderBy):
        if isinstance(pattern, Extend):
            computed.append((pattern.variable, pattern.expression))
        pattern = pattern.pattern
    match pattern:
        case Filter(Group(_, _, aggregates), condition):
            texts = {str(variable): aggregate_text(call) for variable, call in aggregates}
        case _:
            return
    instead = condition
    unseen = [variable for variable, _ in computed if variable in expression_variables(condition)]
    for variable, expression in computed:
        # Only a variable can stand in BOUND.
        known = Call("COALESCE", (Call("SAMETERM", (expression, expression)), Constant(Literal(False))))
        instead = replaced(instead, Call("BOUND", (VariableRef(variable),)), known)
        instead = replaced(instead, VariableRef(variable), expression)
    text = re.sub(r"\?(\w+)", lambda name: texts.get(name[1], name[0]), expression_text(instead))
    for variable in unseen:
        yield (
            f"?{variable} is unbound in HAVING, which is evaluated before SELECT (SPARQL 1.1, 18.2.4): write "
            f"HAVING({text})"
        )
