"""The service without HTTP: streams and queries by name, and their kept results. Its methods block, for any thread.

requests ─ Service ┬ engine (checkpoint) ─ ResultSink ─ ResultStore ─ subscribers
                   └ Folder (definitions)
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from cqels_py.algebra.nodes import Service as ServiceClause
from cqels_py.algebra.validate import walk
from cqels_py.dataflow.kernel_calls import calls_of
from cqels_py.engine.compile import algebra_of, compile_query
from cqels_py.engine.documents import Document, Taken
from cqels_py.engine.durable.companion import Companion
from cqels_py.engine.durable.logged import BATCH
from cqels_py.engine.engine import Engine
from cqels_py.engine.feeding import Feed
from cqels_py.engine.options import WALL
from cqels_py.engine.query import Query
from cqels_py.engine.unread import IGNORE
from cqels_py.errors import CqelsError, RunError, UsageError
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.mappings.context import MessageContext, RowMap, read_map
from cqels_py.mappings.mapping import Mapping as RowMapping
from cqels_py.service.allowed import Allowed
from cqels_py.service.definitions import Keep, KeptQuery, QueryDefinition, StreamDefinition, inline_static
from cqels_py.service.failures import Conflict, NotFound, TooLarge, TooMany
from cqels_py.service.folder import QUERIES, STREAMS, Folder
from cqels_py.service.freed_memory import FreedMemory
from cqels_py.service.limits import Limits
from cqels_py.service.names import checked_name
from cqels_py.service.query_sinks import OpenedSinks, QuerySinks, ServedSink, in_common
from cqels_py.service.result_lines import ResultLines
from cqels_py.service.result_sink import ResultSink
from cqels_py.service.result_store import ResultStore
from cqels_py.service.sources import CLOSED_WITHIN, SourceThread
from cqels_py.service.start import Start, key_of
from cqels_py.sinks.urls import sink_of
from cqels_py.sources.sparql_protocol import Solution
from cqels_py.state.named_values import NamedValues
from cqels_py.suggestions import unknown

T = TypeVar("T")
_LOG = logging.getLogger("cqels_py")
_MAPPED = ("json", "ndjson", "csv", "tsv", "arrow")
"""Formats that a stream's map reads."""
_AT_ONCE = 0.5
"""Seconds in which the removal of a query is mostly complete; it is waited for so long."""
MOST_BEFORE_SINKS = 1 << 18
"""Results that may wait while the sinks of a query are opened for the first time."""
REJECTS = 100
"""The last elements of a stream that were left out, which can be looked at."""


@dataclass(slots=True)
class ServedStream:
    """A stream. Counts are those of this process."""

    name: str
    definition: StreamDefinition
    map: RowMap | None
    source: SourceThread | None = None
    elements: int = 0
    requests: int = 0
    refused: int = 0
    last: float | None = None

    def figures(self, rejected: dict[str, int]) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.name,
            **self.definition.shown(),
            "elements": self.elements,
            "requests": self.requests,
            "refused": self.refused,
            "rejected": rejected,
            "last": self.last,
        }


@dataclass(frozen=True, slots=True)
class Pushed:
    """A body for a stream."""

    stream: ServedStream
    document: Document

    @classmethod
    def of(cls, stream: ServedStream, body: bytes, format: str, key: str | None) -> Pushed:
        """A body in a format of `sources.documents.FORMATS`."""
        return cls(stream, Document(body, format, stream.map if format in _MAPPED else None, key))


@dataclass(slots=True)
class ServedQuery:
    """A query. `query`: None if it could not be started, for the reason `failure`."""

    name: str
    kept: KeptQuery
    store: ResultStore
    query: Query | None = None
    sink: ResultSink | None = None
    failure: CqelsError | None = None
    subscribers: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    removed: bool = False

    @property
    def state(self) -> str:
        """running, paused or failed."""
        if self.failure is not None:
            return "failed"
        return "paused" if self.kept.paused else "running"


class OneAtATime:
    """A lock for each name. One change of a query may wait for endpoints, sinks and files, and no other query waits with it."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[threading.RLock, int]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Inside, nobody else changes what has this name."""
        with self._lock:
            lock, count = self._locks.get(name) or (threading.RLock(), 0)
            self._locks[name] = lock, count + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                _, count = self._locks[name]
                if count == 1:
                    del self._locks[name]
                else:
                    self._locks[name] = lock, count - 1


class Service:
    """Streams and queries in a folder, or in that of a `start`. UsageError and StorageError for a folder that cannot be used."""

    def __init__(self, path: Path | Start, *, limits: Limits | None = None, allowed: Allowed | None = None) -> None:
        self.limits = limits or Limits()
        self._allowed = allowed or Allowed()
        start = path if isinstance(path, Start) else Start(Folder(path))
        self._folder = start.folder
        self._lock = threading.RLock()
        self.streams: dict[str, ServedStream] = {}
        self.queries: dict[str, ServedQuery] = {}
        self.started = time.time()
        self.messages: list[str] = []
        """The last reports."""
        self._stores: dict[str, ResultStore] = {}
        # Held while definitions are written, and never while a step or a registration is waited for.
        self._writing = threading.Lock()
        # Queries that are removed when a step that goes on has ended.
        self._leaving: dict[str, ServedQuery] = {}
        self._removing = ThreadPoolExecutor(1, "cqels removal")
        # Names of queries that are being registered, which count as the others do.
        self._coming: set[str] = set()
        self._changes = OneAtATime()
        # Sources of streams that have been removed, which may not be closed yet.
        self._stopped: dict[str, SourceThread] = {}
        self.engine = Engine(
            checkpoint=Companion(
                self._folder.engine, {}, self._commit_sinks, sync=self._sync_results, left_out=start.left_out
            ),
            durable=BATCH,
            clock=WALL,
            on_unread=IGNORE,
            max_state=self.limits.state,
            report=self._report,
            reach=self._allowed,
        )
        self.engine.rejects.remember(REJECTS)
        self._freed = FreedMemory()
        self._sinks = QuerySinks(self.engine.dictionary, self.limits.backlog, self._allowed)
        try:
            start.end()
            self._restore(start.without)
        except BaseException:
            self.engine.close()
            raise

    def close(self) -> None:
        """Save the state without an end of the streams: another process goes on."""
        sources = [stream.source for stream in list(self.streams.values()) if stream.source is not None]
        for source in sources:
            source.stop()
        until = time.monotonic() + CLOSED_WITHIN
        for source in sources:
            source.wait(until - time.monotonic())
        self._removing.shutdown()
        with self._lock:
            try:
                if all(query.delivery.settle() for query in self.engine.queries):
                    self.engine.checkpoint()
            except CqelsError as error:
                _LOG.error("the state was not saved, and follows from the log: %s", error)
            self.engine.close()
            for served in self.queries.values():
                if served.sink is not None:
                    served.sink.close()
            self._sinks.close()

    def lacking(self) -> list[str]:
        """The faults that there are; empty if there is none."""
        found = [
            f"query {name}: {each.failure}" for name, each in list(self.queries.items()) if each.failure is not None
        ]
        found += [
            f"query {name}: {served.sink.failure}"
            for name, served in list(self.queries.items())
            if served.sink is not None and served.sink.failure is not None
        ]
        found += [
            f"stream {name}: {stream.source.failure}"
            for name, stream in list(self.streams.items())
            if stream.source is not None and stream.source.failure is not None
        ]
        found += [
            f"query {name}: its results cannot be written"
            for name, store in list(self._stores.items())
            if store.failing
        ]
        try:
            self.engine._steps.check_open()
        except CqelsError as error:
            found.append(str(error))
        return found

    # --- streams ------------------------------------------------------------------------------------------------------

    def put_stream(self, name: str, definition: StreamDefinition) -> bool:
        """Declare a stream; is it new? Conflict if queries read it, and it would be another one."""
        checked_name(name)
        with self._lock:
            known = self.streams.get(name)
            if known is not None:
                definition = definition.with_secrets_of(known.definition)
            if known is not None and known.definition == definition:
                return False
            if known is None and len(self.streams) >= self.limits.streams:
                raise TooMany(f"there are {self.limits.streams} streams already: remove one, or raise --max-streams")
            for other in self.streams.values():
                if other.definition.iri == definition.iri and other.name != name:
                    raise Conflict(f"the stream {other.name!r} has the IRI <{definition.iri}> already")
            if known is not None and known.definition.iri != definition.iri:
                self._check_unread(known)
            running = ServedStream(name, definition, self._map_of(definition))
            feed = self._feed_of(running)
            try:
                definition.declare(self.engine)
            except UsageError as error:
                raise Conflict(error.message) from None
            self._folder.write(STREAMS, name, definition.plain())
            self.engine.flush()
            former = self._stopped.pop(name, None) if known is None else known.source
            if former is not None:
                former.stop()
            running.source = None if feed is None else SourceThread(name, feed, former)
            self.streams[name] = running
        if former is not None:
            former.wait(CLOSED_WITHIN)
        return known is None

    def _feed_of(self, stream: ServedStream) -> Feed | None:
        """The source of a stream, before it is read. Forbidden, UsageError, MissingExtra."""
        source = stream.definition.source
        if source is None:
            return None
        self._allowed.location(source)
        return self.engine.feed(stream.definition.iri, source, map=stream.map, report=self._report)

    def delete_stream(self, name: str) -> None:
        """Remove a stream that no query reads."""
        with self._lock:
            stream = self.stream(name)
            self._check_unread(stream)
            self._folder.remove(STREAMS, name)
            if stream.source is not None:
                stream.source.stop()
                self._stopped[name] = stream.source
            del self.streams[name]
        if stream.source is not None:
            stream.source.wait(CLOSED_WITHIN)

    def stream(self, name: str) -> ServedStream:
        """The stream of this name. NotFound."""
        found = self.streams.get(name)
        if found is None:
            raise NotFound(
                unknown("stream", name, list(self.streams))
                if self.streams
                else f"no stream {name!r} was declared; PUT /streams/{name} with its iri declares it, or cqels send --iri IRI"
            )
        return found

    def stream_figures(self, name: str) -> dict[str, Any]:
        """The stream as JSON."""
        stream = self.stream(name)
        rejected = self.engine.statistics.rejected
        own = {reason: count for (iri, reason), count in rejected.items() if iri == stream.definition.iri}
        found = {**stream.figures(own), "queries": self._readers(stream)}
        if stream.source is not None:
            source = stream.source
            found["read"] = {"elements": source.elements, "failure": source.failure, "paused": source.paused}
        return found

    def stream_rejects(self, name: str) -> list[dict[str, Any]]:
        """The last elements of a stream that were left out since the process began."""
        return self.engine.rejects.last(self.stream(name).definition.iri)

    def push(self, given: Sequence[Pushed]) -> list[Taken | CqelsError]:
        """Take in bodies, each as a whole or not at all; they are durable when this returns. An error stands in its body's place."""
        for store in list(self._stores.values()):
            if store.failing:
                # Results that wait come first; StorageError if the disk is still full.
                store.flush()
        found = self.engine.push_documents([(each.stream.definition.iri, each.document) for each in given])
        for each, taken in zip(given, found, strict=True):
            stream = each.stream
            if isinstance(taken, CqelsError):
                stream.refused += 1
                continue
            stream.requests += 1
            if not taken.repeated:
                stream.elements += taken.elements
                stream.last = time.time()
        return found

    def _readers(self, stream: ServedStream) -> list[str]:
        """The names of the queries that read a stream. Queries may come and go meanwhile."""
        iri = stream.definition.iri
        return [each.name for each in list(self.queries.values()) if each.query and iri in each.query.streams]

    def _check_unread(self, stream: ServedStream) -> None:
        if readers := self._readers(stream):
            raise Conflict(f"the stream {stream.name!r} is read by the queries {', '.join(readers)}: remove them first")

    def _map_of(self, definition: StreamDefinition) -> RowMap | None:
        if definition.map is not None:
            if "{" in definition.map:
                return RowMapping.of(definition.map, "<map>")
            return read_map(self._allowed.path(definition.map))
        if isinstance(definition.context, str):
            return MessageContext.read(self._allowed.path(definition.context))
        if definition.context is not None:
            return MessageContext.inline(definition.context)
        return None

    # --- queries ------------------------------------------------------------------------------------------------------

    def put_query(
        self, name: str, definition: QueryDefinition, backfill: str | None = None
    ) -> tuple[bool, ServedQuery]:
        """Register a query, or replace one by another text; is it new? It runs when this returns.

        `backfill` "log": it sees the elements of before that the log still has; otherwise it begins empty.
        """
        checked_name(name)
        with self._changes.of(name):
            known = self.queries.get(name)
            if known is not None:
                definition = definition.with_secrets_of(known.kept.definition)
            self.check(definition)
            static = self._static_of(definition)
            if known is None:
                return True, self._add(name, definition, static, backfill)
            if replace(known.kept.definition, keep=definition.keep) == definition and known.failure is None:
                self._keep(known, definition)
                return False, known
            self._replace(known, definition, static, backfill)
            return False, known

    def engine_apart(self, **options: Any) -> Engine:
        """An engine beside that of the service, which reaches no more than requests may."""
        return Engine(reach=self._allowed, **options)

    def register_in(self, engine: Engine, definition: QueryDefinition) -> Query:
        """Register a query in another engine, without its sinks. Errors as of `put_query`."""
        self.check(definition)
        return engine.register(
            definition.text,
            static=self._static_of(definition),
            changelog=definition.changelog,
            entailment=definition.entailment,
        )

    def _keep(self, running: ServedQuery, definition: QueryDefinition) -> None:
        """Keep other results of the same query."""
        if running.kept.definition != definition:
            running.kept.definition = definition
            running.store.keep = self._kept_of(definition)
            if running.query is not None:
                # Other limits may end its files.
                running.query.delivery.leave()
            self._write_definition(running)

    def _kept_of(self, definition: QueryDefinition) -> Keep:
        keep = definition.keep or Keep()
        return replace(keep, results=self.limits.results if keep.results is None else keep.results)

    def _add(self, name: str, definition: QueryDefinition, static: list[Any], backfill: str | None) -> ServedQuery:
        with self._lock:
            if len(self.queries) + len(self._coming) >= self.limits.queries:
                raise TooMany(f"there are {self.limits.queries} queries already: remove one, or raise --max-queries")
            self._coming.add(name)
        try:
            if name in self._leaving:
                self._remove(self._leaving[name])
            kept = KeptQuery(definition, created=time.time(), backfill=backfill)
            self._folder.remove_results(name)
            running = ServedQuery(name, kept, self._store(name, definition))
            with self._undone_after_errors(running):
                query = running.query = self._registered(running, definition, kept.generation, static, backfill)
                with ExitStack() as undone:
                    others = self._sinks.opened(query, definition.sinks, undone)
                    error = self._sinks.wait(others, enough=lambda: query.waiting > MOST_BEFORE_SINKS)
                    if error is not None:
                        raise error
                    undone.pop_all()
                self._attach(running, OpenedSinks(others))
                self.engine.flush()
                self._write_definition(running)
            self.queries[name] = running
            return running
        finally:
            self._coming.discard(name)

    @contextmanager
    def _undone_after_errors(self, running: ServedQuery) -> Iterator[None]:
        try:
            yield
        except BaseException:
            try:
                if running.query is not None:
                    self.engine.unregister(running.query)
            finally:
                if running.sink is not None:
                    running.sink.close()
                self._forget_store(running.name)
            raise

    def _replace(
        self, running: ServedQuery, definition: QueryDefinition, static: list[Any], backfill: str | None
    ) -> None:
        """Another text at an instant: each element is seen by one of both. Numbers go on. After an error the present query does.

        With `backfill` the new one has seen those of before too: its results over them follow the last one of the present query.
        """
        kept = running.kept
        # Its kernels may have to be compiled, for which elements need not wait.
        compiled = compile_query(definition.text, changelog=definition.changelog, ask=asks_nobody)
        prepare([*calls_of(compiled.plan, rewritten=definition.entailment is not None)])
        kept.next = definition
        self._write_definition(running)
        before: Query | None = None
        try:
            if backfill is not None:
                # While elements of before come, the present query goes on.
                before = self._registered(running, definition, kept.generation + 1, static, backfill)
            with self.engine.exclusively():
                query = before or self._registered(running, definition, kept.generation + 1, static)
                try:
                    others = self._take_place(running, query, definition.sinks)
                except BaseException:
                    self.engine.unregister(query)
                    raise
                if running.sink is not None:
                    running.sink.close()
                running.query, running.failure = query, None
                self._committed(kept, running.store.last)
                kept.backfill, running.store.keep = backfill, self._kept_of(definition)
                self._attach(running, OpenedSinks(others))
            self.engine.flush()
        finally:
            kept.next = None
            self._write_definition(running)
        # The answer tells whether they have been opened.
        self._sinks.wait(others)

    def _committed(self, kept: KeptQuery, last: int) -> None:
        """The next definition is the definition."""
        assert kept.next is not None
        kept.definition, kept.next, kept.base = kept.next, None, last
        kept.generation += 1

    def _take_place(self, running: ServedQuery, query: Query, urls: Sequence[str]) -> list[ServedSink]:
        """Open the sinks of a query that takes the place of the present one, and remove that one, whose results are all in the store
        and its own sinks then. After an error it has its sinks as before."""
        present = running.query if running.query in self.engine.queries else None
        if present is None and running.sink is not None:
            # It gets nothing more.
            running.sink.close()
        # One at a time may write to a place.
        shared = [] if present is None else in_common(urls, running.kept.definition.sinks)
        with ExitStack() as undone:
            others = self._sinks.opened(query, [url for url in urls if url not in shared], undone)
            if running.query is not None:
                running.query.delivery.hand_out(wait=True)
                running.store.flush()
                running.store.sync()
            if present is not None:
                if shared:
                    undone.callback(self._reopen_sinks, running, present)
                    present.delivery.commit()
                    assert running.sink is not None
                    running.sink.close()
                    others += self._sinks.opened(query, shared, undone)
                self.engine.unregister(present)
            undone.pop_all()
        return others

    def _reopen_sinks(self, running: ServedQuery, query: Query) -> None:
        """The sinks of a query, which have all its results, have been closed, and get the results that follow."""
        continued = query.continued
        if continued.written is not None:
            continued = replace(continued, written=query.delivery.count)
        assert running.sink is not None
        query.delivery.leave()
        running.sink.go_on(self._sinks.opened_each(query, running.kept.definition.sinks, continued))

    def delete_query(self, name: str) -> None:
        """Remove a query, its state and its results. A step that evaluates it ends for it.

        It does not wait for others: what it has left is removed later, if the step goes on for them.
        """
        with self._writing:
            running = self.query(name)
            self._folder.remove(QUERIES, name)
            running.removed = True
            self._leaving[name] = self.queries.pop(name)
        running.store.wake()
        if running.query is not None:
            self.engine.stop(running.query)
        removal = self._removing.submit(self._remove, running)
        if wait([removal], _AT_ONCE).done:
            removal.result()

    def _remove(self, running: ServedQuery) -> None:
        """Remove what a query has left, unless that has been done."""
        name = running.name
        with self._changes.of(name):
            if self._leaving.get(name) is not running:
                return
            if running.query is not None:
                # A step may have removed it.
                with suppress(UsageError):
                    self.engine.unregister(running.query)
                self.engine.flush()
            if running.sink is not None:
                running.sink.close()
            self._forget_store(name)
            self._folder.remove_results(name)
            self._freed.query_removed()
            del self._leaving[name]

    def _write_definition(self, running: ServedQuery) -> None:
        """Unless the query has been removed meanwhile."""
        with self._writing:
            if not running.removed:
                self._folder.write(QUERIES, running.name, running.kept.plain())

    def pause(self, name: str, *, paused: bool) -> None:
        """Deliver no results of a query, or deliver them again. Its state goes on, and results are kept."""
        running = self.query(name)
        if running.kept.paused != paused:
            running.kept.paused = paused
            self._write_definition(running)
        running.store.wake()

    def query(self, name: str) -> ServedQuery:
        """The query of this name. NotFound."""
        found = self.queries.get(name)
        if found is None:
            raise NotFound(
                unknown("query", name, list(self.queries)) if self.queries else f"no query {name!r} was registered"
            )
        return found

    def registered(self, name: str) -> Query:
        """The query of this name, as the engine has it. Conflict if it has failed."""
        running = self.query(name)
        if running.query is None or running.failure is not None:
            raise Conflict(f"the query {name!r} does not run: {running.failure}")
        return running.query

    def of_registered(self, name: str, call: Callable[[Query], T]) -> T:
        """Call something with the query of this name. NotFound if it is removed meanwhile; Conflict if it has failed."""
        query = self.registered(name)
        try:
            return call(query)
        except (UsageError, Conflict):
            with self._changes.of(name):
                # Not amid a removal.
                if self.registered(name) is query:
                    raise
            return self.of_registered(name, call)

    def answer(self, name: str, make: Callable[[Query, int], tuple[bytes, str]]) -> tuple[bytes, str, int]:
        """The answer that stands, as `make` writes it, its media type, and the number of the last result that led to it."""

        def of(query: Query) -> tuple[bytes, str, int]:
            with self.engine.exclusively():
                body, kind = make(query, self.limits.answer)
                return body, kind, self.query(name).kept.base + query.delivery.count

        return self.of_registered(name, of)

    def query_figures(self, running: ServedQuery) -> dict[str, Any]:
        """The query as JSON."""
        query, kept = running.query, running.kept
        found: dict[str, Any] = {
            "name": running.name,
            "state": running.state,
            **kept.definition.shown(),
            "generation": kept.generation,
            "backfill": kept.backfill,
            "created": kept.created,
            "results": running.store.last,
            "first": running.store.first,
            "subscribers": running.subscribers,
        }
        if running.failure is not None:
            found["failure"] = str(running.failure)
        elif running.sink is not None and running.sink.failure is not None:
            found["failure"] = running.sink.failure
        if query is not None:
            found |= {
                "form": query.form,
                "variables": list(query.variables),
                "streams": list(query.streams),
                "memory": str(query.memory),
                "warnings": list(query.warnings),
                "state_bytes": query.nbytes,
            }
        return found

    def check(self, definition: QueryDefinition) -> None:
        """TooLarge; Forbidden for a query that would open files or connections, before any is opened; QuerySyntaxError."""
        if len(definition.text) > self.limits.query:
            raise TooLarge(f"the text of a query has at most {self.limits.query} characters (--max-query)")
        if definition.keep is not None and (definition.keep.results or 0) > self.limits.results:
            raise TooLarge(f"at most {self.limits.results} results of a query are kept (--keep)")
        asked = algebra_of(definition.text)
        if definition.dialect not in (None, asked.dialect.value):
            raise UsageError(
                f"the text is taken for {asked.dialect.value}, by its window clauses, not {definition.dialect}"
            )
        for pattern, _ in walk(asked.pattern):
            if isinstance(pattern, ServiceClause):
                self._allowed.url(str(pattern.endpoint))
        for iri in (*asked.static_from, *asked.static_named):
            self._allowed.location(str(iri))
        for sink in definition.sinks:
            self._allowed.location(sink)
            sink_of(sink)

    def _static_of(self, definition: QueryDefinition) -> list[Any]:
        return [
            self._allowed.location(each) if isinstance(each, str) else inline_static(each) for each in definition.static
        ]

    def _registered(
        self,
        running: ServedQuery,
        definition: QueryDefinition,
        generation: int,
        static: list[Any],
        backfill: str | None = None,
    ) -> Query:
        return self.engine.register(
            definition.text,
            static=static,
            changelog=definition.changelog,
            entailment=definition.entailment,
            clock=definition.clock,
            name=key_of(running.name, generation),
            backfill=backfill,
        )

    def _attach(self, running: ServedQuery, others: OpenedSinks) -> None:
        """The query's results go to its store, and to other sinks."""
        query = running.query
        assert query is not None
        lines = ResultLines(self.engine.dictionary, query.form, query.variables, query.template)
        running.sink = sink = ResultSink(running.store, lines, running.kept.base, others)
        query.write_to(sink)
        sink.flush()

    def _store(self, name: str, definition: QueryDefinition) -> ResultStore:
        store = ResultStore(self._folder.results / name, self._kept_of(definition))
        self._stores[name] = store
        return store

    def _forget_store(self, name: str) -> None:
        """Nothing is written to it any more: its folder may be removed, or be that of another one."""
        if (store := self._stores.pop(name, None)) is not None:
            store.end()

    # --- after a restart ----------------------------------------------------------------------------------------------

    def _restore(self, without: Collection[str]) -> None:
        """Streams and queries as the folder has them; changes that a process had begun before it ended are completed, or undone."""
        feeds: dict[str, Feed | None] = {}
        with self.engine.exclusively():
            for name, plain in self._folder.all(STREAMS):
                definition = StreamDefinition(**plain)
                stream = self.streams[name] = ServedStream(name, definition, self._map_of(definition))
                definition.declare(self.engine)
                feeds[name] = self._feed_of(stream)
            in_engine = {query.name: query for query in self.engine.queries}
            for name, plain in self._folder.all(QUERIES):
                self._restore_query(name, KeptQuery.from_plain(plain), in_engine, left_out=name in without)
            for rest in in_engine.values():
                self.engine.unregister(rest)
        self.engine.flush()
        for name, feed in feeds.items():
            if feed is not None:
                self.streams[name].source = SourceThread(name, feed)

    def _restore_query(self, name: str, kept: KeptQuery, in_engine: dict[str | None, Query], *, left_out: bool) -> None:
        running = ServedQuery(name, kept, self._store(name, kept.definition))
        self.queries[name] = running
        if left_out:
            self._leave_out(running)
            return
        if kept.next is not None:
            if key_of(name, kept.generation) not in in_engine and key_of(name, kept.generation + 1) in in_engine:
                self._committed(kept, running.store.last)
            kept.next = None
            self._folder.write(QUERIES, name, kept.plain())
        try:
            static = self._static_of(kept.definition)
            running.query = in_engine.pop(key_of(name, kept.generation), None)
            if running.query is None:
                running.query = self._registered(running, kept.definition, kept.generation, static)
            query = running.query
            self._attach(running, self._sinks.opened_each(query, kept.definition.sinks, query.continued))
        except CqelsError as error:
            _LOG.error("the query %s does not run: %s", name, error)
            running.failure = error

    def _leave_out(self, running: ServedQuery) -> None:
        """A query without its state: it begins anew at the next start, or when it is put again. Numbers of results go on."""
        kept = running.kept
        kept.base, kept.generation, kept.next = running.store.last, kept.generation + 2, None
        self._write_definition(running)
        running.failure = RunError(
            f"the query {running.name} was left out (--without): its state is gone, and it begins anew when it is put again, or at "
            "the next start"
        )

    def _commit_sinks(self) -> NamedValues:
        """Between two steps, before the state is copied for a snapshot."""
        for served in list(self.queries.values()):
            if served.query is not None:
                served.query.delivery.commit()
        return {"json": "{}"}

    def _sync_results(self) -> None:
        """Before a snapshot is saved: results that the engine will not make again are durable. Elements need not wait for it."""
        for store, last in [(store, store.last) for store in list(self._stores.values())]:
            store.sync(last)

    def _report(self, error: CqelsError) -> None:
        _LOG.warning("%s", error)
        self.messages = [*self.messages[-99:], str(error)]
        if isinstance(error, RunError):
            self._look_for_failed(error)

    def _look_for_failed(self, error: RunError) -> None:
        """Queries that the engine has stopped."""
        for running in list(self.queries.values()):
            if running.query is not None and running.failure is None and running.query not in self.engine.queries:
                running.failure = error
                running.store.wake()


def asks_nobody(endpoint: str, query: str, *, timeout: float) -> Sequence[Solution]:
    """No endpoint of SERVICE answers: for plans that are not run."""
    return []
