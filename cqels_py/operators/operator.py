"""The protocol of operators: deltas in, deltas out, a state that depends only on its own inputs in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks


class Operator(Protocol):
    """One operator of a dataflow. Its class names in `STATE` the attributes that are its state (see state/named_values.py).

    `process` takes all of one step's deltas and yields the output in chunks, ordered by tick. A chunk may end within a tick.
    Between the ends of two ticks an operator may deliver changes that cancel each other; the sum over a tick is exact.
    """

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterable[Delta]:
        """One step. `inputs`: one stream of chunks for each input of the operator."""
        ...

    def live_ids(self) -> Iterable[Ids]:
        """Arrays of ids the state may refer to; terms that are in none of them may be released."""
        ...

    @property
    def nbytes(self) -> int:
        """Size of the state in bytes."""
        ...


class Stateless:
    """Base of operators that remember nothing."""

    STATE: ClassVar[tuple[str, ...]] = ()

    def live_ids(self) -> Iterable[Ids]:
        return ()

    @property
    def nbytes(self) -> int:
        return 0
