"""The protocol of runners: they drive queries over elements as they come, and over sources to their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.plan.nodes import Plan
from cqels_py.runners.statistics import Counters, Statistics
from cqels_py.sinks.protocol import Sink
from cqels_py.sources.opened import StreamSource


class Runner(Protocol):
    """Runs queries over the elements of their streams; each query's receiver gets its results. One thread at a time calls it."""

    counters: Counters

    def push(self, batch: ElementBatch) -> None:
        """Take in elements in order of arrival."""
        ...

    def advance(self, time: int) -> None:
        """No element before `time` (microseconds) will come: mappings that expire before it do so now."""
        ...

    def finish(self) -> None:
        """The sources have ended. Later elements may follow, behind the last instant that is told."""
        ...


class QueryRun(Protocol):
    """A query that is ready to run over finite sources, in this process or on Spark."""

    plan: Plan
    dictionary: Dictionary

    @property
    def statistics(self) -> Statistics:
        """A snapshot of the counts so far."""
        ...

    def write_to(self, sink: Sink) -> None:
        """Write all results to a sink."""
        ...

    def run(
        self,
        sources: Mapping[str, StreamSource],
        *,
        time_predicates: Mapping[str, str] | None = None,
        progress: Callable[[Statistics], None] | None = None,
        threads: int | None = None,
    ) -> Statistics:
        """Read the sources, by stream, to their ends, merged by time; then commit the sinks.

        `progress` is called with the statistics after each batch; its exceptions end the run.
        """
        ...

    def stop(self) -> None:
        """Stop the run: no more results are needed."""
        ...

    def details(self) -> str:
        """Statistics that only this runner has, as text; empty where there are none."""
        ...
