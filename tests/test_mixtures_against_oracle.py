"""Drawn queries that mix all clauses, over terms of all kinds, against the oracle; steps by programs and by calls."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.dataflow.step_program import CALLS
from cqels_py.engine.compile import CompiledQuery
from cqels_py.errors import QueryError
from tests.oracle.naive import Change, Element, Static
from tests.oracle.naive_algebra import TooManyPairs
from tests.support.drawn_mixtures import MixtureDrawer, drawn_elements, drawn_static
from tests.support.harness import check_equal, compiled, expected_changes, run_engine

_MOST_CHANGES = 5_000
"""With more changes, each an object here, the comparison takes longer than all else."""


@pytest.mark.parametrize("seed", range(80))
def test_a_mixture(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = next(filter(None, (_drawn(Random(f"{seed} {attempt}")) for attempt in range(40))))
    for batch, steps in ((1, ""), (1, "calls"), (3, ""), (None, "")):
        monkeypatch.setenv(CALLS, steps)
        found = run_engine(asked.query, asked.elements, asked.static, batch, asked.output)
        check_equal(asked.expected, found, f"batch {batch} {steps}\n{asked.text}\n")


@dataclass(frozen=True)
class Asked:
    """A query that is not refused, with data for which it has results."""

    text: str
    query: CompiledQuery
    output: Output | None
    elements: list[Element]
    static: Static
    expected: list[Change]


def _drawn(random: Random) -> Asked | None:
    """None where there are no results, or more than can be compared."""
    text = MixtureDrawer(random, random.randint(2, 7)).text()
    output = None if "REGISTER" in text else Output.CHANGELOG
    elements, static = drawn_elements(random, text, random.choice((12, 18, 24))), drawn_static(random, text)
    try:
        query = compiled(text, output)
        expected = expected_changes(query.asked, elements, static, output)
    except (QueryError, TooManyPairs):
        return None
    return Asked(text, query, output, elements, static, expected) if 0 < len(expected) < _MOST_CHANGES else None
