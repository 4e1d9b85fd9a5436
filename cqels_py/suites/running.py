"""A task's query over its files, on either runner: the one place in which a suite meets the engine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cqels_py.batches.results import ResultBatch
from cqels_py.connectors.sinks import Sink, open_sink
from cqels_py.connectors.sources import open_source
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.engine import Engine, compile_query
from cqels_py.plan.nodes import Plan
from cqels_py.runners.local import Statistics
from cqels_py.runners.merge import TimeMerge
from cqels_py.suites.task import Task

if TYPE_CHECKING:
    from cqels_py.runners.spark.session import Session

ELEMENTS_A_MICRO_BATCH = 100_000

Look = Callable[[Statistics], None]
Take = Callable[[ResultBatch], None]


class Enough(Exception):
    """A run is to end here."""


class Run(Protocol):
    """A query that is ready. `run` reads the files to their ends; `look` is told after each batch, and may raise Enough."""

    plan: Plan
    dictionary: Dictionary

    def run(self, take: Take, look: Look) -> Statistics: ...


class LocalRun:
    """In this process."""

    def __init__(self, task: Task, changelog: bool = False) -> None:
        self._engine = Engine()
        self._query = self._engine.register(task.text, source=task.id, static=[Path(task.static)], changelog=changelog)
        self._files = {iri: task.streams[iri] for iri in self._query.streams}
        self.plan = self._query.plan
        self.dictionary = self._engine.dictionary

    def run(self, take: Take, look: Look) -> Statistics:
        self._query.subscribe_batches(take)
        try:
            return self._engine.run(self._files, progress=look)
        except Enough:
            return self._engine.statistics


class SparkRun:
    """In Spark, micro-batch by micro-batch."""

    def __init__(self, task: Task, state: str, session: Session, changelog: bool = False) -> None:
        from cqels_py.runners.spark.driver import SparkRun as Driver
        from cqels_py.spark import prepare

        job, self.plan = prepare(
            task.text,
            source=task.id,
            state=state,
            partitions=task.partitions or session.sparkContext.defaultParallelism,
            static=[Path(task.static)],
            changelog=changelog,
            solutions=True,
            in_order=True,
        )
        self.dictionary = Dictionary(strict=True)
        self._files = task.streams
        # A check looks at results long after they came.
        self._driver = Driver(session, job, self.plan.variables, self.dictionary, release=not changelog)

    def run(self, take: Take, look: Look) -> Statistics:
        sources = [self._open(number, iri) for number, iri in enumerate(self.plan.streams)]
        merged = TimeMerge(sources)
        try:
            with self.dictionary.holding(merged.live_ids):
                for batch in self._driver.run(merged, ELEMENTS_A_MICRO_BATCH):
                    take(batch)
                    look(self._driver.statistics)
        except Enough:
            pass
        return self._driver.statistics

    def _open(self, number: int, iri: str) -> Iterator:  # type: ignore[type-arg]
        return open_source(
            self._files[iri],
            dictionary=self.dictionary,
            stream=number,
            time_predicate=self.plan.time_predicates[number],
        )


@contextmanager
def ready(task: Task, session: Session | None, *, changelog: bool = False) -> Iterator[Run]:
    """The task's query, registered."""
    if session is None:
        yield LocalRun(task, changelog)
        return
    with tempfile.TemporaryDirectory(prefix="cqels-state-") as state:
        yield SparkRun(task, f"{state}/query", session, changelog)


@contextmanager
def session_of(task: Task) -> Iterator[Session | None]:
    """The Spark session that the task needs, or None."""
    with ExitStack() as cleanup:
        if task.runner != "spark":
            yield None
            return
        from cqels_py.runners.spark.session import require_pyspark, session_for_a_run

        require_pyspark()
        yield cleanup.enter_context(session_for_a_run())


@contextmanager
def null_sink(plan: Plan, dictionary: Dictionary) -> Iterator[Sink]:
    """Renders results as `cqels run` does, JSON or N-Quads, and lets nobody read them."""
    graphs = plan.form in ("CONSTRUCT", "DESCRIBE")
    with open("/dev/null", "w", encoding="utf-8") as nowhere:
        yield open_sink(
            "nquads" if graphs else "json",
            nowhere,
            dictionary=dictionary,
            form=plan.form,
            variables=plan.variables,
            template=[(triple.subject, triple.predicate, triple.object) for triple in plan.template],
        )


def streams_read(task: Task) -> tuple[str, ...]:
    """The IRIs of the streams that the task's query reads. Raises what is wrong with the query."""
    return compile_query(task.text, source=task.id).streams
