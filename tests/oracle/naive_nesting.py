"""The triples of each element where subjects delimit elements: slow, from the whole list of triples, with sets alone.

The rule, as it is written for users: a blank node whose triples stand directly before, among or after those of the
subject that refers to it, with no other IRI as subject between, belongs to that element; one that two elements refer
to, to the first; any other is an element of its own. An IRI that occurs again before another IRI continues its element,
unless there is a blank node in between that none of its triples leads to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

Triple = tuple[str, str, str]


def elements_of(triples: Sequence[Triple]) -> list[list[Triple]]:
    """The elements in the order of the subjects that name them, each with its triples in order."""
    runs = [list(run) for _, run in groupby(triples, key=lambda triple: triple[0])]
    owners = _owners(runs)
    return [
        [triple for run, owner in zip(runs, owners, strict=True) if owner == root for triple in run]
        for root in sorted(set(owners))
    ]


def _owners(runs: list[list[Triple]]) -> list[int]:
    """For each run, the first run of the subject to whose element it belongs."""
    owner: dict[int, int] = {}
    blank = [run[0][0].startswith("_:") for run in runs]
    iris = [r for r in range(len(runs)) if not blank[r]]
    before = 0
    while iris:
        _, several = next(groupby(iris, key=lambda r: runs[r][0][0]))
        same = list(several)
        iris = iris[len(same) :]
        end = iris[0] if iris else len(runs)
        free = {r for r in range(before, end) if blank[r]} - set(owner)
        foreign = free - group_of(runs, same, free)
        groups = [same[:1]]
        for last, r in pairwise(same):
            if foreign & set(range(last, r)):
                groups.append([r])
            else:
                groups[-1].append(r)
        for group, following in zip(groups, [*(group[0] for group in groups[1:]), end], strict=True):
            _own_group(runs, group, {r for r in free if before <= r < following} - set(owner), owner)
            before = group[0]
    rest = set(range(len(runs))) - set(owner)
    _own_blanks(runs, rest, rest, owner)
    return [owner[r] for r in range(len(runs))]


def _own_group(runs: list[list[Triple]], group: list[int], zone: set[int], owner: dict[int, int]) -> None:
    """The element of an IRI with these runs, and those of blank nodes before its last one. `zone`: the runs it may include."""
    ahead = {r for r in zone if r < group[0]}
    _own_blanks(runs, ahead - group_of(runs, group, zone), ahead, owner)
    _own(owner, group[0], {*group, *group_of(runs, group, zone - set(owner))})
    # Runs that it reached only by way of runs of another element.
    for rest in ({r for r in zone if r < group[0]}, {r for r in zone if group[0] < r < group[-1]}):
        rest -= set(owner)
        _own_blanks(runs, rest, rest, owner)


def group_of(runs: list[list[Triple]], named_by: Iterable[int], zone: set[int]) -> set[int]:
    """The runs of the zone that these lead to."""
    found: set[int] = set()
    while True:
        labels = {o for r in {*named_by, *found} for _, _, o in runs[r]}
        more = {r for r in zone if runs[r][0][0] in labels} - found
        if not more:
            return found
        found |= more


def _own_blanks(runs: list[list[Triple]], candidates: set[int], zone: set[int], owner: dict[int, int]) -> None:
    """Elements of blank nodes: first those that no other candidate refers to, then the first of each cycle."""
    named = {o for r in candidates for s, _, o in runs[r] if o != s}
    for choice in (sorted(r for r in candidates if runs[r][0][0] not in named), sorted(candidates)):
        for r in choice:
            if r not in owner:
                mine = {other for other in zone if runs[other][0][0] == runs[r][0][0]}
                _own(owner, r, {*mine, *group_of(runs, mine, zone)})


def _own(owner: dict[int, int], root: int, runs: set[int]) -> None:
    for run in runs - set(owner):
        owner[run] = root
