"""Generates and judges cases, in this process or in several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from multiprocessing import get_context

from bench.suites.fuzz.case import Case
from bench.suites.fuzz.compare import Verdict, judge
from bench.suites.fuzz.drawing import DATA_SETS, draw

_CHUNK = 5 * DATA_SETS


def judged(seeds: range, features: Sequence[str], jobs: int) -> Iterator[tuple[Case, Verdict]]:
    """The seeds' cases in order, each with its verdict. `jobs`: processes; 0: one per core."""
    if jobs == 1:
        for seed in seeds:
            case = draw(seed, features)
            yield case, judge(case)
        return
    chunks = [(seeds[start : start + _CHUNK], features) for start in range(0, len(seeds), _CHUNK)]
    with get_context("spawn").Pool(jobs or os.cpu_count()) as pool:
        for found in pool.imap(_all_judged, chunks):
            yield from found


def _all_judged(asked: tuple[range, Sequence[str]]) -> list[tuple[Case, Verdict]]:
    seeds, features = asked
    return list(judged(seeds, features, 1))
