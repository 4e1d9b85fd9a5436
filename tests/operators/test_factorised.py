"""Aggregation below a join against the oracle's aggregates over the joined mappings, at every tick."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import pytest

from cqels_py.algebra.nodes import AggregateCall, VariableRef
from cqels_py.operators.r2r.factorised import FactorisedGroupBy, JoinedAggregate, JoinedInput
from tests import naive_aggregates
from tests.operators.deltas import Live, Port, Row, assert_follows, random_steps
from tests.operators.test_aggregate import POOLS, Terms, V, bound_value, seen

EVERY = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE")


@dataclass(frozen=True)
class Case:
    """A join in which every input has the key's columns, its own group variables (the carrier), then one argument.

    `groups`: columns of the carrier that the results are grouped by.
    """

    inputs: int
    key: int
    own: int
    groups: tuple[int, ...]
    carrier: int = 0

    def width(self, port: int) -> int:
        return self.key + (self.own if port == self.carrier else 0) + 1

    def operator(self, aggregates: Sequence[JoinedAggregate], terms: Terms) -> FactorisedGroupBy:
        key = tuple(range(self.key))
        inputs = [JoinedInput(self.width(port), key) for port in range(self.inputs)]
        own = range(self.key, self.key + self.own)
        return FactorisedGroupBy(inputs, self.carrier, own, self.groups, aggregates, terms.values)

    def aggregates(self) -> list[JoinedAggregate]:
        found = [JoinedAggregate("COUNT(*)")]
        return found + [JoinedAggregate(f, port, self.width(port) - 1) for port in range(self.inputs) for f in EVERY]

    def answer(self, live: Live, aggregates: Sequence[JoinedAggregate], terms: Terms) -> Iterator[tuple[Hashable, ...]]:
        members: dict[Row, list[Sequence[Row]]] = {} if self.groups else {(): []}
        for rows in product(*live):
            if len({row[: self.key] for row in rows}) == 1:
                members.setdefault(tuple(rows[self.carrier][c] for c in self.groups), []).append(rows)
        for key, results in members.items():
            yield (*key, *(seen(self._value(results, each, terms)) for each in aggregates))

    @staticmethod
    def _value(results: Sequence[Sequence[Row]], each: JoinedAggregate, terms: Terms):  # type: ignore[no-untyped-def]
        if each.argument is None:
            return naive_aggregates.evaluate(AggregateCall("COUNT", None), [{}] * len(results), bound_value)
        found = [terms.term(rows[each.input][each.argument]) for rows in results]
        solutions = [{} if term is None else {V: term} for term in found]
        return naive_aggregates.evaluate(AggregateCall(each.function, VariableRef(V)), solutions, bound_value)


CASES = {
    "by a variable of one input": Case(2, 1, 1, (1,)),
    "by a variable of the other input": Case(2, 1, 1, (1,), carrier=1),
    "by the key": Case(2, 1, 0, (0,)),
    "as one group": Case(2, 1, 0, ()),
    "by key and variable": Case(3, 1, 1, (1, 0)),
    "by part of the key": Case(3, 2, 0, (1,), carrier=1),
    "by two variables of one input": Case(3, 1, 2, (2, 1), carrier=2),
    "without a key": Case(2, 0, 1, (0,)),
    "without a key as one group": Case(2, 0, 0, ()),
}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", CASES)
def test_every_tick_has_the_groups_difference(name: str, pool: str) -> None:
    case, terms = CASES[name], Terms()
    arguments, nodes = terms.ids(POOLS[pool]), terms.ids(["<urn:g>", "<urn:h>"])
    aggregates = case.aggregates()
    operator = case.operator(aggregates, terms)
    n_groups = len(case.groups)

    def view(row: Row) -> tuple[Hashable, ...]:
        return (*row[:n_groups], *(seen(terms.term(i)) for i in row[n_groups:]))

    def placed(row: Row) -> Row:
        return (*(nodes[x % 2] for x in row[:-1]), arguments[row[-1] % len(arguments)])

    seed = sum(map(ord, name + pool))
    steps = list(random_steps(seed, [Port(case.width(p), False, range(60)) for p in range(case.inputs)], 10, 6, 5))
    for step in steps:
        for events in step.inputs:
            events[:] = [(tick, sign, placed(row)) for tick, sign, row in events]
        for live in step.live:
            for rows in live:
                rows[:] = [placed(row) for row in rows]
    widths = [case.width(port) for port in range(case.inputs)]
    assert_follows(
        operator, widths, steps, lambda live: case.answer(live, aggregates, terms), chunk=seed % 4, view=view
    )
