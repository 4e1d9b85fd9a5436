"""The answer of a query that stands now, computed when it is asked for: queries do not keep their answers.

The state is given to a second dataflow of the same plan, in which all windows run empty:

    answer now + changes until the windows are empty = answer over empty windows

Windows that never run empty are left as they are where the answer over the others, empty, does not depend on them (a join with one
of the others); above DISTINCT and GROUP BY, which keep their rows, they are not asked: these operators run empty themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import replace

import numpy as np

from cqels_py.batches.delta import Delta, concatenate
from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.build_operator import make_output
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.endless_windows import Emptied, KeepsRows, keepers, rest_of
from cqels_py.dataflow.expressions import EvaluatorBuilder
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.event_time.clock import Ticks
from cqels_py.event_time.windows import Bounds, Measure
from cqels_py.functions.limits import NO_REPORTS
from cqels_py.kernels.rows.distinct import cancel
from cqels_py.plan.nodes import ChangelogRead, CountedJoin, EventRows, MatchRows, Plan, Scan, StateRows, is_variable
from cqels_py.plan.order import is_timed
from cqels_py.plan.traverse import nodes_of

_NO_TERM = "<urn:cqels:none>"
"""The term of the triples that push others out of windows; no pattern asks for it."""
_MOST = 1 << 24
"""The most elements, or boundaries of STEP, that are run through to empty a window."""
_WAY_OUT = (
    "; with changelog=True, results() and subscribe() give all changes of its answer, from which a program can keep it"
)


def standing_answer(running: Dataflow, dictionary: Dictionary) -> list[ResultBatch]:
    """The answer of a dataflow between two steps, in the order of the query, at the time of the last tick; none before the first.

    UsageError for a query whose results only come, and for one whose windows do not run empty.
    """
    query = running.plan
    if reason := _no_answer(query):
        raise UsageError(f"current() gives the answer that stands, and {query.title} has {reason}{_WAY_OUT}")
    copy, empty = Dataflow(query, dictionary, running.static), Dataflow(query, dictionary, running.static)
    # Arrays are copied in any case, and plain values are few.
    copy.restore(deepcopy(running.state()))
    _empty_operators(copy, empty)
    now = running.shared_scans.now
    if now is None or not running.has_ticked:
        return []
    until = _until_empty(copy, now, dictionary, begun=True)
    over_nothing = _until_empty(empty, now, dictionary, begun=False)
    rows = _at_one_tick([*over_nothing, *(Delta(each.tick, -each.sign, each.columns) for each in until)], query)
    assert (rows.sign > 0).all(), "a query retracts mappings that stand in no answer"
    values = DictionaryValues(dictionary, NO_REPORTS)
    output = make_output(
        replace(query, output="RSTREAM"), dictionary, values, copy, EvaluatorBuilder(dictionary, NO_REPORTS), seed=""
    )
    last = running.shared_scans.last_tick
    time = np.array([_last_tick(query, now, running.shared_scans.through) if last is None else last], np.int64)
    return list(output.process(Ticks(time, first=True), [rows]))


def _no_answer(query: Plan) -> str | None:
    """Why there is no answer that could be computed."""
    for node in nodes_of(query.root):
        if isinstance(node, MatchRows | EventRows | CountedJoin):
            return "MATCH or EVENT, whose results come once and are not retracted"
        if isinstance(node, StateRows | ChangelogRead):
            return "rules, whose state is not copied"
        if is_timed(node):
            return "NOW(), with which the answer is another one at each instant"
        if isinstance(node, Scan):
            bounds = query.windows[node.window].bounds
            if bounds.measure is Measure.TRIPLES and all(map(is_variable, node.pattern[:3])):
                return "a pattern of variables alone over a window that counts triples"
    for window in query.windows:
        if _takes_long(window.bounds):
            return f"the window {window.text}, which takes too long to run empty"
    return None


def _takes_long(bounds: Bounds) -> bool:
    """Are there too many elements, or boundaries, until it is empty?"""
    points = bounds.delay + (bounds.size or 0)
    if bounds.of_time:
        return bounds.step is not None and points // bounds.step > _MOST
    return points > _MOST


def _empty_operators(copy: Dataflow, empty: Dataflow) -> None:
    """Operators over windows that never run empty, and that keep their rows, run empty by themselves, or are it."""
    query = copy.plan
    keeping = [keepers(each.root, query.windows) for each in (copy, empty)]
    for mine, other in zip(*keeping, strict=True):
        assert isinstance(mine.operator, KeepsRows)
        mine.operator = Emptied(mine.operator.standing_rows())
        other.operator = Emptied(np.empty((len(other.node.variables), 0), np.int64))
    if not rest_of(copy.root, query.windows).settled:
        endless = next(window.text for window in query.windows if window.bounds.size is None)
        raise UsageError(
            f"current() gives the answer that stands, and {query.title} has the window {endless}, which never runs empty, "
            f"above no DISTINCT or GROUP BY that keeps its rows{_WAY_OUT}"
        )


def _until_empty(dataflow: Dataflow, now: int, dictionary: Dictionary, *, begun: bool) -> list[Delta]:
    """The changes of the answer until all windows are empty."""
    scans, found = dataflow.shared_scans, list[Delta]()
    if not begun:
        found += _changes(dataflow, scans.advance(now, begin=True))
    else:
        found += dataflow.changes_of_a_tick()
        dataflow.expire_partitions()
    pushing = _pushing(dataflow.plan, now, dictionary)
    if len(pushing):
        found += _changes(dataflow, scans.step(pushing))
    found += _changes(dataflow, scans.advance(now + _longest(window.bounds for window in dataflow.plan.windows)))
    return found


def _changes(dataflow: Dataflow, routed: RoutedBatch) -> Iterator[Delta]:
    yield from tuple(dataflow.changes(routed))
    dataflow.shared_scans.end_step()


def _longest(windows: Iterable[Bounds]) -> int:
    """Microseconds after which nothing that is there now is in any of the windows."""
    timed = [bounds for bounds in windows if bounds.of_time]
    return 1 + max((bounds.delay + (bounds.size or 0) + 2 * (bounds.step or 0) for bounds in timed), default=0)


def _pushing(query: Plan, now: int, dictionary: Dictionary) -> ElementBatch:
    """Elements that no pattern matches, as many as push all others out of the windows that count."""
    most: dict[int, int] = {}
    for window in query.windows:
        bounds = window.bounds
        if not bounds.of_time:
            needed = bounds.delay + (bounds.size or 0) + 2 * (bounds.step or 0)
            most[window.stream] = max(most.get(window.stream, 0), needed)
    counting = {each.stream for each in query.windows if each.bounds.measure is Measure.TRIPLES}
    streams = np.repeat(np.array(list(most), np.int32), np.array(list(most.values()), np.int64))
    triples = np.isin(streams, np.array(list(counting), np.int32)).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(triples)]).astype(np.int64)
    term = np.full(first.item(-1), dictionary.encode_one(_NO_TERM), np.int64)
    return ElementBatch(np.full(len(streams), now, np.int64), streams, first, term, term, term, np.zeros_like(term))


def _at_one_tick(changes: list[Delta], query: Plan) -> Delta:
    """The changes that are left once opposite ones have cancelled each other."""
    all_ = concatenate(changes, len(query.root.variables))
    tick = np.zeros(len(all_), np.int32)
    left = cancel(tick, all_.sign, all_.columns)
    return Delta(tick[left], all_.sign[left], all_.columns[:, left])


def _last_tick(query: Plan, now: int, through: int) -> int:
    """The time of the last tick: that of the last element, or the last boundary of windows that all have STEP."""
    bounds = [window.bounds for window in query.windows]
    if all(each.of_time and not each.eager for each in bounds) and bounds:
        return max(each.passed(through) for each in bounds)
    return now
