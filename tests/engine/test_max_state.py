"""A query whose state grows beyond a limit is stopped, and the others go on."""

from __future__ import annotations

import pytest

from cqels_py.engine.engine import Engine
from cqels_py.errors import RunError, UsageError
from cqels_py.runners import local

EX = "http://ex.org/"
GROWS = "SELECT ?o { STREAM :s [ALL] { ?s :p ?o } STREAM :t [ALL] { ?s :q ?o } }"
STAYS = "SELECT ?s { STREAM :s [RANGE 3us] { ?s :p ?o } }"


def push(engine: Engine, at: int) -> None:
    engine.push(EX + "s", [(f"<{EX}s{at}>", f"<{EX}p>", f'"{at}"')], time=at)


def test_a_query_that_grows_is_stopped_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_BETWEEN_LOOKS", 10)
    engine = Engine(max_state=2_000_000)
    grows = engine.register(f"PREFIX : <{EX}> {GROWS}")
    stays = engine.register(f"PREFIX : <{EX}> {STAYS}")
    at = 0
    with pytest.raises(
        RunError, match=r"has been stopped: its state has 2,\d{3},\d{3} bytes, and max_state allows 2,000,000"
    ):
        while at < 100_000:
            at += 1
            push(engine, at)
    assert engine.queries == (stays,)
    assert grows.nbytes == 0
    assert len(list(stays.results())) == at
    push(engine, at + 1)
    assert [r.time for r in stays.results()] == [at + 1]


def test_smaller_states_are_not_touched() -> None:
    engine = Engine(max_state=2_000_000)
    query = engine.register(f"PREFIX : <{EX}> {STAYS}")
    for at in range(5_000):
        push(engine, at)
    assert len(list(query.results())) == 5_000


@pytest.mark.parametrize("given", [0, -5, 0.5])
def test_a_limit_that_cannot_be_is_refused(given: int) -> None:
    with pytest.raises(UsageError, match="max_state is"):
        Engine(max_state=given)
