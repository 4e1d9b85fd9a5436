"""Divides the inputs of a large join into groups that are connected by shared variables."""

from __future__ import annotations

from collections.abc import Sequence, Set

MOST_JOINED = 10
"""The most inputs of one join operator."""
MOST_FOR_HUBS = 64
"""The most inputs of which all variables are tried as hubs."""


def components(variables: Sequence[Set[str]]) -> list[list[int]]:
    """Places of inputs in connected components, each in rising order; two inputs that share a variable are connected.

    >>> components([{"a"}, {"b", "c"}, {"a", "d"}, {"c"}, set()])
    [[0, 2], [1, 3], [4]]
    """
    users: dict[str, list[int]] = {}
    for place, mine in enumerate(variables):
        for name in mine:
            users.setdefault(name, []).append(place)
    found: list[list[int]] = []
    seen: set[int] = set()
    for start in range(len(variables)):
        if start in seen:
            continue
        seen.add(start)
        together = [start]
        for place in together:
            for name in variables[place]:
                # Each variable is looked up once: all inputs that have it are reached by then.
                new = [other for other in users.pop(name, ()) if other not in seen]
                seen.update(new)
                together += new
        found.append(sorted(together))
    return found


def beside(variables: Sequence[Set[str]], hub: str) -> list[list[int]] | None:
    """Places of inputs in the components that are left without the variable `hub`; None where a component does not have it.

    >>> beside([{"sensor", "a"}, {"a", "v"}, {"sensor", "b"}, {"b", "w"}], "sensor")
    [[0, 1], [2, 3]]
    """
    groups = components([mine - {hub} for mine in variables])
    return groups if all(any(hub in variables[place] for place in group) for group in groups) else None


def stages_of_join(
    variables: Sequence[Set[str]], subjects: Sequence[str], predicates: Sequence[str]
) -> list[list[int]]:
    """Places of more than MOST_JOINED inputs in groups: each group is joined first, then the groups' results.

    `variables` of each input; `subjects` and `predicates` of triple patterns with a variable subject, "" for other inputs. There are
    always fewer groups than inputs, and more than one. Connected components are groups; their cross product comes last. A single
    component is cut at a variable whose removal leaves the most even groups; else into patterns of the same subject, if their
    predicates differ, so that there is mostly one match; else into groups of connected inputs.

    >>> stages_of_join([{"a"}] * 7 + [{"b"}] * 5, [""] * 12, [""] * 12)
    [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11]]
    >>> stages_of_join([{"h", "s"}, *[{"s"}] * 5, {"h", "t"}, *[{"t"}] * 5], [""] * 12, [""] * 12)
    [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    """
    apart = components(variables)
    if 1 < len(apart) < len(variables):
        return apart
    return (
        _around_a_hub(variables)
        or _by_subject(variables, subjects, predicates)
        or _connected(variables)
        or first_inputs_first(len(variables))
    )


def first_inputs_first(count: int) -> list[list[int]]:
    """Places of `count` inputs: the first MOST_JOINED in one group, each other one alone."""
    return [list(range(MOST_JOINED)), *([place] for place in range(MOST_JOINED, count))]


def _around_a_hub(variables: Sequence[Set[str]]) -> list[list[int]] | None:
    """Groups that only one variable connects: of all such variables the one whose largest group is smallest."""
    if len(variables) > MOST_FOR_HUBS:
        return None
    hubs = dict.fromkeys(name for mine in variables for name in sorted(mine))
    tried = (beside(variables, hub) for hub in hubs)
    found = [groups for groups in tried if groups is not None and sum(len(group) > 1 for group in groups) > 1]
    return min(found, key=lambda groups: max(map(len, groups)), default=None)


def _by_subject(
    variables: Sequence[Set[str]], subjects: Sequence[str], predicates: Sequence[str]
) -> list[list[int]] | None:
    about: dict[tuple[str, int], list[int]] = {}
    for place, subject in enumerate(subjects):
        about.setdefault((subject, 0) if subject else ("", place), []).append(place)
    groups: list[list[int]] = []
    for (subject, _), places in about.items():
        own = len({predicates[place] for place in places}) == len(places)
        groups += [places] if subject and own else [[place] for place in places]
    return sorted(groups) if 1 < len(groups) < len(variables) else None


def _connected(variables: Sequence[Set[str]]) -> list[list[int]] | None:
    """Groups of at most MOST_JOINED inputs, each connected with one before it in its group."""
    users: dict[str, list[int]] = {}
    for place, mine in enumerate(variables):
        for name in mine:
            users.setdefault(name, []).append(place)
    groups: list[list[int]] = []
    taken: set[int] = set()
    for start in range(len(variables)):
        if start in taken:
            continue
        group = [start]
        taken.add(start)
        for place in group:
            near = sorted({other for name in variables[place] for other in users[name]} - taken)
            group += near[: MOST_JOINED - len(group)]
            taken.update(group)
        groups.append(sorted(group))
    return groups if len(groups) < len(variables) else None
