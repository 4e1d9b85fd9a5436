"""A registered query, as a program sees it: its properties, its plan and its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cqels_py.analysis.memory import MemoryVerdict
from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow import Dataflow, Profile, explain, profile_of
from cqels_py.dataflow.draw_match import automata_dot, has_automata
from cqels_py.dictionary import Dictionary
from cqels_py.engine.asynchronous import ResultStream, check_no_coroutine, check_plain
from cqels_py.engine.backlog import Backlog
from cqels_py.engine.compile import CompiledQuery
from cqels_py.engine.delivery import Delivery, PendingDeliveries, Subscriber
from cqels_py.engine.explained import as_dot, as_json, as_svg, with_prefixes
from cqels_py.engine.live_table import SIGN as SHOWN_SIGN
from cqels_py.engine.live_table import TIME as SHOWN_TIME
from cqels_py.engine.live_table import LiveTable, notebook_display
from cqels_py.engine.notebooks import html_table, shortened
from cqels_py.engine.pausing import GOES_OVER
from cqels_py.engine.result import KnownTerms, Result, decoded
from cqels_py.engine.standing import answer_of, as_graph, as_results
from cqels_py.engine.typed_results import SIGN, TIME, Schema, TypedResults, as_pandas, as_polars
from cqels_py.engine.url_sinks import Continued, close_sink, opened_sink
from cqels_py.engine.waiting import DROP, FAIL, WAIT, WaitingResults
from cqels_py.errors import RefusedResult, RunError, UsageError
from cqels_py.formats.scopes import explained
from cqels_py.interrupts import undisturbed
from cqels_py.sinks.protocol import Sink
from cqels_py.sinks.urls import sink_of
from cqels_py.sources.static import StaticSource
from cqels_py.validation import check_callable, check_flag, whole

if TYPE_CHECKING:
    import pyarrow as pa
    from rdflib import Graph

Kind = TypeVar("Kind")
MOST_IN_A_STREAM = 1000
"""Results that wait for a stream, unless the program says otherwise."""


class QueryHost(Protocol):
    """The part of the engine that its queries use. `_lock`: held in steps."""

    dictionary: Dictionary
    _pending: PendingDeliveries
    _blank_nodes: str
    _max_waiting: int
    _overfull: set[WaitingResults]

    @property
    def _lock(self) -> AbstractContextManager[Any]: ...

    @property
    def _waiting_bytes(self) -> int: ...

    @property
    def queries(self) -> tuple[Query, ...]: ...

    def flush(self) -> None: ...
    def _run_of(self, query: Query) -> str | None: ...

    @property
    def _makes_again(self) -> bool: ...

    def update_static(
        self,
        query: Query,
        *,
        static: Iterable[StaticSource] | StaticSource = (),
        static_graphs: Mapping[str, StaticSource] | None = None,
    ) -> None: ...

    def _subscriber_failed(self, error: RunError) -> None: ...

    @property
    def _folder(self) -> Path | None: ...

    def _keep_refused(self, query: Query, error: RefusedResult) -> bool: ...

    def _can_pause(self, query: Query) -> bool: ...

    def _subscribed(self, delivery: Delivery) -> None: ...


class Query:
    """A registered query. Its results go to all subscribers; when there are none, they wait for `results()` or the first of them.

    Several threads may use it, as they may use its engine.
    """

    def __init__(
        self,
        compiled: CompiledQuery,
        dataflow: Dataflow,
        host: QueryHost,
        name: str | None = None,
        clock: str | None = None,
    ) -> None:
        self.compiled = compiled
        self.plan = compiled.plan
        self.restored = False
        """Does it go on with the state of an earlier process? See `Engine`, checkpoint."""
        self.recent: list[ResultBatch] = []
        """Of a restored query, the results since the snapshot, for each subscriber with `from_number`, until more input comes."""
        self._name = name
        self.clock = clock
        """The clock that `register` was asked for; None: that of its streams."""
        self._host = host
        # None once the query has been closed: its state is freed even if the program still refers to the query.
        self._dataflow: Dataflow | None = dataflow
        self._explanation = ""
        self._last_profile: Profile | None = None
        self._terms = KnownTerms(host.dictionary)
        self._waiting = WaitingResults(self._decode, host._max_waiting, host._overfull)
        self._typed = TypedResults(self.variables, host.dictionary)
        self.delivery = Delivery(host._pending, self._waiting.add)
        self._opened: list[Sink] = []

    def go_on_in(self, dataflow: Dataflow) -> None:
        """Its state is there from now on."""
        self._dataflow = dataflow

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<Query{name}: {shortened(self.compiled.text)}>"

    def _repr_html_(self) -> str:
        rows = [
            ("form", self.form),
            ("variables", ", ".join(self.variables)),
            ("streams", ", ".join(self.streams)),
            ("memory", self.memory),
            ("waiting results", self.waiting),
            *(("warning", warning) for warning in self.warnings),
        ]
        plan = f"<details><summary>plan</summary><pre>{escape(self.explain())}</pre></details>"
        return html_table(("", ""), rows, repr(self).strip("<>")) + f"<pre>{escape(self.compiled.text)}</pre>" + plan

    @property
    def name(self) -> str | None:
        """The name under which it was registered, else the one that REGISTER gives it."""
        return self._name or self.compiled.asked.name

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
        """Probable mistakes in the query, and expensive parts of its plan."""
        return self.compiled.warnings

    @property
    def memory(self) -> MemoryVerdict:
        """Does the query's state stay below a bound, however long the streams run?"""
        return self.compiled.memory

    @property
    def template(self) -> tuple[tuple[str, str, str], ...]:
        """CONSTRUCT's triples: variable names after "?", N-Triples texts, or "_:label"."""
        return tuple((t.subject, t.predicate, t.object) for t in self.plan.template)

    @property
    def nbytes(self) -> int:
        """Bytes of the query's state, with the room in its tables; 0 once it is no longer registered.

        Elements that wait in the engine (for the watermark, or the boundary of STEP windows) count for each of its queries. It never
        waits for another thread: in the middle of a step it is the size of the arrays as they are then.
        """
        dataflow = self._dataflow
        return 0 if dataflow is None else dataflow.nbytes + self._host._waiting_bytes

    @property
    def waiting(self) -> int:
        """The number of results that wait for `results()`."""
        return self._waiting.count

    @property
    def dropped(self) -> int:
        """The number of results that were dropped before `results()` took them: only for a query that other queries read."""
        return self._waiting.dropped

    def subscribe(
        self, callback: Callable[[Result], object], *, on_error: str = "raise", from_number: int | None = None
    ) -> None:
        """Call back with every result, one by one: those that wait now, and all from now on.

        Callbacks are called by the thread whose call made the results, when its step is complete. If a callback of this query is
        still running in another thread, that thread delivers these results too.
        `on_error` "raise": an exception of the callback is raised by the engine's method that made the results, once all other
        subscribers have got them; until then this callback is not called again. An exception about results that were waiting is
        raised by this method: then the callback is not subscribed, and the remaining results still wait. "report": an exception is
        counted in the engine's statistics and reported as a RunError with the exception as its cause; the callback is called with
        the next result. KeyboardInterrupt, SystemExit and others that are no `Exception` are raised with either.
        `from_number`: results with lower numbers are left out, for a receiver that keeps the number of the last one it has: after a
        restart (see `Engine`, checkpoint) it gets each exactly once. UsageError if later ones are no longer kept.
        """
        callback = self._checked(callback, "a Result", on_error)
        first = 0 if from_number is None else whole(from_number, "from_number", "results")

        def each(batch: ResultBatch) -> None:
            if batch.number + len(batch) <= first:
                return
            for result in self._decode(batch):
                if result.number >= first:
                    callback(result)
                # The callback itself may have unregistered the query.
                if self.delivery.closed:
                    return

        if from_number is None:
            self._add(each, lambda _: self._waiting.results(), callback)
        else:
            self._add(each, partial(self._from_number, first), each)

    def subscribe_batches(
        self,
        callback: Callable[[Any], object],
        *,
        ids: bool = False,
        on_error: str = "raise",
        schema: Schema | None = None,
        time_column: str = TIME,
        sign_column: str = SIGN,
    ) -> None:
        """Call back with the results as Arrow tables, as of `to_arrow`; otherwise as `subscribe` does.

        `ids`: with a `ResultBatch`, whose columns are ids of terms, instead: the fastest way out. The engine's `dictionary` decodes
        them, in the callback: afterwards a term may be released, and its id means nothing any more.

        >>> query.subscribe_batches(lambda table: print(table.num_rows))  # doctest: +SKIP
        """
        check_flag(ids, "ids")
        call = self._checked(callback, "a ResultBatch" if ids else "an Arrow table", on_error)
        shape = None if ids else self._typed.shape(schema, time_column, sign_column)

        if shape is None:
            # Two subscriptions of one function are different ones: each has a function of its own that calls it.
            self._add(call, lambda _: self._waiting.batches(), call)
            return

        def each(batch: ResultBatch) -> None:
            call(self._typed.table([batch], shape))

        self._add(each, lambda _: self._waiting.batches(), each)

    def show(self, *, most: int = 100) -> None:
        """In a notebook: a table that changes in place as results come, at most ten times a second.

        With a changelog it has the rows that stand, of RSTREAM those of the last tick, and otherwise the last results. `most` rows
        are shown. The table is a subscriber: results do not wait for `results()` any more. UsageError outside of a notebook.

        >>> query.show()  # doctest: +SKIP
        """
        if whole(most, "most", "rows") < 1:
            raise UsageError(f"most is 1 or more rows, not {most}")
        draw = notebook_display()
        table = LiveTable(shortened(self.compiled.text), self.variables, self.plan.output, most)
        texts = dict.fromkeys(self.variables, "string")
        self.subscribe_batches(
            table.add, schema=texts, time_column=SHOWN_TIME, sign_column=SHOWN_SIGN, on_error="report"
        )
        table.begin(draw)

    def write_to(self, sink: Sink | str, *, max_backlog: int | None = None) -> None:
        """Write all results to a sink: those that wait now, and all from now on.

        A text is the URL of a sink, such as "postgresql://localhost/weather#alerts"; it is closed when the query or its engine is.
        The sink is flushed after each step that has results, and committed when the streams have ended.
        Its exceptions are raised as those of `subscribe`.
        After a restart (see `Engine`, checkpoint) a sink gets the results since the last snapshot again, if it is given before the
        first input; that of a URL which keeps the number of its last result leaves out those that it has.

        `max_backlog`: a sink whose server is away holds nothing up: its results wait, in memory and then on the disk, until it takes
        them, and it is tried again and again. With more bytes of them a query that is alone in its engine waits with all that it
        reads; otherwise it is stopped with a RunError, and the others go on. Without it, and for tables and files, which are not
        tried again after their `retry`, the sink is waited for.

        >>> query.write_to("postgresql://localhost/weather#alerts", max_backlog=1 << 30)  # doctest: +SKIP
        """
        if isinstance(sink, str):
            sink = opened_sink(
                sink_of(sink), self.plan, self._host.dictionary, self.refused, self.continued, self.backlog(max_backlog)
            )
            self._opened.append(sink)
        elif max_backlog is not None:
            raise UsageError("max_backlog is for sinks by URL: leave it out")
        for method in ("write", "flush", "commit"):
            check_callable(getattr(sink, method, None), f"{method} of a sink", "its arguments")
        # The first one takes those that wait, and each gets them.
        self._add(sink.write, lambda kept: self._waiting.batches() if self.waiting else iter(kept), sink.write, sink)

    def results(self) -> Iterator[Result]:
        """The results since the last call. UsageError if the query has subscribers, which get all results.

        Of a CONSTRUCT query that other queries read, only the last 65,536 wait; `dropped` counts the others.
        """
        self._check_taken()
        return self._waiting.results()

    def to_arrow(self, *, schema: Schema | None = None, time_column: str = TIME, sign_column: str = SIGN) -> pa.Table:
        """The results since the last call as an Arrow table: their times and signs, and a typed column for each variable.

        A column is of the type of this call's values: int64, double, decimal, bool, timestamp, date, or text (IRIs without
        brackets, integers beyond 64 bits). If they are of several types it is text, beside a column `…_datatype`. `schema` fixes
        types, such as {"x": "int64"}: a value that they have no place for is null, and counted in `misfits`. UsageError for a
        variable that is called as one of the other columns, and if the query has subscribers.

        >>> query.to_arrow(schema={"t": "float64"})  # doctest: +SKIP
        """
        self._check_taken()
        shape = self._typed.shape(schema, time_column, sign_column)
        return self._waiting.take(lambda batches: self._typed.table(batches, shape))

    def to_polars(self, **how: Any) -> Any:
        """The results since the last call as a data frame of Polars; see `to_arrow`."""
        return as_polars(self.to_arrow(**how))

    def to_pandas(self, **how: Any) -> Any:
        """The results since the last call as a data frame of pandas; see `to_arrow`."""
        return as_pandas(self.to_arrow(**how))

    def current(self) -> list[Result] | Graph:
        """The answer that stands: its results with sign +1, at the time of the last tick; of CONSTRUCT an rdflib Graph.

        It is computed now, over all elements that have been pushed; with STEP it is that of the last boundary. Nobody needs to
        listen, and results that wait still do. UsageError for queries whose results only come (MATCH, EVENT), and for windows that
        never run empty.

        >>> query.current()  # doctest: +SKIP
        """
        with self._standing() as batches:
            if self.form == "CONSTRUCT":
                return as_graph(batches, self._host.dictionary, self.template)
            return as_results(batches, self._host.dictionary, self.form)

    def current_arrow(
        self, *, schema: Schema | None = None, time_column: str = TIME, sign_column: str = SIGN
    ) -> pa.Table:
        """The answer that stands, see `current`, as a table of typed columns, see `to_arrow`; of CONSTRUCT its variables."""
        shape = self._typed.shape(schema, time_column, sign_column)
        with self._standing() as batches:
            return self._typed.table(batches, shape)

    @contextmanager
    def _standing(self) -> Iterator[list[ResultBatch]]:
        """The answer that stands; inside, no term is released."""
        if self._host._pending.is_here():
            raise UsageError("current() cannot be called by a subscriber while results are delivered")
        self._host.flush()
        with self._host._lock:
            yield answer_of(self._dataflow, self._host.dictionary)

    @property
    def misfits(self) -> dict[str, int]:
        """By variable, how many values a `schema` had no place for."""
        return dict(self._typed.misfits)

    def stream(self, *, most: int = MOST_IN_A_STREAM, full: str = WAIT) -> ResultStream:
        """The results as an asynchronous iterator: those that wait, then each as it comes, until the query or its engine ends.

        At most so many results wait for it, but for those of one step. `full` "wait": then `await engine.apush(…)`, and `push` in
        threads without an event loop, wait for the iterator; "drop": older results are dropped, and counted in `dropped`; "fail":
        the engine raises a RunError and takes in nothing more. UsageError if the query has subscribers, or another stream.

        >>> async for result in query.stream():  # doctest: +SKIP
        ...     await send(result.bindings)
        """
        self._check_taken()
        if self._waiting.are_streamed():
            raise UsageError("this query has a stream: let one task read it, and give the results to others")
        if whole(most, "most", "results") < 1:
            raise UsageError(f"most is 1 or more results, not {most}")
        if full not in (WAIT, DROP, FAIL):
            raise UsageError(f"full is 'wait', 'drop' or 'fail', not {full!r}")
        self._waiting.begin_stream(most, full)
        return ResultStream(self._waiting)

    def explain(self, format: str = "text") -> str:
        """The plan as text: windows, probing, indexes, the state of each operator; and the scope of blank nodes.

        `format` "json": for programs, an object with the members form, variables, output, streams, windows, memory, warnings and
        plan (an operator's text, and its inputs). "dot": a picture in the language of graphviz, of the automata of the query's
        MATCH clauses or, where it has none, of its operators. "svg": that of its operators, as a picture. IRIs are names, by the
        query's prefixes, except in the text.
        """
        if format not in ("text", "dot", "json", "svg"):
            raise UsageError(f"format is 'text', 'json', 'dot' or 'svg', not {format!r}")
        if format == "dot" and has_automata(self.plan):
            return with_prefixes(automata_dot(self.plan), self.compiled.text)
        if format != "text":
            return {"json": as_json, "dot": as_dot, "svg": as_svg}[format](self.compiled, self.explain())
        with self._host._lock:
            notes = "".join(f"  {note}\n" for each in self.plan.event_memory for note in each.notes)
            plan = self._explanation if self._dataflow is None else explain(self._dataflow)
            return f"memory: {self.memory}\n{notes}\n{plan}\nblank nodes\n  {explained(self._host._blank_nodes)}\n"

    def profile(self) -> Profile:
        """The work of each operator of the plan so far: rows in and out, its share of the time, bytes of state, probes.

        Rows are counted. Time is that of all steps with many elements, and of one in 64 with few. Counts begin with the process,
        also of a query that goes on from a checkpoint, and end when the query is unregistered. Operators that other queries read
        too are counted once for all of them.

        >>> print(query.profile())  # doctest: +SKIP
        """
        with self._host._lock:
            if self._dataflow is not None:
                return profile_of(self._dataflow)
        assert self._last_profile is not None
        return self._last_profile

    def update_static(self, **data: Any) -> None:
        """Replace the static data of the query; see `Engine.update_static`."""
        self._host.update_static(self, **data)

    @property
    def continued(self) -> Continued:
        """Where the results begin that a sink would get from now on."""
        run = self._host._run_of(self)
        if run is None:
            return Continued()
        kept = self._waiting.kept() or self.recent
        written = kept[0].number - 1 if kept else self.delivery.count
        made = None if self._host._makes_again else self.delivery.count
        return Continued(written if self.restored or written else None, run, made)

    def backlog(self, most: int | None) -> Backlog | None:
        """For a sink that so many bytes of results may wait for; None: it is waited for."""
        if most is None:
            return None
        if whole(most, "max_backlog", "bytes") < 1:
            raise UsageError(f"max_backlog is 1 or more bytes, not {most}")
        return Backlog(
            most,
            partial(self._goes_over, most),
            partial(self._is_stopped_beyond, most),
            keep_refused=partial(self._host._keep_refused, self),
            tell_refused=self._host._subscriber_failed,
            folder=self._host._folder,
        )

    def _goes_over(self, most: int, waiting: int) -> bool:
        """So many bytes of results wait for a sink: are the sources paused that make them?"""
        return waiting <= GOES_OVER * most and self._host._can_pause(self)

    def _is_stopped_beyond(self, most: int) -> bool:
        """More bytes of results wait for a sink: stop the query if there are others, which would have to wait with it."""
        if len(self._host.queries) <= 1:
            return False
        self.delivery.fail(
            RunError(
                f"{self.plan.title} has been stopped: more than {most:,} bytes of its results wait for a sink that fails "
                "(max_backlog), and other queries would have to wait with it"
            )
        )
        return True

    def refused(self, error: RefusedResult) -> None:
        """A sink's other side refuses a result: it is counted, reported, and one of the rejects."""
        if self._host._keep_refused(self, error):
            self._host._subscriber_failed(error)

    # --- for the engine -----------------------------------------------------------------------------------------------

    def begin_after(self, count: int, waiting: Iterable[ResultBatch]) -> None:
        """An earlier process has delivered so many results, but for these."""
        self.restored = True
        self.delivery.resume(count)
        for batch in waiting:
            self._waiting.add(batch)

    def keep_recent(self) -> None:
        """The results that wait now are those since the snapshot."""
        self.recent = self._waiting.kept()

    def untaken(self) -> list[ResultBatch]:
        """The results that nobody has got."""
        return [*self._waiting.kept(), *self.delivery.undelivered()]

    def keep_only_last(self, only: bool) -> None:
        """Do other queries read the results as elements? Then the program may never take them here."""
        self._waiting.keep_only_last(only)

    def live_ids(self) -> Iterable[Ids]:
        """Ids of the results that wait, for a subscriber or to be taken."""
        yield from self.delivery.live_ids()
        yield from self._waiting.live_ids()
        for batch in self.recent:
            yield from batch.columns

    def close(self) -> None:
        """No more results; those that wait can still be taken."""
        self.delivery.close()
        self._waiting.close()
        if self._dataflow is not None:
            self._explanation, self._last_profile = explain(self._dataflow), profile_of(self._dataflow)
            self._dataflow = None
        self.close_sinks()

    def end(self) -> None:
        """The engine takes in nothing more: streams of results end, and sinks are closed."""
        self._waiting.close()
        self.close_sinks()

    def close_sinks(self) -> None:
        """Close the sinks that were opened by their URLs: nothing more is written to them. Errors are raised when all are closed."""
        with ExitStack() as closing:
            while self._opened:
                closing.callback(close_sink, self._opened.pop(0))

    def _from_number(self, first: int, kept: Sequence[ResultBatch]) -> Iterator[ResultBatch]:
        """The results from this number on, which are there no longer for one that takes those that wait."""
        earliest = kept[0].number if kept else self.delivery.count + 1
        if first < earliest:
            raise UsageError(
                f"from_number={first}: results before number {earliest} are no longer kept; subscribe with from_number={earliest}"
            )
        yield from kept
        self._waiting.take(lambda _: None)

    def _check_taken(self) -> None:
        """UsageError if there is nothing to take, because subscribers get all."""
        if self.delivery.subscribers:
            raise UsageError("the results of this query go to its subscribers: use either subscribe() or results()")

    def _decode(self, batch: ResultBatch) -> Iterable[Result]:
        return decoded(batch, self._terms, self.form)

    def _checked(self, callback: Callable[[Kind], object], of: str, on_error: str) -> Callable[[Kind], object]:
        """The callback, or with `on_error="report"` a function that calls it and reports its exceptions."""
        check_callable(callback, "the callback", of)
        check_plain(callback)
        if self._waiting.are_streamed():
            raise UsageError("the results of this query go to its stream(): use either subscribe() or stream()")
        if on_error not in ("raise", "report"):
            raise UsageError(f"on_error is 'raise' or 'report', not {on_error!r}")
        if on_error == "raise":

            def call_plainly(given: Kind) -> None:
                if (answer := callback(given)) is not None:
                    check_no_coroutine(answer)

            return call_plainly

        def call(given: Kind) -> None:
            try:
                if (answer := callback(given)) is not None:
                    check_no_coroutine(answer)
            except Exception as error:
                name = getattr(callback, "__qualname__", repr(callback))
                failure = RunError(f"a subscriber raised {type(error).__name__}: {error} (in {name})")
                failure.__cause__ = error
                self._host._subscriber_failed(failure)

        return call

    @undisturbed
    def _add(
        self,
        subscriber: Subscriber,
        waiting: Callable[[Sequence[ResultBatch]], Iterator[Kind]],
        callback: Callable[[Kind], object],
        sink: Sink | None = None,
    ) -> None:
        """Subscribe, beginning with the results that wait, and those that the callback itself causes.

        `waiting` gives them, of the results that are kept, whose terms are not released meanwhile, whatever other threads push.
        """
        delivery, closed = self.delivery, self.delivery.closed
        try:
            with self._host._pending.here(), delivery.lock, self._holding() as kept:
                some = False
                for each in waiting(kept):
                    some = True
                    callback(each)
                    if delivery.closed is not closed:
                        break
                if sink is not None and some:
                    # Before a snapshot from which they would not be made again.
                    sink.flush()
                delivery.add_subscriber(subscriber, sink)
        finally:
            self._host._subscribed(delivery)

    @contextmanager
    def _holding(self) -> Iterator[Sequence[ResultBatch]]:
        """The results that a restart has made again, or those that wait; inside, they are in use. The delivery's lock is held."""
        held: list[ResultBatch] = []
        with self._host.dictionary.holding(lambda: chain.from_iterable(each.columns for each in held)):
            recent = self.recent
            held += recent or self._waiting.kept()
            if self.recent is not recent:
                # Input of another thread has come before they were held.
                held[:] = self._waiting.kept()
            yield held
