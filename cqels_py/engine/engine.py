"""The engine: register queries, push elements, get results. The whole pipeline, in the order in which it runs.

query text ─ compile_query ─ Dataflow
elements   ─ sources ─ LocalRunner ─ Dataflow ─ Delivery ─ subscribers and sinks
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import slice_elements
from cqels_py.connections.reach import Reach
from cqels_py.dictionary import Dictionary
from cqels_py.engine.asynchronous import PushingThread, has_event_loop
from cqels_py.engine.backfill import OneAtATime, register_with_elements_of_before
from cqels_py.engine.clocks import Clocks
from cqels_py.engine.compile import CompiledQuery, check_entailment, compile_query
from cqels_py.engine.delivery import Delivery, PendingDeliveries
from cqels_py.engine.documents import Document, Once, OnceKeys, Taken, take_documents
from cqels_py.engine.durable.companion import Companion
from cqels_py.engine.durable.inputs import Fed
from cqels_py.engine.durable.logged import SYNC
from cqels_py.engine.durable.opening import opened
from cqels_py.engine.durable.registration import Registration
from cqels_py.engine.feeding import Feed, behind_feeds
from cqels_py.engine.last_elements import LastElements
from cqels_py.engine.notebooks import html_table
from cqels_py.engine.options import CLOCK_DELAY, EVENTS, FLUSH_AFTER, IDLE, KEEP, WALL, options_of
from cqels_py.engine.pausing import can_pause
from cqels_py.engine.pushed_tables import push_batch
from cqels_py.engine.query import Query
from cqels_py.engine.registered_rules import FACTS, NAMESPACE, RegisteredRules, read_rules, rule_set_of
from cqels_py.engine.registering import prepare_kernels, register
from cqels_py.engine.registry import Registry
from cqels_py.engine.rejects import Rejects, RejectsFile, refused_result
from cqels_py.engine.reports import EngineReports
from cqels_py.engine.result import Result
from cqels_py.engine.services import TIMEOUT
from cqels_py.engine.single_push import SinglePush
from cqels_py.engine.source_run import RunOptions, SourceRun
from cqels_py.engine.static_refresh import StaticRefresh
from cqels_py.engine.static_updates import other_static_data, replace_static, update_static
from cqels_py.engine.steps import Steps
from cqels_py.engine.turns import called_by_subscriber, in_turn
from cqels_py.engine.unread import RAISE, Unread
from cqels_py.engine.waiting import MOST_WAITING, WaitingResults
from cqels_py.errors import CqelsError, DataError, RefusedResult, RunError, UsageError
from cqels_py.event_time.ahead import AheadGuard
from cqels_py.event_time.frontiers import Frontiers
from cqels_py.formats.kernel_calls import calls_to_read
from cqels_py.formats.objects import element_of_object
from cqels_py.formats.python_times import Duration, Time, duration
from cqels_py.formats.scopes import SOURCE
from cqels_py.formats.single_row import SingleRows
from cqels_py.formats.times import LIKELY_FROM, LIKELY_TO
from cqels_py.formats.triples import (
    PushedElement,
    Term,
    Triple,
    are_plain,
    elements_of_pushed,
    graph_text,
    joined_lines,
    triple_texts,
)
from cqels_py.functions.limits import MAX_TEXT
from cqels_py.interrupts import done, undisturbed, use
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.mappings.context import RowMap, read_map
from cqels_py.mappings.frame_map import FrameMap
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.running import RunningQuery
from cqels_py.runners.statistics import Statistics
from cqels_py.runners.step_waiting import MOST_UNENCODED
from cqels_py.sources.opened import ArrowStream, StreamSource
from cqels_py.sources.static import StaticSource, graphs_by_name
from cqels_py.sources.time_merge import TimeMerge
from cqels_py.state.stop import Stopped
from cqels_py.validation import instant


class Engine:
    """Registers continuous queries and runs them over streams, in this process.

    Durations are microseconds, a timedelta or a text such as "10s". `lateness`: for how long elements may come out of order; later
    ones are dropped, counted and reported. `lateness_of`: that of streams by IRI, where it is another one (a query over several
    streams waits as long as the greatest of theirs). `ahead`: microseconds that an element may be later than the one before it in
    its stream; one that is later still, as of a sensor with a wrong clock, is dropped, counted and reported. Without it none is,
    and a jump of more than a year is reported. `flush_after`: microseconds without input after which an element of N-Quads or
    N-Triples on standard input or a pipe is complete, though none has followed it (0: never); triples of it that come later are
    left out and reported. `clock` "wall": event time follows the computer's clock, `clock_delay` microseconds behind it (and the
    lateness), so that windows end and silence is told while nothing comes: a thread sees to it, which also calls subscribers. An
    element that is ahead of the clock waits for its time, and is dropped if it is more than `ahead` (an hour) ahead. `clock_of`:
    {IRI: "events"} names streams, such as recorded ones, whose elements alone move the time of the queries that read them. A source
    of `run` that has more elements to read holds the clock up. With "events" only elements and `advance` move time. `max_state`:
    bytes that a query may keep; one that keeps more is stopped with a RunError, and the others go on. `idle`: microseconds without
    input after which a run over several sources does not wait for standard input or a pipe. `duplicates` "drop": of the elements of
    a stream with one graph, time and triples the first is taken in, and others are dropped and counted; blank nodes belong to their
    element then. `batch`: how many elements are
    processed together (results are the same); without it each pushed one at once, and as many of a source as are read together.
    `on_error` "skip": malformed input is counted, reported and skipped; "stop": it is raised, and the rest unharmed. `report` gets
    a DataError for all that is left out, and a RunError for exceptions of subscribers with on_error="report"; without it, a logger
    named cqels_py gets the first ten, then one a minute, and the warnings of queries that are registered. `service_timeout`:
    seconds that an endpoint of SERVICE may be silent. `blank_nodes`: a label is one node in all of its "source", which is a file or
    a table of `run`, and otherwise in its `push` or its line of NDJSON; or in its "element" alone. `contexts`: by the IRIs under
    which JSON-LD documents name them, files (or their content); none is ever fetched. `max_text`: bytes of the longest text that an
    expression makes; a longer one is an error value, which is reported. `max_waiting`: results of a query that may wait for
    `Query.results`; with more, RunError is raised instead of taking in elements, until some have been taken. `rejects`: a file,
    written anew, to which each element that is left out goes as a line of JSON (`engine.rejects`); `statistics.rejected` counts
    them by stream and reason. Everything that it raises on purpose is a CqelsError.

    `checkpoint`: a folder that keeps queries, their state and all input; a new engine with the same folder and options goes
    on from there, however the process ended. `register` then returns the query of that name with its state, results have the same
    numbers, and `statistics.elements` says how many elements have been taken in. `durable` "sync": a call returns, and results are
    delivered, when its input is on the disk; "batch": likewise, with one sync for the calls of 2 milliseconds; "off": at once, and
    a failure of the machine, not of the process, may lose the last ones. Elements that wait for a `batch` are not kept yet.

    `reach`: which addresses sources and SERVICE may connect to, also after redirects (`connections.reach`); without it all.

    With `with Engine() as engine:` it is finished at the end of the block, or after an exception closed.

    Several threads may use an engine: their calls come one after the other, each as a whole. Subscribers are called when a step is
    complete, by the thread whose call made the results, and other threads can push meanwhile. If they make results for a query
    whose subscriber is still running, its thread delivers these too, in order. `statistics` and `Query.results` never wait for
    another thread, not even for a `run`.
    """

    def __init__(
        self,
        *,
        lateness: Duration = 0,
        batch: int | None = None,
        on_error: str = "stop",
        report: Callable[[CqelsError], None] | None = None,
        service_timeout: float = TIMEOUT,
        blank_nodes: str = SOURCE,
        contexts: Mapping[str, Any] | None = None,
        max_text: int = MAX_TEXT,
        max_waiting: int = MOST_WAITING,
        rejects: RejectsFile | None = None,
        ahead: Duration | None = None,
        lateness_of: Mapping[str, Duration] | None = None,
        clock_of: Mapping[str, str] | None = None,
        flush_after: Duration = FLUSH_AFTER,
        clock: str = EVENTS,
        clock_delay: Duration = CLOCK_DELAY,
        idle: Duration = IDLE,
        duplicates: str = KEEP,
        max_state: int | None = None,
        checkpoint: str | Path | Companion | None = None,
        durable: str = SYNC,
        on_unread: str = RAISE,
        reach: Reach | None = None,
    ) -> None:
        self._unread = Unread(on_unread)
        options = options_of(
            lateness=lateness,
            lateness_of=lateness_of,
            ahead=ahead,
            flush_after=flush_after,
            clock=clock,
            clock_of=clock_of,
            clock_delay=clock_delay,
            idle=idle,
            duplicates=duplicates,
            batch=batch,
            on_error=on_error,
            report=report,
            rejects=rejects,
            service_timeout=service_timeout,
            blank_nodes=blank_nodes,
            contexts=contexts,
            max_text=max_text,
            max_waiting=max_waiting,
            max_state=max_state,
            reach=reach,
        )
        self.dictionary = Dictionary()
        # Held for a whole call, so that calls of several threads follow one another. Re-entrant, as callbacks may call the engine.
        self._turn = threading.RLock()
        # Guards the state: held in steps, never while subscribers are called. A thread that holds it takes no other lock.
        self._lock = threading.RLock()
        self._steps = Steps(self._lock)
        self._one_at_a_time = OneAtATime()
        self._pending = PendingDeliveries()
        self._overfull: set[WaitingResults] = set()
        self._max_waiting = max_waiting
        self._blank_nodes = blank_nodes
        self._options = options
        self._batch = batch
        self._clocks = Clocks(options)
        self._guard = None if clock == WALL else AheadGuard(options.ahead)
        self._lateness_of: dict[int, int] = {}
        self._drops: set[int] = set()
        self._declared: dict[str, tuple[int, str, str]] = {}
        self._once = OnceKeys()
        # Streams whose feeds have elements that were not read yet, those that feeds are reading, and the positions behind elements.
        self._behind: set[int] = set()
        self._feeding: set[str] = set()
        self._fed: dict[tuple[str, str], object] = {}
        self._runner = LocalRunner(
            self.dictionary,
            options.lateness,
            lateness_of=self._lateness_of,
            waiting=True,
            guard=self._guard,
            clock=self._clocks.guard,
            by_events=self._clocks.by_events,
            max_state=max_state,
            drops=self._drops,
        )
        self._counters = self._runner.counters
        self._registry = Registry(self.dictionary)
        self._runner.rejects = self._rejects = Rejects(self._counters, self.dictionary, self._registry.stream)
        self._reports = EngineReports(options, self._counters, self._rejects)
        self._queries = self._registry.queries
        self._refresh = StaticRefresh(partial(other_static_data, self), partial(replace_static, self))
        # Also those that are no longer registered: their last results may not have been taken.
        self._known: WeakSet[Query] = WeakSet()
        self.dictionary.hold(self._undelivered)
        self._pushed: list[PushedElement] = []
        self._singles: dict[str, SinglePush] = {}
        self._single_rows = SingleRows()
        self.watched: LastElements | None = None
        """Gets the elements of documents and feeds, for people who look at them."""
        self._pushing = PushingThread()
        self._ready = 0
        """So many of them, the first ones, wait for the boundary of STEP windows, and have been counted."""
        self._elements = 0
        self._merged: TimeMerge | None = None
        if checkpoint is None and rejects is not None:
            self._rejects.begin(rejects)
        self._inputs = opened(
            self, checkpoint, durable, options.decisive(own_rejects=not isinstance(checkpoint, Companion))
        )
        self._pending.inputs_kept = self._inputs.sync
        self._reports.left_out = self._inputs.left_out
        self._inputs.begin()
        self._behind.update(behind_feeds(self))
        self._clocks.keep_time(self)
        use(self)

    @property
    def _waiting_bytes(self) -> int:
        """Bytes of the elements that wait in the runner."""
        return self._runner.nbytes

    @property
    def statistics(self) -> Statistics:
        """A snapshot of the counts so far. It never waits for another thread, not even for a `run`."""
        return self._counters.snapshot()

    @property
    def rejects(self) -> Rejects:
        """The elements that are left out."""
        return self._rejects

    @property
    def queries(self) -> tuple[Query, ...]:
        """The registered queries, in order of registration."""
        return tuple(self._queries)

    @property
    def unread(self) -> dict[str, int]:
        """With on_unread="count": by stream that no query reads, how many elements (of tables, rows) were passed over."""
        return dict(self._unread.counts)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish; after an exception, and with a checkpoint from which another engine may go on, close alone."""
        if kind is None and self._steps.ended is None:
            if not self._inputs.keeps:
                self.finish()
                return
            self.flush()
        self.close()

    def __repr__(self) -> str:
        count = len(self._queries)
        state = "" if self._steps.ended is None else ", closed"
        return f"<Engine: {count} quer{'y' if count == 1 else 'ies'}, {self.statistics.elements:,} elements{state}>"

    def _repr_html_(self) -> str:
        rows = [(query.name or "", query.form, ", ".join(query.streams), query.waiting) for query in self._queries]
        return html_table(("query", "form", "streams", "waiting results"), rows, repr(self).strip("<>"))

    def _undelivered(self) -> Iterator[Ids]:
        """Ids of results that have not been taken yet."""
        for query in self._known:
            yield from query.live_ids()

    # --- queries --------------------------------------------------------------------------------------------------

    def register(
        self,
        text: str | CompiledQuery,
        *,
        source: str | None = None,
        static: Iterable[StaticSource] | StaticSource = (),
        static_graphs: Mapping[str, StaticSource] | None = None,
        changelog: bool = False,
        entailment: str | None = None,
        guarantee: bool = False,
        rules: RegisteredRules | None = None,
        name: str | None = None,
        backfill: Mapping[str, StreamSource] | str | None = None,
        clock: str | None = None,
    ) -> Query:
        """Register a query, by its text or compiled (`engine.compile`); it sees elements that are pushed from now on.

        `backfill`: before that it sees the elements of these sources, by stream, as if it had been registered before them; their
        results wait for the query's subscriber. "log": the elements of an engine with a checkpoint that its log still has, which
        are those since the snapshot before the last, or more. Elements that are later than those the engine has taken in of these
        streams are left out, so that none comes twice. The other queries go on as if nothing were: other threads' calls come
        between two batches, and the elements that they push wait for the query (up to a million elements; when half a million wait,
        other calls do until the query is there, and a `run` that brings more than a million ends the registration with RunError).

        `clock` "wall": the query's time follows the computer's clock, "events": its elements alone move it; without it that is as
        its streams have it (`Engine`). Queries that feed each other have one time: one of them that says its clock says it for all.

        `source` names the text in messages. `static`: data of the default graph, one source or several; `static_graphs`: named
        graphs by IRI. `changelog`: results of both signs. `entailment` "rdfs": the query also sees triples inferred from the
        classes and properties of the static default graph. `guarantee`: the matches of MATCH are found with a delay that depends on
        their length alone, and an event takes steps by the logarithm of the number of events within WITHIN; where that cannot be,
        the query is refused. `rules`: those of `register_rules` that STATE asks, for a text without RULES. `name`: by which an
        engine with a checkpoint knows the query after a restart (without it by its text): that one is returned, with its static
        data and its state (`query.restored`). Raises QuerySyntaxError, UnsupportedQuery, DataError.
        """
        if self._pending.is_here():
            raise called_by_subscriber("register")
        check_entailment(entailment)
        asked = Registration.of(
            text,
            name,
            source,
            changelog=changelog,
            entailment=entailment,
            guarantee=guarantee,
            rules=rules,
            clock=clock,
        )
        if isinstance(static, Iterator):
            static = list(static)
        if (restored := self._inputs.restored(asked)) is not None:
            self._refresh.keep(restored, static, static_graphs)
            return restored
        self._steps.check_open()
        graphs = graphs_by_name(static_graphs)
        compiled = compile_query(
            text,
            source=source,
            changelog=changelog,
            service_timeout=self._options.service_timeout,
            guarantee=guarantee,
            rules=rule_set_of(rules),
            ask=partial(asked.services.ask, reach=self._options.reach),
        )
        compiled.check_memory(source)
        # Beside the running engine: other threads can push meanwhile.
        prepare_kernels(self, compiled, asked, has_static=bool(static != () or graphs or compiled.static_graphs))
        if backfill is None:
            query = register(self, compiled, static, graphs, asked)
        else:
            query = register_with_elements_of_before(self, compiled, static, graphs, asked, backfill)
        self._clocks.keep_time(self)
        try:
            self._refresh.keep(query, static, graphs)
        except UsageError:
            self._forget(query)
            raise
        return query

    def register_rules(
        self,
        text: str,
        *,
        syntax: str = "meteor",
        facts: str | Iterable[str] = (),
        streams: str | Iterable[str] = FACTS,
        namespace: str = NAMESPACE,
        source: str = "<program>",
        facts_source: str = "<facts>",
    ) -> RegisteredRules:
        """A program of temporal rules in the syntax of MeTeoR, for queries over the facts that it derives.

        `P(X)` is `?x a <P>` and `P(X,Y)` is `?x <P> ?y`, where names are IRIs of the `namespace`, those with a colon IRIs already,
        and numbers are xsd:integer or xsd:decimal. Facts are the triples of `streams`, at their elements' times, and those of
        `facts`: a text or lines such as `P(a)@[0,2.5)`, in seconds since the epoch. `source` and `facts_source` name the texts in
        messages. Queries ask by `state` of the returned object, or by STATE and `register(…, rules=)`; each has a state of its own.
        Raises QuerySyntaxError and UnsupportedQuery for the program, and DataError for the facts.
        """
        return read_rules(text, syntax, facts, streams, namespace, (source, facts_source), self.register)

    @undisturbed
    def _add(self, query: Query, running: RunningQuery) -> None:
        with self._lock:
            self._registry.add(query, running)
            self._known.add(query)
            self._queries_changed()

    def _queries_changed(self) -> None:
        self._runner.queries = self._registry.running()
        # Those of former queries would keep their states.
        self._singles.clear()

    @in_turn
    def connect(self, query: Query, stream: str) -> None:
        """From now on each result of a CONSTRUCT query is an element of the stream: one for each tick, at the tick's time.

        Without a call of this, a query feeds the stream that has its own name (REGISTER … <name> AS CONSTRUCT …). Elements
        are fed where they would stand if all elements came one by one; lateness and statistics do not count them.
        UsageError for a query that makes no triples or retracts them, or where queries would feed themselves.
        """
        self._steps.check_open()
        self._flush()
        self._registry.check(query)
        self._connect(query, str(stream))

    @undisturbed
    def _connect(self, query: Query, stream: str) -> None:
        with self._lock:
            self._registry.check_connecting(query, stream)
            # It is logged or does not happen.
            self._inputs.connected(query, stream)
            self._registry.connect(query, stream)
            self._queries_changed()

    def update_static(
        self,
        query: Query,
        *,
        static: Iterable[StaticSource] | StaticSource = (),
        static_graphs: Mapping[str, StaticSource] | None = None,
    ) -> None:
        """Replace the static data of a query, all of it, while it runs; the arguments are those of `register`.

        The change is a tick of its own at the time of the last element, after all elements that were pushed before: subscribers get
        the results that become true or false at once. (The last element of the query's streams. If other queries read the stream
        that it constructs, the last element of any of their streams too, in whatever order the queries were registered.) Before the
        first tick there is no tick: the first one sees the new data. Answers of SERVICE stay. After an error (DataError,
        UsageError, under entailment UnsupportedQuery) the query still has its former data.
        """
        prepare(calls_to_read("nq"))
        update_static(self, query, static, static_graphs)

    def _look_at_tables(self) -> None:
        """Between two steps of a run: read the tables that are due again, and deliver the results of their changes."""
        self._refresh.look()
        self._deliver(self._pending.take())

    @in_turn
    def refresh_static(self) -> None:
        """Read the tables with `refresh=` that are static data again, now. In a `run` that happens by itself.

        Changes in them are applied as by `update_static`. A table that cannot be read keeps its former data, with a
        warning.
        """
        self._steps.check_open()
        self._flush()
        self._refresh.look(all_=True)

    def unregister(self, query: Query) -> None:
        """Remove a query and its state; there are no more results of it. Elements that were pushed before are processed first.

        A subscriber may call this too: then the query's subscribers get no more results at once, not even the rest of this step's.
        """
        self._registry.check(query)
        if self._steps.ended is None:
            self._flush()
        self._forget(query)

    def stop(self, query: Query) -> None:
        """Evaluate a query no further, also in the step that other threads are executing: it ends for this query soon, and with that
        the query is removed, or by `unregister`. For any thread; it waits for none. Others go on with the results that they would
        have had. A query whose stream others read is stopped after these alone.

        For a query whose step does not end, as it multiplies what windows have, where `unregister` would wait:

        >>> engine.stop(query)  # doctest: +SKIP
        """
        running = self._queries.get(query)
        if running is not None and self._registry.may_stop(query):
            self._runner.stop(running)

    @undisturbed
    def _forget(self, query: Query, failure: RunError | None = None) -> None:
        """`failure`: why it was stopped, if nobody has unregistered it."""
        with self._lock:
            # A subscriber, or another thread, may have been faster.
            if query in self._queries:
                self._inputs.unregistered(query, failure)
                try:
                    query.close()
                finally:
                    # Also if a sink cannot be closed.
                    self._refresh.forget(query)
                    self._registry.remove(query)
                    self._queries_changed()

    @in_turn
    def declare(
        self, stream: str, *, lateness: Duration = 0, clock: str | None = None, duplicates: str | None = None
    ) -> None:
        """Options of a stream, as of `lateness_of`, `clock_of` and `duplicates`: before queries read it, or after the last one did.

        UsageError for a stream that queries read with other options.
        """
        self._steps.check_open()
        self._flush()
        stream, options = str(stream), self._options
        asked = (
            duration(lateness, "lateness"),
            options.clock if clock is None else clock,
            options.duplicates if duplicates is None else duplicates,
        )
        now = options.declared(stream)
        if asked == now:
            return
        if stream in self._registry.streams.numbers:
            raise UsageError(
                f"queries read <{stream}> with lateness {now[0]}, clock {now[1]!r} and duplicates {now[2]!r}: remove them first, or "
                "keep these options"
            )
        options.check_declared(stream, *asked)
        # They are logged, or stay as they are.
        self._inputs.declared(stream, *asked)
        self._declare(stream, *asked)

    def _declare(self, stream: str, lateness: int, clock: str, duplicates: str = KEEP) -> None:
        self._options.declare(stream, lateness, clock, duplicates)
        self._declared[stream] = lateness, clock, duplicates
        # It may have had a number, which a query to come keeps.
        known = self._registry.all_streams
        if stream in known:
            self._clocks.by_events.discard(known.index(stream))
            self._drops.discard(known.index(stream))

    # --- elements -------------------------------------------------------------------------------------------------

    def push(
        self,
        stream: str,
        triples: Iterable[Triple] | Mapping[str, Any],
        *,
        time: Time | None = None,
        graph: Term | None = None,
    ) -> None:
        """One element: its triples, or a dict of JSON-LD, at `time`, in microseconds since the epoch or as of `python_times`.

        Terms are rdflib's, texts in N-Triples syntax, and int, float, bool, Decimal, datetime, date and numpy's scalars, which are
        typed literals; subjects and predicates may also be plain IRIs. A dict may have its time as prov:generatedAtTime.

        >>> engine.push(
        ...     "http://ex.org/readings", [("http://ex.org/s1", "http://ex.org/temperature", 21.5)], time="2024-05-01T12:00:00Z"
        ... )  # doctest: +SKIP

        `graph`: the IRI or blank node that names the element's graph, which GRAPH in a window asks for. No `time` where a query
        takes it from the element itself (`@ :predicate`). An element with an invalid term is left out as a whole: DataError, or
        with `on_error="skip"` a report. The scope of its blank nodes is the element. A subscriber may push too: its elements wait
        until the current delivery is complete. KeyboardInterrupt, and exceptions of subscribers, are raised when the step is
        complete and its results have been delivered; the engine remains usable.
        """
        if graph is None and type(stream) is str:
            single = self._singles.get(stream)
            if single is not None and single.push(triples, time):
                return
        if self._unread.passes_over(str(stream), self._registry.streams.numbers):
            self._steps.check_open()
            return
        try:
            name = None if graph is None else graph_text(graph)
            if isinstance(triples, Mapping):
                given = element_of_object(triples, self._reports.json_ld(str(stream)))
                if given is None:
                    self._steps.check_open()
                    return
                texts, name = given.texts, name or given.graph
                if time is None and str(stream) not in self._registry.streams.time_predicates:
                    time = given.time
            else:
                texts = triple_texts(triples)
        except DataError as error:
            self._steps.check_open()
            wrong = DataError(f"an element pushed to <{stream}>: {error.message}")
            wrong.stream = str(stream)
            self._reports.malformed(wrong)
            return
        self._push(str(stream), texts, time, name)

    @undisturbed
    def _push(self, stream: str, texts: Sequence[bytes], time: Time | None, graph: bytes | None) -> None:
        if self._pending.threads and self._pending.is_here():
            self._append(stream, texts, time, graph)
            return
        if self._clocks.unseen:
            self._begin_time()
        if self._overfull:
            # Not in a turn, for which the task that reads a full stream may wait before it goes on.
            self._check_room()
        with self._turn:
            self._append(stream, texts, time, graph)
            if self._steps.busy or (self._waits() if self._batch is None else len(self._pushed) < self._batch):
                return
            wrong, deliveries = self._evaluate(), self._pending.take()
        # Most elements of many streams have no results.
        if deliveries or wrong or self._reports.due or self._pending.failed or self._inputs.keeps:
            self._deliver(deliveries, wrong)

    def _append(self, stream: str, texts: Sequence[bytes], time: Time | None, graph: bytes | None) -> None:
        """Queue an element, to be processed with the others that wait."""
        if self._steps.ended is not None or self._overfull:
            self._check_room()
        streams = self._registry.streams
        number = streams.numbers.get(stream)
        if number is None:
            number = streams.number(stream)
        predicate, at = streams.time_predicates.get(stream), None
        if predicate is None:
            at = instant(time)
            if not LIKELY_FROM <= at < LIKELY_TO and isinstance(time, int):
                self._reports.ask_unit(stream, at)
        elif time is not None:
            raise UsageError(
                f"the time of <{stream}> is the property <{predicate}> of each element: push without time="
            )
        if graph is not None and stream not in streams.graphs_asked and not self._options.drops_duplicates(stream):
            graph = None
        self._pushed.append(PushedElement(stream, number, at, predicate, texts, graph))

    def _waits(self) -> bool:
        """Does the last of the pushed elements wait for the boundary of STEP windows, as its terms are surely valid?

        Then it has been counted, and its terms are looked up together with those of the others that wait.
        """
        if len(self._pushed) != self._ready + 1 or self._ready >= MOST_UNENCODED or self._reports.due:
            return False
        if self._inputs.keeps or not self._runner.may_wait:
            return False
        last = self._pushed[-1]
        if last.time is None or last.graph is not None or not are_plain(last.texts):
            return False
        if not self._runner.waits(last.stream, last.time, len(last.texts) // 3):
            return False
        self._ready += 1
        return True

    def push_batch(
        self,
        stream: str,
        table: ArrowStream,
        *,
        document: str | None = None,
        sort: bool = False,
        map: RowMap | str | Path | None = None,
    ) -> None:
        """Many elements: an Arrow table (or reader) with columns time, graph (optional), subject, predicate, object.

        Consecutive rows of one time and graph are an element. The table is in order of time, as far as `lateness` does not cover
        it: otherwise DataError names the first row that is not, and nothing is taken from the table. `sort=True` sorts the rows;
        those of equal time keep their order. A reader, which has no length, is consumed part by part: elements that ended before a
        row out of order have been processed; to be sorted, it is first read to its end. Elements older than those pushed before are
        late: they are dropped and counted. After any other DataError the elements that ended before the wrong row have been
        processed; the unfinished element is left out, as the row may have been part of it. Exceptions of subscribers are raised
        between two parts of the table, and the rest of it is left out: `statistics` shows how far it got. The scope of blank nodes
        is their element, or the `document` of this name: then a label is one node in all calls with it. With a `map` (see `run`)
        the table has other columns, and each row is an element.
        """
        if document is None and map is None and sort is False and type(stream) is str:
            single = self._singles.get(stream)
            if single is not None and single.push_row(table):
                return
        push_batch(self, str(stream), table, document, sort, map)

    def push_frame(
        self,
        stream: str,
        frame: ArrowStream,
        *,
        subject: str,
        time: str,
        columns: Mapping[str, Any],
        sort: bool = False,
    ) -> None:
        """Many elements, one of each row of a data frame of pandas or Polars, or of an Arrow table or reader.

        `subject`: the IRI of a row's subject, with columns in braces. `time`: the column with the times (timestamps, dates, ISO
        texts or microseconds). `columns`: the property of each column that is read; with `(property, "http://ex.org/{room}")` the
        value makes an IRI, and otherwise it is a literal of the column's type. A value that is missing makes no triple. Characters
        that an IRI does not take are written as %20 and so on. For the order of rows, and after errors, see `push_batch`.

        >>> engine.push_frame(
        ...     "http://ex.org/readings",
        ...     frame,
        ...     subject="http://ex.org/{sensor}",
        ...     time="time",
        ...     columns={"temperature": "http://ex.org/temperature", "room": ("http://ex.org/in", "http://ex.org/{room}")},
        ... )  # doctest: +SKIP
        """
        self.push_batch(stream, frame, map=FrameMap.of(subject, time, columns), sort=sort)

    def push_document(self, stream: str, document: Document) -> Taken:
        """Many elements: a document of any format, which is taken in as a whole or not at all.

        Elements without a time get that of the document's arrival, which is now. A document with a `key` that was taken in before,
        in the last 24 hours, is not taken in again. With a checkpoint it is durable when this returns, as one record. DataError,
        with the place, for a document that cannot be read; UsageError for a key under which another one was taken in.
        """
        (taken,) = self.push_documents([(stream, document)])
        if isinstance(taken, CqelsError):
            raise taken
        return taken

    @undisturbed
    def push_documents(self, given: Sequence[tuple[str, Document]]) -> list[Taken | CqelsError]:
        """Several documents, each with its stream, one after the other as `push_document` does, but with one sync.

        A document that cannot be taken in leaves the others alone: its error stands in its place.
        """
        if self._pending.is_here():
            raise called_by_subscriber("push_documents")
        self._begin_time()
        with self._turn:
            self._check_room()
            wrong = self._evaluate()
            found = take_documents(self, given)
            deliveries = self._pending.take()
        self._deliver(deliveries, wrong)
        return found

    def feed(
        self,
        stream: str,
        url: str,
        *,
        map: RowMap | str | Path | None = None,
        report: Callable[[DataError], None] = lambda _: None,
    ) -> Feed:
        """A live source of a stream beside pushes: its `step` takes in all that is there. Malformed input is left out, and reported.

        UsageError for a URL that is wrong, MissingExtra for a missing package.
        """
        return Feed(self, str(stream), url, None if map is None else read_map(map), report)

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Inside, calls of other threads wait, and time does not go on: several calls see the same elements."""
        with self._turn:
            yield

    async def apush(self, stream: str, triples: Iterable[Triple] | Mapping[str, Any], **how: Any) -> None:
        """`push` for a task of asyncio: another thread does it meanwhile, and waits for streams of results that are full.

        Awaited calls keep their order. A task that is cancelled may have pushed.

        >>> await engine.apush("http://ex.org/readings", triples, time=time)  # doctest: +SKIP
        """
        await self._pushing.call(self.push, stream, triples, **how)

    async def arun(self, sources: Mapping[str, StreamSource], **how: Any) -> Statistics:
        """`run` for a task of asyncio: another thread does it meanwhile, and waits for streams of results that are full."""
        return await self._pushing.call(self.run, sources, **how)

    def flush(self) -> None:
        """Process all elements that were pushed so far, also those that wait for the next boundary of STEP windows."""
        self._flush()
        self._process_waiting()

    @undisturbed
    def _process_waiting(self) -> None:
        # In the middle of a step none waits.
        with self._lock:
            if self._runner.is_waiting:
                self._inputs.waiting_processed()
                with self._steps:
                    self._runner.process_waiting()

    @undisturbed
    def _flush(self) -> None:
        if self._pending.is_here():
            return
        with self._turn:
            if self._steps.busy:
                return
            wrong, deliveries = self._evaluate(), self._pending.take()
        self._deliver(deliveries, wrong)

    def advance(self, time: Time) -> None:
        """Promise that no element before `time` (microseconds) will come: mappings that expire before it do so now.

        Before the first element, time begins there: queries are evaluated over empty windows, so that the silence of a stream which
        never had an element is seen (windows with STEP at their first boundary at or after `time`, once time has passed it), and
        rules over the facts that hold then.
        """
        if self._pending.is_here():
            raise called_by_subscriber("advance")
        self._advance(instant(time))

    @undisturbed
    def _advance(self, time: int) -> None:
        with self._turn:
            if self._steps.busy:
                raise called_by_subscriber("advance")
            self._check_room()
            wrong = self._evaluate()
            self._inputs.advanced(time)
            with self._steps:
                self._runner.advance(time)
            deliveries = self._pending.take()
        self._deliver(deliveries, wrong)

    def _begin_time(self) -> None:
        """Before elements are pushed: queries that follow the clock, and were registered just now, get the time.

        Not at their registration, since the sources of a `run` that follows it may have elements of before.
        """
        if self._clocks.unseen and not self._clocks.left_to_run:
            self._follow_clock()

    @undisturbed
    def _follow_clock(self, merged: TimeMerge | None = None) -> None:
        """Let event time go on with the clock; results that are due are delivered. `merged`: the sources that are read, if any."""
        clock = self._clocks.wall
        with self._turn:
            if self._steps.busy or self._steps.ended is not None:
                return
            if merged is None and self._inputs.expects_run:
                # Its sources may have elements of meanwhile.
                return
            passed, wrong = clock.passed(), self._evaluate()
            behind = frozenset(self._behind)
            if merged is not None:
                merged.advance(passed)
                behind = merged.behind(passed)
            self._inputs.followed(passed, behind)
            with self._steps:
                self._runner.follow(passed, behind)
            self._clocks.unseen = False
            if clock.jumps:
                self._reports.clock_jumped(clock.jumps.pop())
            deliveries = self._pending.take()
        if deliveries or wrong or self._reports.due or self._pending.failed:
            self._deliver(deliveries, wrong)

    @undisturbed
    def _hold(self, frontiers: Frontiers) -> None:
        """Let queries over several streams wait until all elements of these are there; results that are due are delivered."""
        if frontiers == self._runner.frontiers:
            return
        self._inputs.held(frontiers)
        with self._steps:
            self._runner.hold(frontiers)
        self._deliver(self._pending.take())

    @in_turn
    def finish(self) -> None:
        """The streams have ended; nothing can be pushed any more. All results have been delivered when this returns.

        These are the results through the last element, and those of the first boundary of windows with STEP at or after it, unless
        a `run` has delivered them.
        """
        if self._steps.ended is not None:
            return
        self._flush()
        self._end_input(ended=True)
        for query in list(self._known):
            query.delivery.commit()
        self.close()

    def _end(self) -> None:
        self._steps.ended = UsageError("the engine's streams have ended: make a new engine")

    def close(self) -> None:
        """Take in no more elements, and deliver nothing more. Results that wait can still be taken. A second call does nothing."""
        if self._steps.ended is None:
            self._steps.ended = UsageError("the engine has been closed: make a new engine")
        self._clocks.stop()
        done(self)
        # The last ones first, and each whatever those before it raise, such as a sink that cannot be closed.
        with ExitStack() as closing:
            closing.callback(self._reports.close)
            closing.callback(self._inputs.close)
            closing.callback(self._pushing.stop)
            for query in list(self._known):
                closing.callback(query.end)

    @undisturbed
    def _end_input(self, until: int | None = None, *, ended: bool = False) -> None:
        self._inputs.finished(until, ended=ended)
        if ended:
            self._end()
        with self._steps:
            self._runner.finish(until, ended=ended)
        self._deliver(self._pending.take())

    @in_turn
    def run(
        self,
        sources: Mapping[str, StreamSource],
        *,
        time_predicates: Mapping[str, str] | None = None,
        maps: Mapping[str, Any] | None = None,
        progress: Callable[[Statistics], None] | None = None,
        threads: int | None = None,
        more: bool = False,
        until: Time | None = None,
    ) -> Statistics:
        """Read the sources, one for each stream that a query reads, to their ends, merged by time.

        At their end (without clock="wall", by which time goes on) the results through the last element are delivered, and those of
        the first boundary of windows with STEP at or after it, as by `finish`. Event time stays there, and the engine stays open:
        another `run` or `push` may add later elements to the windows. `more`: these results are not delivered yet, because more
        elements follow (history before live input); they come with the next elements, `advance` or `finish`. `until`, in
        microseconds: if it is not before the last element, event time advances to that instant instead, and all that is due through
        it is delivered.

        A source is a file, "-" for standard input, the URL of a connector such as "mqtt://localhost/rooms/+", an Arrow table or
        reader, batches of elements, or a connector (`sources.protocol`). `threads` 2: files are read ahead by a second thread,
        with the same results; 1: all is done by this one; without it, 2 where that pays. `time_predicates`: of streams whose
        elements carry their times, where no query says so (`@ :predicate`). `maps`: by streams, how rows and JSON objects that
        are no RDF become elements: a file with a CONSTRUCT over the columns, or with a JSON-LD context (.jsonld, .json), or a
        `Mapping`. `progress` is called with the statistics after each batch, and where nothing comes. An exception of it, or of a
        subscriber, ends the reading; the engine remains usable. An engine with a checkpoint goes on with a file behind the
        elements that it has of it, which perhaps another process has read.
        """
        self._steps.check_open()
        SourceRun(self, sources, RunOptions(time_predicates, maps, progress, threads, more, until)).run()
        return self.statistics

    @in_turn
    def commit(self) -> None:
        """Commit the sinks, so that the results so far are durable; then the sources of a `run`, up to the elements taken in so far.

        `run` does so at the end of its sources. For sources that never end, call this in `progress`, for example every ten
        seconds: a broker keeps the messages that have not been committed. Windows are in memory: without a checkpoint their content
        is lost with the process; with one, sources are committed when their elements are logged. Files read ahead (`threads=2`) are
        committed at their end.
        """
        for query in list(self._known):
            query.delivery.commit()
        if self._merged is not None:
            self._inputs.sync()
            self._merged.commit()

    def checkpoint(self) -> None:
        """Save the state of an engine that was made with `checkpoint`: a restart goes on from here, and takes less time.

        It does so by itself whenever the log since then is larger than the state. StorageError if that fails; then the former
        state counts, with all that came after it. It waits for a query that is given elements of before.
        """
        if self._pending.is_here():
            raise called_by_subscriber("checkpoint")
        with self._one_at_a_time.alone(self):
            self._checkpoint()

    @in_turn
    def _checkpoint(self) -> None:
        self._flush()
        # Results that the state does not make again are where they belong.
        for query in list(self._known):
            query.delivery.commit()
        self._inputs.snapshot()

    # --- processing -----------------------------------------------------------------------------------------------

    def _evaluate(self, *, as_one: bool = True) -> list[DataError]:
        """Process the elements that were pushed; returns the errors of those that are left out. The caller holds `_turn`.

        `as_one`: a single one as one call, if that is possible.
        """
        count = len(self._pushed)
        if not count:
            return []
        if as_one and count == 1 and self._pushed_one(self._pushed[0]):
            return []
        pushed = self._pushed[:count]
        batch, wrong = elements_of_pushed(pushed, self.dictionary, self._elements + 1)
        # Only now: an interruption while terms are looked up loses no elements.
        self._elements += count
        del self._pushed[:count]
        if ready := self._ready:
            self._ready = 0
            with self._lock:
                self._runner.keep(slice_elements(batch, 0, ready))
            if ready == count:
                return wrong
            batch = slice_elements(batch, ready, len(batch.time))
        self._process(batch)
        return wrong

    def _pushed_one(self, pushed: PushedElement) -> bool:
        """Process an element as one call. False: nothing has happened, as it has to be done step by step."""
        if pushed.time is None or pushed.graph is not None or self._ready:
            return False
        lines, texts = b"\n".join(pushed.texts), len(pushed.texts)
        if joined_lines(lines, texts) is None or not self._process_one(
            pushed.iri, pushed.stream, pushed.time, lines, texts // 3
        ):
            return False
        # A subscriber in another thread may have pushed further ones meanwhile.
        del self._pushed[0]
        return True

    @undisturbed
    def _pushed_row(self, stream: str, table: ArrowStream) -> bool:
        """`_pushed_one` for a table, which is refused unless it has one row."""
        streams = self._registry.streams
        number = streams.numbers.get(stream)
        if number is None or stream in streams.time_predicates or self._overfull:
            return False
        element = self._single_rows.element(table)
        return element is not None and self._process_one(stream, number, *element, 1)

    def _process_one(self, iri: str, stream: int, time: int, lines: bytes, triples: int) -> bool:
        """Process an element as one call. False: nothing has happened. Later ones of its stream take the shortest way."""
        taken = False
        if not self._inputs.keeps:
            with self._steps:
                taken = self._runner.push_one(stream, time, lines, triples, self._elements + 1)
                self._elements += taken
            if not taken:
                return False
        if self._batch is None and (single := self._runner.single(stream)) is not None:
            self._singles[iri] = SinglePush(self, iri, single)
        return taken

    @undisturbed
    def _process_part(self, batch: ElementBatch, *, deliver: bool = True, read: bool = False) -> None:
        """Process a part of a table or of sources; then the elements that subscribers have pushed meanwhile."""
        if self._overfull:
            self._check_room()
        self._process(batch, read=read)
        if deliver:
            self._deliver(self._pending.take())
            if self._pushed:
                self._flush()

    def _process(
        self,
        batch: ElementBatch,
        *,
        read: bool = False,
        once: Sequence[Once] = (),
        fed: Fed | None = None,
    ) -> None:
        counters = self._counters
        late, ahead = counters.late, counters.ahead
        self._inputs.elements(batch, read=read, once=once, fed=fed)
        if fed is not None:
            self._fed[fed.stream, fed.url] = fed.position
        with self._steps:
            self._runner.push(batch)
        self._tell_dropped(late, ahead)
        while self._guard is not None and self._guard.jumps:
            stream, time = self._guard.jumps.popleft()
            self._reports.ask_jump(self._registry.stream(stream), time)

    def _tell_dropped(self, late: int, ahead: int) -> None:
        """Report the elements that were dropped since there were so many."""
        if dropped := self._counters.late - late:
            self._reports.late(dropped)
        if dropped := self._counters.ahead - ahead:
            self._reports.ahead(dropped)

    @undisturbed
    def _deliver(self, deliveries: Sequence[Delivery], wrong: Sequence[DataError] = ()) -> None:
        """Deliver the results of steps, and evaluate the elements that subscribers push meanwhile; then report and raise.

        `wrong`: errors of elements that were left out.
        """
        self._inputs.sync()
        self._delivered(self._pending.deliver(deliveries), wrong, some=len(deliveries) > 0)

    def _delivered(self, failures: list[BaseException], wrong: Sequence[DataError], *, some: bool) -> None:
        """The rest of `_deliver`, when results have been delivered, if there were `some`, with these exceptions of subscribers."""
        while some and self._pushed and not failures:
            with self._turn:
                wrong, deliveries = [*wrong, *self._evaluate()], self._pending.take()
            failures, some = self._pending.deliver(deliveries), len(deliveries) > 0
        if self._pending.failed:
            self._forget_failed(failures)
        if self._reports.due:
            self._reports.report_due(failures)
        if failures:
            # Exceptions that end a program, such as KeyboardInterrupt and SystemExit, go before others.
            raised, *others = sorted(failures, key=lambda failure: isinstance(failure, Exception))
            for other in others:
                raised.add_note(f"another subscriber raised {other!r}")
            self._reports.malformed(*wrong, beside=raised)
            raise raised
        if wrong:
            self._reports.malformed(*wrong)

    def _forget_failed(self, failures: list[BaseException]) -> None:
        """Unregister queries that have lost their state; the reasons are added to `failures`, unless they were asked to stop."""
        while self._pending.failed:
            delivery, error = self._pending.failed.pop()
            asked = isinstance(error.__cause__, Stopped)
            if not asked:
                failures.append(error)
            for query in [query for query in self._queries if query.delivery is delivery]:
                self._forget(query, None if asked else error)

    def _check_room(self) -> None:
        """RunError if the engine has failed or too many results wait, UsageError if its streams have ended.

        Where streams of results say so, wait for room instead.
        """
        self._steps.check_open()
        if self._overfull and not has_event_loop() and all(each.wait_for_room() for each in list(self._overfull)):
            self._steps.check_open()
        if self._overfull:
            raise RunError(
                f"more than {max(each.most for each in list(self._overfull)):,} results of a query wait, and no more elements are "
                "taken in: take some with results(), let subscribe() have them, unregister the query, or make the engine with a "
                "greater max_waiting; in an event loop, await engine.apush(…) waits for streams"
            )

    # --- for queries ----------------------------------------------------------------------------------------------

    @property
    def _takes_nothing_more(self) -> bool:
        """Has the engine failed or ended?"""
        return self._steps.ended is not None

    def _subscriber_failed(self, error: RunError) -> None:
        self._reports.subscriber_failed(error)

    def _keep_refused(self, query: Query, error: RefusedResult) -> bool:
        record = refused_result(query.name, error)
        if new := not self._rejects.kept or self._inputs.refused(query, record):
            self._rejects.refused(record)
        return new

    def _can_pause(self, query: Query) -> bool:
        return can_pause(self, query)

    @property
    def _folder(self) -> Path | None:
        """That of the checkpoint, if there is one."""
        return self._inputs.folder

    def _run_of(self, query: Query) -> str | None:
        return self._inputs.run_of(query)

    @property
    def _makes_again(self) -> bool:
        return self._inputs.makes_again

    @undisturbed
    def _subscribed(self, delivery: Delivery) -> None:
        """Deliver results that came meanwhile, and process elements that were pushed."""
        if not self._pending.is_here():
            self._deliver([delivery])


__all__ = ["CqelsError", "Engine", "Query", "Result", "Statistics"]
