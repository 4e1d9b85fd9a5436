"""The oracle for static data that is replaced while a query runs.

An update after the first n elements is a tick of its own: at the time of the last of them (of the query's streams),
after all ticks of these elements. The windows have the content of the last of these ticks. From then on every tick sees
the new data. If there was no tick before, the update is not a tick either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cqels_py.algebra import nodes
from tests.oracle import naive
from tests.oracle.naive import Element, Static, Tick


def ticks(
    query: nodes.ContinuousQuery,
    elements: Sequence[Element],
    static: Static | None = None,
    updates: Sequence[tuple[int, Static]] = (),
) -> list[Tick]:
    """The answers at all ticks. `updates`: after how many of `elements`, and the data from then on; in that order."""
    arrived = naive.relevant(query, elements)
    moments = naive.moments(query, arrived)
    answered: list[Tick] = []
    done, known = 0, static or Static()
    for number, data in updates:
        before = naive.relevant(query, elements[:number])
        through = len(naive.moments(query, before, ended=False))
        answered += [naive.answer(query, arrived, known, moment) for moment in moments[done:through]]
        if through:
            tick = naive.answer(query, arrived, data, moments[through - 1])
            answered.append(replace(tick, time=before[-1].time))
        done, known = through, data
    return answered + [naive.answer(query, arrived, known, moment) for moment in moments[done:]]
