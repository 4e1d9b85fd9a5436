"""Which of an engine's queries feed which streams, and in which order they then run.

A CONSTRUCT query feeds the stream that has its name, as soon as another query reads that, and those that it is connected to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cqels_py.engine.query import Query
from cqels_py.errors import UsageError
from cqels_py.runners.chaining import topological_order


class StreamChaining:
    """The streams that queries were connected to, beside those of their own names."""

    def __init__(self) -> None:
        self._asked: list[tuple[Query, str]] = []

    def connect(self, query: Query, stream: str, queries: Sequence[Query]) -> None:
        """Feed the stream with the elements that the query, one of these, constructs. UsageError as of `ordered`."""
        self.check_connecting(query, stream, queries)
        self._asked.append((query, stream))

    def check_connecting(self, query: Query, stream: str, queries: Sequence[Query]) -> None:
        """UsageError if `connect` raises it."""
        check_feeding(query.form, query.plan.output, f"the stream <{stream}>")
        before = self._asked
        self._asked = [*before, (query, stream)]
        try:
            self.ordered(queries)
        finally:
            self._asked = before

    def forget(self, query: Query) -> None:
        """The query has been unregistered."""
        self._asked = [pair for pair in self._asked if pair[0] is not query]

    def may_feed(self, queries: Iterable[Query]) -> bool:
        """May any of the queries feed a stream, as it has a name or was connected?"""
        return bool(self._asked) or any(query.plan.name is not None for query in queries)

    def fed_by(self, query: Query, read: Iterable[str]) -> list[str]:
        """The streams that a query feeds, of those that are read."""
        asked = [stream for each, stream in self._asked if each is query]
        own = [query.plan.name] if query.plan.name is not None else []
        return [stream for stream in dict.fromkeys([*asked, *own]) if stream in set(read)]

    def ordered(self, queries: Sequence[Query]) -> list[Query]:
        """The queries, each behind those that feed it. UsageError for one that feeds itself, or cannot feed its readers."""
        if not self.may_feed(queries):
            return list(queries)
        read = {stream for query in queries for stream in query.streams}
        feeds = [set(self.fed_by(query, read)) for query in queries]
        if not any(feeds):
            return list(queries)
        for query, streams in zip(queries, feeds, strict=True):
            for stream in streams:
                check_feeding(query.form, query.plan.output, f"the stream <{stream}>")
        fed: set[str] = set().union(*feeds)
        for query in queries:
            _check_times(query, fed)
        _check_clocks(queries, feeds)
        order = topological_order([set(query.streams) for query in queries], feeds)
        if order is None:
            names = ", ".join(f"<{stream}>" for stream in sorted(fed))
            raise UsageError(
                f"queries cannot read their own results, directly or through other queries: {names} would be fed in a "
                "cycle; give the query, or the stream, another name"
            )
        return [queries[at] for at in order]

    def watched(self, query: Query, queries: Sequence[Query]) -> set[str]:
        """The streams of the readers of a query's results, and of their readers: the query has to keep up with their time."""
        found: set[str] = set()
        waiting = set(self.fed_by(query, {stream for each in queries for stream in each.streams}))
        fed = set(waiting)
        while waiting:
            stream = waiting.pop()
            for reader in (each for each in queries if stream in each.streams):
                found.update(reader.streams)
                more = set(self.fed_by(reader, {s for each in queries for s in each.streams})) - fed
                fed |= more
                waiting |= more
        # And the streams from which the queries that feed these derive their elements: those queries may run later than this one.
        waiting = found | fed
        found = set()
        while waiting:
            stream = waiting.pop()
            found.add(stream)
            for feeder in (each for each in queries if each is not query and self.fed_by(each, {stream})):
                waiting |= set(feeder.streams) - found
        return found


def _check_clocks(queries: Sequence[Query], feeds: Sequence[set[str]]) -> None:
    """UsageError for queries that feed each other, directly or through others, and say different clocks: they have one time."""
    together = [{query} for query in queries]
    for fed in (each for each in feeds if each):
        joined = [each for each in together if any(_touches(query, fed, queries, feeds) for query in each)]
        together = [each for each in together if each not in joined] + [set().union(*joined)]
    for each in together:
        said = {query.clock for query in each if query.clock is not None}
        if len(said) > 1:
            raise UsageError(
                "queries that feed each other have one time, and these say different clocks: give them the same clock=, or leave it "
                "out but for one"
            )


def _touches(query: Query, fed: set[str], queries: Sequence[Query], feeds: Sequence[set[str]]) -> bool:
    return bool(fed & set(query.streams)) or bool(fed & feeds[queries.index(query)])


def _check_times(query: Query, fed: set[str]) -> None:
    for stream, predicate in zip(query.streams, query.plan.time_predicates, strict=True):
        if stream in fed and predicate is not None:
            raise UsageError(
                f"the elements of <{stream}> come from a query and have the times of its ticks: leave out @ <{predicate}>"
            )


def check_feeding(form: str, output: str, stream: str) -> None:
    """UsageError for a query of this form and output whose results cannot be elements of the stream."""
    if form != "CONSTRUCT":
        raise UsageError(f"{stream} would be fed by a {form} query: only CONSTRUCT makes elements of a stream")
    if output not in ("ISTREAM", "RSTREAM"):
        raise UsageError(
            f"{stream} would be fed by the {output} of a query: elements cannot be retracted from a "
            "stream; use ISTREAM (new results) or RSTREAM (all results), and no changelog"
        )
