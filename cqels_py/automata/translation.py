"""Hierarchical conjunctive queries to automata: Theorem 4.1 of Pinto & Riveros, by the compact q-tree.

A state for each atom that has been read alone; and (x, A) for each inner node x of the tree and each self join A below it, a set of
atoms that one tuple serves: all atoms below x have been read, those of A last. A transition into (x, A) joins the branches that
hang from the paths from x to A. Where no relation is there twice, A is one atom, and the atoms after x need not know which one was
last: then (x, A) is x alone, and the automaton has a size quadratic in that of the query. With self joins it may be exponentially
large.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, combinations, product

from cqels_py.automata.automaton import Key, Predicate, Transition
from cqels_py.automata.q_tree import QTree, not_hierarchical, q_tree
from cqels_py.errors import UsageError

Atom = tuple[Hashable, ...]
MOST_TRANSITIONS = 10_000


def translated(atoms: Sequence[Atom]) -> tuple[list[Transition], set[Hashable]]:
    """The transitions and final states for a query. UsageError where there are none."""
    if not atoms or not all(atom and isinstance(atom[0], str) for atom in atoms):
        raise UsageError("expected atoms (relation, argument, …), such as ('R', '?x', '?y')")
    having = [_variables(atom) for atom in atoms]
    if crossing := not_hierarchical(having):
        one, other = crossing
        raise UsageError(
            f"the query is not hierarchical: {one} and {other} are together in an atom, and each is in one without the other, so "
            "there is no automaton for it (Theorem 4.2)"
        )
    tree = q_tree(having)
    assert tree is not None
    return _Translation(atoms, tree).run()


def _is_variable(argument: Hashable) -> bool:
    return isinstance(argument, str) and argument.startswith("?")


def _variables(atom: Atom) -> frozenset[str]:
    return frozenset(str(argument) for argument in atom[1:] if _is_variable(argument))


class _Translation:
    def __init__(self, atoms: Sequence[Atom], tree: QTree) -> None:
        self._atoms = atoms
        self._tree = tree
        relations = [atom[0] for atom in atoms]
        self._joins_itself = len(set(relations)) < len(relations)

    def run(self) -> tuple[list[Transition], set[Hashable]]:
        found = [
            Transition({}, _predicate(self._atoms, (number,)), (number,), number) for number in range(len(self._atoms))
        ]
        for node in _inner(self._tree):
            for together in self._self_joins(node):
                for sources in product(*(self._choices(child) for child in _hanging(node, together))):
                    found.append(self._transition(node, together, sources))
                    if len(found) > MOST_TRANSITIONS:
                        raise UsageError(
                            f"the automaton of this query has more than {MOST_TRANSITIONS:,} transitions, since atoms with the "
                            "same relation may share tuples: give them relations of their own"
                        )
        if self._tree.atom >= 0:
            return found, {0}
        return found, {self._state(self._tree, together) for together in self._self_joins(self._tree)}

    def _self_joins(self, node: QTree) -> Iterator[tuple[int, ...]]:
        """The sets of atoms below a node that one tuple can serve."""
        below = node.atoms
        most = len(below) if self._joins_itself else 1
        for together in chain.from_iterable(combinations(below, size) for size in range(1, most + 1)):
            if _unified(self._atoms, together) is not None:
                yield together

    def _choices(self, child: QTree) -> list[tuple[Hashable, tuple[int, ...]]]:
        """The states in which all below a child has been read, each with atoms that may have been last."""
        if child.atom >= 0:
            return [(child.atom, (child.atom,))]
        choices = [(self._state(child, together), together) for together in self._self_joins(child)]
        return choices if self._joins_itself else choices[:1]

    def _state(self, node: QTree, together: tuple[int, ...]) -> Hashable:
        name = " ".join(node.variables) or "all"
        return f"{name}|{','.join(map(str, together))}" if self._joins_itself else name

    def _transition(
        self, node: QTree, together: tuple[int, ...], sources: Sequence[tuple[Hashable, tuple[int, ...]]]
    ) -> Transition:
        keys = {}
        for state, last in sources:
            lasts = [last] if self._joins_itself or isinstance(state, int) else self._lasts(node, state)
            pairs = [self._equality(each, together) for each in lasts]
            relation = str(self._atoms[together[0]][0])
            left = {str(self._atoms[each[0]][0]): pair[0] for each, pair in zip(lasts, pairs, strict=True)}
            keys[state] = (left, {relation: pairs[0][1]})
        return Transition(keys, _predicate(self._atoms, together), together, self._state(node, together))

    def _lasts(self, node: QTree, state: Hashable) -> list[tuple[int, ...]]:
        """The atoms that may be the last of a run in the state of an inner node below."""
        found = next(each for each in _inner(node) if each is not node and self._state(each, ()) == state)
        return [(number,) for number in found.atoms]

    def _equality(self, last: tuple[int, ...], together: tuple[int, ...]) -> tuple[Key, Key]:
        before, after = (self._variables_of(numbers) for numbers in (last, together))
        shared = sorted(before & after)
        return Key(self._places(last, shared)), Key(self._places(together, shared))

    def _variables_of(self, numbers: tuple[int, ...]) -> frozenset[str]:
        return frozenset().union(*(_variables(self._atoms[number]) for number in numbers))

    def _places(self, numbers: tuple[int, ...], names: Sequence[str]) -> list[int]:
        """Where a tuple that serves all these atoms has the values of variables."""
        return [
            next(self._atoms[number].index(name, 1) - 1 for number in numbers if name in self._atoms[number][1:])
            for name in names
        ]


def _inner(tree: QTree) -> Iterator[QTree]:
    if tree.atom < 0:
        yield tree
        for child in tree.children:
            yield from _inner(child)


def _hanging(node: QTree, together: tuple[int, ...]) -> list[QTree]:
    """The subtrees that hang from the paths from a node to some atoms below it (C of the paper)."""
    found: list[QTree] = []
    for child in node.children:
        if not set(child.atoms) & set(together):
            found.append(child)
        elif child.atom < 0:
            found += _hanging(child, together)
    return found


def _unified(
    atoms: Sequence[Atom], numbers: tuple[int, ...]
) -> tuple[dict[int, Hashable], list[tuple[int, int]]] | None:
    """The constants and the equal positions of a tuple that serves all of these atoms; None where there is no such tuple."""
    first = atoms[numbers[0]]
    if any(atoms[number][0] != first[0] or len(atoms[number]) != len(first) for number in numbers):
        return None
    width = len(first) - 1
    group = list(range(width))
    places: dict[str, int] = {}
    for number in numbers:
        for position, argument in enumerate(atoms[number][1:]):
            if _is_variable(argument):
                one, other = group[places.setdefault(str(argument), position)], group[position]
                group = [min(one, other) if each in (one, other) else each for each in group]
    constants: dict[int, Hashable] = {}
    for number in numbers:
        for position, argument in enumerate(atoms[number][1:]):
            if not _is_variable(argument) and constants.setdefault(group[position], argument) != argument:
                return None
    return constants, [(group[position], position) for position in range(width) if group[position] != position]


def _predicate(atoms: Sequence[Atom], numbers: tuple[int, ...]) -> Predicate:
    unified = _unified(atoms, numbers)
    assert unified is not None
    return Predicate(str(atoms[numbers[0]][0]), *unified)
