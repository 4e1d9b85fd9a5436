"""Property paths of any length: the transitive closure of a relation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.rows import transitive_closure as kernel
from cqels_py.operators.r2r.leaf_join import room_for
from cqels_py.state.join_state import OUT_ROWS
from cqels_py.state.reach_trees import ReachTrees
from cqels_py.state.stop import Stop


class TransitiveClosure:
    """The different pairs (source, node) such that one edge or more lead from the source to the node.

    The input's `columns` hold the start and the end of an edge, and perhaps its graph: paths are within one graph, and
    results have its column too. An edge counts as long as one copy of it is there. `source`: only the nodes that this
    node reaches. `loops`: also the nodes that reach themselves.
    """

    STATE = ("state",)

    def __init__(self, columns: Sequence[int], *, source: int | None = None, loops: bool = True) -> None:
        assert source is None or len(columns) == 2, "a source is in one graph"
        self._columns = list(columns)
        self.state = ReachTrees(len(columns) - 2, None if source is None else (source,), loops=loops)

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for delta in inputs[0]:
            if len(delta):
                yield from self._chunk(delta)

    def _chunk(self, delta: Delta) -> Iterator[Delta]:
        state = self.state
        columns = np.ascontiguousarray(delta.columns[self._columns])
        ends = np.concatenate([columns[[0, *range(2, len(columns))]], columns[1:]], axis=1)
        given = (
            delta.tick, delta.sign, columns, ends, state.address, state.edge_index.address, state.node_index.address,
        )  # fmt: skip
        status, room = kernel.OUT_FULL, room_for(len(delta))
        while status != kernel.DONE:
            state.stop.look()
            source, node, out_tick = (np.empty(room, np.int32) for _ in range(3))
            out_sign = np.empty(room, np.int8)
            room, made = OUT_ROWS, 0
            while True:
                status = kernel.step(*given, made, source, node, out_tick, out_sign)
                assert status != kernel.NOT_THERE, "a retracted edge was never inserted"
                if status == kernel.KEYS_FULL:
                    state.ensure(len(delta))
                    continue
                made = state.cursor.item(kernel.OUT)
                if status != kernel.TREES_FULL:
                    break
                state.grow_trees()
            if made:
                yield Delta(out_tick[:made], out_sign[:made], self._pairs(source[:made], node[:made]))

    def _pairs(
        self, source: np.ndarray[tuple[int], np.dtype[np.int32]], node: np.ndarray[tuple[int], np.dtype[np.int32]]
    ) -> Ids:
        """The ids of pairs of nodes: source, node, and the graph that both are in."""
        return np.concatenate([self.state.ids_of(source)[:1], self.state.ids_of(node)])

    @property
    def stop(self) -> Stop:
        """Where others ask it to stop."""
        return self.state.stop

    def live_ids(self) -> Iterable[Ids]:
        return self.state.live_ids()

    @property
    def nbytes(self) -> int:
        return self.state.nbytes
