"""A query that reads other queries' changelogs has the answer of the one query that they are together, at the end of every instant.

together    SELECT ?n (COUNT(*) AS ?c) { { SELECT ?k (COUNT(*) AS ?n) { … } GROUP BY ?k } } GROUP BY ?n
apart                                      ╰──────── one changelog ────────╯ ◄─ read by the rest
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import compile_query
from cqels_py.event_time.timers import EventTimers
from cqels_py.plan.nodes import ChangelogRead, FactorisedGroups, GroupRows, Node, Plan, Scan, Shared
from cqels_py.plan.traverse import nodes_of, scans_of
from cqels_py.runners.changelogs import ChangelogLink, link_changelogs
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.running import RunningQuery
from tests.support.driven import Arrival, Received, Row, push

PREFIX = "PREFIX : <http://ex.org/> "
STREAMS = {"http://ex.org/one": 0, "http://ex.org/two": 1}


# --- plans in parts -----------------------------------------------------------------------------------------------


def rebuilt(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """The plan with other nodes in the places of some; what is below these is not looked at."""
    if (other := change(node)) is not None:
        return other
    new: dict[str, Any] = {}
    for each in fields(node):
        value = getattr(node, each.name)
        if each.name in ("input", "left", "right"):
            new[each.name] = rebuilt(value, change)
        elif each.name == "inputs":
            new[each.name] = tuple(rebuilt(child, change) for child in value)
    return replace(node, **new) if new else node  # type: ignore[type-var]


def apart(plan: Plan) -> list[Plan]:
    """The groups without groups below, each as a plan under a name, and what remains of the plan last."""
    groups = (GroupRows, FactorisedGroups)
    innermost = [
        n for n in nodes_of(plan.root) if isinstance(n, groups) and not any(isinstance(b, groups) for b in below(n))
    ]
    names = {id(node): f"part {number}" for number, node in enumerate(innermost)}

    def read(node: Node) -> Node | None:
        return ChangelogRead(node.variables, names[id(node)]) if id(node) in names else None

    parts = [replace(plan, root=node, variables=node.variables, name=names[id(node)]) for node in innermost]
    return [with_own_windows(part) for part in (*parts, replace(plan, root=rebuilt(plan.root, read)))]


def below(node: Node) -> list[Node]:
    return [each for each in nodes_of(node) if each is not node]


def with_own_windows(plan: Plan) -> Plan:
    """A plan that has only the windows and streams that it reads."""
    windows = sorted({scan.window for scan in scans_of(plan.root)})
    streams = sorted({plan.windows[window].stream for window in windows})

    def renumbered(node: Node) -> Node | None:
        return replace(node, window=windows.index(node.window)) if isinstance(node, Scan) else None

    return replace(
        plan,
        root=rebuilt(plan.root, renumbered),
        windows=tuple(replace(plan.windows[w], stream=streams.index(plan.windows[w].stream)) for w in windows),
        streams=tuple(plan.streams[stream] for stream in streams),
        time_predicates=(None,) * len(streams),
        graphs=(False,) * len(streams),
    )


# --- running ------------------------------------------------------------------------------------------------------


class Parts:
    """Plans in one runner; the last one reads the changelogs of the others by their names."""

    def __init__(self, plans: Sequence[Plan], dictionary: Dictionary | None = None) -> None:
        self.dictionary = dictionary or Dictionary()
        *sources, last = [
            Dataflow(each, self.dictionary, StaticData(), timers=EventTimers(None) if each is plans[-1] else None)
            for each in plans
        ]
        self.dataflows = [*sources, last]
        self.received = [Received(self.dictionary) for _ in plans]
        queries = [
            RunningQuery(dataflow, [STREAMS[stream] for stream in dataflow.plan.streams], received)
            for dataflow, received in zip(self.dataflows, self.received, strict=True)
        ]
        changelogs = [dataflow.publish() for dataflow in sources]
        links = [
            ChangelogLink(query, changelog, queries[-1:], query.dataflow.plan.name or "")
            for query, changelog in zip(queries, changelogs, strict=False)
        ]
        link_changelogs(links)
        self.runner = LocalRunner(self.dictionary, 0)
        self.runner.queries = queries

    @property
    def rows(self) -> list[Row]:
        return self.received[-1].rows


def arrivals(seed: int, count: int = 40) -> list[Arrival]:
    rng = random.Random(seed)
    time, found = 1000, []
    for _ in range(count):
        time += rng.choice((0, 0, 1, 1, 2, 9))
        stream = rng.randrange(2)
        subject, value = f"<http://ex.org/{rng.choice('abc')}>", f'"{rng.randrange(4)}"'
        found.append((time, stream, [(subject, f"<http://ex.org/{'pq'[stream]}>", value)]))
    return found


def at_ends(rows: Sequence[Row]) -> list[tuple[int, Counter[tuple[str | None, ...]]]]:
    """The answer at the end of each instant at which it changes."""
    answer: Counter[tuple[str | None, ...]] = Counter()
    found: dict[int, Counter[tuple[str | None, ...]]] = {}
    for time, sign, terms in rows:
        answer[terms] += sign
        found[time] = +answer
    changes = [(time, answer) for time, answer in sorted(found.items())]
    return [each for n, each in enumerate(changes) if each[1] != (changes[n - 1][1] if n else Counter())]


def one(window: str) -> str:
    return f"{{ SELECT ?k (COUNT(*) AS ?n) {{ STREAM :one [{window}] {{ ?k :p ?x }} }} GROUP BY ?k }}"


def two(window: str) -> str:
    return f"STREAM :two [{window}] {{ ?k :q ?y }}"


QUERIES = {
    "groups of groups": f"SELECT ?n (COUNT(*) AS ?c) {{ {one('COUNT 5')} }} GROUP BY ?n",
    "all of it": f"SELECT * {{ {one('RANGE 6us')} }}",
    "beside a window": f"SELECT * {{ {one('RANGE 6us')} {two('RANGE 4us')} }}",
    "beside a window that counts": f"SELECT * {{ {one('COUNT 4')} MINUS {{ {two('COUNT 3')} }} }}",
    "two changelogs": f"SELECT * {{ {one('COUNT 4')} "
    f"{{ SELECT ?k (MAX(?y) AS ?m) {{ {two('RANGE 7us')} }} GROUP BY ?k }} FILTER(?n > 1) }}",
    "steps": f"SELECT * {{ {one('RANGE 6us STEP 3us')} {two('RANGE 4us')} }}",
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", QUERIES)
def test_parts_have_the_answer_of_the_whole(name: str, seed: int) -> None:
    whole = compile_query(PREFIX + QUERIES[name], changelog=True).plan
    assert not any(isinstance(node, Shared) for node in nodes_of(whole.root))
    plans = apart(whole)
    assert len(plans) == (3 if name == "two changelogs" else 2)
    found = arrivals(seed)
    together = LocalRunner(dictionary := Dictionary(), 0)
    received = Received(dictionary)
    dataflow = Dataflow(whole, dictionary, StaticData())
    together.queries = [RunningQuery(dataflow, [STREAMS[stream] for stream in whole.streams], received)]
    push(together, dictionary, found)
    together.finish()
    assert len(at_ends(received.rows)) > 3
    first: list[Row] | None = None
    for batch in (1, 2, 7, None):
        parts = Parts(plans)
        push(parts.runner, parts.dictionary, found, batch)
        parts.runner.finish()
        assert at_ends(parts.rows) == at_ends(received.rows), batch
        # And the same changes in every batch.
        first = sorted(parts.rows) if first is None else first
        assert sorted(parts.rows) == first
        # The queries that are read have results of their own.
        assert all(source.rows for source in parts.received)


def test_changes_that_wait_are_state() -> None:
    plans = apart(compile_query(PREFIX + QUERIES["beside a window"], changelog=True).plan)
    found = arrivals(1)
    # Behind an element of the query that is read, whose instant has not ended.
    cut = next(number for number in range(15, 40) if found[number - 1][1] == STREAMS["http://ex.org/one"])
    whole, half = Parts(plans), Parts(plans)
    for parts in (whole, half):
        push(parts.runner, parts.dictionary, found[:cut])
    states = [dataflow.state() for dataflow in half.dataflows]
    assert any(len(values.get("instants", ())) for values in states[-1].values() if "signs" in values)  # type: ignore[arg-type]
    rest = Parts(plans, half.dictionary)
    for dataflow, state in zip(rest.dataflows, states, strict=True):
        dataflow.restore(state)
    for parts in (whole, rest):
        push(parts.runner, parts.dictionary, found[cut:])
        parts.runner.finish()
    assert half.rows + rest.rows == whole.rows
    assert rest.rows
