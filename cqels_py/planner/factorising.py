"""Aggregates below a join: where every input has all that the join compares, its results need not be made to be counted.

Their part in COUNT, SUM and AVG follows from sums and counters of each input by the join's key, and that in MIN and MAX from each
input's extreme of that key. So the cost of an arrival follows from the groups that it changes, not from how many mappings it
meets. What is asked of pairs of inputs (a filter, an expression, DISTINCT) needs the results.

Patterns of one window about one subject, such as the properties of an observation, have one match each as a rule: their join is as
small as they are. It stays, unless groups are made by that subject, which says that there are several.
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
    """Groups of a join, made from the join's inputs; where that is not possible, and any other node, as it is."""
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
    """The inputs of the join that a node is, with all wanted variables in them, and what they are joined on.

    None: the node is no such join, or its inputs differ in what they share.
    """
    match node:
        case ProjectRows(inner) if wanted <= set(node.variables) & set(inner.variables):
            return _inputs(inner, wanted)
        case ExtendRows(inner, variable) if variable not in wanted:
            return _inputs(inner, wanted)
        case ExtendRows(inner, variable, program) if program.deterministic:
            found = _inputs(inner, (wanted - {variable}) | set(program.inputs))
            return None if found is None else _computed_in_one(node, *found)
        case JoinAll(inputs, maybe_unbound=unsure) if not unsure:
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
    """A column computed in the input that has all that it needs."""
    for place, node in enumerate(inputs):
        if set(extend.expression.inputs) <= set(node.variables):
            computed = ExtendRows(node, extend.variable, extend.expression)
            return (*inputs[:place], computed, *inputs[place + 1 :]), key
    return None


def _key(inputs: tuple[Node, ...]) -> tuple[str, ...] | None:
    """The variables that the inputs share; None where one of them lacks some."""
    names = dict.fromkeys(variable for node in inputs for variable in node.variables)
    shared = tuple(v for v in names if sum(v in node.variables for node in inputs) > 1)
    return shared if all(set(shared) <= set(node.variables) for node in inputs) else None


def _describe_one_thing(inputs: tuple[Node, ...], key: tuple[str, ...]) -> bool:
    """Are all inputs patterns of one window, the key their subject?"""
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
    """The node whose mappings have their ids when they expire too; None where others have settled that they have not."""
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
