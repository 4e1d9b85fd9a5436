"""Batches of stream elements: what connectors deliver and the windows take in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


@dataclass(slots=True)
class ElementBatch:
    """n elements with m triples, in arrival order. Nobody changes one (it is not frozen, which would make it slow to make).

    `time` (n): microseconds since the epoch, UTC. `stream` (n): the number of the element's stream.
    `first` (n + 1): element e has the triples first[e] to first[e + 1]. The other columns (m) are term ids.
    """

    time: npt.NDArray[np.int64]
    stream: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]
    subject: Ids
    predicate: Ids
    object: Ids

    def __len__(self) -> int:
        return len(self.time)

    @property
    def triples(self) -> int:
        return len(self.subject)
