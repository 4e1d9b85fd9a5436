"""For tests of steps: by which way they are done, and what becomes of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.dataflow import step_program
from cqels_py.dataflow.shared_program import SharedProgram
from cqels_py.dataflow.step_program import Outcome, StepProgram


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
    """What has become of each step that a program was asked for. If it refuses terms, it is asked again for their ids: that
    counts."""
    found: list[Outcome] = []
    step, step_of = StepProgram.step, StepProgram.step_of

    def noted(program: StepProgram, *arguments: Any) -> Outcome:
        found.append(step(program, *arguments))
        return found[-1]

    def noted_of(program: StepProgram, batch: ElementBatch) -> Outcome:
        outcome = step_of(program, batch)
        if found and found[-1] is Outcome.REFUSED and outcome is not Outcome.REFUSED:
            found.pop()
        found.append(outcome)
        return outcome

    run, take, take_of = SharedProgram.run, SharedProgram.take, SharedProgram.take_of

    def noted_run(program: SharedProgram, *arguments: Any) -> Outcome:
        found.append(run(program, *arguments))
        return found[-1]

    def noted_take(program: SharedProgram, *arguments: Any) -> bool:
        if not (taken := take(program, *arguments)):
            found.append(Outcome.REFUSED)
        return taken

    def noted_take_of(program: SharedProgram, batch: ElementBatch) -> bool:
        if not (taken := take_of(program, batch)):
            found.append(Outcome.REFUSED)
        return taken

    monkeypatch.setattr(SharedProgram, "run", noted_run)
    monkeypatch.setattr(SharedProgram, "take", noted_take)
    monkeypatch.setattr(SharedProgram, "take_of", noted_take_of)
    monkeypatch.setattr(StepProgram, "step", noted)
    monkeypatch.setattr(StepProgram, "step_of", noted_of)
    return found


@pytest.fixture
def in_mode(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the way of steps: "calls" or "program"."""
    return lambda mode: monkeypatch.setenv(step_program.CALLS, mode)
