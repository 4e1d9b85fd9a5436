"""Choosing, joining and reordering elements of element batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids


def empty_elements() -> ElementBatch:
    nothing = np.empty(0, np.int64)
    return ElementBatch(nothing, np.empty(0, np.int32), np.zeros(1, np.int64), nothing, nothing, nothing)


def concatenate_elements(batches: Sequence[ElementBatch]) -> ElementBatch:
    """One batch with the elements of all, in order."""
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return empty_elements()
    starts = np.cumsum([0, *(batch.triples for batch in batches)])
    first = np.concatenate(
        [batch.first[:-1] + start for batch, start in zip(batches, starts, strict=False)] + [starts[-1:]]
    ).astype(np.int64)
    return ElementBatch(
        np.concatenate([batch.time for batch in batches]),
        np.concatenate([batch.stream for batch in batches]),
        first,
        np.concatenate([batch.subject for batch in batches]),
        np.concatenate([batch.predicate for batch in batches]),
        np.concatenate([batch.object for batch in batches]),
        _graphs_of(batches),
        _counted_of(batches),
    )


def _graphs_of(batches: Sequence[ElementBatch]) -> Ids | None:
    if all(batch.graph is None for batch in batches):
        return None
    return np.concatenate([np.zeros(b.triples, np.int64) if b.graph is None else b.graph for b in batches])


def _counted_of(batches: Sequence[ElementBatch]) -> npt.NDArray[np.int64] | None:
    if all(batch.counted is None for batch in batches):
        return None
    return np.concatenate([np.diff(b.first) if b.counted is None else b.counted for b in batches])


def slice_elements(batch: ElementBatch, start: int, end: int) -> ElementBatch:
    """Elements start to end, as views."""
    a, b = int(batch.first[start]), int(batch.first[end])
    return ElementBatch(
        batch.time[start:end],
        batch.stream[start:end],
        batch.first[start : end + 1] - a,
        batch.subject[a:b],
        batch.predicate[a:b],
        batch.object[a:b],
        None if batch.graph is None else batch.graph[a:b],
        None if batch.counted is None else batch.counted[start:end],
    )


def take_elements(batch: ElementBatch, order: npt.NDArray[np.int64]) -> ElementBatch:
    """The elements at these positions, in this order."""
    sizes = np.diff(batch.first)[order]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    triples = np.repeat(batch.first[:-1][order] - first[:-1], sizes) + np.arange(first[-1])
    return ElementBatch(
        batch.time[order],
        batch.stream[order],
        first,
        batch.subject[triples],
        batch.predicate[triples],
        batch.object[triples],
        None if batch.graph is None else batch.graph[triples],
        None if batch.counted is None else batch.counted[order],
    )


def with_streams(batch: ElementBatch, stream: npt.NDArray[np.int32]) -> ElementBatch:
    """The elements under other stream numbers."""
    return ElementBatch(
        batch.time, stream, batch.first, batch.subject, batch.predicate, batch.object, batch.graph, batch.counted
    )


def counted_triples(batch: ElementBatch) -> ElementBatch:
    """The elements with those of their triples that are counted."""
    if batch.counted is None:
        return batch
    first = np.concatenate([[0], np.cumsum(batch.counted)]).astype(np.int64)
    triples = np.repeat(batch.first[:-1] - first[:-1], batch.counted) + np.arange(first[-1])
    columns = (batch.subject[triples], batch.predicate[triples], batch.object[triples])
    return ElementBatch(batch.time, batch.stream, first, *columns)
