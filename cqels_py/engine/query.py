"""A registered query, as those who asked it see it: what it asks, its plan, and its results."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, TypeVar

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch, detached, last_rows
from cqels_py.dataflow import Dataflow, explain
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import CompiledQuery
from cqels_py.errors import RunError, UsageError
from cqels_py.formats.scopes import SOURCE, explained
from cqels_py.terms.layout import TRUE
from cqels_py.terms.rdf import to_rdflib
from cqels_py.validation import check_callable

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Result:
    """One result: `time` in microseconds since the epoch, `sign` +1 or -1, `bindings` of variable names to rdflib terms.

    Of an ASK query, `bindings` is empty and `boolean` the answer.
    """

    time: int
    sign: int
    bindings: dict[str, Any]
    boolean: bool | None = None


MOST_OF_A_FEED = 1 << 16
"""So many results wait of a query that feeds others: what it says is taken already, and memory stays flat if nobody asks."""


class Query:
    """A registered query. Its results go to all subscribers; when there are none, they wait for `results()` or the first of them.

    Several threads may use it, as they may use its engine.
    """

    def __init__(
        self,
        compiled: CompiledQuery,
        dictionary: Dictionary,
        dataflow: Dataflow,
        update_static: Callable[..., None],
        lock: AbstractContextManager[Any],
        report: Callable[[RunError], None],
        blank_nodes: str = SOURCE,
    ) -> None:
        self.compiled = compiled
        self.plan = compiled.plan
        self._blank_nodes = blank_nodes
        # The engine's: what a query says of its state, and who gets its results, is not to change in the middle of a step.
        self._lock = lock
        self._update_static = update_static
        self._report = report
        self._dictionary = dictionary
        # None once it has been closed: its state goes, also if somebody holds on to the query.
        self._dataflow: Dataflow | None = dataflow
        self._explanation = ""
        self._subscribers: list[Callable[[ResultBatch], None]] = []
        # What nobody has taken yet, and the results of the first batch of it, once somebody has begun to take them.
        self._kept: deque[ResultBatch] = deque()
        self._waiting = 0
        self.feeds = False
        """Do others read what it constructs? Then perhaps nobody ever asks for its results."""
        self._begun: deque[Result] = deque()
        self._taking = threading.Lock()
        self.failures: dict[Callable[[ResultBatch], None], BaseException] = {}
        """What subscribers have raised and nobody has taken yet."""
        self._closed = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of a result; of ASK the one column "boolean"."""
        return self.plan.variables

    @property
    def streams(self) -> tuple[str, ...]:
        """IRIs of the streams it reads."""
        return self.plan.streams

    @property
    def form(self) -> str:
        """SELECT, ASK or CONSTRUCT."""
        return self.plan.form

    @property
    def warnings(self) -> tuple[str, ...]:
        """Messages about probable mistakes in the query, and about expensive operators of its plan."""
        return self.compiled.warnings

    @property
    def template(self) -> tuple[tuple[str, str, str], ...]:
        """CONSTRUCT's triples: variable names after "?", N-Triples texts, or "_:label"."""
        return tuple((t.subject, t.predicate, t.object) for t in self.plan.template)

    @property
    def nbytes(self) -> int:
        """Size of the query's state in bytes; 0 once it has left."""
        with self._lock:
            return 0 if self._dataflow is None else self._dataflow.nbytes

    def subscribe(self, callback: Callable[[Result], None], *, on_error: str = "raise") -> None:
        """Call back with every result, one by one: those that wait now, and all from now on.

        `on_error` "raise": an exception of the callback comes out of the engine's method that made the results, once all others
        have theirs; until then this callback is not called again. An exception about results that wait comes out of this method:
        then the callback is not subscribed, and the others still wait. "report": an exception is counted in the engine's
        statistics and reported as a RunError with the exception as its cause; the callback is called with the next result.
        What is no Exception, as KeyboardInterrupt and SystemExit, is raised with either.
        """
        callback = self._called(callback, "a Result", on_error)

        def each(batch: ResultBatch) -> None:
            for result in self._decode(batch):
                callback(result)
                # The callback itself may have let the query leave.
                if self._closed:
                    return

        with self._lock:
            self._hand_over(self._take(), callback)
            self._subscribers.append(each)

    def subscribe_batches(self, callback: Callable[[ResultBatch], None], *, on_error: str = "raise") -> None:
        """The same with results in columns of ids: the fast way out. The engine's `dictionary` decodes them."""
        callback = self._called(callback, "a ResultBatch", on_error)
        with self._lock:
            self._hand_over(self._take_batches(), callback)
            # Each subscription is one, whatever it calls.
            self._subscribers.append(lambda batch: callback(batch))

    def _called(self, callback: Callable[[Kind], None], of: str, on_error: str) -> Callable[[Kind], None]:
        """What to call in the place of a callback."""
        check_callable(callback, "what subscribes", of)
        if on_error not in ("raise", "report"):
            raise UsageError(f"on_error is 'raise' or 'report', not {on_error!r}")
        if on_error == "raise":
            return callback

        def call(given: Kind) -> None:
            try:
                callback(given)
            except Exception as error:
                name = getattr(callback, "__qualname__", repr(callback))
                failure = RunError(f"a subscriber raised {type(error).__name__}: {error} (in {name})")
                failure.__cause__ = error
                self._report(failure)

        return call

    def results(self) -> Iterator[Result]:
        """The results since the last call, as long as nobody has subscribed: then UsageError.

        Of a CONSTRUCT query that feeds others only the last MOST_OF_A_FEED wait.
        """
        if self._subscribers:
            raise UsageError("the results of this query go to its subscribers: use either subscribe() or results()")
        return self._take()

    def explain(self) -> str:
        """The plan as text: windows, probing, indexes, what each operator keeps; and to what blank nodes belong."""
        with self._lock:
            plan = self._explanation if self._dataflow is None else explain(self._dataflow)
            return f"{plan}\nblank nodes\n  {explained(self._blank_nodes)}\n"

    def update_static(self, **data: Any) -> None:
        """Other static data from now on: `static` and `static_graphs`, as `Engine.update_static` has it."""
        self._update_static(self, **data)

    # --- for the engine -----------------------------------------------------------------------------------------------

    def deliver(self, batch: ResultBatch) -> None:
        """Hand results to whoever wants them."""
        for subscriber in self._subscribers:
            if subscriber not in self.failures and not self._closed:
                try:
                    subscriber(batch)
                except BaseException as error:
                    # Also what is to end the program: first this step is completed.
                    self.failures[subscriber] = error
        if not self._subscribers and not self._closed:
            self._kept.append(detached(batch))
            self._waiting += len(batch)
            if self.feeds and self._waiting > MOST_OF_A_FEED:
                self._forget_oldest()

    def live_ids(self) -> Iterable[Ids]:
        """Ids of the results that wait."""
        waiting = list(self._kept)
        return map(np.concatenate, zip(*(batch.columns for batch in waiting), strict=True))

    def close(self) -> None:
        """No more results; those that wait can still be taken."""
        self._closed = True
        if self._dataflow is not None:
            self._explanation, self._dataflow = explain(self._dataflow), None

    def take_failures(self) -> list[BaseException]:
        """What subscribers have raised since the last time; all of them are called again."""
        failures = list(self.failures.values())
        self.failures.clear()
        return failures

    def _forget_oldest(self) -> None:
        with self._taking:
            while (excess := self._waiting - MOST_OF_A_FEED) > 0:
                oldest = self._kept.popleft()
                # Of a batch that somebody has begun to take, what was not taken.
                left = min(len(self._begun) or len(oldest), len(oldest) - excess)
                self._begun.clear()
                self._waiting -= len(oldest)
                if left > 0:
                    self._kept.appendleft(last_rows(oldest, left))
                    self._waiting += left

    # --- results that wait --------------------------------------------------------------------------------------------

    def _hand_over(self, waiting: Iterator[Kind], callback: Callable[[Kind], None]) -> None:
        """What waits, also what the callback itself brings about; nothing more once that lets the query leave."""
        closed = self._closed
        for each in waiting:
            callback(each)
            if self._closed is not closed:
                return

    def _take(self) -> Iterator[Result]:
        while (result := self._next()) is not None:
            yield result

    def _take_batches(self) -> Iterator[ResultBatch]:
        while (batch := self._next_batch()) is not None:
            yield batch

    def _next(self) -> Result | None:
        with self._taking:
            if not self._begun and self._kept:
                # Not the engine's lock: what waits can be taken while another thread runs the engine.
                with self._dictionary.lock:
                    self._begun.extend(self._decode(self._kept[0]))
            if not self._begun:
                return None
            if len(self._begun) == 1:
                self._waiting -= len(self._kept.popleft())
            return self._begun.popleft()

    def _next_batch(self) -> ResultBatch | None:
        with self._taking:
            if not self._kept:
                return None
            batch = self._kept.popleft()
            self._waiting -= len(batch)
            if self._begun:
                batch = last_rows(batch, len(self._begun))
                self._begun.clear()
            return batch

    def _decode(self, batch: ResultBatch) -> Iterator[Result]:
        if self.form == "ASK":
            for time, sign, answer in zip(
                batch.time.tolist(), batch.sign.tolist(), batch.columns[0].tolist(), strict=True
            ):
                yield Result(time, sign, {}, answer == TRUE)
            return
        columns = [column.tolist() for column in batch.columns]
        rows = zip(*columns, strict=True) if columns else repeat((), len(batch))
        # Each term once.
        ids = [*dict.fromkeys(chain.from_iterable(columns))]
        texts = self._dictionary.decode(np.array(ids, np.int64))
        terms = {id_: to_rdflib(text) for id_, text in zip(ids, texts, strict=True) if text is not None}
        for row, time, sign in zip(rows, batch.time.tolist(), batch.sign.tolist(), strict=True):
            found = {name: terms[id_] for name, id_ in zip(batch.variables, row, strict=True) if id_ in terms}
            yield Result(time, sign, found)
