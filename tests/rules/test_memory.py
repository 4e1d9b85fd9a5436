"""The memory of rules depends on how far they look, and not on how dense the facts are."""

from __future__ import annotations

import pytest

from cqels_py.dataflow.running_rules import RunningRules
from cqels_py.engine import temporal_rules
from cqels_py.engine.engine import Engine
from cqels_py.engine.temporal_rules import derived_facts
from cqels_py.kernels.rules.records import TIMER_ENTRY, TIMER_TIME
from cqels_py.state.temporal_rules import RuleState

NETWORK = """Flag(X,Z):-Monit(X,Z),Boxminus[0,4]Diamondminus[0,2]Signal(Z)
Boxplus[0,3]Monit(X,Z):-Flag(Y,Z),Connect(X,Y)
Up(X):-Diamondminus[0,3]Signal(X)
Long(X):-Boxminus[1,5]Up(X)
Open(X):-Up(X)Since[0,4]Start(X)
"""


def peak(gap: float, monkeypatch: pytest.MonkeyPatch) -> int:
    """The most intervals that are kept at once, for a signal every `gap` seconds."""
    states: list[RuleState] = []

    def noted(*arguments: object) -> RuleState:
        states.append(RuleState(*arguments))  # type: ignore[arg-type]
        return states[-1]

    monkeypatch.setattr(temporal_rules, "RuleState", noted)
    count = int(12 / gap)
    facts = [f"Signal(s)@{round(number * gap, 6):g}" for number in range(count + 1)]
    facts += ["Connect(b,a)@[0,12]", "Connect(a,b)@[0,12]", "Monit(a,s)@[0,6]", "Start(s)@0"]
    derived = derived_facts(NETWORK, facts, 12_000_000)
    assert "Flag(a,s)@[4,12]" in derived
    assert "Long(s)@[5,12]" in derived
    return states[0].peak_intervals


def test_peaks_are_equal_for_denser_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = [peak(gap, monkeypatch) for gap in (1, 0.1, 0.01, 0.001)]
    assert len(set(peaks)) == 1, peaks
    # Seven ground atoms of Monit, Flag and Connect, and five of the signal and what is derived of it, with hidden ones.
    assert peaks[0] < 40


def test_a_step_looks_only_at_the_answers_that_change() -> None:
    """Each answer that holds has one timer, however often it has been extended, and none that has gone off."""
    engine = Engine(report=lambda _: None)
    engine.register(
        "PREFIX : <http://ex.org/> RULES ON :a { RULE { ?s :level ?v } FOR [0s, 10s] WHERE { ?s :p ?v } } "
        "SELECT ?s { STATE { ?s :level ?v } }"
    )
    ends = dict[str, int]()
    for second in range(40):
        subject = f"<http://ex.org/s{second * second % 7}>"
        engine.push("http://ex.org/a", [(subject, "<http://ex.org/p>", 1)], time=second * 1_000_000)
        # The instant of the last element has not ended yet.
        known = 2 * second * 1_000_000 - 1
        times = timers(engine)
        assert len(times) == sum(2 * end + 2 > known for end in ends.values())
        assert all(time > known for time in times)
        ends[subject] = (second + 10) * 1_000_000
    engine.advance(60_000_000)
    assert timers(engine) == []


def timers(engine: Engine) -> list[int]:
    """The times of the timers of an engine's only query, by the order of the heap."""
    (running,) = engine._queries.values()
    (rules,) = running.dataflow.shared_scans.foreseeing
    assert isinstance(rules, RunningRules)
    rows = rules._state._timers
    entries = rows[1 : 1 + rows[0, TIMER_ENTRY], TIMER_ENTRY]
    times: list[int] = rows[entries, TIMER_TIME].tolist()
    return times
