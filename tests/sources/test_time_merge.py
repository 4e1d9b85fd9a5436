"""Sources merged by time: the order, whatever the batches; and no further reading ahead than needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.batches.elements import ElementBatch
from cqels_py.sources.batches import BatchSource
from cqels_py.sources.time_merge import TimeMerge

TIMES = st.lists(st.integers(-5, 20), max_size=20)
SIZES = st.lists(st.integers(0, 4), min_size=1, max_size=5)


def batch(stream: int, start: int, times: Sequence[int]) -> ElementBatch:
    """Elements of one triple each; its subject is the element's number in its source."""
    n = len(times)
    numbers = np.arange(start, start + n, dtype=np.int64)
    return ElementBatch(
        np.array(times, np.int64),
        np.full(n, stream, np.int32),
        np.arange(n + 1, dtype=np.int64),
        numbers,
        numbers,
        numbers,
    )


def source(stream: int, times: Sequence[int], sizes: Sequence[int]) -> BatchSource:
    """The elements in batches of these sizes in turn, empty ones too."""
    return BatchSource(batches(stream, times, sizes))


def batches(stream: int, times: Sequence[int], sizes: Sequence[int]) -> Iterator[ElementBatch]:
    at = turn = 0
    while at < len(times):
        size = sizes[turn % len(sizes)] if any(sizes) else 1
        yield batch(stream, at, times[at : at + size])
        at += size
        turn += 1


def merged(sources: Sequence[BatchSource]) -> list[tuple[int, int, int]]:
    """(time, source, number) of every element in order."""
    found = []
    for each in TimeMerge(sources):
        # It is empty where a source had none for now.
        assert len(each) == each.triples
        found += list(zip(each.time.tolist(), each.stream.tolist(), each.subject.tolist(), strict=True))
    return found


@given(st.lists(st.tuples(TIMES, SIZES), min_size=1, max_size=4))
def test_by_time_ties_by_source_order_within_a_source_kept(sources: list[tuple[list[int], list[int]]]) -> None:
    wanted = []
    for stream, (times, _) in enumerate(sources):
        # An element out of order is late or waited for whatever the other sources hold: it stays behind its predecessors.
        keys = [max(times[: i + 1]) for i in range(len(times))]
        wanted += [(key, stream, i, time) for i, (key, time) in enumerate(zip(keys, times, strict=True))]
    found = merged([source(stream, times, sizes) for stream, (times, sizes) in enumerate(sources)])
    assert found == [(time, stream, i) for _, stream, i, time in sorted(wanted)]


def test_no_sources_no_elements() -> None:
    assert merged([]) == []
    assert merged([BatchSource(iter(())), BatchSource(iter(()))]) == []


def test_a_single_source_does_not_wait() -> None:
    """Elements at the last instant of a source are passed on at once: nothing else could come before them."""
    first = next(iter(TimeMerge([source(0, [1, 2, 2, 3], [3])])))
    assert first.time.tolist() == [1, 2, 2]


def test_a_source_that_is_ahead_is_not_read_on() -> None:
    read: list[int] = []

    def counted(stream: int, times: Sequence[int]) -> Iterator[ElementBatch]:
        for each in batches(stream, times, [1]):
            read.append(stream)
            yield each

    merge = iter(TimeMerge([BatchSource(counted(0, range(100))), BatchSource(counted(1, [50, 60]))]))
    for _ in range(20):
        next(merge)
    assert read.count(1) == 1
    assert 20 <= read.count(0) <= 22


def test_what_was_read_ahead_is_live() -> None:
    """Its terms must not be released before it is handed on."""
    merge = TimeMerge([source(0, [1, 2, 3], [1]), source(1, [5, 6], [2])])
    waiting = iter(merge)
    assert next(waiting).time.tolist() == [1]
    live = {int(i) for ids in merge.live_ids() for i in ids}
    assert {0, 1} <= live


def test_an_error_of_a_source_comes_out() -> None:
    def broken() -> Iterator[ElementBatch]:
        yield batch(0, 0, [1])
        raise ValueError("line 2")

    with pytest.raises(ValueError, match="line 2"):
        merged([BatchSource(broken()), source(1, [5], [1])])
