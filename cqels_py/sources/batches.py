"""Sources made of batches that an iterator gives."""

from __future__ import annotations

from collections.abc import Iterator

from cqels_py.batches.elements import ElementBatch
from cqels_py.formats.input_wait import InputWait


class BatchSource:
    """The batches of an iterator, each when it is polled. `again`: can the same elements be read once more? `wait`: of a live input.

    Its position is the number of elements that were polled.
    """

    def __init__(self, batches: Iterator[ElementBatch], *, again: bool = False, wait: InputWait | None = None) -> None:
        self._wait = wait
        self._batches = batches
        self._again = again
        self._polled = 0

    @property
    def idle(self) -> bool:
        return self._wait is not None and self._wait.idle

    @property
    def live(self) -> bool:
        """Do elements come while they are read?"""
        return self._wait is not None

    def poll(self) -> ElementBatch | None:
        batch = next(self._batches, None)
        if batch is not None:
            self._polled += len(batch)
        return batch

    def position(self) -> object:
        return self._polled if self._again else None

    def commit(self, position: object) -> None:
        """Nothing is kept for a second reading."""

    def close(self) -> None:
        """Close the iterator if it is a generator, so that it closes its files."""
        if hasattr(self._batches, "close"):
            self._batches.close()
