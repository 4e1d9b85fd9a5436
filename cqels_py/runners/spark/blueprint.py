"""From a plan to the states of its parts: a worker makes a new state of it, or one from a snapshot."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from cqels_py.checkpoints.state_file import State
from cqels_py.dataflow import Dataflow
from cqels_py.dataflow.saved_state import dictionary_state, restore_dictionary
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.distribution.stages import PlannedStage, reports_at_boundaries
from cqels_py.functions.limits import Limits
from cqels_py.operators.r2s.changelog_output import ChangelogOutput
from cqels_py.plan.nodes import Plan, TemplateTriple
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.running import RunningQuery
from cqels_py.runners.spark.exchange import Exchange
from cqels_py.runners.spark.layout import conditions_of
from cqels_py.runners.spark.own_rows import OwnRows
from cqels_py.runners.spark.parts import Handover, LaterState, PartState, ReadingState, Rendered, RenderedGraphs
from cqels_py.runners.spark.watermarks import Waiting, Watermarks
from cqels_py.runners.statistics import Counters

_TERMS, _STATIC = "terms", "static"


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The stages of a plan. `report`: gets reports of its dataflows. `split`: parts may hold rows of others (migration.py), whose
    results they leave out. `own_ticks`: the parts of the first stage have different ticks. `lateness`: microseconds for which the
    local runner waits, if elements do not wait before it. `net`: of a micro-batch's results the net changes are handed out.
    `graphs`: the scope of blank nodes of results that are elements of a stream, None: they are not. The others: see `Job`."""

    plan: Plan
    stages: tuple[PlannedStage, ...]
    exchanges: tuple[Exchange, ...]
    columns: tuple[str, ...]
    template: tuple[TemplateTriple, ...]
    lateness: int
    report: Callable[[str], None]
    in_order: bool
    split: bool = False
    own_ticks: bool = False
    waiting: Waiting | None = None
    net: bool = False
    graphs: int | None = None

    def packed(self) -> bytes:
        """For the tasks, which unpack it only where a state has to be made."""
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    def make(self, number: int, part: int, beginning: State, saved: State | None) -> PartState:
        """The state of a part of a stage: the one that was saved, or a new one. `beginning`: of the query (`beginning_of`)."""
        dictionary = Dictionary(strict=True)
        restore_dictionary(dictionary, dict((saved or beginning)[_TERMS]))
        state = self._new(number, part, dictionary, _static_data(beginning))
        if saved is not None:
            state.restore(saved)
        return state

    def _new(self, number: int, part: int, dictionary: Dictionary, data: StaticData) -> PartState:
        stage = self.stages[number]
        changelog: ChangelogOutput | None = None
        own = OwnRows.of(stage, part) if self.split else None
        results: Rendered | Handover = (
            Rendered(dictionary, self.columns, self.template, part, ticks=self.in_order, own=own, net=self.net)
            if self.graphs is None
            else RenderedGraphs(dictionary, self.template, self.graphs)
        )
        if number < len(self.exchanges):
            exchange = self.exchanges[number]
            changelog = ChangelogOutput(exchange.width)
            own_ticks = number == 0 and self.own_ticks
            results = Handover(dictionary, changelog, exchange, part, own_ticks=own_ticks, own=own)
        runner = None if number else LocalRunner(dictionary, self.lateness)
        counted = Counters() if runner is None else runner.counters
        dataflow = Dataflow(
            replace(self.plan, root=stage.root),
            dictionary,
            data,
            cell=conditions_of(stage, part),
            changelog=changelog,
            every_boundary=reports_at_boundaries(self.plan),
            limits=Limits(report=self.report, count=counted.add_no_numbers),
        )
        if runner is None:
            return LaterState(dictionary, dataflow, results, self.exchanges[number - 1].width, counted)
        runner.queries = [RunningQuery(dataflow, list(range(len(self.plan.streams))), results)]
        if self.waiting is None:
            return ReadingState(dictionary, runner, results)
        watermarks = Watermarks(self.waiting)
        dictionary.hold(watermarks.live_ids)
        return ReadingState(dictionary, runner, results, watermarks=watermarks)


@cache
def blueprint_of(data: bytes) -> Blueprint:
    """The result of `packed`, unpacked once in a worker."""
    found = pickle.loads(data)
    assert isinstance(found, Blueprint)
    return found


def beginning_of(data: StaticData, dictionary: Dictionary) -> State:
    """The static data of a query and its terms, which its parts have in common."""
    return {_TERMS: dictionary_state(dictionary), _STATIC: {"quads": data.quads, "names": data.names}}


def _static_data(beginning: Mapping[str, Any]) -> StaticData:
    values = beginning[_STATIC]
    return StaticData([np.array(values["quads"])], np.array(values["names"]).tolist())
