"""A case: an input, its limits of memory and time, and its expected outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Act = Callable[[], str]
"""Processes hostile input and returns the outcome in a few words; AssertionError if the outcome is wrong."""


@dataclass(frozen=True, slots=True)
class Limit:
    """`megabytes`: the peak of the process, of which any engine takes some 150. `seconds`: of CPU time, without imports."""

    name: str
    megabytes: int
    seconds: float
    act: Act


CASES: dict[str, Limit] = {}
"""All cases by name, in the order of their definition."""


def limit(megabytes: int, seconds: float) -> Callable[[Act], Act]:
    """Register a case; its docstring is its name."""

    def enter(act: Act) -> Act:
        name = (act.__doc__ or "").strip().rstrip(".")
        CASES[name] = Limit(name, megabytes, seconds, act)
        return act

    return enter
