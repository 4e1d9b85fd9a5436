"""States as the Spark runner copies them from worker to worker."""

from __future__ import annotations

import pickle
from typing import Any

from cqels_py.checkpoints.snapshot import to_buffers


def pickled(state: object) -> list[bytes]:
    """A pickle, and the memory of its arrays."""
    return [bytes(each) for each in to_buffers(state)]


def copied(state: object) -> Any:
    """A copy, which shares no memory with the state."""
    first, *buffers = map(bytearray, pickled(state))
    return pickle.loads(first, buffers=buffers)
