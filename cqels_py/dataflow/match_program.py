"""An automaton of a plan as the arrays that the kernel interprets (kernels/patterns/runs.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.patterns import runs as kernel
from cqels_py.kernels.patterns.start_heap import LONGEST
from cqels_py.plan.match_bounds import is_cut, unsteady_lists
from cqels_py.plan.nodes import MatchRows, MatchTransition, partition_variables

Int64 = npt.NDArray[np.int64]


_POLICIES = {"ALL": kernel.ALL, "LATEST": kernel.LATEST, "EARLIEST": kernel.EARLIEST}


@dataclass(frozen=True, slots=True)
class MatchProgram:
    """`arrays` in the order of the kernel. `width`: of a node's row. `variables`: that a run binds."""

    arrays: tuple[Int64, ...]
    width: int
    variables: int
    longest_key: int


class _Lists:
    """The lists of runs: one for each state, key and cut. Those of NOT have a state of their own each, behind the automaton's."""

    def __init__(self, node: MatchRows) -> None:
        self.numbers: dict[tuple[int, tuple[str, ...], int], int] = {}
        for transition in node.transitions:
            self._add(transition.source, transition.key, cut_of(node, transition))
        consuming = len(node.states) + len(node.absent)
        self.consumed = self._add(consuming, partition_variables(node)) if node.consume else -1
        self.gaps = [self._add(len(node.states) + place, absent.key) for place, absent in enumerate(node.absent)]

    def _add(self, state: int, key: tuple[str, ...], cut: int = -1) -> int:
        return self.numbers.setdefault((state, key, cut), len(self.numbers))

    def of_state(self, state: int) -> list[int]:
        return [number for (source, _, _), number in self.numbers.items() if source == state]


def cut_of(node: MatchRows, transition: MatchTransition) -> int:
    """The number of the NOT that one look-up decides before a transition, or -1."""
    return transition.absent if is_cut(node, transition) else -1


def match_program(node: MatchRows) -> MatchProgram:
    """The program of a plan's node."""
    names = sorted({name for event in node.events for name in event.variables})
    lists = _Lists(node)
    event_of = [state.event for state in node.states] + [absent.event for absent in node.absent]
    columns = [event.variables for event in node.events]
    keys = [
        list(range(len(key))) if state == len(event_of) else [columns[event_of[state]].index(name) for name in key]
        for state, key, _ in lists.numbers
    ]
    cuts = [
        _cut_columns(node, columns[event_of[state]], cut)
        if cut >= 0
        else [kernel.OF_ABSENT if number in lists.gaps else kernel.NO_CUT]
        for number, (state, _, cut) in enumerate(lists.numbers)
    ]
    unsteady = unsteady_lists(node) if node.guarantee else set()
    heaped = [(state, key) in unsteady for state, key, _ in lists.numbers]
    entries, key_columns, cleared, cut_columns = _entries(node, lists, event_of)
    # The parser refuses larger automata, with their place.
    assert len(entries) <= kernel.MOST_ENTRIES
    events = [event_of[entry[kernel.TARGET]] for entry in entries]
    targets = [lists.of_state(entry[kernel.TARGET]) for entry in entries]
    ends = np.cumsum([0, *map(len, targets)]).tolist()
    entries = [[*entry, *ends[n : n + 2]] for n, entry in enumerate(entries)]
    finals = [number for number, entry in enumerate(entries) if entry[kernel.FINAL]]
    linked = [number for number, mine in enumerate(targets) if mine]
    arrays = (
        _matrix(entries, kernel.ENTRY_FIELDS),
        _by_event(finals, events, len(node.events)),
        np.array(finals, np.int64),
        _by_event(linked, events, len(node.events)),
        np.array(linked, np.int64),
        _padded(key_columns),
        np.array([number for mine in targets for number in mine], np.int64),
        _counted(keys),
        _padded([[names.index(name) for name in mine] for mine in columns]),
        _matrix([[int(name in fresh) for name in names] for fresh in cleared], len(names)),
        np.array(lists.gaps, np.int64),
        _counted([[names.index(name) for name in absent.key] for absent in node.absent]),
        _matrix([[int(e in absent.after) for e in range(len(columns))] for absent in node.absent], len(columns)),
        np.array(event_of, np.int64),
        np.array([names.index(name) for name in node.variables], np.int64),
        np.array(
            [
                _limit(node.within),
                _limit(node.within_events),
                node.strict_time,
                node.retract,
                _POLICIES[node.policy],
                lists.consumed,
                _most([1 + len(numbers) for numbers in targets], events) + node.consume,
                _most([LONGEST * sum(heaped[number] for number in numbers) for numbers in targets], events),
                _is_plain(node) and not any(heaped),
            ],
            np.int64,
        ),
        _partition_columns(node),
        np.array([node.variables.index(name) for name in partition_variables(node)] if node.consume else [], np.int64),
        _padded(cut_columns),
        _padded(cuts),
        np.array(heaped, np.int64),
        _matrix([[int(e in events) for e in range(len(columns))] for events in _later_than(node)], len(columns)),
    )
    width = max(*map(len, columns), len(partition_variables(node)) if node.consume else 0, 0)
    return MatchProgram(arrays, width, len(names), max(map(len, keys), default=0))


def _is_plain(node: MatchRows) -> bool:
    return not (node.retract or node.policy != "ALL" or node.consume or node.strict_time or node.absent)


def _by_event(entries: Sequence[int], events: Sequence[int], count: int) -> Int64:
    """Where the entries of each event begin among those; the entries are in the order of their events."""
    return np.searchsorted([events[entry] for entry in entries], np.arange(count + 1)).astype(np.int64)


def _most(made: Sequence[int], events: Sequence[int]) -> int:
    """The most that the entries of one event make together."""
    return max(sum(n for n, e in zip(made, events, strict=True) if e == event) for event in set(events))


def _entries(
    node: MatchRows, lists: _Lists, event_of: Sequence[int]
) -> tuple[list[list[int]], list[list[int]], list[tuple[str, ...]], list[list[int]]]:
    """The entries by event, their key columns, the sets of variables that some of them clear, and the columns of their cuts."""
    cleared = list(dict.fromkeys(t.fresh for t in node.transitions if t.fresh))
    found: list[tuple[int, list[int], list[int], list[int]]] = []
    for state, event in enumerate(event_of):
        gap = state >= len(node.states)
        if gap or node.states[state].initial:
            final = not gap and node.states[state].final
            found.append((event, [state, -1, 0, 0, -1, -1, int(final), 0, -1, -1], [], []))
    for t in node.transitions:
        event = event_of[t.target]
        key = [node.events[event].variables.index(name) for name in t.key]
        cut = cut_of(node, t)
        fields = [
            t.target, lists.numbers[t.source, t.key, cut], int(t.same_element), int(t.later), t.absent if cut < 0 else -1,
            cleared.index(t.fresh) if t.fresh else -1, int(node.states[t.target].final), len(key), cut,
            _later_than(node).index(t.later_than) if t.later_than else -1,
        ]  # fmt: skip
        columns = _cut_columns(node, node.events[event].variables, cut)[1:] if cut >= 0 else []
        found.append((event, fields, key, columns))
    found.sort(key=lambda each: each[0])
    return [each[1] for each in found], [each[2] for each in found], cleared, [each[3] for each in found]


def _later_than(node: MatchRows) -> list[tuple[int, ...]]:
    """The sets of events than whose nearest some transition's is later."""
    return list(dict.fromkeys(t.later_than for t in node.transitions if t.later_than))


def _cut_columns(node: MatchRows, variables: Sequence[str], cut: int) -> list[int]:
    """A NOT that is a cut, and the columns of its key in an event."""
    return [cut, *(variables.index(name) for name in node.absent[cut].key)]


def _partition_columns(node: MatchRows) -> Int64:
    """For each event the columns of the variables that all events have; only where matches consume."""
    if not node.consume:
        return np.zeros((len(node.events), 0), np.int64)
    names = partition_variables(node)
    gaps = {gap.event for gap in node.absent}
    rows = [
        [-1] * len(names) if number in gaps else [event.variables.index(name) for name in names]
        for number, event in enumerate(node.events)
    ]
    return _matrix(rows, len(names))


def _limit(limit: int | None) -> int:
    return -1 if limit is None else limit


def _matrix(rows: Sequence[Sequence[int]], width: int) -> Int64:
    return np.array(rows, np.int64).reshape(len(rows), width)


def _padded(rows: Sequence[Sequence[int]]) -> Int64:
    """Rows filled up with -1."""
    width = max(map(len, rows), default=0)
    return _matrix([[*row, *[-1] * (width - len(row))] for row in rows], width)


def _counted(rows: Sequence[Sequence[int]]) -> Int64:
    """Rows behind their lengths."""
    return _padded([[len(row), *row] for row in rows]) if rows else np.zeros((0, 1), np.int64)
