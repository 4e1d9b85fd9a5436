"""The engine: register queries, push elements, get results. The whole pipeline, in the order in which it runs.

query text ─ compile_query ─ Dataflow
elements   ─ connectors ─ LocalRunner ─ Dataflow ─ results
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar
from weakref import WeakSet

import numpy as np

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import slice_elements, with_streams
from cqels_py.dataflow import Dataflow
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import CompiledQuery, check_entailment, compile_query
from cqels_py.engine.query import Query, Result
from cqels_py.engine.reports import Reports, logged, told_of
from cqels_py.engine.services import TIMEOUT
from cqels_py.engine.stream_chaining import Connections
from cqels_py.errors import CqelsError, DataError, RunError, UsageError
from cqels_py.formats.construction import Construction
from cqels_py.formats.contexts import read_contexts
from cqels_py.formats.ntriples import ELEMENT_BITS
from cqels_py.formats.scopes import ELEMENT, SOURCE, check_blank_nodes, scope_of_document
from cqels_py.formats.times import FAR, LIKELY_FROM, LIKELY_TO, doubt
from cqels_py.formats.triples import PushedElement, Term, Triple, elements_of_pushed, graph_text, triple_texts
from cqels_py.functions.limits import MAX_TEXT, Limits
from cqels_py.interrupts import done, undisturbed, use
from cqels_py.kernels.compiler import parallel_build as ahead
from cqels_py.plan.nodes import Plan
from cqels_py.runners.chaining import ConstructedStream
from cqels_py.runners.local import LocalRunner, RunningQuery
from cqels_py.runners.statistics import Statistics
from cqels_py.runners.stream_views import NOTHING
from cqels_py.script import Script, Sources, Table
from cqels_py.sources.files import open_source
from cqels_py.sources.read_ahead import ReadAhead, pays, regular_files
from cqels_py.sources.static import StaticSource, graphs_by_name, load_static_data, ontology_of
from cqels_py.sources.time_merge import TimeMerge
from cqels_py.validation import by_iri, check_callable, check_flag, instant, instead, whole

if TYPE_CHECKING:
    import pyarrow as pa

ArrowStream: TypeAlias = "pa.Table | pa.RecordBatchReader | Any"
"""What exports Arrow's C stream: also data frames of Polars and pandas, and DuckDB's relations."""
StreamSource: TypeAlias = "str | Path | ArrowStream | Iterable[ElementBatch]"

_LOG = logging.getLogger("cqels_py")
_COMPILING = "compiling for this machine what such a query needs; this happens once and takes up to a minute"
_REHEARSAL = ("cqels_py.rehearsal",)

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def _in_turn(method: Callable[Concatenate[Engine, Given], Answer]) -> Callable[Concatenate[Engine, Given], Answer]:
    """The method, while no other thread is in one: what the same thread calls on the way is part of it."""

    @wraps(method)
    def alone(engine: Engine, /, *arguments: Given.args, **named: Given.kwargs) -> Answer:
        with engine._lock:
            return method(engine, *arguments, **named)

    return alone


class Engine:
    """Registers continuous queries and runs them over streams, in this process.

    `lateness`: microseconds that elements may come out of order; what comes later is dropped, counted and reported.
    `batch`: how many elements are processed together (results are the same); without it each pushed one at once, and as
    many of a source as are read together. `on_error` "skip": malformed input is counted, reported and skipped; "stop": it
    is raised, and the rest unharmed. `report` is told of what was left out (DataError), and of the exceptions of subscribers
    with on_error="report" (RunError); without it, a logger named cqels_py is, of the first ten, and then of one a minute, and of
    the warnings of queries that are registered. `service_timeout`: seconds that an endpoint of SERVICE may be silent.
    `blank_nodes`: a label is one node in all of its "source", which is a file or a table of `run`, and otherwise in its `push` or
    its line of NDJSON; or in its "element" alone. `contexts`: by the IRIs under which JSON-LD documents name them, files (or what
    these hold); none is ever fetched. `max_text`: bytes of the longest text that an expression makes; where it would be longer
    there is an error value, which is reported. Everything that it raises by intent is a CqelsError.

    Several threads may use an engine: their calls come one after the other, each as a whole, and subscribers are called by the
    thread whose call made the results. So a subscriber must not wait for another thread that uses the engine. `statistics`
    and `Query.results` wait for nobody, also not for a `run`.
    """

    def __init__(
        self,
        *,
        lateness: int = 0,
        batch: int | None = None,
        on_error: str = "stop",
        report: Callable[[CqelsError], None] | None = None,
        service_timeout: float = TIMEOUT,
        blank_nodes: str = SOURCE,
        contexts: Mapping[str, Any] | None = None,
        max_text: int = MAX_TEXT,
    ) -> None:
        if whole(lateness, "lateness", "microseconds") < 0:
            raise UsageError(f"lateness is 0 or more microseconds, not {lateness}")
        if lateness >= FAR:
            raise UsageError(f"lateness is less than {FAR} microseconds, not {lateness}")
        if batch is not None and whole(batch, "batch", "elements") < 1:
            raise UsageError(f"batch is 1 or more elements, not {batch}")
        if isinstance(service_timeout, bool) or not isinstance(service_timeout, int | float) or service_timeout <= 0:
            raise UsageError(f"service_timeout is a number of seconds above 0, not {service_timeout!r}")
        if whole(max_text, "max_text", "bytes") < 1:
            raise UsageError(f"max_text is 1 or more bytes, not {max_text}")
        if on_error not in ("stop", "skip"):
            raise UsageError(f"on_error is 'stop' or 'skip', not {on_error!r}")
        if report is not None:
            check_callable(report, "report", "a DataError")
        # Re-entrant: subscribers call back.
        self._lock = threading.RLock()
        self.dictionary = Dictionary()
        self._lateness = lateness
        self._runner = LocalRunner(self.dictionary, lateness)
        self._counters = self._runner.counters
        self._batch = batch
        self._blank_nodes = check_blank_nodes(blank_nodes)
        self._contexts = read_contexts(contexts)
        self._service_timeout = service_timeout
        self._max_text = max_text
        self._on_error = on_error
        self._report = report if report is not None else logged(_LOG)
        self._logs_warnings = report is None
        self._queries: dict[Query, RunningQuery] = {}
        # Also those that have left: their last results may not have been taken.
        self._known: WeakSet[Query] = WeakSet()
        self.dictionary.hold(self._waiting)
        self._connections = Connections()
        self._numbers: dict[str, int] = {}
        # What registered queries read: streams with their numbers, those whose elements carry their times, and those of whose
        # elements they ask the graphs.
        self._streams: dict[str, int] = {}
        self._fed: set[str] = set()
        self._time_predicates: dict[str, str] = {}
        self._graphs_asked: set[str] = set()
        self._pushed: list[PushedElement] = []
        self._elements = 0
        # Streams whose times seem to be meant in another unit, and what is to be asked about them.
        self._doubted: set[str] = set()
        self._questions: list[DataError] = []
        self._closed: CqelsError | None = None
        self._busy = False
        self._work = _Work(self)
        self._script = Script(
            {
                "lateness": lateness,
                "batch": batch,
                "service_timeout": service_timeout,
                "blank_nodes": blank_nodes,
                "contexts": {iri: {"@context": context} for iri, context in self._contexts.items()},
            }
        )
        use(self)

    @property
    def statistics(self) -> Statistics:
        """A snapshot of the counts so far; it waits for nobody, also not for a `run`."""
        return self._counters.snapshot()

    def _waiting(self) -> Iterator[Ids]:
        """Ids of results that nobody has taken yet."""
        for query in self._known:
            yield from query.live_ids()

    # --- queries --------------------------------------------------------------------------------------------------

    @_in_turn
    def register(
        self,
        text: str | CompiledQuery,
        *,
        source: str | None = None,
        static: Iterable[StaticSource] | StaticSource = (),
        static_graphs: Mapping[str, StaticSource] | None = None,
        changelog: bool = False,
        entailment: str | None = None,
    ) -> Query:
        """Register a query, by its text or compiled (`engine.compile`); it sees elements that are pushed from now on.

        `source` names the text in messages. `static`: data of the default graph, one source or several; `static_graphs`:
        named graphs by IRI. `changelog`: results of both signs. `entailment` "rdfs": the query also sees what follows by the
        classes and properties of the static default graph. Raises QuerySyntaxError, UnsupportedQuery, DataError.
        """
        self._check_open("register")
        self._flush()
        check_entailment(entailment)
        static_graphs = graphs_by_name(static_graphs)
        compiled = compile_query(text, source=source, changelog=changelog, service_timeout=self._service_timeout)
        self._check_time_predicates(compiled.plan)
        self._script.registering(compiled, static, static_graphs, entailment=entailment)
        ahead.expect(_REHEARSAL, self._script.as_bytes, _announce)
        data = load_static_data(compiled.plan, static, static_graphs, self.dictionary, self._contexts)
        if entailment is not None:
            compiled = compile_query(compiled, ontology=ontology_of(data, self.dictionary))
        plan = compiled.plan
        limits = Limits(self._max_text, told_of(plan, self._report), self._counters.add_no_numbers)
        dataflow = Dataflow(plan, self.dictionary, data, pool=self._runner.pool, limits=limits)
        query = Query(
            compiled,
            self.dictionary,
            dataflow,
            self.update_static,
            self._lock,
            self._subscriber_failed,
            self._blank_nodes,
        )
        try:
            self._connections.ordered([*self._queries, query])
        except BaseException:
            dataflow.detach()
            raise
        self._add(query, dataflow)
        self._warn(query)
        return query

    @undisturbed
    def _add(self, query: Query, dataflow: Dataflow) -> None:
        streams = [self._numbers.setdefault(iri, len(self._numbers)) for iri in query.plan.streams]
        self._queries[query] = running = RunningQuery(dataflow, streams, query)
        self._known.add(query)
        if query.form == "CONSTRUCT":
            running.feed = ConstructedStream(Construction(query.template, self.dictionary))
        self._queries_changed()
        self._script.registered(id(query))

    def _warn(self, query: Query) -> None:
        """To the logger, unless reports go elsewhere."""
        if self._logs_warnings:
            for warning in query.warnings:
                _LOG.warning("%s%s", f"{query.plan.name}: " if query.plan.name else "", warning)

    @_in_turn
    def connect(self, query: Query, stream: str) -> None:
        """From now on what a CONSTRUCT query says is an element of the stream: one for each tick, at the tick's time.

        Without being asked for, a query feeds the stream that has its own name (REGISTER … <name> AS CONSTRUCT …). Elements
        are fed where they would stand if all elements came one by one; lateness and statistics do not count them.
        UsageError for a query that makes no triples or withdraws them, or where queries would feed themselves.
        """
        self._check_open("connect")
        self._flush()
        self._check_registered(query)
        self._connect(query, str(stream))

    @undisturbed
    def _connect(self, query: Query, stream: str) -> None:
        self._connections.connect(query, stream, list(self._queries))
        self._queries_changed()

    @_in_turn
    def update_static(
        self,
        query: Query,
        *,
        static: Iterable[StaticSource] | StaticSource = (),
        static_graphs: Mapping[str, StaticSource] | None = None,
    ) -> None:
        """Replace the static data of a query, all of it, while it runs; the arguments are those of `register`.

        The change is a tick of its own at the time of the last element, after what was pushed before: subscribers see at once
        what it makes true or false. (The last element of the query's streams; where others read what it constructs, of any
        stream that leads to them too: in whatever order they were registered, they have moved on together.) Before the first
        tick it only changes what that tick sees. What SERVICE has answered stays. After an error (DataError, UsageError, under
        entailment UnsupportedQuery) the query has the data it had.
        """
        self._check_open("update_static")
        self._flush()
        self._check_registered(query)
        data = load_static_data(query.plan, static, static_graphs, self.dictionary, self._contexts)
        ontology = query.compiled.ontology
        if ontology is not None and ontology_of(data, self.dictionary) != ontology:
            raise UsageError(
                "the new data has other classes or properties than those by which the query was rewritten for entailment: "
                "register the query anew"
            )
        self._replace_static(query, data)
        self._flush()

    @undisturbed
    def _replace_static(self, query: Query, data: StaticData) -> None:
        with self._work:
            self._runner.update_static(self._queries[query], data)

    @_in_turn
    def unregister(self, query: Query) -> None:
        """Forget a query and its state; it gets no more results. What was pushed before is answered first.

        A subscriber may call this too: then the query gets nothing more at once, also of what is being processed.
        """
        self._check_registered(query)
        if self._closed is None:
            self._flush()
        if query not in self._queries:
            # A subscriber was faster.
            return
        self._forget(query)

    @undisturbed
    def _forget(self, query: Query) -> None:
        query.close()
        self._queries.pop(query).detach()
        self._connections.forget(query)
        del self._script.queries[id(query)]
        self._queries_changed()

    def _check_registered(self, query: Query) -> None:
        if not isinstance(query, Query) or query not in self._queries:
            raise UsageError("this query is not registered here, or no longer")

    def _queries_changed(self) -> None:
        # A new list: the runner may be in the middle of the old one.
        ordered = self._connections.ordered(list(self._queries))
        self._runner.queries = [self._queries[query] for query in ordered]
        pairs = [pair for q in self._queries for pair in zip(q.streams, q.plan.time_predicates, strict=True)]
        self._streams = {stream: self._numbers[stream] for stream, _ in pairs}
        self._time_predicates = {stream: predicate for stream, predicate in pairs if predicate is not None}
        self._graphs_asked = {stream for query in self._queries for stream in query.plan.graph_streams}
        self._fed = {stream for query in ordered for stream in self._connections.fed_by(query, self._streams)}
        for query, running in self._queries.items():
            if isinstance(running.feed, ConstructedStream):
                running.feed.streams = tuple(map(self._number, self._connections.fed_by(query, self._streams)))
                query.feeds = bool(running.feed.streams)
                running.feed.watched = frozenset(map(self._number, self._connections.watched(query, ordered)))

    def _check_time_predicates(self, plan: Plan) -> None:
        """A stream has one order."""
        known = self._time_predicates
        for stream, predicate in zip(plan.streams, plan.time_predicates, strict=True):
            if predicate is not None and known.get(stream, predicate) != predicate:
                raise UsageError(
                    f"the stream <{stream}> is ordered by <{known[stream]}> for another query, and by <{predicate}> for "
                    "this one: use an engine for each"
                )

    # --- elements -------------------------------------------------------------------------------------------------

    def push(
        self, stream: str, triples: Iterable[Triple], *, time: int | None = None, graph: Term | None = None
    ) -> None:
        """One element: its triples (rdflib terms or N-Triples texts) at `time`, in microseconds since the epoch.

        `graph`: the IRI or blank node that names the element's graph, which GRAPH in a window asks for. No `time` where a query
        takes it from the element itself (`@ :predicate`). An element with a term that is none is left out as a whole: DataError,
        or with `on_error="skip"` a report. Its blank nodes are its own. A subscriber may push too: its elements wait until what is
        being processed is done. KeyboardInterrupt, and what subscribers raise, comes when the step is complete, with its results
        delivered; the engine can be used on.
        """
        # As the other methods, but without a call more, which a single element would notice.
        with self._lock:
            if self._closed is not None:
                self._check_open()
            stream = str(stream)
            number = self._streams.get(stream)
            if number is None:
                number = self._number(stream)
            predicate = self._time_predicates.get(stream)
            if predicate is None:
                time = instant(time)
                if not LIKELY_FROM <= time < LIKELY_TO:
                    self._doubt(stream, time)
            elif time is not None:
                raise UsageError(
                    f"the time of <{stream}> is the property <{predicate}> of each element: push without time="
                )
            try:
                texts = triple_texts(triples)
                name = None if graph is None else graph_text(graph)
            except DataError as error:
                self._malformed(DataError(f"an element pushed to <{stream}>: {error.message}"))
                return
            if name is not None and stream not in self._graphs_asked:
                name = None
            self._pushed.append(PushedElement(stream, number, time, predicate, texts, name))
            if self._batch is None or len(self._pushed) >= self._batch:
                self._flush()

    @_in_turn
    def push_batch(self, stream: str, table: ArrowStream, *, document: str | None = None, sort: bool = False) -> None:
        """Many elements: an Arrow table (or reader) with columns time, graph (optional), subject, predicate, object.

        Consecutive rows of one time and graph are an element. The table is in order of time, as far as `lateness` does not cover
        it: otherwise DataError names the first row that is not, and nothing is taken from the table. `sort=True` sorts the rows;
        those of one time stay as they stand. A reader, which has no length, is consumed as it goes: what ended before a row out of
        order has been processed; where it is to be sorted, it is read to its end first. What is older than elements pushed before
        is late, and dropped and counted. After any other DataError the elements that ended before the wrong row have been
        processed; the one that was open there is not, as the row may have been part of it. What a subscriber raises
        comes out between two parts of the table, and the rest of it is left out: `statistics` says how far it went.
        Blank nodes belong to their elements, or to the `document` of this name: then a label is one node in all calls with it.
        """
        self._check_open("push_batch")
        scope = None if document is None else scope_of_document(document)
        if scope is not None and self._blank_nodes == ELEMENT:
            raise UsageError("blank nodes belong to their elements alone, as the engine was told: leave document= out")
        if not hasattr(table, "__arrow_c_stream__"):
            raise UsageError(
                f"push_batch takes an Arrow table or reader, not {type(table).__name__}; push takes triples"
            )
        check_flag(sort, "sort")
        self._flush()
        with self._script.working_on(Table(str(stream), table)):
            for batch in self._table_in_order(str(stream), table, scope, sort=sort):
                self._process_part(batch)
                self._flush()

    def _table_in_order(
        self, stream: str, table: ArrowStream, scope: int | None, *, sort: bool
    ) -> Iterator[ElementBatch]:
        from cqels_py.formats import table_order as order
        from cqels_py.formats.tabular import whole as all_rows

        self._number(stream)
        predicate = self._time_predicates.get(stream)
        once = order.is_read_once(table) and not sort
        check = order.OrderCheck(self._lateness, "row", order.BEFORE_TAKEN if once else order.NOTHING_TAKEN)
        if predicate is not None:
            batches = self._open_table(stream, table, predicate, self._malformed, scope)
            return order.elements_in_order(batches, self._lateness, self.dictionary, once=once, sort=sort)
        if once:
            return self._open_table(stream, table, None, self._malformed, scope, look=check.look)
        rows = all_rows(table)
        times, numbers = order.times_of_rows(rows), None
        if times is not None:
            rows = order.with_times(rows, times)
        if times is not None and not sort:
            check.look(times)
        elif times is not None and (places := order.order_of(times)) is not None:
            rows, numbers = rows.take(places), places + 1
        return self._open_table(stream, rows, None, self._malformed, scope, numbers=numbers)

    @_in_turn
    def flush(self) -> None:
        """Process what was pushed so far."""
        self._flush()

    @undisturbed
    def _flush(self) -> None:
        while self._pushed and not self._busy:
            self._script.input = self._pushed
            batch, wrong = elements_of_pushed(self._pushed, self.dictionary, self._elements + 1)
            # Not before: what interrupts a program while terms are looked up loses no elements.
            self._elements += len(self._pushed)
            self._pushed = []
            try:
                self._process(batch)
            except BaseException as error:
                self._malformed(*wrong, beside=error)
                raise
            self._script.input = None
            if wrong:
                self._malformed(*wrong)

    @_in_turn
    def advance(self, time: int) -> None:
        """Promise that no element before `time` (microseconds) will come: what expires before it does so now."""
        self._check_open("advance")
        time = instant(time)
        self._flush()
        self._advance(time)
        self._flush()

    @undisturbed
    def _advance(self, time: int) -> None:
        with self._work:
            self._runner.advance(time)

    @_in_turn
    def finish(self) -> None:
        """The streams have ended; nothing can be pushed any more."""
        if self._closed is not None:
            return
        self._check_idle("finish")
        self._flush()
        self._end()

    @undisturbed
    def _end(self) -> None:
        self._closed = UsageError("the engine's streams have ended: make a new engine")
        with self._work:
            self._runner.finish()
        done(self)
        if isinstance(self._report, Reports):
            self._report.close()

    @_in_turn
    def run(
        self,
        sources: Mapping[str, StreamSource],
        *,
        time_predicates: Mapping[str, str] | None = None,
        progress: Callable[[Statistics], None] | None = None,
        threads: int | None = None,
    ) -> Statistics:
        """Read the sources, one for each stream that a query reads, to their ends, merged by time; then finish.

        A source is a file, "-" for standard input, an Arrow table or reader, or batches of elements. `threads` 2: files are read
        ahead by a second thread, with the same results; 1: all is done by this one; without it, 2 where that pays.
        `time_predicates`: of streams whose elements carry their times, where no query says so (`@ :predicate`). `progress` is
        told of the statistics after each batch. What it or a subscriber raises ends the reading; the engine can be used on.
        """
        self._check_open("run")
        sources = by_iri(sources, "what run reads", "source")
        given = {**self._time_predicates, **_predicates_given(time_predicates, sources)}
        if progress is not None:
            check_callable(progress, "progress", "the statistics")
        self._flush()
        second = self._reader_ahead(list(sources.values()), threads)
        report = self._malformed if second is None else second.report
        readers = [self._open(iri, source, given.get(iri), report) for iri, source in sources.items()]
        if missing := [iri for iri in self._streams if iri not in sources and iri not in self._fed]:
            raise UsageError(f"no source was given for <{'>, <'.join(missing)}>, which a query reads")
        merged, batch = TimeMerge(readers), NOTHING

        def live() -> Iterator[Ids]:
            yield from batch.live_ids()
            yield from merged.live_ids()
            if second is not None:
                yield from second.live_ids()

        reading = nullcontext() if second is None else closing(second)
        with self._script.working_on(Sources(sources, given)), self.dictionary.holding(live), reading:
            for batch in merged if second is None else second.read(merged):
                for start in range(0, len(batch), self._batch or len(batch)):
                    end = min(len(batch), start + (self._batch or len(batch)))
                    self._process_part(slice_elements(batch, start, end))
                    self._flush()
                    if progress is not None:
                        progress(self.statistics)
        self.finish()
        return self.statistics

    def _reader_ahead(self, sources: Sequence[StreamSource], threads: int | None) -> ReadAhead | None:
        if threads not in (None, 1, 2):
            raise UsageError(f"threads is 1 or 2, not {threads!r}")
        if threads == 2 and regular_files(sources) is None:
            raise UsageError("a second thread reads files ahead; a source here is none: leave threads out, or say 1")
        if threads == 1 or (threads is None and not pays(sources)):
            return None
        return ReadAhead(self.dictionary, self._malformed)

    def _open(
        self, iri: str, source: StreamSource, time_predicate: str | None, report: Callable[[DataError], None]
    ) -> Iterator[ElementBatch]:
        number = self._number(iri)
        if isinstance(source, str | Path):
            return open_source(
                str(source), dictionary=self.dictionary, stream=number, time_predicate=time_predicate,
                on_error=self._on_error, report=report, blank_nodes=self._blank_nodes, graphs=iri in self._graphs_asked,
                contexts=self._contexts, doubt=partial(self._doubt, iri),
            )  # fmt: skip
        if hasattr(source, "__arrow_c_stream__"):
            scope = None if self._blank_nodes == ELEMENT else self.dictionary.next_document() << ELEMENT_BITS
            return self._open_table(iri, source, time_predicate, report, scope)
        if isinstance(source, Iterable):
            return _element_batches(source, number)
        raise UsageError(f"{source!r} is no source of <{iri}>: {_SOURCE_IS}")

    def _open_table(
        self,
        iri: str,
        table: ArrowStream,
        time_predicate: str | None,
        report: Callable[[DataError], None],
        scope: int | None,
        **how: Any,
    ) -> Iterator[ElementBatch]:
        """`scope`: that of all blank nodes, None: each element has its own."""
        from cqels_py.formats.tabular import elements_from_arrow

        return elements_from_arrow(
            table,
            self.dictionary,
            self._number(iri),
            time_predicate,
            report,
            scope,
            per_element=scope is None,
            graphs=iri in self._graphs_asked,
            doubt=partial(self._doubt, iri),
            **how,
        )

    def _number(self, stream: str) -> int:
        number = self._streams.get(stream)
        if number is None:
            read = ", ".join(f"<{iri}>" for iri in self._streams) or "none"
            message = f"no registered query reads the stream <{stream}>; streams read: {read}"
            raise UsageError(message + instead(stream, self._streams))
        return number

    # --- processing -----------------------------------------------------------------------------------------------

    @undisturbed
    def _process_part(self, batch: ElementBatch) -> None:
        self._process(batch)

    def _process(self, batch: ElementBatch) -> None:
        counters = self._counters
        late = counters.late
        try:
            with self._work:
                self._runner.push(batch)
        finally:
            if self._questions:
                self._ask()
            if dropped := counters.late - late:
                elements = "1 element was" if dropped == 1 else f"{dropped} elements were"
                self._report(
                    DataError(
                        f"{elements} dropped, more than {self._lateness} microseconds later than the newest before: "
                        "a greater lateness waits longer"
                    )
                )

    def _failed(self, error: BaseException) -> None:
        """A failure in the middle of work leaves no state to go on from."""
        self._closed = RunError(f"the engine has failed ({type(error).__name__}: {error}): make a new one")
        if isinstance(error, MemoryError):
            raise self._closed from error

    def _raise_failures(self) -> None:
        """Raise what subscribers have raised, and forget queries that had no memory left."""
        failures: list[BaseException] = []
        for query, running in list(self._queries.items()):
            if query.failures:
                failures += query.take_failures()
            if running.failure is not None:
                failures.append(running.failure)
                self._forget(query)
        if failures:
            # What ends a program, as KeyboardInterrupt and SystemExit do, goes before what fails.
            raised, *others = sorted(failures, key=lambda failure: isinstance(failure, Exception))
            for other in others:
                raised.add_note(f"another subscriber raised {other!r}")
            raise raised

    def _subscriber_failed(self, error: RunError) -> None:
        self._counters.subscriber_errors += 1
        self._report(error)

    def _doubt(self, stream: str, time: int) -> None:
        """Ask once a stream whether an integer time was meant in another unit."""
        if stream not in self._doubted and (question := doubt(time)) is not None:
            self._doubted.add(stream)
            self._questions.append(DataError(f"<{stream}>: {question}"))

    def _ask(self) -> None:
        """Not where doubts arise: that may be in a thread that reads ahead."""
        while self._questions:
            self._report(self._questions.pop(0))

    def _malformed(self, *errors: DataError, beside: BaseException | None = None) -> None:
        """Raise, or count and report. `beside`: an error that is about to be raised, which is then told of these."""
        if not errors:
            return
        if self._on_error == "skip":
            self._counters.malformed += len(errors)
            for error in errors:
                self._report(error)
            return
        raised, *others = errors if beside is None else (beside, *errors)
        for other in others:
            raised.add_note(f"also: {other}")
        if beside is None:
            raise raised

    def _check_open(self, method: str | None = None) -> None:
        if self._closed is not None:
            raise type(self._closed)(str(self._closed))
        if method is not None:
            self._check_idle(method)

    def _check_idle(self, method: str) -> None:
        if self._busy:
            raise UsageError(f"{method}() cannot be called by a subscriber, in the middle of results; push() can")


class _Work:
    """Work of the runner, one piece at a time; exceptions of subscribers are raised when it is done."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._engine._busy = True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._engine._busy = False
        if error is not None:
            self._engine._failed(error)
        else:
            self._engine._raise_failures()


@cache
def _announce() -> None:
    """Said once: somebody waits for the first results."""
    _LOG.warning(_COMPILING)


_SOURCE_IS = 'a file, "-", an Arrow table or reader, or batches of elements'


def _predicates_given(given: Mapping[str, str] | None, sources: Mapping[str, StreamSource]) -> dict[str, str]:
    """Of streams that have a source."""
    predicates = by_iri({} if given is None else given, "time_predicates", "IRI of a property")
    for iri, predicate in predicates.items():
        if iri not in sources:
            raise UsageError(f"time_predicates has the stream <{iri}>, of which there is no source")
        if not isinstance(predicate, str):
            raise UsageError(f"the time predicate of <{iri}> is an IRI as a text, not {predicate!r}")
    return predicates


def _element_batches(batches: Iterable[object], stream: int) -> Iterator[ElementBatch]:
    """As elements of this stream, whatever number they came with."""
    for batch in batches:
        if not isinstance(batch, ElementBatch):
            raise UsageError(f"a source is {_SOURCE_IS}; among its batches is {batch!r}")
        yield with_streams(batch, np.full(len(batch), stream, np.int32))


__all__ = ["CqelsError", "Engine", "Query", "Result", "Statistics"]
