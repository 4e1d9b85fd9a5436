"""Benchmarks of whole queries run, and have results to deliver at their smallest size."""

from __future__ import annotations

import numpy as np
import pytest

from bench.contest import Contest, insertions
from bench.operators import (
    bench_group_concat,
    bench_not_exists,
    bench_now,
    bench_optional,
    bench_partition,
    bench_top,
)


@pytest.mark.parametrize(
    "contest",
    [
        module.CONTEST
        for module in (
            bench_optional,
            bench_not_exists,
            bench_top,
            bench_group_concat,
            bench_partition,
            bench_now,
        )
    ],
    ids=lambda contest: contest.name,
)
def test_a_query_bench_delivers_results(contest: Contest) -> None:
    (setting,) = contest.quick
    competitor = contest.entries[0].make(setting)
    arrivals = setting.arrivals(seed=1)
    found = [chunk for batch in arrivals.filling() for chunk in competitor.take(batch)]
    found += list(competitor.take(arrivals.batch()))
    assert sum(map(insertions, found)) > 0
    # Everything outside of the windows has been retracted.
    assert sum(int(np.sum(chunk.sign)) for chunk in found) <= setting.window * max(setting.inputs, 3)
