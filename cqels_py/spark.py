"""Continuous queries inside Spark Structured Streaming jobs.

import cqels_py.spark
answers = cqels_py.spark.continuous({"http://ex.org/stream": frame}, query_text, state="/shared/folder", partitions=8)
answers.writeStream.option("checkpointLocation", …).foreachBatch(…).start()
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cqels_py.checkpoints.locations import Location, location_of
from cqels_py.checkpoints.state_file import to_bytes
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.distribution.stages import PlannedStage, keeps_to_own_elements, received_by, stages_of
from cqels_py.engine.compile import CompiledQuery, check_entailment, compile_query
from cqels_py.engine.reports import logged, report_for
from cqels_py.engine.stream_chaining import check_feeding
from cqels_py.errors import UnsupportedQuery, UsageError
from cqels_py.formats.contexts import read_contexts
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.scopes import scope_of_document
from cqels_py.mappings.context import RowMap, read_map
from cqels_py.plan.nodes import Plan, TemplateTriple
from cqels_py.runners.spark import folder
from cqels_py.runners.spark import metrics as observing
from cqels_py.runners.spark.blueprint import Blueprint, beginning_of
from cqels_py.runners.spark.exchange import Exchange
from cqels_py.runners.spark.folder import PartLoad
from cqels_py.runners.spark.heavy import HeavyValues, Noted
from cqels_py.runners.spark.metrics import METRICS, BatchCounts
from cqels_py.runners.spark.options import QueryOptions, check_count, is_number, listed
from cqels_py.runners.spark.reaching import StateFolder
from cqels_py.runners.spark.routing import routing_of
from cqels_py.runners.spark.rows import GRAPH_COLUMNS, check_names, columns_of
from cqels_py.runners.spark.stage import Job
from cqels_py.runners.spark.watermarks import Waiting
from cqels_py.runners.statistics import Statistics
from cqels_py.sources.messages import FORMATS
from cqels_py.sources.static import StaticSource, load_static_data, ontology_of

if TYPE_CHECKING:
    from cqels_py.runners.spark.messages import Parsed
    from cqels_py.runners.spark.metrics import Progress
    from cqels_py.runners.spark.pipeline import Frame, Timing
    from cqels_py.runners.spark.session import Session

_LOG = logging.getLogger("cqels_py.spark")
_HEAVY = "heavy values"
_WATERMARKS = "watermarks"
_FED = "streams of other queries"
_GRAPHS = "elements of a stream"
_RETAINED = "spark.sql.streaming.minBatchesToRetain"


def continuous(
    frames: Mapping[str, Frame],
    query: str,
    *,
    state: str | Path,
    partitions: int = 2,
    tasks: int | None = None,
    heavy: HeavyValues | None = None,
    static: Iterable[StaticSource] | StaticSource = (),
    static_graphs: Mapping[str, StaticSource] | None = None,
    changelog: bool = False,
    net: bool = False,
    lateness: int = 0,
    lateness_of: Mapping[str, int] | None = None,
    partition: str | Mapping[str, str] | None = None,
    idle: int | None = None,
    clock: str = "events",
    clock_delay: int = 200_000,
    entailment: str | None = None,
    on_error: str = "stop",
    document: str | Mapping[str, str] | None = None,
    contexts: Mapping[str, Any] | None = None,
    metrics: str | None = METRICS,
    retain: int | None = None,
) -> Frame:
    """The results of a query over streaming data frames, as a data frame: `time`, `sign`, and each variable as N-Triples text.

    CONSTRUCT: `time`, `sign`, `subject`, `predicate`, `object`, a row for each triple of each result. ASK: the column `boolean`.
    `frames`: for each stream's IRI rows of `time` (timestamp, integer microseconds or ISO 8601), `subject`, `predicate`, `object`
    (N-Triples syntax) and perhaps `graph`; rows of one task with the same time and graph, one after another, are an element, and an
    element lies in one micro-batch. Within a micro-batch elements are taken in the order of their times. Streams have one event
    time: if a micro-batch covers more hours of one stream than of another, elements of the latter are late, unless `idle` lets them
    wait for each other. A sink has to evaluate all rows of each micro-batch. `state`: a folder of this query alone, that all
    workers reach by the same path or by its URI (s3a:, gs:, abfss:, hdfs:, file:), kept beside the checkpoint: a query that is
    restarted continues from there, with the same text, static data, partitions and lateness. `partitions`: parts of the state, if
    the query can be partitioned (`stages` and `cqels explain --runner spark` show by which variables). `tasks`: how many work on
    them, if they are fewer; it may change whenever the query is started. `heavy`: values that are in very many triples, as
    {"sensor": ["<http://ex.org/s1>"]}; each gets as many more parts, which divide it by the other variables, in as many tasks.
    `net`: of the changes of a micro-batch (`changelog`) those are left out that cancel each other: less is written, and a sink
    holds the same after it. `lateness`: microseconds that elements may be late; later ones are dropped, counted (`statistics`)
    and logged; `lateness_of`: that of streams by IRI, where it is another one. `idle`: streams wait for each other, but not for
    those that have been silent for so many microseconds when Spark plans a micro-batch; None: they do not wait. `partition`: the
    column with the partition of a row (one name, or names by stream), as that of Kafka's source; the partitions of a stream wait
    for each other like streams, with an `idle` of 30 seconds if none is given. `clock` "wall": time also goes on without elements,
    `clock_delay` and `lateness` (microseconds) behind the clock, once a second; the streams then have no backlog, as its elements
    would be late. `entailment` "rdfs": the query also sees triples inferred from the classes and properties of the static default
    graph. `on_error` "skip": a row with an invalid term is left out, counted and logged; "stop": it stops the query. The scope of a
    blank node's label is its element, unless `document` names another scope (one name, or names by stream): with the same name a
    label is one node in all frames, micro-batches and runs. `contexts`: files by the IRIs under which static data in JSON-LD name
    contexts. `metrics`: the name of the counts in Spark's progress of each micro-batch (`counts_in`); two `continuous` in one
    streaming query need different ones, None: there are none. `retain`: the state can go back by so many micro-batches, if an
    operator removes the last ones from Spark's checkpoint; None: as many as Spark's log has, by
    `spark.sql.streaming.minBatchesToRetain`.
    """
    from cqels_py.runners.spark.pipeline import transform

    options = QueryOptions(
        partitions=partitions,
        heavy=heavy,
        static=static,
        static_graphs=static_graphs,
        changelog=changelog,
        net=net,
        lateness=lateness,
        lateness_of=lateness_of,
        partition=partition,
        idle=idle,
        entailment=entailment,
        on_error=on_error,
        document=document,
        contexts=contexts,
    )
    run = _Run(frames, state, options, tasks, clock, clock_delay, retain)
    job, numbers = run.prepared(query)
    return transform(job, numbers, timing=run.timing(job), metrics=metrics)


def constructed(
    frames: Mapping[str, Frame],
    query: str,
    *,
    state: str | Path,
    partitions: int = 2,
    tasks: int | None = None,
    heavy: HeavyValues | None = None,
    static: Iterable[StaticSource] | StaticSource = (),
    static_graphs: Mapping[str, StaticSource] | None = None,
    lateness: int = 0,
    lateness_of: Mapping[str, int] | None = None,
    partition: str | Mapping[str, str] | None = None,
    idle: int | None = None,
    clock: str = "events",
    clock_delay: int = 200_000,
    entailment: str | None = None,
    on_error: str = "stop",
    document: str | Mapping[str, str] | None = None,
    contexts: Mapping[str, Any] | None = None,
    metrics: str | None = None,
    retain: int | None = None,
    beside: Iterable[Frame] = (),
) -> Frame:
    """The results of a CONSTRUCT query as a data frame of a stream, for `continuous` or another `constructed`.

        alerts = constructed({READINGS: readings}, ALERTS, state="/states/alerts")
        answers = continuous({ALERT: alerts, READINGS: readings}, COUNTED, state="/states/counted")

    The arguments are those of `continuous`; each query has a state of its own, and all run in one streaming query, micro-batch by
    micro-batch. The results of a tick are one element, with the tick's time, as in an `Engine` with both queries; so the last stage
    has one part, whatever the partitions. The next query's time goes on with that of this one, also where there are no results, and
    with its clock. `beside`: the other frames that the next query reads; their elements move the time of this one on, or results
    that follow from time alone would come late there (late elements are counted and logged). Their lateness is that of both
    queries. With `idle` or `partition` the next query waits for this one, and gets `idle`, too, instead of `beside`. Blank nodes of
    all `constructed` frames have one scope: those that pass through several queries are equal, and differ from those of other
    frames. UsageError for a query whose results are not elements: another form than CONSTRUCT, or DSTREAM, as nothing can be taken
    back from a stream.
    """
    from cqels_py.runners.spark import pipeline

    beside = tuple(beside)
    pipeline.check_beside(beside)
    options = QueryOptions(
        partitions=partitions,
        heavy=heavy,
        static=static,
        static_graphs=static_graphs,
        lateness=lateness,
        lateness_of=lateness_of,
        partition=partition,
        idle=idle,
        entailment=entailment,
        on_error=on_error,
        document=document,
        contexts=contexts,
        graphs=True,
    )
    if options.is_waiting and beside:
        raise UsageError(
            "where streams wait for each other (`idle`, `partition`), the next query waits for this one: leave out beside, and give "
            "that query `idle`, too"
        )
    run = _Run(frames, state, options, tasks, clock, clock_delay, retain)
    job, numbers = run.prepared(query)
    return pipeline.constructed(job, numbers, run.timing(job, beside), metrics)


@dataclass(frozen=True, slots=True)
class _Run:
    """The arguments of a query over data frames: where it runs, and how time goes on (see `continuous`)."""

    frames: Mapping[str, Frame]
    state: str | Path
    options: QueryOptions
    tasks: int | None
    clock: str
    clock_delay: int
    retain: int | None

    def timing(self, job: Job, beside: Iterable[Frame] = ()) -> Timing:
        """How time goes on; `beside`: with the elements of these frames, too."""
        from cqels_py.runners.spark.pipeline import Timing

        lateness = max(job.waiting.lateness) if job.waiting else 0
        return Timing(self.clock_delay + lateness if self.clock == "wall" else None, lateness, tuple(beside))

    def prepared(self, query: str) -> tuple[Job, dict[int, Frame]]:
        """The job, and the frames by the numbers of their streams."""
        from cqels_py.runners.spark.pipeline import check_frames, session_of

        self._check()
        frames, options = self.frames, self._with_fed()

        def check(plan: Plan) -> None:
            check_frames(numbered(frames, plan), plan, options.columns_of_partitions(plan.streams))

        job, plan = _laid_out(query, options, self.state, check=check, session=session_of(frames))
        for warning in plan.warnings:
            _LOG.warning("%s", warning)
        tasks = self.tasks
        if tasks is None and job.parts[0] > options.partitions:
            # Each task gets one part of each heavy value.
            tasks = options.partitions
        return replace(job, tasks=tasks, retained=self._retained()), numbered(frames, plan)

    def _retained(self) -> int:
        from cqels_py.runners.spark.pipeline import session_of

        session = session_of(self.frames)
        if self.retain is not None or session is None:
            return self.retain or 0
        return int(session.conf.get(_RETAINED) or 0)

    def _with_fed(self) -> QueryOptions:
        """The options, with the streams that are results of queries. UsageError for options that these do not have."""
        from cqels_py.runners.spark.pipeline import is_fed, waits

        fed = {iri: frame for iri, frame in self.frames.items() if hasattr(frame, "schema") and is_fed(frame)}
        if not fed:
            return self.options
        if self.clock == "wall":
            raise UsageError(
                "the time of a query that reads the results of another one goes on with it: give clock='wall' to `constructed`"
            )
        options = replace(self.options, fed=tuple(sorted(fed)))
        if not options.is_waiting and len(fed) < len(self.frames) and any(map(waits, fed.values())):
            raise UsageError(
                "elements of other streams would be ahead of the results of a query whose streams wait for each other (`idle`, "
                "`partition`): give this query `idle`, too"
            )
        return options

    def _check(self) -> None:
        if not isinstance(self.frames, Mapping):
            raise UsageError(f"give data frames by the IRIs of their streams, not {type(self.frames).__name__}")
        if self.clock not in ("events", "wall"):
            raise UsageError(f"clock is 'events' or 'wall', not {self.clock!r}")
        if not is_number(self.clock_delay) or self.clock_delay < 0:
            raise UsageError(f"clock_delay is 0 or more microseconds, not {self.clock_delay!r}")
        for count, name in ((self.tasks, "tasks"), (self.retain, "retain")):
            if count is not None:
                check_count(count, name)


def parse(
    frame: Frame,
    format: str = "auto",
    *,
    column: str = "value",
    map: RowMap | str | Path | None = None,
    time_predicate: str | None = None,
    arrival: str | None = None,
    topic: str | None = None,
    partition: str | None = None,
    contexts: Mapping[str, Any] | None = None,
    on_error: str = "skip",
) -> Parsed:
    """Messages in a column of a data frame as `triples` for `continuous`, and the `rejects`: `triples, rejects = parse(frame)`.

    The columns are those of Spark's Kafka source, for example, but may have other names. Each message is an element, or one for
    each of its named graphs where several have times of their own. `format`: "nq", "nt", "trig", "ttl", "jsonld", or "auto":
    JSON-LD if it begins with a brace or a bracket, else N-Quads. `map`: how a JSON object becomes an element (a file or
    `Mapping.of(text)`), as with `engine.run`; a variable ?topic is the text in the column `topic`. An element's time is the
    value of its `time_predicate` (prov:generatedAtTime if there is none), or the map's ?time, and otherwise that of the column
    `arrival`, such as "timestamp". `partition`: the column with the partition of a message; the triples then have a column
    "partition", for that option of `continuous`. `rejects` has the columns of the frame for messages that are malformed, and the
    `error`; with `on_error="stop"` they stop the query.
    """
    from cqels_py.runners.spark.messages import MessageParsing, parsed

    if format not in FORMATS:
        raise UsageError(f"format is one of {', '.join(FORMATS)}, not {format!r}")
    if on_error not in ("stop", "skip"):
        raise UsageError(f"on_error is 'stop' or 'skip', not {on_error!r}")
    how = MessageParsing(
        column=column,
        format=None if format == "auto" else format,
        map=None if map is None else read_map(map),
        time_predicate=time_predicate,
        arrival=arrival,
        origin=topic,
        partition=partition,
        contexts=read_contexts(contexts),
        stop=on_error == "stop",
    )
    return parsed(frame, how)


def parquet(folder: str, *, session: Session | None = None, files_a_batch: int | None = None) -> Frame:
    """The Parquet files in a folder as a streaming data frame for `continuous` alone, which reads them in its own tasks.

    The columns of the files are those of streams. This costs less than `spark.readStream.parquet`, whose rows pass through the JVM.
    `folder`: a path or URI that all workers reach, by pyarrow; files are complete when they appear, and each is one task's.
    `session`: the active one if it is left out. `files_a_batch`: the most of a micro-batch; None: all that are there.
    """
    return _files(folder, session, files_a_batch, "*.parquet")


def files(folder: str, *, session: Session | None = None, files_a_batch: int | None = None) -> Frame:
    """The files in a folder as a streaming data frame for `continuous` alone, which reads them in its own tasks, as `parquet` does.

    Their endings name their formats: N-Quads, N-Triples, Turtle, TriG, RDF/XML, JSON-LD, NDJSON, CSV, TSV, Parquet, Arrow or Jelly,
    also with .gz or .zst, and with the elements that `engine.run` makes of them. A file of a store is copied to the host of its
    task first, but for Parquet. The arguments are those of `parquet`.
    """
    return _files(folder, session, files_a_batch, "*")


def _files(folder: str, session: Session | None, files_a_batch: int | None, names: str) -> Frame:
    from cqels_py.runners.spark.pipeline import frame_of_files
    from cqels_py.runners.spark.session import get_session

    if files_a_batch is not None:
        check_count(files_a_batch, "files_a_batch")
    return frame_of_files(session or get_session(), folder, files_a_batch, names)


def migrate(
    state: str | Path,
    query: str,
    *,
    to: str | Path,
    partitions: int,
    heavy: HeavyValues | None = None,
    static: Iterable[StaticSource] | StaticSource = (),
    static_graphs: Mapping[str, StaticSource] | None = None,
    changelog: bool = False,
    lateness: int = 0,
    lateness_of: Mapping[str, int] | None = None,
    partition: str | Mapping[str, str] | None = None,
    idle: int | None = None,
    entailment: str | None = None,
    document: str | Mapping[str, str] | None = None,
    contexts: Mapping[str, Any] | None = None,
    session: Session | None = None,
) -> None:
    """Split the state of a query that has been stopped into more partitions, in the new folder `to`.

    The query continues from there with the same checkpoint and `partitions`; its results are the same. `partitions`: a multiple of
    the present number, so that each part is split into equally many (in a HyperCube: along each axis); for fewer tasks give
    `continuous` their number. `heavy`: heavy values (see `continuous`), those of before among them; None: those of before. The
    other arguments are those of `continuous`. `session`: one of Spark Connect, a task of whose cluster splits the state, as it
    reaches the folders where this process does not; static data are read here. The old state is left as it is. UsageError where
    results do not contain the variables that divide them, as parts then combine rows that cannot be told apart.
    """
    old, new = StateFolder(location_of(state), session), StateFolder(location_of(to), session)
    new.check_empty()
    counts, described = old.parts(), old.noted()
    noted = _noted(old)
    options = QueryOptions(
        partitions=partitions,
        heavy=heavy,
        static=static,
        static_graphs=static_graphs,
        changelog=changelog,
        lateness=lateness,
        lateness_of=lateness_of,
        partition=partition,
        idle=idle,
        entailment=entailment,
        document=document,
        contexts=contexts,
        graphs=bool(described.get(_GRAPHS)),
        fed=tuple(str(described.get(_FED, "")).split()),
    )
    before = _prepared(query, replace(options, partitions=noted.partitions or max(counts), heavy=None), noted)
    found = old.check_same(before.about)
    after = _prepared(query, options, noted.split(partitions))
    claimed = folder.Claim(str(found["mark"]), 0, bool(found.get("split")))
    job = after.job(new.location, replace(claimed, split=True))
    new.split_from(before.job(old.location, claimed), job, after.about, after.beginning())


def check_new(state: str | Path, *, session: Session | None = None) -> None:
    """UsageError if there is something in the folder already: a run over finite streams begins anew. `session`: see `statistics`."""
    StateFolder(location_of(state), session).check_empty()


def statistics(state: str | Path, *, session: Session | None = None) -> Statistics:
    """The counts of the query with this state up to its last micro-batch: elements, late ones, results.

    `triples` counts those that the query may need, `malformed` the rows that were skipped. `session`: one of Spark Connect, whose
    cluster reaches the folder, where this process does not.
    """
    return StateFolder(location_of(state), session).statistics()


def loads(state: str | Path, *, session: Session | None = None) -> list[list[PartLoad]]:
    """How many rows each part of each stage has got, in all and in the last micro-batch, and how often its state was read back.

    A part that gets many more than the others has a value that is in very many triples: more parts will not relieve it. `session`:
    see `statistics`.
    """
    return StateFolder(location_of(state), session).loads()


def heavy_values(state: str | Path, *, session: Session | None = None) -> dict[str, dict[str, float]]:
    """Values that are in very many triples, by variable, each with the fraction of those with the variable: as `heavy=` takes them.

    A value is one of them if it alone fills half of the average part or more, by a sample of the triples of all micro-batches so
    far; heavy values that the query was given are not among them. Whether more parts can divide a value `heavy=` and `migrate` say.
    `session`: see `statistics`.
    """
    return StateFolder(location_of(state), session).heavy_values()


def counts_in(progress: Progress, metrics: str = METRICS) -> BatchCounts | None:
    """The counts of a query in a micro-batch, from Spark's progress of it: `query.lastProgress`, or that of an event of a listener.

    `metrics`: the name that `continuous` was given. None if the progress is that of another query.
    """
    return observing.counts_in(progress, metrics)


def stages(
    query: str, partitions: int, *, changelog: bool = False, heavy: HeavyValues | None = None
) -> tuple[PlannedStage, ...]:
    """The stages in which a query runs on Spark: the variables that divide each, and the number of copies of a triple.

    The first one's `shares` say how many ways each variable divides it; `distribution.hypercube.shares_for` computes them. Its
    `blocks` are the further parts of heavy values.
    """
    check_count(partitions, "partitions")
    plan = compile_query(query, changelog=changelog).plan
    return stages_of(plan, partitions, Noted().values(heavy or {}, partitions, Dictionary(strict=True)))


def session(master: str | None = None, options: Mapping[str, str] | None = None) -> Session:
    """The active Spark session, or a new one with settings for continuous queries (and those of `options`).

    `master`: that of the launcher if it is left out (spark-submit, spark-defaults.conf, SPARK_REMOTE), whose settings stay; without
    any, this machine.
    """
    from cqels_py.runners.spark.session import get_session

    return get_session(master, options)


def warm(
    query: str,
    *,
    session: Session | None = None,
    partitions: int = 2,
    changelog: bool = False,
    tasks: int | None = None,
) -> dict[str, int]:
    """Compile the kernels that a query needs on the hosts of a cluster, before it is started; returns the number of kernels by host.

    Otherwise the first micro-batch on each host waits for the compiler, up to a minute. `session`: the active one if it is left
    out. `tasks`: as many as the cluster has cores, so that every host gets one; Spark's default parallelism if it is left out. For
    images, `cqels compile` compiles everything.
    """
    from cqels_py.runners.spark.session import cores_of, get_session
    from cqels_py.runners.spark.warming import calls_of_tasks, warm_hosts

    check_count(partitions, "partitions")
    plan = compile_query(query, changelog=changelog).plan
    active = session or get_session()
    return warm_hosts(active, calls_of_tasks(plan, stages_of(plan, partitions)), tasks or cores_of(active))


def numbered(frames: Mapping[str, Frame], plan: Plan) -> dict[int, Frame]:
    """The data frames by the streams' numbers in the plan. UsageError for one that is missing, or not read."""
    for iri in frames:
        if iri not in plan.streams:
            raise UsageError(f"the query does not read the stream <{iri}>; it reads {listed(plan.streams)}")
    for iri in plan.streams:
        if iri not in frames:
            raise UsageError(f"the query reads the stream <{iri}>: give a data frame for it")
    return {plan.streams.index(iri): frame for iri, frame in frames.items()}


def prepare(
    query: str | CompiledQuery,
    *,
    state: str | Path,
    application: str | None = None,
    session: Session | None = None,
    **options: Any,
) -> tuple[Job, Plan]:
    """Compile a query, and lay out the state of its parts unless it is there from an earlier run.

    `application`: Spark's id of it, that of the `session` if it is left out; one of Spark Connect reaches the state from its tasks.
    `options`: those of `QueryOptions`.
    """
    return _laid_out(query, QueryOptions(**options), state, application=application, session=session)


def _laid_out(
    query: str | CompiledQuery,
    options: QueryOptions,
    state: str | Path,
    *,
    check: Callable[[Plan], None] | None = None,
    application: str | None = None,
    session: Session | None = None,
) -> tuple[Job, Plan]:
    """As `prepare`. `check`: called with the plan before anything is written."""
    location = location_of(state)
    state_folder = StateFolder(location, session)
    prepared = _prepared(query, options, _noted(state_folder), check)
    if application is None and session is not None:
        application = session.conf.get("spark.app.id")
    claimed = state_folder.lay_out(prepared.about, application, prepared.beginning())
    first = prepared.stages[0]
    if options.partitions > 1 and first.shares is None:
        _LOG.warning("the query's state is in one part, whatever the partitions: %s", first.reason)
    return prepared.job(location, claimed), prepared.plan


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A query that is ready to get a state. `about`: properties that its state depends on."""

    plan: Plan
    stages: tuple[PlannedStage, ...]
    about: dict[str, str | int]
    data: StaticData
    dictionary: Dictionary
    columns: tuple[str, ...]
    template: tuple[TemplateTriple, ...]
    waiting: Waiting | None
    documents: tuple[int | None, ...]
    options: QueryOptions

    def beginning(self) -> memoryview:
        """The beginning of the states of all parts, as data."""
        return to_bytes(beginning_of(self.data, self.dictionary))

    def job(self, location: Location, claimed: folder.Claim) -> Job:
        """The description for the workers, with the state in this folder."""
        plan, options, (first, *later) = self.plan, self.options, self.stages
        routing = routing_of(plan, first, self.dictionary)
        own_elements = not options.in_order and keeps_to_own_elements(plan, self.stages)
        exchanges, waiting = tuple(map(_exchange, later)), self.waiting
        blueprint = Blueprint(
            plan=plan,
            stages=self.stages,
            exchanges=exchanges,
            columns=self.columns,
            template=self.template,
            lateness=0 if waiting is not None else options.lateness,
            report=report_for(plan, logged(_LOG)),
            in_order=options.in_order,
            split=claimed.split,
            own_ticks=own_elements or plan.rules is not None,
            waiting=waiting,
            net=options.net,
            graphs=scope_of_document(claimed.mark) >> 1 if options.graphs else None,
        )
        return Job(
            folder=location.text,
            mark=claimed.mark,
            columns=self.columns,
            template=self.template,
            streams=plan.streams,
            time_predicates=plan.time_predicates,
            routing=replace(routing, own_elements=own_elements, instants=own_elements and len(self.stages) > 1),
            blueprint=blueprint.packed(),
            exchanges=exchanges,
            in_order=options.in_order,
            skip_malformed=options.on_error == "skip",
            run=claimed.run,
            documents=self.documents,
            graphs=plan.graphs,
            waiting=waiting,
            by_file=options.by_file,
            contexts=read_contexts(options.contexts),
        )


def _prepared(
    query: str | CompiledQuery, options: QueryOptions, noted: Noted, check: Callable[[Plan], None] | None = None
) -> _Prepared:
    """Compile a query and read its static data: see `_laid_out`. `noted`: the heavy values of its state."""
    check_entailment(options.entailment)
    supplied = read_contexts(options.contexts)
    compiled = compile_query(query, changelog=options.changelog)
    compiled.check_memory()
    if check is not None:
        check(compiled.plan)
    documents = options.scopes(compiled.plan.streams)
    if options.net and compiled.plan.output != "CHANGELOG":
        raise UsageError(
            "net leaves out results that come and go in a micro-batch: give changelog=True, which tells both"
        )
    waiting = options.waiting(compiled.plan.streams)
    dictionary = Dictionary(strict=True)
    data = load_static_data(compiled.plan, options.static, options.static_graphs, dictionary, JsonLd(supplied))
    if options.entailment is not None:
        compiled = compile_query(compiled, ontology=ontology_of(data, dictionary))
    plan = compiled.plan
    columns, template = _columns(plan, options)
    values = noted.values(options.heavy, options.partitions, dictionary)
    planned = stages_of(plan, options.partitions, values, graphs=options.graphs)
    about: dict[str, str | int] = {
        "query": _digest(compiled.text.strip().encode()),
        "changelog": int(options.changelog),
        "entailment": options.entailment or "",
        "static data": _digest(data.quads.tobytes()),
        _HEAVY: Noted.text(options.partitions, values),
        "partitions": " ".join(str(stage.parts) for stage in planned),
        "lateness": options.lateness,
        "document": " ".join(map(str, documents)),
        _WATERMARKS: "" if waiting is None else waiting.text(),
        _GRAPHS: "yes" if options.graphs else "",
        **({_FED: " ".join(options.fed)} if options.fed else {}),
    }
    return _Prepared(plan, planned, about, data, dictionary, columns, template, waiting, documents, options)


def _columns(plan: Plan, options: QueryOptions) -> tuple[tuple[str, ...], tuple[TemplateTriple, ...]]:
    """The columns of text in results, and the template that makes them. UsageError for results that have no such form."""
    if options.solutions:
        return tuple(str(n) for n in range(len(plan.variables))), ()
    if options.graphs:
        check_feeding(plan.form, plan.output, "the next query's stream")
        return GRAPH_COLUMNS, plan.template
    columns = columns_of(plan.variables, plan.template)
    check_names(columns)
    _check_template(plan)
    return columns, plan.template


def _noted(state: StateFolder) -> Noted:
    """The heavy values of a state; none where there is no state yet."""
    return Noted.read(str(state.noted().get(_HEAVY, "")))


def _exchange(stage: PlannedStage) -> Exchange:
    columns = received_by(stage.root).variables
    return Exchange(len(columns), tuple(map(columns.index, stage.by)), stage.parts)


def _check_template(plan: Plan) -> None:
    if plan.output in ("CHANGELOG", "DSTREAM") and any(map(_has_blank, plan.template)):
        raise UnsupportedQuery(
            f"a blank node in the template of CONSTRUCT is a new one in each result: with {plan.output} it is "
            "unknown which one is retracted"
        )


def _has_blank(triple: TemplateTriple) -> bool:
    return any(part.startswith("_:") for part in (triple.subject, triple.predicate, triple.object))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
