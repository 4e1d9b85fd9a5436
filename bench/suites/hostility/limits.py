"""What a case is: an input, the limits of its memory and time, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Act = Callable[[], str]
"""Does what is hostile and says in a few words what came of it; AssertionError where that is not as it should be."""


@dataclass(frozen=True, slots=True)
class Limit:
    """`megabytes`: the peak of the process, of which any engine takes some 150. `seconds`: of CPU time, without imports."""

    name: str
    megabytes: int
    seconds: float
    act: Act


CASES: dict[str, Limit] = {}
"""All cases by name, in the order in which they are written."""


def limit(megabytes: int, seconds: float) -> Callable[[Act], Act]:
    """Enter a case; its docstring is its name."""

    def enter(act: Act) -> Act:
        name = (act.__doc__ or "").strip().rstrip(".")
        CASES[name] = Limit(name, megabytes, seconds, act)
        return act

    return enter
