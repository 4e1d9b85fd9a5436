"""Shrinks a failing case: removes elements, triples, clauses and columns as long as it still fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from bench.suites.fuzz.case import AnyWindow, Block, Case
from bench.suites.fuzz.tree import inside, smaller

_SECONDS = 60.0


def shrunk(case: Case, fails: Callable[[Case], bool], seconds: float = _SECONDS) -> Case:
    """A case that still fails, and from which no part can be removed; or the best result in that time."""
    ends = time.monotonic() + seconds
    found = True
    while found and time.monotonic() < ends:
        found = False
        for less in smaller(case):
            candidate = _tidied(less)
            if candidate == case or _has_empty_block(candidate) or time.monotonic() > ends:
                continue
            if fails(candidate):
                case, found = candidate, True
                break
    return case


def _has_empty_block(case: Case) -> bool:
    """A block without patterns has a solution in an empty window too, of which pyoxigraph has no graph: another difference."""
    return any(isinstance(each, Block | AnyWindow) and not each.inner for each in inside(case.query))


def _tidied(case: Case) -> Case:
    """Removes windows without a block."""
    named = repr(case.query)
    windows = tuple(window for window in case.windows if f"'{window.name}'" in named)
    return replace(case, windows=windows or case.windows)
