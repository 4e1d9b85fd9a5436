"""The Spark runner without Spark: its stages are plain functions, called here as Spark's tasks would call them."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import pyarrow as pa

from cqels_py.checkpoints import store
from cqels_py.engine.compile import compile_query
from cqels_py.runners.spark import parts, stage
from cqels_py.runners.spark.hot import HotFolders
from cqels_py.runners.spark.metrics import BatchCounts
from cqels_py.runners.spark.stage import Job
from cqels_py.spark import prepare
from cqels_py.terms.rdf import to_rdflib
from tests.oracle.naive import Element, Static
from tests.oracle.naive_values import canonical
from tests.support import harness

ROWS = pa.schema(
    [(name, pa.int64() if name in ("stream", "time") else pa.string())
     for name in ("stream", "time", "graph", "subject", "predicate", "object")]
)  # fmt: skip
Answers: TypeAlias = "Counter[tuple[int, int, frozenset[tuple[str, Any]]]]"
"""How often each (time, sign, mapping) is a result: order is free where times are the same."""


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for a state, in memory where there is such a place: these tests write many small files."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "state"


def rows_of(elements: Sequence[Element], streams: Sequence[str], names: Sequence[str]) -> pa.RecordBatch:
    """The rows of some elements, with these names as graphs: each another one, if no two are to become one."""
    found = [
        {
            "stream": streams.index(str(element.stream)),
            "time": element.time,
            "graph": name,
            **{place: term.n3() for place, term in zip(("subject", "predicate", "object"), triple, strict=True)},
        }
        for element, name in zip(elements, names, strict=True)
        for triple in element.triples
    ]
    return pa.RecordBatch.from_pylist(found, ROWS)


class Cluster:
    """Runs micro-batches of one job. `chance` of a worker to still have a part's state when the next batch comes.

    Where it has not, the state comes from what another worker left in the folder `near`, or from a snapshot and the log;
    `snapshots`: the chance of one after a batch.
    """

    def __init__(
        self,
        job: Job,
        *,
        seed: int = 0,
        chance: float = 0.5,
        snapshots: float | None = None,
        near: Path | HotFolders | None = None,
    ) -> None:
        self.job = job
        self._near = HotFolders(near) if isinstance(near, Path) else near
        self._chance = chance
        self._snapshots = snapshots
        self._random = random.Random(seed)
        self.watermark: int | None = None
        """Of the last micro-batch."""

    def run(self, batch: int, tasks: Sequence[pa.RecordBatch], *, final: bool = False) -> list[dict[str, Any]]:
        """The result rows of one micro-batch, whose rows lie in these tasks."""
        routed = [
            pa.RecordBatch.from_pylist(each.to_pylist(), parts.ROUTED)
            for number, task in enumerate(tasks)
            for each in stage.route(self.job, [task], batch, number)
        ]
        return self.evaluate(batch, routed, final=final)

    def evaluate(self, batch: int, routed: Sequence[pa.RecordBatch], *, final: bool = False) -> list[dict[str, Any]]:
        for number, count in enumerate(self.job.parts):
            made: list[pa.RecordBatch] = []
            for part in range(count):
                if self._random.random() >= self._chance:
                    stage._HOT.pop((self.job.mark, number, part), None)
                mine = [each.filter(pa.compute.equal(each.column("part"), part)) for each in routed]
                self._random.shuffle(mine)
                with self._luck():
                    made += stage.evaluate(
                        self.job, mine, batch, part, final, number, self._near, tell=self._note if number == 0 else None
                    )
            routed = made
        return [row for each in routed for row in each.to_pylist()]

    def _note(self, counts: BatchCounts) -> None:
        if counts.watermark is not None:
            self.watermark = counts.watermark

    def _luck(self) -> AbstractContextManager[object]:
        if self._snapshots is None:
            return nullcontext()
        chance = self._snapshots
        return patch.object(store, "_outweighs", lambda inputs, snapshot: self._random.random() < chance)


def counted(rows: Sequence[dict[str, Any]]) -> Answers:
    return Counter(
        (
            round(row["time"].timestamp() * 1_000_000),
            row["sign"],
            frozenset(
                (name, canonical(to_rdflib(text)))
                for name, text in row.items()
                if text and name not in ("time", "sign")
            ),
        )
        for row in rows
    )


def expected(text: str, elements: Sequence[Element], static: Static, output: Any) -> Answers:
    """The local runner's results."""
    read = compile_query(text).plan.streams
    elements = [element for element in elements if str(element.stream) in read]
    return Counter(
        (result.time, result.sign, frozenset((str(variable), term) for variable, term in result.mapping))
        for result in harness.run_engine(text, elements, static, None, output)
    )


def run(
    text: str,
    elements: Sequence[Element],
    static: Static,
    *,
    changelog: bool,
    cuts: Sequence[int],
    tasks: int,
    parts: int,
    lateness: int = 0,
    seed: int = 0,
    chance: float = 0.5,
    folder: Path | None = None,
    solutions: bool = False,
    heavy: Mapping[str, Sequence[str]] | None = None,
) -> Answers:
    """All results of elements that come in micro-batches cut at `cuts`, each read by so many tasks of neighbouring rows.

    `folder`: where the state is kept afterwards. `solutions`: also of CONSTRUCT the query's solutions.
    """
    with scratch() if folder is None else nullcontext(folder) as place:
        job, plan = prepare(
            text,
            state=place,
            partitions=parts,
            static=[list(static.default)] if static.default else [],
            static_graphs={str(name): list(triples) for name, triples in static.named.items()},
            changelog=changelog,
            lateness=lateness,
            solutions=solutions,
            heavy=heavy,
        )
        near = place.parent if chance and seed % 2 else None
        cluster = Cluster(job, seed=seed, chance=chance, snapshots=0.5, near=near)
        read = [element for element in elements if str(element.stream) in plan.streams]
        bounds = sorted({0, len(read), *(cut % (len(read) + 1) for cut in cuts)})
        batches = [range(start, end) for start, end in pairwise(bounds)] or [range(0)]
        found = []
        for number, batch in enumerate(batches):
            size = -(-len(batch) // tasks) or 1
            shares = [batch[start : start + size] for start in range(0, len(batch), size)] or [range(0)]
            graphs = [_graph(read[i]) if any(plan.graphs) else f"g{i}" for i in batch]
            tables = [
                rows_of([read[i] for i in share], plan.streams, [graphs[i - batch.start] for i in share])
                for share in shares
            ]
            found += cluster.run(number, tables, final=number == len(batches) - 1)
        names = {str(n): name for n, name in enumerate(plan.variables)} if solutions else {}
        return counted([{names.get(name, name): value for name, value in row.items()} for row in found])


def _graph(element: Element) -> str:
    return "" if element.graph is None else element.graph.n3()


def merged(elements: Sequence[Element]) -> list[Element]:
    """Elements as rows make them, where their graphs are asked for: what follows with the same time and graph is one."""
    found: list[Element] = []
    for each in elements:
        last = found[-1] if found else None
        if last and (last.time, last.stream, last.graph) == (each.time, each.stream, each.graph):
            found[-1] = replace(last, triples=last.triples + each.triples)
        elif each.triples:
            found.append(each)
    return found


def in_spark_order(elements: Sequence[Element], streams: Sequence[str]) -> list[Element]:
    """Elements with ties as Spark has them when each task reads one stream after the other."""
    return sorted(elements, key=lambda element: (element.time, streams.index(str(element.stream))))
