"""A task's query over its files, on either runner: the only module of the suites that calls the engine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import take_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import CompiledQuery, compile_query
from cqels_py.engine.engine import Engine
from cqels_py.plan.nodes import Plan
from cqels_py.runners.statistics import Statistics
from cqels_py.sinks.files import open_sink
from cqels_py.sinks.protocol import Sink
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening
from cqels_py.suites.task import Task

if TYPE_CHECKING:
    from cqels_py.runners.spark.session import Session

Look = Callable[[Statistics], None]
Take = Callable[[ResultBatch], None]


class StopEarly(Exception):
    """Raised to end a run early."""


class Run(Protocol):
    """A query that is ready to run.

    `run` reads the files to their ends, or one in `thin` of their elements. `look` is called after each batch, and may
    raise StopEarly.
    """

    plan: Plan
    dictionary: Dictionary

    def run(self, take: Take, look: Look, *, thin: int = 1) -> Statistics: ...


@cache
def compiled(text: str, source: str) -> CompiledQuery:
    """The query of a task, compiled once in a process."""
    return compile_query(text, source=source)


class LocalRun:
    """A run in this process."""

    def __init__(self, task: Task, changelog: bool = False, query: CompiledQuery | None = None) -> None:
        self._engine = Engine()
        self._query = self._engine.register(
            query or compiled(task.text, task.source), static=[Path(task.static)], changelog=changelog
        )
        self._task = task
        self.plan = self._query.plan
        self.dictionary = self._engine.dictionary

    def run(self, take: Take, look: Look, *, thin: int = 1) -> Statistics:
        self._query.subscribe_batches(take, ids=True)
        files: dict[str, str] = {iri: self._task.streams[iri] for iri in self.plan.streams}
        thinned = dict(zip(files, sources(self._task, self.plan, self.dictionary, thin), strict=True))
        try:
            if thin > 1:
                return self._engine.run(thinned, progress=look)
            return self._engine.run(files, progress=look, threads=self._task.threads)
        except StopEarly:
            return self._engine.statistics


class SparkRun:
    """A run in Spark, micro-batch by micro-batch."""

    def __init__(
        self, task: Task, state: str, session: Session, changelog: bool = False, query: CompiledQuery | None = None
    ) -> None:
        from cqels_py.runners.spark.driver import SparkRun as Driver
        from cqels_py.spark import prepare

        job, self.plan = prepare(
            query or compiled(task.text, task.source),
            state=state,
            partitions=task.partitions or session.sparkContext.defaultParallelism,
            static=[Path(task.static)],
            changelog=changelog,
            solutions=True,
            in_order=True,
        )
        self._task = task
        # A check reads results long after they arrived.
        self._driver = Driver(session, job, self.plan, keep_terms=changelog)
        self.dictionary = self._driver.dictionary

    def run(self, take: Take, look: Look, *, thin: int = 1) -> Statistics:
        self._driver.write_to(_TakingSink(take))
        files = dict(zip(self.plan.streams, sources(self._task, self.plan, self.dictionary, thin), strict=True))
        try:
            return self._driver.run(files, progress=look)
        except StopEarly:
            return self._driver.statistics


class _TakingSink:
    """Calls a function with each batch of results."""

    def __init__(self, take: Take) -> None:
        self.write = take

    def flush(self) -> None:
        """There is nothing to flush."""

    def commit(self) -> None:
        """There is nothing to commit."""


def sources(task: Task, plan: Plan, dictionary: Dictionary, thin: int = 1) -> list[Iterator[ElementBatch]]:
    """The files of the streams that a query reads, in its order: all elements, or one in `thin`."""
    opened = [
        open_source(
            task.streams[iri], Opening(stream=iri, number=number, dictionary=dictionary, time_predicate=predicate)
        )
        for number, (iri, predicate) in enumerate(zip(plan.streams, plan.time_predicates, strict=True))
    ]
    return opened if thin == 1 else [_thinned(batches, thin) for batches in opened]


def _thinned(batches: Iterator[ElementBatch], thin: int) -> Iterator[ElementBatch]:
    for batch in batches:
        yield take_elements(batch, np.arange(0, len(batch), thin))


@contextmanager
def ready(
    task: Task, session: Session | None, *, changelog: bool = False, query: CompiledQuery | None = None
) -> Iterator[Run]:
    """The task's query, registered. `query`: None for the one that is compiled once in a process."""
    if session is None:
        yield LocalRun(task, changelog, query)
        return
    with tempfile.TemporaryDirectory(prefix="cqels-state-") as state:
        yield SparkRun(task, f"{state}/query", session, changelog, query)


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
    """Renders results as `cqels run` does, as JSON or N-Quads, and discards them."""
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
