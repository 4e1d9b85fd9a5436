"""Which combinations of events have to be remembered, by which values: the decision about bounded memory.

A combination of rows of some of a group's sources waits for rows of the others. The sets of sources that can wait are those with
which all earlier sources are, too. Of a combination only the values matter that the result or a comparison with a source outside of
its set needs (after Schiff and Özçep, "Bounded-memory criteria for streams with application time", whose criterion is stricter).
There are boundedly many if each of these variables is bounded, or only compared by order with others, where either of the two
has a least and either a greatest value: then all values beyond these are one. Where it does not matter how often a row is there,
of a variable that is only compared in one direction the best value is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from cqels_py.plan.nodes import CountedColumn
from cqels_py.planner.number_ranges import Order, Ranges

MOST_SOURCES = 8

IN_RESULT = "is in the result"


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A source of a group: its variables, the sources that are `earlier`, and the instant after which it has no rows, or None."""

    variables: frozenset[str]
    earlier: frozenset[int]
    until: int | None = None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """Known facts about a group of sources.

    `orders`: comparisons between variables of different sources that do not follow from others. `counts`: the bounded variables,
    with the number of their values, or None. `output`: variables that are read above. `once`: it does not matter how often a row is
    there.
    """

    sources: tuple[SourceFacts, ...]
    orders: tuple[Order, ...]
    ranges: Ranges
    counts: dict[str, int | None]
    output: frozenset[str]
    once: bool = False

    def of(self, chosen: Sequence[int]) -> frozenset[str]:
        """The variables of some of the sources."""
        return frozenset().union(*(self.sources[each].variables for each in chosen))


@dataclass(frozen=True, slots=True)
class KeptVariable:
    """A variable by which combinations of a set are kept. `reasons`: why, if it has unboundedly many values.

    `best`: -1 or 1 if it has unboundedly many values, of which only the least or greatest is kept.
    """

    variable: str
    columns: tuple[CountedColumn, ...]
    count: int | None
    reasons: tuple[str, ...] = ()
    best: int = 0


@dataclass(frozen=True, slots=True)
class WaitingSet:
    """Sources whose combinations wait for the others. `until`: nothing is added after this instant."""

    sources: tuple[int, ...]
    kept: tuple[KeptVariable, ...]
    until: int | None

    @property
    def unbounded(self) -> tuple[KeptVariable, ...]:
        """Its variables of unboundedly many values."""
        return tuple(each for each in self.kept if each.reasons)

    @property
    def most(self) -> int | None:
        """So many combinations of values at most."""
        counts = [each.count for each in self.kept]
        return None if None in counts else prod(each for each in counts if each is not None)


def waiting_sets(facts: GroupFacts, name_of: Callable[[int], str]) -> list[WaitingSet]:
    """All sets of sources that wait for others, small ones first. `name_of`: a source in messages."""
    every = range(len(facts.sources))
    found = []
    for bits in range(1, (1 << len(every)) - 1):
        chosen = tuple(each for each in every if bits >> each & 1)
        if all(facts.sources[each].earlier <= set(chosen) for each in chosen):
            found.append(_waiting(facts, chosen, tuple(each for each in every if each not in chosen), name_of))
    return sorted(found, key=lambda each: (len(each.sources), each.sources))


def _waiting(
    facts: GroupFacts, chosen: tuple[int, ...], outside: tuple[int, ...], name_of: Callable[[int], str]
) -> WaitingSet:
    mine, others = facts.of(chosen), facts.of(outside)
    kept = [_kept(facts, name, mine, outside, name_of) for name in sorted(mine) if _matters(facts, name, mine, others)]
    kept = _beside_others(facts, chosen, kept)
    ends = [end for each in outside if (end := facts.sources[each].until) is not None]
    return WaitingSet(chosen, tuple(kept), min(ends, default=None))


def _beside_others(facts: GroupFacts, chosen: tuple[int, ...], kept: list[KeptVariable]) -> list[KeptVariable]:
    """Of sources that the order of times ties together only one best value is kept: pairs of two can be unboundedly many."""
    found = list(kept)
    for together in _tied(facts, chosen):
        mine = facts.of(together)
        best = [number for number, each in enumerate(kept) if each.best and each.variable in mine]
        for number in best if len(best) > 1 else ():
            others = " ".join(f"?{kept[other].variable}" for other in best if other != number)
            found[number] = replace(kept[number], reasons=(f"is kept beside {others}, both without bounds",), best=0)
    return found


def _tied(facts: GroupFacts, chosen: tuple[int, ...]) -> list[list[int]]:
    """The sources in groups that the order of their times connects."""
    groups: list[list[int]] = []
    for source in chosen:
        touched = [
            g
            for g in groups
            if any(o in facts.sources[source].earlier or source in facts.sources[o].earlier for o in g)
        ]
        groups = [g for g in groups if g not in touched]
        groups.append([source, *(each for group in touched for each in group)])
    return groups


def _matters(facts: GroupFacts, name: str, mine: frozenset[str], others: frozenset[str]) -> bool:
    return name in facts.output or name in others or bool(_orders_outside(facts, name, mine))


def _orders_outside(facts: GroupFacts, name: str, mine: frozenset[str]) -> list[Order]:
    return [each for each in facts.orders if name in (each.left, each.right) and each.other(name) not in mine]


def _kept(
    facts: GroupFacts, name: str, mine: frozenset[str], outside: tuple[int, ...], name_of: Callable[[int], str]
) -> KeptVariable:
    ranges, columns, reasons = facts.ranges, [], []
    orders = _orders_outside(facts, name, mine)
    partners = [each for each in outside if name in facts.sources[each].variables]
    count: int | None = 1
    best = 0
    if name in facts.output or partners:
        columns.append(CountedColumn(name, exact=True))
        if name in facts.counts:
            count = facts.counts[name]
        else:
            reasons += [IN_RESULT] if name in facts.output else []
            reasons += [f"is joined with {name_of(each)}" for each in partners]
    if orders:
        lows, highs = (
            [ranges.low(each.other(name)) for each in orders],
            [ranges.high(each.other(name)) for each in orders],
        )
        low = None if None in lows else min(each for each in lows if each is not None) - 1
        high = None if None in highs else max(each for each in highs if each is not None) + 1
        if not columns:
            least, greatest = _first(max, ranges.low(name), low), _first(min, ranges.high(name), high)
            if least is not None and greatest is not None:
                count = _places(facts, name, least, greatest)
            elif name in facts.counts:
                count = facts.counts[name]
            elif facts.once and _direction(name, orders):
                best = _direction(name, orders)
            else:
                reasons += [_not_between(name, each) for each in orders if _open(ranges, name, each)]
        better = 0 if columns or not facts.once else _direction(name, orders)
        columns.append(CountedColumn(name, exact=False, low=low, high=high, better=better))
    return KeptVariable(name, tuple(columns), count, tuple(dict.fromkeys(reasons)), best)


def _direction(name: str, orders: Sequence[Order]) -> int:
    """-1 if less values are better for all comparisons, 1 if greater ones are; 0: neither."""
    found = {(-1 if name == order.left else 1) if order.operator.startswith("<") else 0 for order in orders}
    return found.pop() if len(found) == 1 else 0


def _first(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


def _places(facts: GroupFacts, name: str, least: int, greatest: int) -> int:
    low, high = facts.ranges.low(name), facts.ranges.high(name)
    every = max(0, greatest - least + 1)
    if not facts.ranges.has_integers(name):
        return every
    integers = max(0, greatest // 2 - -(-least // 2) + 1)
    # All beyond the others' least and greatest values is one place, which may lie between two integers.
    beyond = (least % 2 and (low is None or low < least)) + (greatest % 2 and (high is None or high > greatest))
    return min(every, integers + beyond)


def _open(ranges: Ranges, name: str, order: Order) -> bool:
    other = order.other(name)
    has_low = ranges.low(name) is not None or ranges.low(other) is not None
    has_high = ranges.high(name) is not None or ranges.high(other) is not None
    return not (has_low and has_high)


def _not_between(name: str, order: Order) -> str:
    return f"is compared with ?{order.other(name)}, and neither has both a least and a greatest value"
