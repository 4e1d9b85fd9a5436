"""The queries of an engine, and the streams that they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cqels_py.dictionary import Dictionary
from cqels_py.engine.query import Query
from cqels_py.engine.stream_chaining import StreamChaining
from cqels_py.errors import UsageError
from cqels_py.formats.construction import Construction
from cqels_py.plan.nodes import Plan
from cqels_py.runners.chaining import ConstructedStream
from cqels_py.runners.running import RunningQuery
from cqels_py.validation import instead


@dataclass(frozen=True, slots=True)
class StreamsRead:
    """The streams that registered queries read: `numbers` by IRI, and the predicates of those whose elements carry their times.

    `graphs_asked`: streams of whose elements a query asks the graphs. `constructed`: streams that queries construct.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    time_predicates: dict[str, str] = field(default_factory=dict)
    graphs_asked: frozenset[str] = frozenset()
    constructed: frozenset[str] = frozenset()

    def number(self, stream: str) -> int:
        """The number of a stream. UsageError for one that no query reads."""
        number = self.numbers.get(stream)
        if number is None:
            read = ", ".join(f"<{iri}>" for iri in self.numbers) or "none"
            message = f"no registered query reads the stream <{stream}>; streams read: {read}"
            raise UsageError(message + instead(stream, self.numbers))
        return number

    def check_time_predicates(self, plan: Plan) -> None:
        """UsageError for a query that orders a stream by another property than those that are registered: a stream has one order."""
        for stream, predicate in zip(plan.streams, plan.time_predicates, strict=True):
            known = self.time_predicates.get(stream, predicate)
            if predicate is not None and known != predicate:
                raise UsageError(
                    f"the stream <{stream}> is ordered by <{known}> for another query, and by <{predicate}> for "
                    "this one: use an engine for each"
                )


class Registry:
    """The registered queries. `streams` is replaced as a whole whenever they change."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._chaining = StreamChaining()
        # Of all streams that were ever read: a stream keeps its number.
        self._numbers: dict[str, int] = {}
        self.queries: dict[Query, RunningQuery] = {}
        self.streams = StreamsRead()
        self._also: Query | None = None

    def read_also(self, query: Query | None) -> None:
        """The streams of a query that is going to be added are read already; None: there is none."""
        self._also = query
        self._changed()

    def check(self, query: object) -> Query:
        """The query. UsageError for one that is not registered."""
        if not isinstance(query, Query) or query not in self.queries:
            raise UsageError("this query is not registered here, or no longer")
        return query

    def check_chaining(self, query: Query) -> None:
        """UsageError for a new query that could not run beside the registered ones."""
        self._chaining.ordered([*self.queries, query])

    def check_backfill(self, query: Query, sources: Mapping[str, object]) -> None:
        """UsageError for a new query that cannot get elements of before from these sources."""
        read = ", ".join(f"<{iri}>" for iri in query.streams)
        for iri in sources:
            if iri not in query.streams:
                raise UsageError(
                    f"backfill: the query does not read the stream <{iri}>; it reads {read}{instead(iri, query.streams)}"
                )
        fed = [iri for other in self.queries for iri in self._chaining.fed_by(other, query.streams)]
        if fed or self._chaining.fed_by(query, self._numbers):
            raise UsageError(
                "backfill: a query that reads the stream of another query, or constructs one that is read, cannot be given "
                "elements of before; register all of them anew and run the sources"
            )

    def add(self, query: Query, running: RunningQuery) -> None:
        """Add a query."""
        if query.form == "CONSTRUCT":
            running.feed = ConstructedStream(Construction(query.template, self._dictionary))
        self.queries[query] = running
        if self._also is None and not self._chaining.may_feed(self.queries):
            self._read(query)
        else:
            self._changed()

    def remove(self, query: Query) -> None:
        """Remove a query."""
        self.queries.pop(query).detach()
        self._chaining.forget(query)
        self._changed()

    def check_connecting(self, query: Query, stream: str) -> None:
        """UsageError for a query whose results cannot be elements of the stream."""
        self._chaining.check_connecting(query, stream, list(self.queries))

    def connect(self, query: Query, stream: str) -> None:
        """Connect the results of the query to a stream, as its elements."""
        self._chaining.connect(query, stream, list(self.queries))
        running = self.queries[query]
        running.part()
        query.go_on_in(running.dataflow)
        self._changed()

    def may_stop(self, query: Query) -> bool:
        """Do only queries that are asked to stop read the stream that it constructs? Others would miss a part of a step, and after a
        restart not."""
        return all(self.queries[each].is_stopping for each in self.readers_of(query))

    def readers_of(self, query: Query) -> list[Query]:
        """The other queries that read the stream that a query constructs."""
        return [each for each in list(self.queries) if each is not query and self._chaining.fed_by(query, each.streams)]

    def numbers(self, plan: Plan) -> list[int]:
        """The numbers of the streams that a plan reads."""
        return [self._numbers.setdefault(iri, len(self._numbers)) for iri in plan.streams]

    def forget_streams_after(self, count: int) -> None:
        """Only so many streams have numbers: the others were those of a query that was not registered after all, unless others have
        been registered since then."""
        read = max((self._numbers[iri] + 1 for query in self.queries for iri in query.streams), default=0)
        self._numbers = dict(list(self._numbers.items())[: max(count, read)])

    @property
    def all_streams(self) -> list[str]:
        """The IRIs of all streams that were ever read, by number."""
        return list(self._numbers)

    def know_streams(self, streams: list[str]) -> None:
        """Give streams these numbers: before any query is registered, in an engine that goes on with the state of another one."""
        self._numbers = {iri: number for number, iri in enumerate(streams)}

    def stream(self, number: int) -> str:
        """The IRI of the stream with this number."""
        return list(self._numbers)[number]

    def running(self) -> list[RunningQuery]:
        """The queries in topological order: each after those that construct its streams."""
        return [self.queries[query] for query in self._chaining.ordered(list(self.queries))]

    def _read(self, query: Query) -> None:
        """One more query reads its streams, and none feeds any."""
        known, plan = self.streams, query.plan
        predicates = {
            iri: each for iri, each in zip(plan.streams, plan.time_predicates, strict=True) if each is not None
        }
        self.streams = StreamsRead(
            known.numbers | {iri: self._numbers[iri] for iri in plan.streams},
            known.time_predicates | predicates,
            known.graphs_asked | frozenset(plan.graph_streams),
        )

    def _changed(self) -> None:
        queries = list(self.queries)
        reading = queries if self._also is None else [*queries, self._also]
        pairs = [pair for q in reading for pair in zip(q.streams, q.plan.time_predicates, strict=True)]
        numbers = {stream: self._numbers[stream] for stream, _ in pairs}
        constructed = {query: self._chaining.fed_by(query, numbers) for query in queries}
        self.streams = StreamsRead(
            numbers,
            {stream: predicate for stream, predicate in pairs if predicate is not None},
            frozenset(stream for query in reading for stream in query.plan.graph_streams),
            frozenset(stream for streams in constructed.values() for stream in streams),
        )
        for query, running in self.queries.items():
            if isinstance(running.feed, ConstructedStream):
                running.feed.streams = tuple(numbers[stream] for stream in constructed[query])
                running.feed.watched = frozenset(numbers[each] for each in self._chaining.watched(query, queries))
                query.keep_only_last(bool(constructed[query]))
