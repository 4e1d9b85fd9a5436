"""Batches of stream elements, which sources produce and windows consume."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)
_ELEMENT_BYTES = 8 + 4 + 8
"""Time, stream and first triple."""
_TRIPLE_BYTES = 3 * 8


@dataclass(slots=True)
class ElementBatch:
    """n elements with m triples, in arrival order. It is never changed (but not a frozen class, whose objects are slow to make).

    `time` (n): microseconds since the epoch, UTC. `stream` (n): the number of the element's stream.
    `first` (n + 1): element e has the triples first[e] to first[e + 1]. The other columns (m) are term ids.

    `graph` (m): the name of the graph that a triple is in, 0 for none; None: no triple is in one, or no query needs it. `counted`
    (n): how many of its triples a window that counts triples counts. These come first in an element; those after them are in the
    default graph, about the element's graph, and enter and expire with the last one counted. There is one at least in an element
    with triples. None: all are counted.
    """

    time: npt.NDArray[np.int64]
    stream: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]
    subject: Ids
    predicate: Ids
    object: Ids
    graph: Ids | None = None
    counted: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def triples(self) -> int:
        return len(self.subject)

    @property
    def positions(self) -> tuple[Ids, Ids, Ids, Ids]:
        """Subjects, predicates, objects and graphs; no graphs where there are none."""
        return self.subject, self.predicate, self.object, _NONE if self.graph is None else self.graph

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        elements = _ELEMENT_BYTES if self.counted is None else _ELEMENT_BYTES + 8
        triples = _TRIPLE_BYTES if self.graph is None else _TRIPLE_BYTES + 8
        return 8 + elements * len(self.time) + triples * len(self.subject)

    def live_ids(self) -> Iterator[Ids]:
        """The columns of terms."""
        yield from (self.subject, self.predicate, self.object)
        if self.graph is not None:
            yield self.graph
