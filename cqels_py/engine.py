"""The engine: register queries, push elements, get results. The whole pipeline, in the order in which it runs.

query text ─ parse ─ optimize ─ plan ─ Dataflow
elements   ─ connectors ─ LocalRunner ─ Dataflow ─ results
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import unquote, urlsplit

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import slice_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.connectors.sources import open_source
from cqels_py.connectors.static import load_static
from cqels_py.connectors.tabular import elements_from_arrow
from cqels_py.dataflow import Dataflow, explain
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.dictionary.layout import TRUE
from cqels_py.dictionary.rdf import from_rdflib, to_rdflib
from cqels_py.errors import CqelsError, DataError, UsageError
from cqels_py.optimizer import optimize
from cqels_py.parser import parse
from cqels_py.plan.nodes import Plan
from cqels_py.planner import plan_query
from cqels_py.runners.local import LocalRunner, RunningQuery, Statistics
from cqels_py.runners.merge import TimeMerge

if TYPE_CHECKING:
    import pyarrow as pa

Term: TypeAlias = Any
"""An rdflib term, or a text in N-Triples syntax."""
Triple: TypeAlias = tuple[Term, Term, Term]
StaticSource: TypeAlias = "str | Path | Iterable[Triple]"
"""A file of any RDF format, or triples (an rdflib Graph is one)."""
StreamSource: TypeAlias = "str | Path | pa.Table | Iterable[ElementBatch]"


@dataclass(frozen=True, slots=True)
class Result:
    """One result: `time` in microseconds since the epoch, `sign` +1 or -1, `bindings` of variable names to rdflib terms.

    Of an ASK query, `bindings` is empty and `boolean` the answer.
    """

    time: int
    sign: int
    bindings: dict[str, Any]
    boolean: bool | None = None


class Query:
    """A registered query. Its results go to all subscribers, or into `results()` when there are none."""

    def __init__(self, plan: Plan, dictionary: Dictionary, dataflow: Dataflow) -> None:
        self.plan = plan
        self._dictionary = dictionary
        self._dataflow = dataflow
        self._subscribers: list[Callable[[ResultBatch], None]] = []
        self._kept: deque[Result] = deque()

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of a result; of ASK the one column "boolean"."""
        return self.plan.variables

    @property
    def streams(self) -> tuple[str, ...]:
        """IRIs of the streams it reads."""
        return self.plan.streams

    @property
    def form(self) -> str:
        return self.plan.form

    @property
    def template(self) -> tuple[tuple[str, str, str], ...]:
        """CONSTRUCT's triples: variable names after "?", N-Triples texts, or "_:label"."""
        return tuple((t.subject, t.predicate, t.object) for t in self.plan.template)

    @property
    def nbytes(self) -> int:
        """Size of the query's state in bytes."""
        return self._dataflow.nbytes

    def subscribe(self, callback: Callable[[Result], None]) -> None:
        """Call back with every result, one by one."""

        def each(batch: ResultBatch) -> None:
            for result in self._decode(batch):
                callback(result)

        self._subscribers.append(each)

    def subscribe_batches(self, callback: Callable[[ResultBatch], None]) -> None:
        """Call back with results in columns of ids: the fast way out. The engine's `dictionary` decodes them."""
        self._subscribers.append(callback)

    def results(self) -> Iterator[Result]:
        """The results since the last call; only while nobody has subscribed."""
        while self._kept:
            yield self._kept.popleft()

    def explain(self) -> str:
        """The plan as text: windows, probing, indexes, what each operator keeps."""
        return explain(self._dataflow)

    def deliver(self, batch: ResultBatch) -> None:
        """Hand results to whoever wants them (called by the runner)."""
        for subscriber in self._subscribers:
            subscriber(batch)
        if not self._subscribers:
            self._kept.extend(self._decode(batch))

    def _decode(self, batch: ResultBatch) -> Iterator[Result]:
        if self.form == "ASK":
            for time, sign, answer in zip(
                batch.time.tolist(), batch.sign.tolist(), batch.columns[0].tolist(), strict=True
            ):
                yield Result(time, sign, {}, answer == TRUE)
            return
        columns = np.stack(batch.columns) if batch.columns else np.empty((0, len(batch)), np.int64)
        unique, inverse = np.unique(columns, return_inverse=True)
        terms = [None if text is None else to_rdflib(text) for text in self._dictionary.decode(unique)]
        places = inverse.reshape(columns.shape)
        for row, (time, sign) in enumerate(zip(batch.time.tolist(), batch.sign.tolist(), strict=True)):
            found = ((name, terms[places[c, row]]) for c, name in enumerate(batch.variables))
            yield Result(time, sign, {name: term for name, term in found if term is not None})


class Engine:
    """Registers continuous queries and runs them over streams, in this process.

    `lateness`: microseconds that elements may come out of order; what comes later is dropped and counted. `batch`: how many
    elements are processed together (results are the same); without it each pushed one at once, and as many of a source as are
    read together. `on_error` "skip": malformed input is counted,
    given to `report` and skipped. One thread uses an engine at a time.
    """

    def __init__(
        self,
        *,
        runner: str = "local",
        lateness: int = 0,
        batch: int | None = None,
        on_error: str = "stop",
        report: Callable[[DataError], None] | None = None,
    ) -> None:
        if runner != "local":
            raise UsageError(f"there is no runner {runner!r} yet; there is 'local'")
        if lateness < 0 or (batch is not None and batch < 1):
            raise UsageError("lateness is 0 or more microseconds, batch 1 or more elements")
        if on_error not in ("stop", "skip"):
            raise UsageError(f"on_error is 'stop' or 'skip', not {on_error!r}")
        self.dictionary = Dictionary()
        self._runner = LocalRunner(self.dictionary, lateness)
        self._batch = batch
        self._on_error = on_error
        self._report = report
        self._streams: dict[str, int] = {}
        self._pushed: list[tuple[int, int, Sequence[Triple]]] = []
        self._documents = 0
        self._finished = False

    @property
    def statistics(self) -> Statistics:
        return self._runner.statistics

    # --- queries --------------------------------------------------------------------------------------------------

    def register(
        self,
        text: str,
        *,
        source: str | None = None,
        static: Iterable[StaticSource] | StaticSource = (),
        static_graphs: Mapping[str, StaticSource] | None = None,
        changelog: bool = False,
    ) -> Query:
        """Register a query; it sees what is pushed from now on.

        `source` names the text in messages. `static`: data of the default graph; `static_graphs`: named graphs by IRI.
        `changelog`: results of both signs. Raises QuerySyntaxError, UnsupportedQuery, DataError.
        """
        self.flush()
        plan = compile_query(text, source=source, changelog=changelog)
        data = self._load(plan, static, static_graphs or {})
        dataflow = Dataflow(plan, self.dictionary, data)
        query = Query(plan, self.dictionary, dataflow)
        streams = [self._streams.setdefault(iri, len(self._streams)) for iri in plan.streams]
        self._runner.queries.append(RunningQuery(dataflow, streams, query.deliver))
        return query

    def _load(
        self, plan: Plan, static: Iterable[StaticSource] | StaticSource, graphs: Mapping[str, StaticSource]
    ) -> StaticData:
        """The data a query sees: `static` and the graphs of FROM by default, those of FROM NAMED (or all given) by name."""
        single = isinstance(static, str | Path) or hasattr(static, "triples")
        sources = cast("Iterable[StaticSource]", [static] if single else static)
        quads = [self._load_one(each, None) for each in sources]
        quads += [self._load_one(_named_data(iri, graphs, "FROM"), None) for iri in plan.static_default]
        named = plan.static_named or tuple(graphs)
        quads += [self._load_one(_named_data(iri, graphs, "FROM NAMED"), iri) for iri in named]
        return StaticData(quads)

    def _load_one(self, data: StaticSource, graph: str | None) -> np.ndarray[Any, np.dtype[np.int64]]:
        self._documents += 1
        scope = -self._documents
        if isinstance(data, str | Path):
            subject, predicate, object_, named = load_static(str(data), self.dictionary, scope)
        else:
            texts = [[_text(term) for term in triple] for triple in data]
            columns = self.dictionary.encode([t for triple in texts for t in triple], scope=scope).reshape(-1, 3).T
            subject, predicate, object_ = columns
            named = np.zeros(len(subject), np.int64)
        if graph is not None:
            named = np.full(len(subject), self.dictionary.encode_one(f"<{graph}>"), np.int64)
        return np.stack([subject, predicate, object_, named])

    # --- elements -------------------------------------------------------------------------------------------------

    def push(self, stream: str, triples: Iterable[Triple], *, time: int) -> None:
        """One element: its triples (rdflib terms or N-Triples texts) at `time`, in microseconds since the epoch."""
        self._check_open()
        if isinstance(time, bool) or not isinstance(time, int | np.integer):
            raise UsageError(f"time is an integer of microseconds since the epoch, not {time!r}")
        self._pushed.append((self._number(stream), int(time), list(triples)))
        if len(self._pushed) >= (self._batch or 1):
            self.flush()

    def push_batch(self, stream: str, table: pa.Table) -> None:
        """Many elements: an Arrow table with columns time, graph (optional), subject, predicate, object."""
        self._check_open()
        self.flush()
        for batch in elements_from_arrow(table, dictionary=self.dictionary, stream=self._number(stream)):
            self._runner.push(batch)

    def flush(self) -> None:
        """Process what was pushed so far."""
        if self._pushed:
            pushed, self._pushed = self._pushed, []
            self._runner.push(self._encode(pushed))

    def advance(self, time: int) -> None:
        """Promise that no element before `time` (microseconds) will come: what expires before it does so now."""
        self._check_open()
        self.flush()
        self._runner.advance(time)

    def finish(self) -> None:
        """The streams have ended; nothing can be pushed any more."""
        if not self._finished:
            self.flush()
            self._finished = True
            self._runner.finish()

    def run(
        self,
        sources: Mapping[str, StreamSource],
        *,
        time_predicates: Mapping[str, str] | None = None,
        progress: Callable[[Statistics], None] | None = None,
    ) -> Statistics:
        """Read the sources, one for each stream, to their ends, merged by time."""
        self._check_open()
        self.flush()
        given = {**self._time_predicates(), **(time_predicates or {})}
        readers = [self._open(iri, source, given.get(iri)) for iri, source in sources.items()]
        merged = TimeMerge(readers)
        with self.dictionary.holding(merged.live_ids):
            for batch in merged:
                for start in range(0, len(batch), self._batch or len(batch)):
                    end = min(len(batch), start + (self._batch or len(batch)))
                    self._runner.push(slice_elements(batch, start, end))
                    if progress is not None:
                        progress(self.statistics)
        self.finish()
        return self.statistics

    def _open(self, iri: str, source: StreamSource, time_predicate: str | None) -> Iterator[ElementBatch]:
        number = self._number(iri)
        if isinstance(source, str | Path):
            return open_source(
                str(source), dictionary=self.dictionary, stream=number, time_predicate=time_predicate,
                on_error=self._on_error, report=self._malformed,
            )  # fmt: skip
        if hasattr(source, "column_names"):
            table = elements_from_arrow(source, dictionary=self.dictionary, stream=number)
            return iter(table)
        return iter(cast("Iterable[ElementBatch]", source))

    def _time_predicates(self) -> dict[str, str]:
        plans = [query.dataflow.plan for query in self._runner.queries]
        return {
            s: p for plan in plans for s, p in zip(plan.streams, plan.time_predicates, strict=True) if p is not None
        }

    def _malformed(self, error: DataError) -> None:
        self.statistics.malformed += 1
        if self._report is not None:
            self._report(error)

    def _check_open(self) -> None:
        if self._finished:
            raise UsageError("the engine's streams have ended: make a new engine")

    def _number(self, stream: str) -> int:
        known = self._streams.get(str(stream))
        if known is None:
            read = ", ".join(f"<{iri}>" for iri in self._streams) or "none"
            raise UsageError(f"no registered query reads the stream <{stream}>; streams read: {read}")
        return known

    def _encode(self, pushed: Sequence[tuple[int, int, Sequence[Triple]]]) -> ElementBatch:
        texts: list[str] = []
        sizes = [0]
        for _, _, triples in pushed:
            for triple in triples:
                if len(triple) != 3:
                    raise UsageError(f"a triple is (subject, predicate, object), not {triple!r}")
                texts.extend(_text(term) for term in triple)
            sizes.append(len(triples))
        scopes = np.repeat(
            np.arange(self._documents + 1, self._documents + 1 + len(pushed)), np.diff(np.cumsum(sizes) * 3)
        )
        self._documents += len(pushed)
        ids = self.dictionary.encode(texts, scopes=scopes).reshape(-1, 3)
        return ElementBatch(
            np.array([time for _, time, _ in pushed], np.int64),
            np.array([stream for stream, _, _ in pushed], np.int32),
            np.cumsum(sizes).astype(np.int64),
            *(np.ascontiguousarray(ids[:, c]) for c in range(3)),
        )


def compile_query(text: str, *, source: str | None = None, changelog: bool = False) -> Plan:
    """Query text to physical plan."""
    plan = plan_query(optimize(parse(text, source=source)))
    return replace(plan, output="CHANGELOG") if changelog else plan


def _named_data(iri: str, graphs: Mapping[str, StaticSource], clause: str) -> StaticSource:
    """Where the data of a graph is: as given, or in the file that its IRI names."""
    if iri in graphs:
        return graphs[iri]
    path = Path(unquote(urlsplit(iri).path)) if iri.startswith("file:") else None
    if path is not None and path.is_file():
        return path
    raise UsageError(
        f"the query reads {clause} <{iri}>, and no data was given for it: "
        f"use --static-graph {iri}=FILE, or static_graphs={{{iri!r}: …}}"
    )


def _text(term: Term) -> str:
    if isinstance(term, str) and not hasattr(term, "n3"):
        return term
    if hasattr(term, "n3"):
        return str(from_rdflib(term))
    raise UsageError(f"a term is an rdflib term or a text in N-Triples syntax, not {term!r}")


__all__ = ["CqelsError", "Engine", "Query", "Result", "Statistics", "compile_query"]
