"""The triples that are in the windows of a dataflow now, taken out of the state of its scans and joins.

    a window that keeps ids ─ its queue            one that does not ─ the leaves of the join that reads it

A plan keeps no more than its operators need. So these are the triples that match the query's patterns and the conditions that are
tested at arrival, and where an operator needs less than them, they are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.delta_sources import DataflowNode, OperatorNode, sources_below, unwrap
from cqels_py.dataflow.scans import PartitionedScan, Scan, WindowScan
from cqels_py.dictionary import Dictionary
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.operators.r2r.semi_anti_join import SemiAntiJoin
from cqels_py.operators.s2r.window import UnboundedWindow
from cqels_py.plan.nodes import GRAPH, DistinctRowsOf, is_variable
from cqels_py.state.join_state import JoinState


@dataclass(frozen=True, slots=True)
class Leaves:
    """Where a join keeps the mappings of a scan."""

    state: JoinState
    port: int


def scans_of(dataflow: Dataflow, window: int) -> list[Scan]:
    """The scans of one of the plan's windows."""
    return [
        source for source in sources_below(dataflow.root) if isinstance(source, Scan) and source.node.window == window
    ]


def unkept(dataflow: Dataflow, window: int) -> str | None:
    """Why the triples of a window are not known; None if they are."""
    scans = scans_of(dataflow, window)
    if not scans:
        return "the plan keeps no triples of it, but runs, counters or states"
    for scan in scans:
        pattern = " ".join(scan.node.pattern[:GRAPH])
        dropped = [part for part in scan.node.pattern[:GRAPH] if is_variable(part) and part[1:] not in _names(scan)]
        if dropped:
            return (
                f"the plan does not keep {' and '.join(dropped)} of {{ {pattern} }}, which the query does not ask for"
            )
        if isinstance(scan, WindowScan) and not _keeps(scan) and _leaves(dataflow, scan) is None:
            return f"the plan does not keep the triples of {{ {pattern} }}, as they never leave the window"
    return None


def content(dataflow: Dataflow, window: int, dictionary: Dictionary) -> Ids:
    """The triples (3, n) in a window now, each once, of one whose triples are known. Arrays are copies."""
    found = [np.empty((GRAPH, 0), np.int64)]
    for scan in scans_of(dataflow, window):
        rows, names = _mappings(dataflow, scan), _names(scan)
        found.append(
            np.stack(
                [
                    rows[names.index(part[1:])]
                    if is_variable(part)
                    else np.full(rows.shape[1], dictionary.encode_one(part), np.int64)
                    for part in scan.node.pattern[:GRAPH]
                ]
            )
        )
    return np.unique(np.concatenate(found, axis=1), axis=1)


def _names(scan: Scan) -> tuple[str, ...]:
    return scan.node.variables


def _keeps(scan: WindowScan) -> bool:
    """Does the window itself know its mappings?"""
    window = scan.window
    return not isinstance(window, UnboundedWindow) and (len(window.columns) > 0 or not _names(scan))


def _mappings(dataflow: Dataflow, scan: Scan) -> Ids:
    """The mappings (width, n) of a scan that are in its window."""
    if isinstance(scan, PartitionedScan):
        return scan.kept()
    assert isinstance(scan, WindowScan)
    window = scan.window
    if not isinstance(window, UnboundedWindow) and _keeps(scan):
        return window.inside()
    leaves = _leaves(dataflow, scan)
    assert leaves is not None, "a window whose triples are not known"
    return leaves.state.leaf_ids(leaves.port)


def _leaves(dataflow: Dataflow, scan: DataflowNode) -> Leaves | None:
    """The leaves of a join that reads a scan, itself or each of its mappings once."""
    for node, port in _readers(dataflow, scan):
        if isinstance(node.operator, MultiwayJoin | SemiAntiJoin):
            return Leaves(node.operator.state, port)
        if isinstance(node.node, DistinctRowsOf) and (found := _leaves(dataflow, node)) is not None:
            return found
    return None


def _readers(dataflow: Dataflow, source: DataflowNode) -> Iterator[tuple[OperatorNode, int]]:
    for node in sources_below(dataflow.root):
        if isinstance(node, OperatorNode):
            for port, each in enumerate(node.inputs):
                if unwrap(each) is source:
                    yield node, port
