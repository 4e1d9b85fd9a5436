"""The hostile suite's bookkeeping: a case that holds, one that takes too much, one that fails, one that dies."""

from __future__ import annotations

import dataclasses
import os

import pytest

from bench.suites import hostile
from bench.suites.hostility.limits import CASES, Limit

# How long it takes is nothing that a test asserts.
DIGITS = dataclasses.replace(CASES["a window, a COUNT and a LIMIT of 5,000 digits"], seconds=1000)


def test_a_case_is_measured_in_a_process_of_its_own() -> None:
    found = hostile.measure(DIGITS)
    assert (found.outcome, found.holds) == ("refused, with line and column", True)
    assert 50 < found.megabytes < 300
    assert not hostile.measure(dataclasses.replace(DIGITS, megabytes=10)).holds


def _fail() -> str:
    raise AssertionError("7 results")


def test_failures_are_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(hostile.resource, "setrlimit", lambda *_: None)
    monkeypatch.setitem(CASES, "fails", Limit("fails", 100, 1, _fail))
    hostile.run_here("fails")
    assert '"outcome": "fails: 7 results", "holds": false' in capsys.readouterr().out


def test_a_killed_process_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile.sys, "executable", "/bin/false" if os.path.exists("/bin/false") else "false")
    found = hostile.measure(DIGITS)
    assert not found.holds and "it died (1)" in found.outcome
