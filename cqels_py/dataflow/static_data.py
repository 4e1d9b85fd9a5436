"""Static triples as id columns, and the mappings of one pattern in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.kernels.rows.distinct import cancel
from cqels_py.plan.nodes import StaticScan, is_variable


class StaticData:
    """Triples (4, n) of ids: subject, predicate, object, graph; graph 0 is the default graph. Each triple once.

    `names` (m): ids of named graphs that are there even if they are empty.
    """

    def __init__(self, quads: Sequence[Ids] = (), names: Sequence[int] = ()) -> None:
        together = np.concatenate([np.asarray(q, np.int64).reshape(4, -1) for q in quads], axis=1) if quads else None
        self.quads: Ids = np.zeros((4, 0), np.int64) if together is None else np.unique(together, axis=1)
        named = np.concatenate([self.quads[3], np.asarray(names, np.int64)])
        self.names: Ids = np.unique(named[named != 0])

    def mappings(self, scan: StaticScan, constants: Sequence[int], graph: int | None) -> Ids:
        """(width, n) ids of a scan's variables. `constants`: ids of the pattern's terms, 0 for a variable.

        `graph`: the graph's id, 0 for the default one, None for each named graph (bound to the scan's graph variable).
        """
        quads = self.quads
        wanted = quads[3] != 0 if graph is None else quads[3] == graph
        for position, constant in enumerate(constants):
            if constant != 0:
                wanted &= quads[position] == constant
        places: dict[str, int] = {}
        names = [*scan.pattern, scan.graph]
        for position, name in enumerate(names):
            if not is_variable(name):
                continue
            first = places.setdefault(name[1:], position)
            if first != position:
                wanted &= quads[first] == quads[position]
        found = quads[:, wanted]
        return found[[places[name] for name in scan.variables]]

    def graphs(self, graph: int | None) -> Ids:
        """The names (1, m) of all named graphs, or (0, 1) if there is one of this name and (0, 0) if not."""
        if graph is None:
            return self.names.reshape(1, -1)
        return np.zeros((0, int(np.count_nonzero(self.names == graph))), np.int64)

    def live_ids(self) -> Ids:
        return np.concatenate([self.quads.reshape(-1), self.names])


def difference(old: Ids, new: Ids) -> Delta:
    """The changes from one bag of mappings to another, (width, n) to (width, m), as one tick: retractions before insertions."""
    columns = np.ascontiguousarray(np.concatenate([old, new], axis=1))
    sign = np.repeat(np.array([-1, 1], np.int8), [old.shape[1], new.shape[1]])
    tick = np.zeros(len(sign), np.int32)
    left = cancel(tick, sign, columns)
    return Delta(tick[left], sign[left], columns[:, left])
