"""When the contents of windows no longer depend on when a query was registered, and which queries then have equal results.

A window has turned over when all that it may hold came later than an instant: every query that was there at that instant has the
same contents in it from then on. The contents alone decide the results of a query whose operators are those of `is_decided`, and
their order, too, so that a process that makes results again after a kill gives them the same numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from cqels_py.dataflow.delta_sources import Constant, DeltaSource, OperatorNode, plan_fingerprint, unwrap
from cqels_py.dataflow.scans import WindowScan
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.event_time.windows import Measure
from cqels_py.operators.r2r.aggregate import GroupBy
from cqels_py.operators.r2r.distinct import DistinctRows
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.operators.r2r.rows import Extend, Filter, Project, UnionAll
from cqels_py.operators.r2r.semi_anti_join import LEFT, SemiAntiJoin
from cqels_py.operators.r2r.top import TopRows
from cqels_py.plan import nodes as plan


class Turnover:
    """Waits until all windows of these scans have turned over since the instant at which it is made."""

    def __init__(self, scans: SharedScans, windows: Sequence[plan.PlannedWindow]) -> None:
        assert scans.now is not None
        self._scans = scans
        self._instant: int | None = None
        self._arrivals: dict[tuple[int, Measure], int] = {}
        self.comes = True
        """Does each window turn over some time?"""
        for window in windows:
            bounds = window.bounds
            if bounds.size is None or bounds.measure is Measure.SESSION:
                self.comes = False
                return
            extent = bounds.size + bounds.delay + (bounds.step or 0)
            if bounds.of_time:
                self._instant = max(self._instant or scans.now, max(scans.now, scans.through) + extent)
            else:
                unit = window.stream, bounds.measure
                reached = scans.arrived(*unit) + extent
                self._arrivals[unit] = max(self._arrivals.get(unit, 0), reached)

    @property
    def is_complete(self) -> bool:
        """Have all turned over?"""
        scans = self._scans
        if self._instant is not None and scans.through <= self._instant:
            return False
        return all(scans.arrived(*unit) > reached for unit, reached in self._arrivals.items())


def plan_key(root: DeltaSource) -> Hashable:
    """Of sources with equal keys the changes are equal if the contents of their windows are. None: other things may decide them."""
    source = unwrap(root)
    if source.key is None or not is_decided(source):
        return None
    inputs = [plan_key(each) for each in source.inputs] if isinstance(source, OperatorNode) else []
    return None if None in inputs else (plan_fingerprint(source.node), *inputs)


def is_decided(source: DeltaSource) -> bool:
    """Is that which a source does, and in which order, decided by its inputs' contents, whatever they were before?"""
    match source:
        case WindowScan() | Constant():
            return True
        case OperatorNode(operator=GroupBy()):
            # Groups are told in the order in which they change, and aggregates of terms follow the order of terms.
            return True
        case OperatorNode(operator=MultiwayJoin(layout=layout)):
            # The mappings of a key are in their order of arrival; those that leave in any order leave their places to others.
            return all(port.expires_fifo for port in layout.ports)
        case OperatorNode(operator=SemiAntiJoin(layout=layout)):
            # Mappings of the right input are only counted.
            return layout.ports[LEFT].expires_fifo
        case OperatorNode(operator=Filter() | Extend() | Project() | UnionAll() | DistinctRows() | TopRows()):
            return True
        case _:
            return False
