"""Sources whose changes are made once a step."""

from __future__ import annotations

from collections.abc import Iterable

from cqels_py.batches.delta import Delta
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.shared_scans import SharedScans, SharedSource
from cqels_py.event_time.clock import Ticks


class StepSource(SharedSource):
    """A source that makes its changes when the first of its readers takes in a step, and keeps them for the others until it ends."""

    def __init__(self, shared_scans: SharedScans) -> None:
        super().__init__(shared_scans)
        self._routed: RoutedBatch | None = None
        self._changes = 0
        self._chunks: tuple[Delta, ...] = ()

    def take(self, routed: RoutedBatch) -> int:
        """Take in a step, unless another reader has caused that already. Returns the number of changes."""
        if self._routed is not routed:
            delta = self._advance(routed)
            self.take_made(routed, (delta,) if len(delta.tick) else ())
        return self._changes

    def take_made(self, routed: RoutedBatch, chunks: tuple[Delta, ...]) -> None:
        """The step has been taken in, with these changes."""
        self._routed, self._chunks = routed, chunks
        self._changes = sum([len(chunk.tick) for chunk in chunks])
        self.work.rows_out += self._changes
        self._shared_scans.caches.append(self)

    def _advance(self, routed: RoutedBatch) -> Delta:
        """The changes of a step."""
        raise NotImplementedError

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        routed = self._routed
        return self._chunks if routed is not None and routed.step.ticks is ticks else ()

    def clear(self) -> None:
        """The step has ended."""
        self._routed, self._chunks = None, ()
