"""HyperCube shares: how many ways each variable divides the parts of a state, so that patterns meet without a common variable.

Parts are cells of a cube with an axis for each variable that has a share. A triple that matches a pattern belongs to the cells
whose coordinates on the axes of the pattern's variables are those of its terms: one coordinate where the pattern has the
variable, all of them where it has not. So each combination of triples that agree in the variables meets in exactly one cell.

        b 0   1   2         ?a :p ?b   a column: every coordinate of c
    c 0  ┌───┬───┬───┐      ?b :q ?c   one cell
      1  │   │   │   │      ?c :r ?d   a row: every coordinate of b
         └───┴───┴───┘
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod


@dataclass(frozen=True, slots=True)
class HypercubeShares:
    """The number of divisions of each variable's axis, for some patterns (the variables of each). Axes of 1 are left out."""

    axes: tuple[tuple[str, int], ...]
    patterns: tuple[frozenset[str], ...]

    @property
    def cells(self) -> int:
        """The number of parts that are used."""
        return prod(share for _, share in self.axes)

    def copies(self, pattern: frozenset[str]) -> int:
        """The number of parts with a copy of a triple that matches a pattern with these variables."""
        return prod(share for name, share in self.axes if name not in pattern)

    @property
    def replication(self) -> Fraction:
        """How many copies there are of a triple, if as many match each of the patterns."""
        return Fraction(sum(map(self.copies, self.patterns)), max(1, len(self.patterns)))

    @property
    def load(self) -> Fraction:
        """The fraction of the triples that each part has, if as many match each of the patterns."""
        return self.replication / self.cells


def shares_for(
    patterns: Sequence[frozenset[str]],
    partitions: int,
    among: Sequence[str] | None = None,
    times: Mapping[str, int] | None = None,
) -> HypercubeShares:
    """The shares for which each of up to `partitions` parts has the fewest triples; of several, those with the fewest copies.

    `among`: the variables that may have one, the preferred first (None: all). `times`: shares that there are already, each part of
    which is divided further. A chain over nine parts, and a star:

    >>> chain = [frozenset("ab"), frozenset("bc"), frozenset("cd")]
    >>> shares_for(chain, 9).axes, shares_for(chain, 9).replication
    ((('b', 3), ('c', 3)), Fraction(7, 3))
    >>> shares_for([frozenset("ab"), frozenset("ac")], 9).axes
    (('a', 9),)
    """
    if partitions < 1:
        raise ValueError(f"there is at least one partition, not {partitions}")
    names = sorted(frozenset().union(*patterns)) if among is None else list(dict.fromkeys(among))
    names = _undominated(names, patterns)
    if not names:
        return HypercubeShares((), tuple(patterns))
    # Of shares with equal costs the last axis has the greatest: that of the preferred variable.
    backwards = names[::-1]
    has = [[name in pattern for name in backwards] for pattern in patterns]
    already = [(times or {}).get(name, 1) for name in backwards]

    def cost(shares: tuple[int, ...]) -> tuple[float, int]:
        whole = [share * before for share, before in zip(shares, already, strict=True)]
        load = sum(1 / prod(s for s, there in zip(whole, row, strict=True) if there) for row in has)
        # Rounded, so that equal sums of fractions compare as equal.
        return round(load, 9), prod(shares)

    best = min(_divisions(partitions, _equivalent(backwards, patterns, already)), key=cost)
    shares = [(n, s * b) for n, s, b in zip(names, best[::-1], already[::-1], strict=True)]
    return HypercubeShares(tuple(each for each in shares if each[1] > 1), tuple(patterns))


def _undominated(names: Sequence[str], patterns: Sequence[frozenset[str]]) -> list[str]:
    """The variables without dominated ones: a share of a variable that is in all of their patterns has the same effect."""
    where = {name: {n for n, pattern in enumerate(patterns) if name in pattern} for name in names}
    kept: list[str] = []
    for name in names:
        others = [other for other in names if other != name and where[name] <= where[other]]
        if where[name] and not any(where[name] < where[other] or other in kept for other in others):
            kept.append(name)
    return kept


def _equivalent(names: Sequence[str], patterns: Sequence[frozenset[str]], already: Sequence[int]) -> list[int | None]:
    """For each variable the last one before it that can be exchanged with it; None: there is none.

    A star's other variables can: without this the divisions of many of them would be too many to be tried.
    """
    counted = Counter(patterns)
    found: list[int | None] = []
    for place, name in enumerate(names):
        alike = (
            n
            for n in range(place - 1, -1, -1)
            if already[n] == already[place] and Counter(_exchanged(p, names[n], name) for p in patterns) == counted
        )
        found.append(next(alike, None))
    return found


def _exchanged(pattern: frozenset[str], one: str, other: str) -> frozenset[str]:
    return frozenset({one: other, other: one}.get(name, name) for name in pattern)


def _divisions(partitions: int, alike: Sequence[int | None], chosen: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """All shares whose product is at most `partitions`, each with the greatest possible last one. `alike`: for each axis the one
    before it whose share is not greater, as they could be exchanged. `chosen`: those of the first axes."""
    place = len(chosen)
    before = alike[place]
    least = 1 if before is None else chosen[before]
    if place == len(alike) - 1:
        if partitions >= least:
            yield (*chosen, partitions)
        return
    grows = alike[place + 1] == place
    for share in range(least, partitions + 1):
        if grows and partitions // share < share:
            break
        yield from _divisions(partitions // share, alike, (*chosen, share))
