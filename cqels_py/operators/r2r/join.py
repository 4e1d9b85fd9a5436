"""The n-ary join (section 3.1, Algorithms 4 and 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cqels_py.kernels.joins import multiway as kernel
from cqels_py.kernels.joins import star as star_kernel
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.operators.r2r.leaf_join import LeafJoin, LeafRows, ResultChunk
from cqels_py.state.join_state import Blocks, JoinLayout, JoinPort, JoinState


def layout_of(
    inputs: Sequence[Sequence[str]], expires_fifo: Sequence[bool], maybe_unbound: frozenset[str]
) -> JoinLayout:
    """The layout of a join of inputs with these variables; arguments as of `MultiwayJoin`."""
    names = dict.fromkeys(name for variables in inputs for name in variables)
    number = {name: i for i, name in enumerate(names)}
    ports = [
        JoinPort(tuple(number[name] for name in variables), ordered)
        for variables, ordered in zip(inputs, expires_fifo, strict=True)
    ]
    return JoinLayout(ports, frozenset(number[name] for name in maybe_unbound))


class MultiwayJoin(LeafJoin):
    """Joins n inputs on their common variables.

    `inputs`: the variables of each input; `expires_fifo`: is the input FIFO, so that its retractions come in the order of
    its insertions? `maybe_unbound`: variables that may be unbound in some input. `output`: the variables of the result, in
    order. `retract`: results are retracted when one of their leaves is; otherwise the consumer knows how long they
    live.
    """

    def __init__(
        self,
        inputs: Sequence[Sequence[str]],
        expires_fifo: Sequence[bool],
        output: Sequence[str],
        *,
        maybe_unbound: frozenset[str] = frozenset(),
        retract: bool = True,
    ) -> None:
        state = JoinState(layout_of(inputs, expires_fifo, maybe_unbound), rings_of_ids=True)
        super().__init__(state, [len(variables) for variables in inputs], len(output))
        # A number is passed to a kernel faster than a bool.
        self.retract, self.all_known = int(retract), int(self.state.all_known)
        self._find_sources(inputs, output, maybe_unbound)

    def _find_sources(
        self, inputs: Sequence[Sequence[str]], output: Sequence[str], maybe_unbound: frozenset[str]
    ) -> None:
        """Find the sources of the columns of a result: any input that has them, except that one may be unbound there."""
        having = [[p for p, variables in enumerate(inputs) if name in variables] for name in output]
        out_ports = np.array(
            [
                sum(1 << p for p in (ports if name in maybe_unbound else ports[:1]))
                for name, ports in zip(output, having, strict=True)
            ],
            np.int64,
        )
        of_output = np.array([sum(1 << p for p in ports) for ports in having], np.int64)
        own = [list(v).index(name) if name in v else -1 for v in inputs for name in output]
        layout = self.layout
        self.asked = ArrayTable(
            out_ports, of_output, np.array(own, np.int64), layout.options, self.state.known, layout.source_first, layout.sources,
            layout.check_first, layout.checks,
        )  # fmt: skip

    def _borrow_blocks(self) -> Blocks | None:
        """A star needs none."""
        return None if self.layout.star else self.state.borrow_blocks()

    def _step(self, rows: LeafRows, chunk: ResultChunk, blocks: Blocks | None) -> int:
        if blocks is None:
            return star_kernel.step(  # type: ignore[no-any-return]
                rows.port, rows.slot, rows.tick, rows.sign, self.state.address, self.asked.address, chunk.columns,
                chunk.tick, chunk.sign, self.retract,
            )  # fmt: skip
        return kernel.step(  # type: ignore[no-any-return]
            rows.port, rows.slot, rows.tick, rows.sign, self.state.address, self.asked.address, self.all_known,
            blocks.address, chunk.columns, chunk.tick, chunk.sign, self.retract,
        )  # fmt: skip
