"""The oracle of automata and of conjunctive queries over streams, from their definitions alone.

A run tree's node is (state, position, transition, children): its tuple meets the transition's predicate, there is a child for each
source state, at an earlier position, and both keys are defined and equal. Outputs at n are the valuations of the accepting trees
with their root at n, once for each tree.

A match of a query is a choice of a position for each atom, several of which may be the same, such that variables agree; the output
at n has those whose last position is n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

Tuple = Sequence[Any]
Valuation = tuple[tuple[Any, tuple[int, ...]], ...]


def _meets(condition: Any, values: Tuple) -> bool:
    places = [*condition.constants, *(place for pair in condition.equal for place in pair)]
    if any(place >= len(values) for place in places):
        return False
    constant = all(values[place] == value for place, value in condition.constants.items())
    return constant and all(values[one] == values[other] for one, other in condition.equal)


def _key(keys: Any, each: Tuple) -> tuple[Any, ...] | None:
    key = keys.get(each[0])
    if key is None or not _meets(key, each[1:]) or any(place >= len(each) - 1 for place in key.positions):
        return None
    return tuple(each[1 + place] for place in key.positions)


def outputs(automaton: Any, stream: Sequence[Tuple], window: int | None = None) -> list[list[Valuation]]:
    """For each position the valuations of accepting run trees, sorted."""
    trees: list[dict[Any, list[list[tuple[Any, int]]]]] = []
    for position, each in enumerate(stream):
        here: dict[Any, list[list[tuple[Any, int]]]] = {}
        for transition in automaton.transitions:
            if each[0] != transition.predicate.relation or not _meets(transition.predicate, each[1:]):
                continue
            choices = []
            for state, (left, right) in transition.sources.items():
                mine = _key(right, each)
                choices.append(
                    [
                        read
                        for earlier in range(position)
                        if mine is not None and _key(left, stream[earlier]) == mine
                        for read in trees[earlier].get(state, ())
                    ]
                )
            for chosen in product(*choices):
                read = [(label, position) for label in transition.labels]
                here.setdefault(transition.target, []).append(read + [pair for part in chosen for pair in part])
        trees.append(here)
    return [
        sorted(
            _valuation(read)
            for state in automaton.final
            for read in here.get(state, ())
            if window is None or position - min(place for _, place in read) <= window
        )
        for position, here in enumerate(trees)
    ]


def _valuation(read: list[tuple[Any, int]]) -> Valuation:
    labels = sorted({label for label, _ in read}, key=repr)
    return tuple((label, tuple(sorted(place for other, place in read if other == label))) for label in labels)


def query_outputs(atoms: Sequence[Tuple], stream: Sequence[Tuple], window: int | None = None) -> list[list[Valuation]]:
    """For each position the matches of a conjunctive query that end there, sorted."""
    found: list[list[Valuation]] = [[] for _ in stream]
    for places, _ in _matches(atoms, stream, 0, (), {}):
        if window is None or max(places) - min(places) <= window:
            found[max(places)].append(_valuation(list(enumerate(places))))
    return [sorted(each) for each in found]


def _matches(
    atoms: Sequence[Tuple], stream: Sequence[Tuple], number: int, places: tuple[int, ...], bound: dict[str, Any]
) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    if number == len(atoms):
        yield places, bound
        return
    relation, *arguments = atoms[number]
    for place, each in enumerate(stream):
        if each[0] != relation or len(each) != len(atoms[number]):
            continue
        new = dict(bound)
        if all(
            new.setdefault(argument, value) == value if str(argument).startswith("?") else argument == value
            for argument, value in zip(arguments, each[1:], strict=True)
        ):
            yield from _matches(atoms, stream, number + 1, (*places, place), new)
