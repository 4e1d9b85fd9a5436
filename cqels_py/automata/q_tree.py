"""q-trees: how the variables of a hierarchical conjunctive query nest (Pinto & Riveros, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class QTree:
    """A compact q-tree. An inner node has `variables`, which all atoms below it have, and children; a leaf has an atom's number.

    The root of a query that is not connected has no variables.
    """

    variables: tuple[str, ...] = ()
    children: tuple[QTree, ...] = ()
    atom: int = -1

    @property
    def atoms(self) -> tuple[int, ...]:
        """The atoms below, in order."""
        if self.atom >= 0:
            return (self.atom,)
        return tuple(sorted(number for child in self.children for number in child.atoms))

    def __str__(self) -> str:
        """The tree as text, atoms numbered from 1.

        >>> str(q_tree([{"x"}, {"x", "y"}, {"x", "y"}]))
        '?x(1 ?y(2 3))'
        """
        if self.atom >= 0:
            return str(self.atom + 1)
        return f"{' '.join(f'?{name}' for name in self.variables)}({' '.join(map(str, self.children))})"


def not_hierarchical(atoms: Sequence[frozenset[str] | set[str]]) -> tuple[str, str] | None:
    """Two variables whose sets of atoms overlap without one containing the other; None where the query is hierarchical.

    `atoms`: the variables of each.

    >>> not_hierarchical([{"x"}, {"x", "y"}, {"y"}])
    ('x', 'y')
    """
    names = sorted(set().union(*atoms))
    having = {name: {number for number, atom in enumerate(atoms) if name in atom} for name in names}
    for one, other in combinations(names, 2):
        a, b = having[one], having[other]
        if a & b and a - b and b - a:
            return one, other
    return None


def q_tree(atoms: Sequence[frozenset[str] | set[str]]) -> QTree | None:
    """The compact q-tree of a query, given the variables of each atom; None if the query is not hierarchical."""
    if not_hierarchical(atoms) is not None:
        return None
    return _tree(atoms, list(range(len(atoms))), frozenset())


def _tree(atoms: Sequence[frozenset[str] | set[str]], numbers: list[int], above: frozenset[str]) -> QTree:
    if len(numbers) == 1:
        return QTree(atom=numbers[0])
    common = frozenset.intersection(*(frozenset(atoms[number]) for number in numbers)) - above
    # A connected part of a hierarchical query has a variable in all of its atoms, so without one there are several parts.
    parts = _connected(atoms, numbers, above | common)
    return QTree(tuple(sorted(common)), tuple(_tree(atoms, part, above | common) for part in parts))


def _connected(
    atoms: Sequence[frozenset[str] | set[str]], numbers: list[int], above: frozenset[str]
) -> list[list[int]]:
    """The atoms by the variables that connect them, apart from those above."""
    parts: list[tuple[set[str], list[int]]] = []
    for number in numbers:
        mine, members = set(atoms[number]) - above, [number]
        apart = []
        for names, others in parts:
            if names & mine:
                mine |= names
                members = [*others, *members]
            else:
                apart.append((names, others))
        parts = [*apart, (mine, members)]
    return sorted(sorted(members) for _, members in parts)
