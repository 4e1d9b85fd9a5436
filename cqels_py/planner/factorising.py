"""Aggregates pushed below a join (factorised): where all inputs have the whole join key, results need not be enumerated.

COUNT, SUM and AVG follow from sums and counters of each input by the join key, MIN and MAX from each input's extreme by that key. So
the cost of an arrival follows from the groups that it changes, not from the number of its matches. Filters and expressions over
several inputs, and DISTINCT, need the results themselves.

Patterns of one window about one subject, such as the properties of an observation, mostly have one match each: their join is as
small as they are. It stays, unless the groups are those of that subject, which suggests that there are several matches.
"""

from __future__ import annotations

from dataclasses import replace

from cqels_py.plan.nodes import (
    DistinctRowsOf,
    ExtendRows,
    FactorisedGroups,
    FilterRows,
    GroupRows,
    JoinAll,
    Node,
    ProjectRows,
    Scan,
    Shared,
)

_FUNCTIONS = ("COUNT(*)", "COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE")


def factorise_groups(node: Node) -> Node:
    """Groups of a join as FactorisedGroups of its inputs, where that is possible; any other node as it is."""
    return _factorised(node) if isinstance(node, GroupRows) else node


def _factorised(group: GroupRows) -> GroupRows | FactorisedGroups:
    if any(a.distinct or a.function not in _FUNCTIONS for a in group.aggregates):
        return group
    wanted = {*group.keys, *(a.argument for a in group.aggregates if a.argument is not None)}
    found = _inputs(group.input, wanted)
    if found is None:
        return group
    inputs, key = found
    if not set(key) & set(group.keys) and _describe_one_thing(inputs, key):
        return group
    own = set(group.keys) - set(key)
    carrier = next((i for i, node in enumerate(inputs) if own <= set(node.variables)), None)
    if carrier is None:
        return group
    return FactorisedGroups(inputs, key, carrier, group.keys, group.aggregates)


def _inputs(node: Node, wanted: set[str]) -> tuple[tuple[Node, ...], tuple[str, ...]] | None:
    """The inputs of a join, with all wanted variables, and the join key.

    None: the node is no such join, or not all of its inputs have the whole key.
    """
    match node:
        case ProjectRows(inner) if wanted <= set(node.variables) & set(inner.variables):
            return _inputs(inner, wanted)
        case ExtendRows(inner, variable) if variable not in wanted:
            return _inputs(inner, wanted)
        case ExtendRows(inner, variable, program) if program.deterministic:
            found = _inputs(inner, (wanted - {variable}) | set(program.inputs))
            return None if found is None else _computed_in_one(node, *found)
        case JoinAll(inputs, maybe_unbound=uncertain) if not uncertain:
            with_ids = tuple(keeping_ids(each) for each in inputs)
            key = _key(inputs)
            there = {variable for each in inputs for variable in each.variables}
            if key is None or None in with_ids or not wanted <= there:
                return None
            return tuple(each for each in with_ids if each is not None), key
        case _:
            return None


def _computed_in_one(
    extend: ExtendRows, inputs: tuple[Node, ...], key: tuple[str, ...]
) -> tuple[tuple[Node, ...], tuple[str, ...]] | None:
    """The inputs with the column computed in the first one that has all variables of its expression; None if there is none."""
    for place, node in enumerate(inputs):
        if set(extend.expression.inputs) <= set(node.variables):
            computed = ExtendRows(node, extend.variable, extend.expression)
            return (*inputs[:place], computed, *inputs[place + 1 :]), key
    return None


def _key(inputs: tuple[Node, ...]) -> tuple[str, ...] | None:
    """The variables that several inputs have; None where an input lacks one of them."""
    names = dict.fromkeys(variable for node in inputs for variable in node.variables)
    shared = tuple(v for v in names if sum(v in node.variables for node in inputs) > 1)
    return shared if all(set(shared) <= set(node.variables) for node in inputs) else None


def _describe_one_thing(inputs: tuple[Node, ...], key: tuple[str, ...]) -> bool:
    """Are all inputs patterns of one window with the key as their subject?"""
    scans = [_scan_below(node) for node in inputs]
    return all(scan is not None and key == (scan.pattern[0][1:],) for scan in scans) and (
        len({scan.window for scan in scans if scan is not None}) == 1
    )


def _scan_below(node: Node) -> Scan | None:
    match node:
        case Scan():
            return node
        case FilterRows(inner) | ProjectRows(inner) | DistinctRowsOf(inner) | ExtendRows(inner):
            return _scan_below(inner)
        case _:
            return None


def keeping_ids(node: Node) -> Node | None:
    """The node delivering expired mappings with their ids; None where a shared scan below it delivers them without."""
    return replace(node, keep_ids=True) if isinstance(node, Scan) else node if _has_ids(node) else None


def _has_ids(node: Node) -> bool:
    match node:
        case Scan():
            return node.keep_ids
        case FilterRows(inner) | ProjectRows(inner):
            return _has_ids(inner)
        case ExtendRows(inner) | Shared(_, inner):
            return _has_ids(inner)
        case _:
            return True
