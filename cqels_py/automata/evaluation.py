"""An automaton over a stream of tuples: values become numbers, and a kernel does the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from cqels_py.automata.automaton import Automaton, Key, Predicate, Transition, Valuation
from cqels_py.errors import UsageError
from cqels_py.kernels.patterns import parallel_runs as kernel
from cqels_py.kernels.patterns.start_heap import LONGEST
from cqels_py.kernels.primitives.state_record import ArrayTable, StateArray, StateRecord

Int64 = npt.NDArray[np.int64]
_FIRST_ROOM = 64
_PART = 256


class Evaluation(StateRecord):
    """A run of an automaton over a stream (Algorithm 1 of the paper): `push` tuples in their order.

    Values may be anything hashable, and are remembered for as long as the evaluation lives.
    Each tuple takes time by the transitions of its relation and the logarithm of the window, however many runs there are, and each
    valuation time by its own length. `longest_union`, `most_steps` and `most_between` count the work: the most nodes that one
    insertion into a heap has made, that one tuple has made, and that lay between two outputs.
    """

    _nodes = StateArray[np.int64](kernel.NODES)
    _heads = StateArray[np.int64](kernel.TABLE)
    _meta = StateArray[np.int64](kernel.META)
    _agenda = StateArray[np.int64](kernel.AGENDA)
    _frames = StateArray[np.int64](kernel.FRAMES)
    _pending = StateArray[np.int64](kernel.PENDING)

    def __init__(self, automaton: Automaton, window: int | None = None) -> None:
        super().__init__()
        if window is not None and window < 0:
            raise UsageError(f"a window of {window} positions: expected 0 or more, or None for no window")
        self._window = -1 if window is None else window
        self._numbers: dict[Hashable, int] = {}
        program = _Program(automaton, self._numbers)
        self._labels = [tuple(automaton.transitions[number].labels) for number in program.order]
        self._relations = program.relations
        self._values = program.values
        self._program = ArrayTable(*program.arrays())
        self._room = program.most_nodes()
        width = kernel.TREES + program.most_trees + 1 + self._values
        self._nodes = np.zeros((_FIRST_ROOM, width), np.int64)
        self._heads = np.zeros(_FIRST_ROOM, np.int64)
        self._meta = np.zeros(kernel.META_FIELDS, np.int64)
        self._meta[[kernel.NEXT, kernel.TAIL]] = 1
        self._agenda = np.zeros(_FIRST_ROOM + program.most_trees, np.int64)
        self._frames = np.zeros((_FIRST_ROOM, kernel.FRAME_FIELDS), np.int64)
        self._pending = np.zeros(_FIRST_ROOM, np.int64)
        self._out = np.zeros(_FIRST_ROOM, np.int64)

    @property
    def longest_union(self) -> int:
        return self._meta.item(kernel.LONGEST_UNION)

    @property
    def most_steps(self) -> int:
        return self._meta.item(kernel.MOST_STEPS)

    @property
    def most_between(self) -> int:
        return self._meta.item(kernel.MOST_BETWEEN)

    @property
    def nbytes(self) -> int:
        """Bytes of the runs within reach, and of their indexes."""
        return self._nodes.nbytes + self._heads.nbytes

    def push(self, values: Sequence[Hashable]) -> list[Valuation]:
        """The valuations that end with this tuple (relation, value, …)."""
        return self.push_all([values])[0]

    def push_all(self, tuples: Iterable[Sequence[Hashable]]) -> list[list[Valuation]]:
        """Push several tuples; for each the valuations that end with it."""
        rows = self._encoded(list(tuples))
        first = self._meta.item(kernel.SEEN)
        found: list[list[Valuation]] = [[] for _ in rows]
        at = 0
        while at < len(rows):
            part = rows[at : at + _PART]
            self._meta[kernel.MADE] = 0
            taken = kernel.step(self._program.address, self.address, part, self._window, self._room, self._out)
            for position, valuation in self._decoded():
                found[position - first].append(valuation)
            at += taken
            if taken < len(part):
                self._grow()
        return found

    def _encoded(self, tuples: Sequence[Sequence[Hashable]]) -> Int64:
        rows = np.zeros((len(tuples), 1 + self._values), np.int64)
        for row, values in zip(rows, tuples, strict=True):
            if not values:
                raise UsageError("an empty tuple: expected (relation, value, …)")
            row[0] = self._relations.get(str(values[0]), len(self._relations))
            for place, value in enumerate(values[1 : 1 + self._values], 1):
                row[place] = self._numbers.setdefault(value, len(self._numbers) + 1)
        return rows

    def _decoded(self) -> Iterable[tuple[int, Valuation]]:
        numbers = self._out[: self._meta.item(kernel.MADE)].tolist()
        at = 0
        while at < len(numbers):
            position, runs = numbers[at : at + 2]
            valuation: dict[Hashable, list[int]] = {}
            for place in range(at + 2, at + 2 + 2 * runs, 2):
                for label in self._labels[numbers[place]]:
                    valuation.setdefault(label, []).append(numbers[place + 1])
            yield position, {label: tuple(sorted(valuation[label])) for label in sorted(valuation, key=repr)}
            at += 2 + 2 * runs

    def _grow(self) -> None:
        """Room for nodes, keys and output, of which one was short."""
        meta = self._meta
        first, following = meta.item(kernel.TAIL), meta.item(kernel.NEXT)
        size = len(self._nodes)
        if following - first + self._room > size:
            while size < 2 * (following - first + self._room):
                size *= 2
            numbers = np.arange(first, following)
            larger = np.zeros((size, self._nodes.shape[1]), np.int64)
            larger[numbers & (size - 1)] = self._nodes[numbers & (len(self._nodes) - 1)]
            self._nodes = larger
        elif 2 * (meta.item(kernel.USED) + self._room) > len(self._heads):
            self._rebuild()
        else:
            self._out = np.zeros(2 * len(self._out), np.int64)
            self._agenda = np.concatenate([self._agenda, np.zeros_like(self._agenda)])
            self._frames = np.concatenate([self._frames, np.zeros_like(self._frames)])
            self._pending = np.concatenate([self._pending, np.zeros_like(self._pending)])

    def _rebuild(self) -> None:
        meta, old = self._meta, self._heads
        low = meta.item(kernel.SEEN) - self._window if self._window >= 0 else -(1 << 62)
        live = int(np.count_nonzero(old >= meta[kernel.TAIL]))
        size = _FIRST_ROOM
        while size < 4 * (live + self._room):
            size *= 2
        self._heads = np.zeros(size, np.int64)
        kernel.rebuild(self._program.address, self.address, old, low)


class _Program:
    """The arrays of an automaton, in the order of the kernel. `numbers`: of values, to which constants are added."""

    def __init__(self, automaton: Automaton, numbers: dict[Hashable, int]) -> None:
        self._numbers = numbers
        self._checks: list[tuple[int, int, int]] = []
        self._keys: list[tuple[int, int, int, int]] = []
        self._places: list[int] = []
        transitions = automaton.transitions
        self.relations: dict[str, int] = {}
        for each in transitions:
            for relation in (each.predicate.relation, *(r for left, _ in each.sources.values() for r in left)):
                self.relations.setdefault(relation, len(self.relations))
        self.order = sorted(range(len(transitions)), key=lambda t: self.relations[transitions[t].predicate.relation])
        self._ordered = [transitions[number] for number in self.order]
        self._states = {state: number for number, state in enumerate(automaton.states)}
        self._final = automaton.final
        self.most_trees = max((len(each.sources) for each in transitions), default=0)
        self.values = 1 + max((place for each in transitions for place in _mentioned(each)), default=-1)
        self._readers: list[list[int]] = [[] for _ in self._states]

    def arrays(self) -> tuple[Int64, ...]:
        rows: list[list[int]] = []
        entries: list[int] = []
        left_keys: list[list[int]] = []
        for each in self._ordered:
            first = len(entries)
            for state, (left, right) in each.sources.items():
                self._readers[self._states[state]].append(len(entries))
                relation = each.predicate.relation
                entries.append(self._key(right[relation]) if relation in right else -1)
                left_keys.append([self._key(left[name]) if name in left else -1 for name in self.relations] + [-1])
            rows.append([self._states[each.target], *self._check(each.predicate), first, len(entries)])
        counts = np.bincount([self.relations[each.predicate.relation] for each in self._ordered], minlength=1)
        of_relation = np.zeros(len(self.relations) + 2, np.int64)
        of_relation[1 : 1 + len(counts)] = np.cumsum(counts)
        of_relation[1 + len(counts) :] = len(rows)
        return (
            _matrix(rows, kernel.TRANSITION_FIELDS),
            of_relation,
            np.array(entries, np.int64),
            _matrix(self._checks, kernel.CHECK_FIELDS),
            _matrix(self._keys, kernel.KEY_FIELDS),
            np.array(self._places, np.int64),
            _matrix(left_keys, len(self.relations) + 1),
            np.cumsum([0, *map(len, self._readers)], dtype=np.int64),
            np.array([entry for entries in self._readers for entry in entries], np.int64),
            np.array([state in self._final for state in self._states], np.int64),
            np.array([self.most_trees], np.int64),
        )

    def most_nodes(self) -> int:
        """That one tuple can make. Call after `arrays`."""
        per_state = {state: 1 + LONGEST * len(self._readers[number]) for state, number in self._states.items()}
        per_relation: dict[str, int] = {}
        for each in self._ordered:
            relation = each.predicate.relation
            per_relation[relation] = per_relation.get(relation, 0) + per_state[each.target]
        return 1 + max(per_relation.values(), default=0)

    def _check(self, condition: Predicate | Key) -> tuple[int, int]:
        first = len(self._checks)
        for place, value in condition.constants.items():
            number = self._numbers.setdefault(value, len(self._numbers) + 1)
            self._checks.append((kernel.CONSTANT, place, number))
        self._checks += [(kernel.EQUAL, one, other) for one, other in condition.equal]
        return first, len(self._checks)

    def _key(self, key: Key) -> int:
        first = len(self._places)
        self._places += key.positions
        self._keys.append((*self._check(key), first, len(self._places)))
        return len(self._keys) - 1


def _mentioned(transition: Transition) -> Iterator[int]:
    """The positions of tuples that a transition looks at."""
    conditions: list[Predicate | Key] = [transition.predicate]
    for sides in transition.sources.values():
        conditions += [key for keys in sides for key in keys.values()]
    for condition in conditions:
        yield from condition.constants
        yield from chain.from_iterable(condition.equal)
        if isinstance(condition, Key):
            yield from condition.positions


def _matrix(rows: Sequence[Sequence[int]], width: int) -> Int64:
    return np.array(rows, np.int64).reshape(len(rows), width)
