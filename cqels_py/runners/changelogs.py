"""Queries that read the answers of other queries of the same runner, with retractions, by their changelogs.

A reader sees the changes of an instant at its end, when they are complete. So results do not depend on how elements are batched,
nor on which of the queries' streams they arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.operators.r2s.changelog_output import ChangelogOutput
from cqels_py.runners.running import RunningQuery
from cqels_py.runners.stream_views import ElementTicks, StreamView


@dataclass(frozen=True, slots=True)
class ChangelogLink:
    """`changelog`: the output of the query `source`; `readers` have it as an input under this `name`."""

    source: RunningQuery
    changelog: ChangelogOutput
    readers: Sequence[RunningQuery]
    name: str = ""


@dataclass(slots=True)
class ChangelogFeed:
    """The links from one query. `watched`: the streams of all linked queries, which share one event time."""

    watched: frozenset[int]
    links: list[ChangelogLink] = field(default_factory=list)
    streams: tuple[int, ...] = ()

    def take(self, results: ResultBatch, view: StreamView, element_tick: ElementTicks) -> None:
        """Readers read changelogs, not results."""

    def merged_into(self, elements: ElementBatch) -> ElementBatch:
        """The elements as they are: the step's changes go to the readers."""
        for link in self.links:
            changes = link.changelog.fetch()
            for reader in link.readers:
                reader.dataflow.queue(changes, link.name)
        return elements


def link_changelogs(links: Sequence[ChangelogLink]) -> None:
    """Connect queries before the first step; a runner is to have each behind those that it reads."""
    queries = {query for link in links for query in (link.source, *link.readers)}
    watched = frozenset(stream for query in queries for stream in query.streams)
    feeds = {query: ChangelogFeed(watched) for query in queries}
    for link in links:
        feeds[link.source].links.append(link)
    for query, feed in feeds.items():
        assert query.feed is None, "a query that feeds a stream has no readers of its changelog"
        query.feed = feed
