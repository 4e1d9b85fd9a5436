"""Moves the sources of queries to the scans of earlier queries over the same streams, with equal windows.

A query that is registered later begins with empty windows, on scans of its own. Once it has had its first tick, its clock makes the
same ticks as that of the earlier ones, beside which there may be some at which nothing changes for it. So it takes part in their
steps from then on: elements are matched once for all, and reach only the queries whose patterns they match. Where results are told
at ticks without changes, too (RSTREAM, NOW), and where windows are sessions, it waits until both clocks have the same ticks to come:
until those that elements of before have caused are over.

Its windows keep their contents. Those that have seen the same elements become one: queries between which no element came share equal
sub-plans, though time went on.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from cqels_py.dataflow.delta_sources import Constant, DeltaSource, OperatorNode, SharedOutput, plan_fingerprint, unwrap
from cqels_py.dataflow.match_scan import MatchScan
from cqels_py.dataflow.scans import Partition, PartitionedScan, WindowScan
from cqels_py.dataflow.shared_scans import SharedScans

Leaf = WindowScan | PartitionedScan | Partition | MatchScan | Constant
"""Sources that read no other, but for the scans of a window with PARTITION BY."""


def can_move(sources: Sequence[DeltaSource]) -> bool:
    """Do the contents of windows and of patterns decide all that these sources do?

    MATCH with an event that has no triple patterns has no program, so that few elements are one step for it alone, and one each for
    others: the steps decide the order of results within a tick.
    """
    return all(
        source.is_plain if isinstance(source, MatchScan) else isinstance(source, Leaf | OperatorNode)
        for source in sources
    )


class Move:
    """Sources on their way from scans to others, which stand at the same instant, between two steps; each source once."""

    def __init__(self, former: SharedScans, scans: SharedScans) -> None:
        self.scans = scans
        self._seen = () if former.origin == scans.origin else (former.origin,)
        self._moved: dict[int, DeltaSource] = {}
        self._partitions: dict[int, Partition] = {}
        # Its id is that of no other source as long as it is there.
        self._kept: list[DeltaSource | Partition] = []

    def moved(self, source: DeltaSource) -> DeltaSource:
        """The source that takes the place of another one: an equal one that is there, or itself."""
        if id(source) not in self._moved:
            self._kept.append(source)
            self._moved[id(source)] = self._move(source)
        return self._moved[id(source)]

    def _move(self, source: DeltaSource) -> DeltaSource:
        match source:
            case SharedOutput():
                # Its former readers release its source.
                return SharedOutput(source.node, self.moved(source.source))
            case OperatorNode():
                inputs = [self.moved(each) for each in source.inputs]
                operator_key = None if source.key is None else (plan_fingerprint(source.node), *map(unwrap, inputs))
                if (known := self._known(operator_key)) is not None:
                    assert isinstance(known, OperatorNode)
                    return known
                source.move(self.scans, operator_key)
                source.read_instead(inputs)
                return source
            case WindowScan() | PartitionedScan() | MatchScan() | Constant():
                return self._move_leaf(source)
            case _:
                raise AssertionError(source)

    def _moved_partition(self, partition: Partition) -> Partition:
        if id(partition) not in self._partitions:
            self._kept.append(partition)
            key = self._key(partition)
            known = self._known(key)
            assert known is None or isinstance(known, Partition)
            if known is None:
                partition.move(self.scans, key)
            self._partitions[id(partition)] = known or partition
        return self._partitions[id(partition)]

    def _move_leaf(self, source: WindowScan | PartitionedScan | MatchScan | Constant) -> DeltaSource:
        key = self._key(source)
        if (known := self._known(key)) is not None:
            assert isinstance(known, type(source))
            return known
        source.move(self.scans, key)
        if isinstance(source, PartitionedScan):
            source.read_instead(self._moved_partition(source.partition))
        return source

    def _key(self, source: Leaf) -> Hashable:
        """The key of a source that reads no other. Windows that have seen other elements are other ones."""
        if source.key is None or isinstance(source, Constant):
            return source.key
        return (*self._seen, source.key) if self._seen else source.key

    def _known(self, key: Hashable) -> OperatorNode | Leaf | None:
        known = None if key is None else self.scans.shared_subplans.get(key)
        assert known is None or isinstance(known, OperatorNode | Leaf)
        return known
