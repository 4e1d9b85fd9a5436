"""A state that is split into more parts in the middle of a stream: all results are as if nothing had happened."""

from __future__ import annotations

import pickle
import random
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.checkpoints.locations import Location
from cqels_py.errors import UsageError
from cqels_py.spark import migrate, prepare, statistics
from tests.runners.spark import simulation
from tests.runners.spark.test_simulated import DIVIDED, EX, STATIC, drawn

QUERIES = {
    **DIVIDED,
    "chain": """SELECT ?a ?b ?c ?d WHERE { STREAM :s [RANGE 50us] { ?a :link ?b . ?b :link ?c }
                STREAM :t [COUNT 5] { ?c :v ?d } }""",
    "two stages": "SELECT ?v (AVG(?w) AS ?a) WHERE { STREAM :s [RANGE 50us] { ?c :v ?v ; :w ?w } } GROUP BY ?v",
    "distinct": "SELECT DISTINCT ?v ?w WHERE { STREAM :s [RANGE 50us] { ?c :v ?v ; :w ?w } }",
}
NOT_SPLIT = {"two stages": "?c divides the state", "distinct": "?c divides the state", "rstream": None}
COUNT = 72


def text_of(name: str) -> str:
    return f"PREFIX : <{EX}> {QUERIES[name]}"


def options_of(name: str) -> dict[str, Any]:
    return {
        "changelog": name not in ("rstream", "dstream"),
        "static": [list(STATIC.default)],
        "lateness": len(name) % 7,
    }


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in NOT_SPLIT or NOT_SPLIT[name] is None])
def test_results_go_on(name: str) -> None:
    """Split once or twice, at any micro-batches, the last of which Spark may run again."""
    text, options, chance = text_of(name), options_of(name), random.Random(name)
    elements = drawn(chance.randrange(1000), COUNT)
    with simulation.scratch() as place:
        parts = 4 if name == "chain" else chance.choice((1, 2, 3))
        rows: dict[int, list[dict[str, Any]]] = {}
        state = place
        splits = set(chance.sample(range(1, 8), 2))
        for batch in range(8):
            if batch in splits:
                before, more = state, parts * (4 if name == "chain" else chance.choice((2, 3)))
                state = place.with_name(f"{place.name}-{batch}")
                migrate(before, text, to=state, partitions=more, **options)
                parts = more
            job, plan = prepare(text, state=state, partitions=parts, **options)
            cluster = simulation.Cluster(job, seed=batch, chance=0.5, snapshots=0.3)
            if batch in splits and chance.random() < 0.5:
                # A sink replaces its rows.
                rows[batch - 1] = piece(cluster, plan, elements, batch - 1)
            rows[batch] = piece(cluster, plan, elements, batch)
    wanted = simulation.expected(text, elements, STATIC, Output.CHANGELOG if options["changelog"] else None)
    assert wanted
    assert simulation.counted(list(chain.from_iterable(rows.values()))) == wanted


def piece(cluster: simulation.Cluster, plan: Any, elements: list[Any], batch: int) -> list[dict[str, Any]]:
    """The results of a micro-batch; the last of 8 ends the streams."""
    size = COUNT // 8
    read = [each for each in elements[batch * size : (batch + 1) * size] if str(each.stream) in plan.streams]
    names = [f"g{batch}x{number}" for number in range(len(read))]
    return cluster.run(batch, [simulation.rows_of(read, plan.streams, names)], final=batch == 7)


def test_counts_go_on() -> None:
    text, options = text_of("three patterns"), options_of("three patterns")
    elements, counts = drawn(4, COUNT), []
    for split in (False, True):
        with simulation.scratch() as place:
            state, parts = place, 2
            for batch in range(8):
                if split and batch == 4:
                    state, parts = place.with_name(f"{place.name}-more"), 6
                    migrate(place, text, to=state, partitions=6, **options)
                job, plan = prepare(text, state=state, partitions=parts, **options)
                piece(simulation.Cluster(job), plan, elements, batch)
            found = statistics(state)
            counts.append((found.elements, found.triples, found.results, found.late, found.event_time))
    assert counts[0] == counts[1]
    assert counts[0][2] > 0


@pytest.mark.parametrize("name", [name for name in NOT_SPLIT if NOT_SPLIT[name]])
def test_a_state_whose_parts_cannot_be_told_apart_is_not_split(name: str) -> None:
    with simulation.scratch() as place:
        run_one(place, name, 2)
        with pytest.raises(UsageError, match=f"{NOT_SPLIT[name]}".replace("?", r"\?")):
            migrate(place, text_of(name), to=place / "more", partitions=4, **options_of(name))
        assert not (place / "more").exists()


def run_one(place: Path, name: str, parts: int) -> None:
    job, plan = prepare(text_of(name), state=place, partitions=parts, **options_of(name))
    piece(simulation.Cluster(job), plan, drawn(2, COUNT), 0)


def test_mistakes() -> None:
    name = "three patterns"
    text, options = text_of(name), options_of(name)
    with simulation.scratch() as place:
        more = place.with_name(f"{place.name}-more")
        with pytest.raises(UsageError, match="does not hold the state of a query"):
            migrate(place, text, to=more, partitions=4, **options)
        prepare(text, state=place, partitions=2, **options)
        with pytest.raises(UsageError, match="has no state yet"):
            migrate(place, text, to=more, partitions=4, **options)
        run_one(place, name, 2)
        with pytest.raises(UsageError, match="2 parts cannot be split into 5 parts: give a multiple"):
            migrate(place, text, to=more, partitions=5, **options)
        with pytest.raises(UsageError, match="tasks= runs a state in fewer tasks"):
            migrate(place, text, to=more, partitions=1, **options)
        with pytest.raises(UsageError, match="another lateness"):
            migrate(place, text, to=more, partitions=4, **{**options, "lateness": 99})
        assert not more.exists()
        migrate(place, text, to=more, partitions=4, **options)
        with pytest.raises(UsageError, match="is not empty"):
            migrate(place, text, to=more, partitions=4, **options)


class Connected:
    """A session of Spark Connect, as far as the package can see: its task runs here, unpacked as on a cluster."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self) -> None:
        self.tasks = 0
        self.in_a_task = False

    def range(self, *_: int) -> Connected:
        return self

    def mapInArrow(self, task: Any, _: str) -> Connected:
        from pyspark import cloudpickle

        self._task = pickle.loads(cloudpickle.dumps(task))
        return self

    def toArrow(self) -> pa.Table:
        self.tasks += 1
        self.in_a_task = True
        try:
            return pa.Table.from_batches(self._task([]))
        finally:
            self.in_a_task = False


def test_with_spark_connect_only_tasks_reach_the_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    name, session = "three patterns", Connected()
    text, options, elements = text_of(name), options_of(name), drawn(2, COUNT)
    opened, rows = Location.open, list[dict[str, Any]]()

    def in_tasks_only(location: Location) -> Any:
        assert session.in_a_task, "the client does not reach the state"
        return opened(location)

    with simulation.scratch() as place:
        more = place.with_name(f"{place.name}-more")
        state, parts = place, 2
        for batch in range(8):
            if batch == 4:
                with monkeypatch.context() as patch:
                    patch.setattr(Location, "open", in_tasks_only)
                    with pytest.raises(UsageError, match="another lateness"):
                        migrate(place, text, to=more, partitions=4, session=session, **{**options, "lateness": 99})
                    migrate(place, text, to=more, partitions=4, session=session, **options)
                    with pytest.raises(UsageError, match="is not empty"):
                        migrate(place, text, to=more, partitions=4, session=session, **options)
                assert session.tasks > 0
                state, parts = more, 4
            job, plan = prepare(text, state=state, partitions=parts, **options)
            rows += piece(simulation.Cluster(job), plan, elements, batch)
    assert simulation.counted(rows) == simulation.expected(text, elements, STATIC, Output.CHANGELOG)
