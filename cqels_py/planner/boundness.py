"""Joins whose inputs are connected only by variables that may be unbound, split by which of them are bound.

An unbound variable is compatible with any value, so a join cannot index a variable that may be unbound: it has to compare mapping
by mapping. Where there is no other join variable, mappings in which it is bound are joined by an index, and the others apart.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from itertools import product

from rdflib import Variable

from cqels_py.algebra.nodes import Call, Expression, Filter, Pattern, Planned, Project, VariableRef
from cqels_py.algebra.variables import certain_variables, possible_variables
from cqels_py.planner.planning import Needed, Planning

_MOST_SPLIT = 2


def split_by_boundness(
    planner: Planning, parts: tuple[Pattern, ...], needed: Needed
) -> tuple[tuple[Pattern, ...], ...] | None:
    """Joins whose union is the join of these parts; None where splitting gains no index."""
    certain = [certain_variables(part) for part in parts]
    binding = Counter(v for mine in certain for v in mine)
    for place, part in enumerate(parts):
        mine = certain[place]
        uncertain = frozenset(v for v in possible_variables(part) - mine if binding[v])
        if any(binding[v] > 1 for v in mine) or not 0 < len(uncertain) <= _MOST_SPLIT:
            continue
        others = parts[:place] + parts[place + 1 :]
        wanted = [needed | frozenset().union(*(possible_variables(o) for o in parts if o is not p)) for p in others]
        shared = tuple(_shared(planner, other, seen) for other, seen in zip(others, wanted, strict=True))
        own = _shared(planner, part, needed | uncertain | frozenset().union(*map(possible_variables, others)))
        return tuple((branch, *shared) for branch in _branches(planner, own, tuple(sorted(uncertain))))
    return None


def _shared(planner: Planning, pattern: Pattern, wanted: Needed) -> Planned:
    if isinstance(pattern, Planned):
        return pattern
    return planner.share(pattern, wanted & possible_variables(pattern))


def _branches(planner: Planning, part: Planned, uncertain: tuple[Variable, ...]) -> list[Pattern]:
    """For each combination of bound variables, the part's mappings with just these bound, without the columns of the others."""
    found: list[Pattern] = []
    for choice in product((True, False), repeat=len(uncertain)):
        bound = frozenset(v for v, is_bound in zip(uncertain, choice, strict=True) if is_bound)
        kept = tuple(v for v in part.variables if v not in uncertain or v in bound)
        branch = Project(Filter(part, _are_bound(uncertain, bound)), kept)
        found.append(planner.planned(planner.plan(branch, frozenset(kept)), part.certain | bound))
    return found


def _are_bound(variables: tuple[Variable, ...], bound: Needed) -> Expression:
    tests = [Call("BOUND", (VariableRef(v),)) for v in variables]
    signed = [test if v in bound else Call("!", (test,)) for v, test in zip(variables, tests, strict=True)]
    return reduce(lambda one, other: Call("&&", (one, other)), signed)
