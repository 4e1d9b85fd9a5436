"""A whole query as a competitor: from its text through parser and planner to the dataflow that runs it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.arrivals import Batch, Setting
from bench.contest import ENGINE, Competitor, Contest, Entry
from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import ElementBatch
from cqels_py.dataflow import Dataflow
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import compile_query
from cqels_py.sources.static import load_static_data
from cqels_py.terms.layout import PAYLOAD_MASK

PREFIX = "PREFIX : <http://ex.org/>\n"


class RunningQuery(Competitor):
    """The query with `{window}` filled in. An arrival of input i is the triple (key, :p<i>, value), an element of its
    own.

    Every arrival is a tick, and its time is its number. All results are delivered, of both signs.
    """

    def __init__(self, text: str, setting: Setting) -> None:
        dictionary = Dictionary()
        plan = compile_query(PREFIX + text.replace("{window}", str(setting.window)), changelog=True).plan
        self.dataflow = Dataflow(plan, dictionary, load_static_data(plan, (), {}, dictionary))
        self._predicates = dictionary.encode([f"<http://ex.org/p{i}>" for i in range(max(setting.inputs, 1))])
        # Values that are ordered are decoded, so they must be in the dictionary; so must the keys that decide between
        # equal values.
        self._keys = dictionary.encode([f"<http://ex.org/k{i}>" for i in range(setting.keys + 1)])
        dictionary.pin(np.concatenate([self._predicates, self._keys]))
        self._now = 0

    def take(self, batch: Batch) -> Iterator[Delta]:
        n = len(batch)
        time = np.arange(self._now + 1, self._now + n + 1)
        key, value = self._keys[batch.columns[0] & PAYLOAD_MASK], batch.columns[1]
        elements = ElementBatch(time, np.zeros(n, np.int32), np.arange(n + 1), key, self._predicates[batch.port], value)
        for result in self.dataflow.step(elements):
            tick = (result.time - self._now - 1).astype(np.int32)
            yield Delta(tick, result.sign, np.stack(result.columns) if result.columns else np.empty((0, n), np.int64))
        self._now += n


def by_window_size(name: str, text: str, *settings: Setting, quick: Setting) -> Contest:
    """The cost of a query by the size of its windows: the engine alone."""
    return Contest(name, [Entry(ENGINE, lambda setting: RunningQuery(text, setting))], settings, [quick])
