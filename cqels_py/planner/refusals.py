"""What no plan can be made for, by name."""

from __future__ import annotations

from rdflib import Variable

from cqels_py.algebra.nodes import Graph, Pattern, Window


def refusal(pattern: Pattern) -> str:
    if isinstance(pattern, Graph) and isinstance(pattern.name, Variable):
        return (
            f"the group inside GRAPH ?{pattern.name} is more than can be asked of all graphs at once: name the graph, or leave "
            "only triple patterns, UNION, OPTIONAL, filters and subqueries with neither LIMIT nor a group without keys inside"
        )
    inner = pattern.pattern if isinstance(pattern, Window | Graph) else pattern
    return f"{type(inner).__name__} is not supported here"
