"""Engine(checkpoint=): wherever a process ends, one that runs the same program goes on as if nothing had been.

The program is a list of calls. A receiver keeps the results by number, beyond the end of the process, and subscribes from the next.
After a crash the program goes on behind the elements that the engine says it has; calls between two elements are made again.

    push push register push │ push …            │: crash; again from here on
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rdflib import RDF, BNode, Literal, URIRef

import cqels_py as cqels
from cqels_py.checkpoints import durable_files, savepoints
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.engine.durable import logged, registration
from cqels_py.engine.durable.saved_state import copied
from cqels_py.errors import DataError, RunError, UnsupportedQuery, UsageError
from tests.support.amount import long, step
from tests.support.endpoint import endpoint
from tests.support.faults import Crash, Faults, PowerFailures, crash

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}> "
SECOND = 1_000_000
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
HOT = "RULES ON :s { RULE { ?x a :Hot } FOR [0s, 3s) WHERE { ?x :v ?v FILTER(?v > 4) } } "
QUERIES = {
    "windows": "SELECT * { STREAM :s [RANGE 6s] { ?x :v ?v } STREAM :t [COUNT 4] { ?x :v ?w } }",
    "aggregate": "SELECT ?x (SUM(?v) AS ?n) (MIN(?v) AS ?m) (AVG(?w) AS ?a) { STREAM :s [RANGE 7s] { ?x :v ?v } "
    "STREAM :t [RANGE 4s] { ?x :v ?w } } GROUP BY ?x",
    "step": "SELECT ?x (COUNT(*) AS ?n) { STREAM :s [RANGE 6s STEP 3s] { ?x :v ?v } } GROUP BY ?x",
    "path": "SELECT ?a ?b { STREAM :s [COUNT 8] { ?a :to+ ?b } }",
    "top": "SELECT ?x ?v { STREAM :s [COUNT 6] { ?x :v ?v } } ORDER BY DESC(?v) ?x LIMIT 3",
    "negation": "SELECT * { STREAM :s [COUNT 5] { ?x :v ?v } MINUS { STREAM :t [COUNT 3] { ?x :v ?w } } }",
    "optional": "SELECT * { STREAM :s [COUNT 5] { ?x :to ?y } OPTIONAL { STREAM :t [RANGE 3s] { ?x :v ?w } } }",
    "match": "SELECT ?x ?a ?b { MATCH WITHIN 8s { EVENT ON :s { ?x :v ?a } SEQ EVENT ON :t { ?x :v ?b } } }",
    "rules": HOT + "SELECT ?x { STATE { ?x a :Hot } }",
    "events": "SELECT ?x (COUNT(*) AS ?n) { EVENT ON :s [ALL] AT ?i { ?x :to ?y } EVENT ON :t [ALL] AT ?j { ?y :v ?w } "
    "FILTER(?i < ?j) } GROUP BY ?x",
    "blank": "SELECT ?x ?b { STREAM :t [COUNT 4] { ?x :node ?b } }",
    "static": "SELECT ?x ?l { STREAM :s [COUNT 3] { ?x :v ?v } ?x :label ?l }",
    "feeds": "REGISTER ISTREAM :fed AS CONSTRUCT { ?x :seen ?v . _:n :of ?x } WHERE { STREAM :s [COUNT 2] { ?x :v ?v } }",
    "random": "REGISTER RSTREAM :random AS SELECT ?x (UUID() AS ?u) (STRUUID() AS ?t) (RAND() AS ?r) (BNODE() AS ?b) "
    "(BNODE(?x) AS ?c) FROM NAMED WINDOW :w ON :s [RANGE PT6S STEP PT2S] WHERE { WINDOW :w { ?x :v ?v } }",
    "fed": "SELECT ?x ?v ?n { STREAM :fed [RANGE 5s] { ?x :seen ?v . ?n :of ?x } }",
}


LABELS = [
    [(f"<{EX}{name}>", f"<{EX}label>", "_:l") for name in "bcd"],
    [(f"<{EX}{name}>", f"<{EX}label>", f'"{name}"') for name in "abc"],
]


@dataclass
class Call:
    """A call of the program: a method of Session and its arguments. `elements`: how many it pushes."""

    method: str
    arguments: tuple[Any, ...] = ()
    elements: int = 0


@dataclass
class Receiver:
    """The results of each query, by number: it survives the engine."""

    results: dict[str, dict[int, Any]] = field(default_factory=dict)

    def take(self, name: str, result: cqels.Result) -> None:
        known = self.results.setdefault(name, {})
        assert result.number == len(known) + 1, "each number once, in order"
        shown = sorted((variable, term.n3()) for variable, term in result.bindings.items())
        known[result.number] = (result.time, result.sign, shown)


class Session:
    """An engine in a process, until that ends."""

    def __init__(self, folder: Path | None, receiver: Receiver, **options: Any) -> None:
        self.engine = cqels.Engine(checkpoint=folder, **options)
        self.receiver = receiver
        self.subscribed: set[str] = set()
        for query in self.engine.queries:
            self.subscribe(query)

    def subscribe(self, query: cqels.Query) -> cqels.Query:
        name = str(query.name)
        if name not in self.subscribed:
            self.subscribed.add(name)
            following = len(self.receiver.results.get(name, ())) + 1
            query.subscribe(lambda result: self.receiver.take(name, result), from_number=following)
        return query

    def named(self, name: str) -> cqels.Query | None:
        return next((query for query in self.engine.queries if query.name == name), None)

    def register(self, name: str, **options: Any) -> None:
        static = {"static": [LABELS[0]]} if name == "static" else {}
        self.subscribe(
            self.engine.register(PREFIX + QUERIES[name], name=name, changelog="REGISTER" not in QUERIES[name], **static)
        )

    def backfill(self, name: str, sources: dict[str, pa.Table]) -> None:
        """Register a query that gets elements of before; sources that are wrong are refused."""
        text = QUERIES[name]
        # In parts: each is a record.
        read = {stream: each.to_reader(7) for stream, each in sources.items() if f":{stream[-1]} " in text}
        with contextlib.suppress(DataError):
            self.subscribe(self.engine.register(PREFIX + text, name=name, changelog=True, backfill=read))

    def unregister(self, name: str) -> None:
        if (query := self.named(name)) is not None:
            self.engine.unregister(query)

    def connect(self, name: str, stream: str) -> None:
        query = self.named(name)
        assert query is not None
        self.engine.connect(query, EX + stream)

    def update_static(self, name: str, static: Any) -> None:
        query = self.named(name)
        assert query is not None
        query.update_static(static=static)

    def push(self, stream: str, triples: Any, time: int) -> None:
        self.engine.push(EX + stream, triples, time=time)

    def push_batch(self, stream: str, table: pa.Table, start: int = 0) -> None:
        self.engine.push_batch(EX + stream, table.slice(start), document="d")

    def run(self, calls: Sequence[Call]) -> None:
        """The program, behind the elements that the engine has."""
        taken, before = self.engine.statistics.elements, 0
        for call in calls:
            before += call.elements
            if before > taken or (before == taken and not call.elements):
                method = getattr(self, call.method, None) or getattr(self.engine, call.method)
                begun = call.elements - (before - taken)
                # A table of which a part was taken in.
                method(*call.arguments, *([begun] if begun > 0 else ()))

    def end(self) -> None:
        """The process has ended: the system releases what it held."""
        with contextlib.suppress(Crash):
            self.engine._inputs._saving.wait()
        self.engine._inputs._resources.close()


def iri(name: str) -> str:
    return f"<{EX}{name}>"


def element(random: Random, stream: str, second: float) -> Call:
    x, y = random.choice("abcde"), random.choice("abcde")
    triples = [(iri(x), iri("v"), f'"{random.randrange(9)}"^^{INTEGER}'), (iri(x), iri("to"), iri(y))]
    if random.random() < 0.3:
        triples.append((iri(x), iri("node"), "_:b"))
    return Call("push", (stream, triples, int(second * SECOND)), 1)


def table(random: Random, second: float, count: int) -> Call:
    """Elements of a stream as a table; some of their nodes are those of the document."""
    times = [int(second * SECOND) + place for place in range(count)]
    objects = [random.choice(["_:shared", '"7"', iri("a")]) for _ in range(count)]
    columns = {
        "time": pa.array(times, pa.timestamp("us", tz="UTC")),
        "subject": [iri(random.choice("abc")) for _ in range(count)],
        "predicate": [iri("node")] * count,
        "object": objects,
    }
    return Call("push_batch", ("t", pa.table(columns)), count)


def program(names: Sequence[str], seed: int = 1, length: int = 26) -> list[Call]:
    """Queries that come and go between elements of two streams, some at the same instants. One of them reads both, always."""
    random = Random(seed)
    names = [name for name in names if name != "windows"]
    early, late = list(names[::2]), list(names[1::2])
    calls = [Call("register", (name,)) for name in dict.fromkeys(["windows", *early])]
    for number in range(length):
        calls.append(element(random, "st"[number % 2], number // 3 * 0.7))
        if number == length // 3:
            calls += [Call("register", (name,)) for name in late]
        if number == length // 2:
            calls.append(Call("advance", (int((number // 3 * 0.7 + 0.1) * SECOND),)))
            calls.append(Call("flush"))
        if number == 2 * length // 3 and len(early) > 2:
            calls.append(Call("unregister", (early[2],)))
        if number == length // 2 and "static" in names:
            calls.append(Call("update_static", ("static", [LABELS[1]])))
        if number % 9 == 5:
            calls.append(Call("checkpoint"))
        if number == length - 4:
            calls.append(table(random, (number // 3 + 0.5) * 0.7, 4))
    return [*calls, Call("finish")]


def undisturbed(folder: Path, calls: Sequence[Call], **options: Any) -> dict[str, dict[int, Any]]:
    receiver = Receiver()
    session = Session(folder, receiver, **options)
    session.run(calls)
    session.end()
    return receiver.results


def disturbed(
    folder: Path, calls: Sequence[Call], faults: Faults, places: Iterator[int], **options: Any
) -> dict[str, dict[int, Any]]:
    """The results where the process ends at the first of these operations, the next one at the second of them, and so on."""
    receiver = Receiver()
    for at in places:
        faults.count, faults.at = 0, at
        session = None
        try:
            session = Session(folder, receiver, **options)
            session.run(calls)
        except Crash:
            pass
        if session is not None:
            session.end()
    faults.at = -1
    # Once more: if the program had ended, this tells what is missing of its results.
    session = Session(folder, receiver, **options)
    if session.engine._steps.ended is None:
        session.run(calls)
    session.end()
    return receiver.results


def operations_of(folder: Path, calls: Sequence[Call], faults: Faults, **options: Any) -> tuple[int, Any]:
    faults.count, faults.at = 0, -1
    results = undisturbed(folder, calls, **options)
    return faults.count, results


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots come after a few elements."""
    monkeypatch.setattr(logged, "LEAST", 1500)
    monkeypatch.setattr(logged, "APART", 0)


@pytest.fixture(autouse=True)
def same_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines of a test have the same random values, so that they can be compared."""
    monkeypatch.setattr(registration, "new_seed", lambda: "5e" * 16)


ALL = sorted(QUERIES)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", ["windows"])
def test_a_crash_at_every_operation(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = Faults(monkeypatch, crash)
    calls = program([name])
    operations, expected = operations_of(tmp_path / "whole", calls, faults)
    assert operations > 60
    assert len(expected[name]) > 10
    for at in range(1, operations + 1, step(4)):
        assert disturbed(tmp_path / str(at), calls, faults, iter([at])) == expected, at


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", ALL)
def test_crashes_of_each_kind_of_query(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = Faults(monkeypatch, crash)
    calls = program(["feeds", "fed"] if name == "fed" else [name], seed=len(name))
    operations, expected = operations_of(tmp_path / "whole", calls, faults)
    assert expected[name]
    for at in range(3, operations, operations // 3):
        assert disturbed(tmp_path / str(at), calls, faults, iter([at, 17, 5])) == expected, at


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("seed", range(3))
def test_crashes_of_many_queries_that_come_and_go(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = Faults(monkeypatch, crash)
    random = Random(seed)
    names = [name for name in ALL if name not in ("feeds", "fed")]
    random.shuffle(names)
    # The readers of a query's results come behind it.
    calls = program(["feeds", "fed", *names], seed=seed, length=40)
    options = {"lateness": random.choice([0, SECOND]), "durable": random.choice(["sync", "off"])}
    operations, expected = operations_of(tmp_path / "whole", calls, faults, **options)
    assert len(expected) > 10
    for at in random.sample(range(1, operations), 3):
        places = iter([at, random.randrange(1, 60), random.randrange(1, 60)])
        assert disturbed(tmp_path / str(at), calls, faults, places, **options) == expected, at


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_a_power_failure_loses_nothing_that_was_told(
    part: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = program(["windows", "step", "blank"], seed=3)
    expected = undisturbed(tmp_path / "whole", calls)
    power = PowerFailures(monkeypatch, lambda synced, written: synced + int((written - synced) * part))
    faults = Faults(monkeypatch, power.fail)
    for at in range(2, 90, 19):
        assert disturbed(tmp_path / str(at), calls, faults, iter([at])) == expected, at


def history(*, damaged: bool = False) -> dict[str, pa.Table]:
    """Elements of two streams from before `program`, and from its beginning."""
    random = Random(4)
    found = {}
    for name in "st":
        times = [tenth * SECOND // 10 for tenth in range(-60, 30)]
        objects = [random.choice([f'"{random.randrange(9)}"^^{INTEGER}', "_:n", iri("a")]) for _ in times]
        columns = {
            "time": pa.array(times, pa.timestamp("us", tz="UTC")),
            "subject": [iri(random.choice("abcde")) for _ in times],
            "predicate": [iri("v")] * len(times),
            "object": [*objects[:-1], "nothing"] if damaged else objects,
        }
        found[EX + name] = pa.table(columns)
    return found


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", ["aggregate", "match", "negation"])
def test_crashes_of_queries_that_get_elements_of_before(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = history(), history(damaged=True)
    calls = program(["windows", "path"], seed=2)
    # The first fails, and others follow: also one of the same streams at once.
    calls[9:9] = [Call("backfill", ("top", bad)), Call("backfill", (name, good)), Call("register", ("optional",))]
    calls.insert(20, Call("backfill", ("step", good)))
    calls.insert(24, Call("unregister", (name,)))
    faults = Faults(monkeypatch, crash)
    operations, expected = operations_of(tmp_path / "whole", calls, faults)
    plain = Receiver()
    Session(None, plain).run([call for call in calls if call.method != "checkpoint"])
    for each, results in plain.results.items():
        assert expected[each] == results, each
    assert "top" not in expected
    assert len(expected[name]) > 20
    for at in range(3, operations, step(1 + operations // 9)):
        assert disturbed(tmp_path / str(at), calls, faults, iter([at, 25])) == expected, at


# --- the interface ----------------------------------------------------------------------------------------------------

COUNT = f"{PREFIX}SELECT ?x (COUNT(*) AS ?n) {{ STREAM :s [RANGE 100s] {{ ?x :v ?v }} }} GROUP BY ?x"


def pushed(engine: cqels.Engine, *seconds: int) -> None:
    for second in seconds:
        engine.push(f"{EX}s", [(iri("a"), iri("v"), f'"{second}"')], time=second * SECOND)


def numbers(query: cqels.Query) -> list[tuple[int, int]]:
    return [(result.number, int(result.bindings["n"])) for result in query.results()]


def test_a_query_goes_on_with_its_state(tmp_path: Path) -> None:
    engine = cqels.Engine(checkpoint=tmp_path)
    query = engine.register(COUNT, name="count")
    assert not query.restored
    pushed(engine, 1, 2)
    assert numbers(query) == [(1, 1), (2, 2)]
    engine.checkpoint()
    pushed(engine, 3)
    engine.close()
    engine = cqels.Engine(checkpoint=tmp_path)
    assert engine.statistics.elements == 3
    assert [query.name for query in engine.queries] == ["count"]
    query = engine.register(COUNT, name="count")
    assert query.restored
    pushed(engine, 4)
    # Those since the snapshot come again.
    assert numbers(query) == [(3, 3), (4, 4)]
    engine.close()


def test_results_that_were_not_taken_are_kept(tmp_path: Path) -> None:
    engine = cqels.Engine(checkpoint=tmp_path)
    query = engine.register(COUNT)
    pushed(engine, 1, 2, 3)
    assert next(query.results()).number == 1
    engine.checkpoint()
    engine.close()
    query = cqels.Engine(checkpoint=tmp_path).register(COUNT)
    assert numbers(query) == [(2, 2), (3, 3)]


def test_each_subscriber_begins_where_it_was(tmp_path: Path) -> None:
    engine = cqels.Engine(checkpoint=tmp_path)
    engine.register(COUNT, name="count").subscribe(lambda result: None)
    pushed(engine, 1, 2)
    engine.checkpoint()
    pushed(engine, 3, 4, 5)
    engine.close()
    engine = cqels.Engine(checkpoint=tmp_path)
    (query,) = engine.queries
    found: dict[int, list[int]] = {3: [], 5: [], 9: []}
    for first, got in found.items():
        query.subscribe(lambda result, got=got: got.append(result.number), from_number=first)
    with pytest.raises(UsageError, match="before number 3 are no longer kept"):
        query.subscribe(print, from_number=2)
    pushed(engine, 6, 7, 8, 9)
    assert found == {3: [3, 4, 5, 6, 7, 8, 9], 5: [5, 6, 7, 8, 9], 9: [9]}
    with pytest.raises(UsageError, match="before number 10 are no longer kept"):
        query.subscribe(print, from_number=9)
    engine.close()


def test_numbers_without_a_checkpoint() -> None:
    engine = cqels.Engine()
    query = engine.register(COUNT)
    pushed(engine, 1, 2, 3)
    found: list[int] = []
    query.subscribe(lambda result: found.append(result.number), from_number=2)
    pushed(engine, 4)
    assert found == [2, 3, 4]
    with pytest.raises(UsageError, match="has no checkpoint"):
        engine.checkpoint()


def test_another_query_under_a_name_is_refused(tmp_path: Path) -> None:
    engine = cqels.Engine(checkpoint=tmp_path)
    engine.register(COUNT, name="count")
    with pytest.raises(UsageError, match="registered as 'count' already"):
        engine.register(COUNT, name="count")
    engine.close()
    engine = cqels.Engine(checkpoint=tmp_path)
    with pytest.raises(UsageError, match="as 'count', which differs in: text, changelog"):
        engine.register(COUNT.replace("100s", "10s"), name="count", changelog=True)
    engine.unregister(engine.queries[0])
    assert not engine.register(COUNT.replace("100s", "10s"), name="count").restored
    engine.close()


def test_other_options_are_refused(tmp_path: Path) -> None:
    cqels.Engine(checkpoint=tmp_path).close()
    with pytest.raises(UsageError, match="which differs in: lateness, blank_nodes"):
        cqels.Engine(checkpoint=tmp_path, lateness=5, blank_nodes="element")
    cqels.Engine(checkpoint=tmp_path).close()
    with pytest.raises(UsageError, match="durable is 'sync', 'batch' or 'off'"):
        cqels.Engine(checkpoint=tmp_path, durable="perhaps")
    with pytest.raises(UsageError, match="differs in: rejects"):
        cqels.Engine(checkpoint=tmp_path, rejects=tmp_path / "rejects")
    with pytest.raises(UsageError, match="checkpoint is a folder"):
        cqels.Engine(checkpoint=3)  # type: ignore[arg-type]


def test_one_engine_uses_a_checkpoint(tmp_path: Path) -> None:
    engine = cqels.Engine(checkpoint=tmp_path)
    with pytest.raises(UsageError, match="another process or engine uses"):
        cqels.Engine(checkpoint=tmp_path)
    engine.close()
    cqels.Engine(checkpoint=tmp_path).close()


def test_a_finished_engine_stays_finished_and_gives_its_results(tmp_path: Path) -> None:
    engine = cqels.Engine(checkpoint=tmp_path)
    engine.register(COUNT, name="count")
    pushed(engine, 1, 2)
    engine.finish()
    engine = cqels.Engine(checkpoint=tmp_path)
    query = engine.register(COUNT, name="count")
    assert numbers(query) == [(1, 1), (2, 2)]
    with pytest.raises(UsageError, match="streams have ended"):
        pushed(engine, 3)
    engine.close()


def test_rules_of_a_program_are_kept(tmp_path: Path) -> None:
    for _ in range(2):
        engine = cqels.Engine(checkpoint=tmp_path)
        rules = engine.register_rules(
            "Warm(X):-Boxminus[0,2]Hot(X)", facts=["Hot(a)@[0,10]"], streams=f"{EX}s", namespace=EX
        )
        query = rules.state("Warm", name="warm")
        done = engine.statistics.elements
        for second in range(3 * done, 3 * done + 3):
            engine.push(
                f"{EX}s",
                [(iri("b"), f"<{RDF.type}>", iri("Hot"))],
                time=second * SECOND,
            )
        engine.close()
    assert query.restored


@pytest.mark.usefixtures("often")
def test_a_damaged_snapshot_is_replaced_by_the_one_before(tmp_path: Path) -> None:
    calls = program(["windows", "blank", "top"])
    expected = undisturbed(tmp_path / "whole", calls)
    receiver = Receiver()
    session = Session(tmp_path / "damaged", receiver)
    session.run(calls[:-6])
    session.end()
    *_, last = sorted((tmp_path / "damaged").glob("*.snapshot"))
    data = bytearray(last.read_bytes())
    data[len(data) // 3] ^= 4
    last.write_bytes(data)
    said: list[cqels.CqelsError] = []
    session = Session(tmp_path / "damaged", receiver, report=said.append)
    assert any("its digest does not fit its content" in error.message for error in said)
    session.run(calls)
    session.end()
    assert receiver.results == expected


@pytest.mark.usefixtures("often")
def test_the_folder_follows_the_state_and_not_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged, "LEAST", 20_000)
    monkeypatch.setattr(logged, "APART", 0)
    engine = cqels.Engine(checkpoint=tmp_path, durable="off")
    engine.register(COUNT.replace("100s", "5s"), name="count").subscribe(lambda result: None)
    sizes = []
    for second in range(4000):
        engine.push(f"{EX}s", [(iri("a"), iri("v"), f'"{second % 10}"')], time=second * SECOND)
        if second % 50 == 0:
            engine._inputs._saving.wait()
            sizes.append(sum(path.stat().st_size for path in tmp_path.iterdir()))
            snapshots = [path.stat().st_size for path in tmp_path.glob("*.snapshot")]
            assert len(snapshots) <= 2
            # Two snapshots, and behind each a log that is hardly longer, but for the records while the next one was written.
            assert sizes[-1] <= 6.1 * max(snapshots)
    assert len(sizes) == 80
    engine.close()


def test_a_full_disk_refuses_a_push_and_takes_it_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(name: str, arguments: tuple[Any, ...]) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    engine = cqels.Engine(checkpoint=tmp_path)
    query = engine.register(COUNT, name="count")
    pushed(engine, 1)
    with monkeypatch.context() as patch:
        Faults(patch, full).at = 1
        with pytest.raises(StorageError, match="No space left on device; nothing was taken in"):
            pushed(engine, 2)
    assert engine.statistics.elements == 1
    pushed(engine, 2, 3)
    assert numbers(query) == [(1, 1), (2, 2), (3, 3)]
    engine.close()
    assert numbers(cqels.Engine(checkpoint=tmp_path).register(COUNT, name="count")) == [(1, 1), (2, 2), (3, 3)]


def test_a_full_disk_refuses_options_and_connections_and_takes_them_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    engine = cqels.Engine(checkpoint=tmp_path, durable="off")
    maker = engine.register(
        f"CONSTRUCT {{ ?x <{EX}v> ?v }} {{ STREAM <{EX}s> [RANGE 9s] {{ ?x <{EX}v> ?v }} }}", name="maker"
    )
    reader = engine.register(f"SELECT ?n {{ STREAM <{EX}made> [RANGE 9s] {{ ?x <{EX}v> ?n }} }}", name="reader")
    asked = (lambda: engine.declare(f"{EX}late", lateness="3s"), lambda: engine.connect(maker, f"{EX}made"))
    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "append", full)
        for ask in asked:
            with pytest.raises(StorageError, match="nothing was taken in"):
                ask()
    pushed(engine, 1)
    assert numbers(reader) == []
    for ask in asked:
        ask()
    pushed(engine, 2)
    expected = numbers(reader)
    assert expected == [(1, 2)]
    engine.close()
    engine = cqels.Engine(checkpoint=tmp_path, durable="off")
    assert numbers(engine.queries[1]) == expected
    assert engine._options.lateness_at(f"{EX}late") == 3 * SECOND
    engine.close()


def test_elements_are_taken_in_while_a_snapshot_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    write = durable_files.write_synced

    def slow(path: Path, data: bytes | memoryview) -> None:
        if ".snapshot" in path.name:
            begun.set()
            assert go_on.wait(60)
        write(path, data)

    engine = cqels.Engine(checkpoint=tmp_path / "slow")
    query = engine.register(COUNT, name="count")
    pushed(engine, 1, 2)
    monkeypatch.setattr(durable_files, "write_synced", slow)
    monkeypatch.setattr(logged, "LEAST", 100)
    monkeypatch.setattr(logged, "APART", 0)
    engine._inputs._snapshot_bytes = 0
    pushed(engine, 3)
    assert begun.wait(60)
    # The state is that before this one; later ones are behind it.
    pushed(engine, 4, 5)
    monkeypatch.setattr(durable_files, "write_synced", write)
    savepoints.copy(tmp_path / "slow", tmp_path / "copy")
    go_on.set()
    engine._inputs._saving.wait()
    savepoints.copy(tmp_path / "slow", tmp_path / "later")
    expected = [(number, number) for number in range(1, 6)]
    assert numbers(query) == expected
    engine.close()
    assert len(list((tmp_path / "copy").glob("*.log"))) == 2
    assert len(list((tmp_path / "later").glob("*.log"))) == 1
    for name in ("slow", "copy", "later"):
        engine = cqels.Engine(checkpoint=tmp_path / name)
        assert engine.statistics.elements == 5
        query = engine.register(COUNT, name="count")
        pushed(engine, 6)
        assert numbers(query)[-4:] == [*expected[2:], (6, 6)], name
        engine.close()


def test_a_copy_has_the_log_of_its_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two snapshots that come while it is read remove that log."""
    engine = cqels.Engine(checkpoint=tmp_path / "state")
    query = engine.register(COUNT, name="count")
    pushed(engine, 1, 2)
    read, at = savepoints.from_bytes, [3, 4]

    def meanwhile(data: bytes) -> Any:
        while at:
            pushed(engine, at.pop(0))
            engine.checkpoint()
        return read(data)

    monkeypatch.setattr(savepoints, "from_bytes", meanwhile)
    savepoints.copy(tmp_path / "state", tmp_path / "copy")
    expected = numbers(query)
    engine.close()
    engine = cqels.Engine(checkpoint=tmp_path / "copy")
    assert numbers(engine.queries[0]) == expected
    engine.close()


def test_a_folder_is_in_use_until_a_snapshot_is_written_also_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    engine, order = cqels.Engine(checkpoint=tmp_path, durable="off"), list[str]()
    engine.register(COUNT, name="count")
    pushed(engine, 1)
    monkeypatch.setattr(engine._inputs._saving, "wait", lambda: order.append("written"))
    engine._inputs._resources.callback(order.append, "left")
    monkeypatch.setattr(durable_files, "sync", fail)
    with pytest.raises(StorageError, match="cannot sync"):
        engine.close()
    assert order == ["written", "left"]


class Unclosable:
    """A sink that cannot be closed, as one whose disk is full."""

    changelog = False

    def __init__(self) -> None:
        self.closed = 0

    def open(self, opening: Any) -> Unclosable:
        return self

    def write(self, batch: Any) -> None: ...

    def flush(self) -> None: ...

    def commit(self) -> None: ...

    def close(self) -> None:
        self.closed += 1
        raise RunError("no room")


def test_a_sink_that_cannot_be_closed_keeps_no_query_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sinks = [Unclosable() for _ in range(4)]
    given = iter(sinks)
    monkeypatch.setattr("cqels_py.engine.query.sink_of", lambda _: next(given))
    engine = cqels.Engine(checkpoint=tmp_path)
    for name in ("one", "two", "gone"):
        engine.register(COUNT, name=name).write_to("sqlite:none")
    gone = engine.queries[-1]
    gone.write_to("sqlite:none")
    with pytest.raises(RunError, match="no room"):
        engine.unregister(gone)
    assert [sink.closed for sink in sinks] == [0, 0, 1, 1]
    assert [query.name for query in engine.queries] == ["one", "two"]
    pushed(engine, 1)
    engine.checkpoint()
    with pytest.raises(RunError, match="no room"):
        engine.close()
    assert [sink.closed for sink in sinks] == [1, 1, 1, 1]
    engine = cqels.Engine(checkpoint=tmp_path)
    assert [query.name for query in engine.queries] == ["one", "two"]
    engine.close()


def test_a_snapshot_that_cannot_be_written_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes | memoryview) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    said: list[cqels.CqelsError] = []
    engine = cqels.Engine(checkpoint=tmp_path, report=said.append)
    engine.register(COUNT, name="count").subscribe(lambda result: None)
    monkeypatch.setattr(logged, "LEAST", 300)
    monkeypatch.setattr(logged, "APART", 0)
    engine._inputs._snapshot_bytes = 0
    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "write_synced", full)
        for second in range(8):
            pushed(engine, second)
            while engine._inputs._saving.busy:
                time.sleep(0.001)
        assert {error.message.split(": ")[-1] for error in said} == {"No space left on device"}
        with pytest.raises(StorageError, match="No space left on device"):
            engine.checkpoint()
    assert [path.name for path in tmp_path.glob("*.snapshot")] == ["000000000000.snapshot"]
    pushed(engine, 8)
    engine.checkpoint()
    # The first snapshot is one of the last two: all logs are kept.
    assert len(list(tmp_path.glob("*.snapshot"))) == 2
    *_, last = sorted(tmp_path.glob("*.snapshot"))
    last.write_bytes(b"damaged")
    engine.close()
    engine = cqels.Engine(checkpoint=tmp_path, report=said.append)
    assert engine.statistics.elements == 9
    query = engine.register(COUNT, name="count")
    pushed(engine, 9)
    assert numbers(query)[-1] == (10, 10)
    engine.close()


@pytest.mark.parametrize("ends", [True, False], ids=["the process ends", "the disk is full"])
def test_a_part_of_a_snapshot_takes_no_room_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    write = durable_files.write_synced

    def full(path: Path, data: bytes | memoryview, mode: int = 0o666) -> None:
        if path.name == "manifest.aside":
            write(path, data, mode)
            return
        path.write_bytes(data[: len(data) // 2])
        raise Crash if ends else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    engine = cqels.Engine(checkpoint=tmp_path)
    engine.register(COUNT, name="count")
    pushed(engine, 1)
    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "write_synced", full)
        with pytest.raises(Crash if ends else StorageError):
            engine.checkpoint()
    engine.close()
    assert bool(list(tmp_path.glob("*.aside"))) == ends
    engine = cqels.Engine(checkpoint=tmp_path)
    assert not list(tmp_path.glob("*.aside"))
    engine.close()


KILLED = """
import sys, json, cqels_py as cqels
folder, out, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
from cqels_py.engine.durable import logged, registration
logged.LEAST, logged.APART = 4000, 0
engine = cqels.Engine(checkpoint=folder, durable=sys.argv[4])
query = engine.register(QUERY, name="q")
known = [json.loads(line) for line in open(out)] if __import__("os").path.exists(out) else []
file = open(out, "a", buffering=1)
query.subscribe(lambda r: file.write(json.dumps([r.number, r.time, sorted((k, v.n3()) for k, v in r.bindings.items())]) + "\\n"),
                from_number=len(known) + 1)
for i in range(engine.statistics.elements, count):
    engine.push("http://ex.org/s", [(f"<http://ex.org/{i % 7}>", "<http://ex.org/v>", f'"{i * 31 % 11}"')], time=i * 300_000)
engine.finish()
"""


@pytest.mark.parametrize("mode", ["sync", pytest.param("off", marks=long)])
def test_processes_that_are_killed_are_followed_by_one_that_completes_them(mode: str, tmp_path: Path) -> None:
    text = f"{PREFIX}SELECT ?x (COUNT(*) AS ?n) (MAX(?v) AS ?m) {{ STREAM :s [RANGE 6s] {{ ?x :v ?v }} }} GROUP BY ?x"
    script = textwrap.dedent(KILLED).replace("QUERY", repr(text))

    def command(name: str) -> list[str]:
        return [sys.executable, "-c", script, str(tmp_path / name), str(tmp_path / f"{name}.out"), "400", mode]

    subprocess.run(command("whole"), check=True)
    random = Random(6)
    kills = 0
    while kills < 2:
        process = subprocess.Popen(command("killed"))
        found = tmp_path / "killed.out"
        wanted = (len(found.read_bytes()) if found.exists() else 0) + random.randrange(3000, 12000)
        while process.poll() is None and (not found.exists() or found.stat().st_size < wanted):
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -9
        kills += 1
    subprocess.run(command("killed"), check=True)
    assert (tmp_path / "killed.out").read_text() == (tmp_path / "whole.out").read_text()


def test_a_query_over_streams_of_a_former_one_begins_anew(tmp_path: Path) -> None:
    """The event time of the former is not that of the new one, as it would be without a restart."""
    found = []
    for restart in (False, True):
        engine = cqels.Engine(checkpoint=tmp_path / str(restart), lateness=5 * SECOND)
        query = engine.register(COUNT, name="former")
        pushed(engine, 20, 21)
        engine.checkpoint()
        if restart:
            engine.close()
            engine = cqels.Engine(checkpoint=tmp_path / str(restart), lateness=5 * SECOND)
            (query,) = engine.queries
        engine.unregister(query)
        query = engine.register(COUNT, name="latter")
        pushed(engine, 2, 30)
        engine.finish()
        found.append((numbers(query), engine.statistics.late))
    assert found[0] == found[1]
    assert found[0][0]


@pytest.mark.usefixtures("often")
def test_decisions_by_the_clock_are_made_again_as_they_were(tmp_path: Path) -> None:
    """Elements of now, of before, and of later, at which time goes on with the clock; another process has another clock."""
    engine = cqels.Engine(checkpoint=tmp_path, clock="wall", clock_delay=1000, ahead=30 * SECOND)
    query = engine.register(COUNT.replace("100s", "40ms"), name="count", changelog=True)
    found: list[tuple[int, int, int]] = []
    query.subscribe(lambda result: found.append((result.number, result.time, result.sign)))
    for offset in (0, -20, 10, -SECOND, 50_000, 90 * SECOND, 30_000, 0):
        now = time.time_ns() // 1000
        engine.push(f"{EX}s", [(iri("a"), iri("v"), f'"{offset}"')], time=now + offset)
        time.sleep(0.02)
    engine.close()
    statistics = engine.statistics
    assert statistics.late
    assert statistics.ahead
    engine = cqels.Engine(checkpoint=tmp_path, clock="wall", clock_delay=1000, ahead=30 * SECOND)
    engine._clocks.stop()
    (query,) = engine.queries
    again = [(result.number, result.time, result.sign) for result in query.results() if result.number <= len(found)]
    assert again == found
    assert engine.statistics.elements == statistics.elements
    assert (engine.statistics.late, engine.statistics.ahead) == (statistics.late, statistics.ahead)
    engine.close()


def test_a_clock_that_finds_nothing_due_is_not_logged(tmp_path: Path) -> None:
    found = []
    for restart in (False, True):
        options: dict[str, Any] = {"checkpoint": tmp_path / str(restart), "clock": "wall", "clock_delay": 1000}
        engine = cqels.Engine(**options)
        engine.register(COUNT.replace("100s", "100h"), name="count").subscribe(lambda result: None)
        now = time.time_ns() // 1000
        engine.push(f"{EX}s", [(iri("a"), iri("v"), '"1"')], time=now)
        looks = []
        follow = engine._runner.follow
        engine._runner.follow = lambda *given, follow=follow, looks=looks: (looks.append(given), follow(*given))
        before = engine._inputs._log.size
        while len(looks) < 4:
            time.sleep(0.01)
        assert engine._inputs._log.size == before
        if restart:
            engine.close()
            engine = cqels.Engine(**options)
        # Time has passed it: it is late, with or without a restart.
        engine.push(f"{EX}s", [(iri("a"), iri("v"), '"2"')], time=now + 1)
        engine.close()
        engine = cqels.Engine(**options)
        found.append((engine.statistics.elements, engine.statistics.late))
        engine.close()
    assert found == [(2, 1), (2, 1)]


def files_of(tmp_path: Path) -> dict[str, str]:
    """Two streams with blank nodes that belong to the whole file."""
    random = Random(9)
    found = {}
    for name in "st":
        lines = ["time,subject,predicate,object"]
        for second in range(40):
            node = random.choice(["_:n", "_:m", iri("a")])
            lines.append(f"2024-01-01T00:00:{second:02}Z,{iri(random.choice('ab'))},{iri('node')},{node}")
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(lines) + "\n")
        found[EX + name] = str(path)
    return found


@pytest.mark.usefixtures("often")
def test_a_run_over_files_goes_on_behind_what_was_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = files_of(tmp_path)
    texts = {
        "nodes": f"{PREFIX}SELECT ?x ?b {{ STREAM :s [COUNT 5] {{ ?x :node ?b }} STREAM :t [COUNT 3] {{ ?y :node ?b }} }}",
        "step": f"{PREFIX}SELECT ?x (COUNT(*) AS ?n) {{ STREAM :t [RANGE 7s STEP 5s] {{ ?x :node ?b }} }} GROUP BY ?x",
    }

    def run(folder: Path, receiver: Receiver) -> None:
        engine = cqels.Engine(checkpoint=folder, batch=5)
        try:
            for name, text in texts.items():
                query = engine.register(text, name=name)
                following = len(receiver.results.get(name, ())) + 1
                query.subscribe(lambda result, name=name: receiver.take(name, result), from_number=following)
            engine.run(sources)
        finally:
            with contextlib.suppress(Crash):
                engine._inputs._saving.wait()
            engine._inputs._resources.close()

    faults = Faults(monkeypatch, crash)
    whole = Receiver()
    run(tmp_path / "whole", whole)
    operations = faults.count
    for at in range(4, operations, step(11)):
        receiver = Receiver()
        for place in (at, 9):
            faults.count, faults.at = 0, place
            with contextlib.suppress(Crash):
                run(tmp_path / str(at), receiver)
        faults.at = -1
        run(tmp_path / str(at), receiver)
        assert receiver.results == whole.results, at
        # All has been taken in: once more changes nothing.
        run(tmp_path / str(at), receiver)
        assert receiver.results == whole.results, at
    with open(sources[f"{EX}s"], "w") as file:
        file.write("time,subject,predicate,object\n")
    with pytest.raises(UsageError, match="has become shorter since 40 elements of it were taken in"):
        run(tmp_path / "whole", whole)


def test_the_answers_of_endpoints_are_kept(tmp_path: Path) -> None:
    name = (URIRef(f"{EX}a"), URIRef(f"{EX}name"), Literal("A"))
    with endpoint([name]) as remote:
        text = f"{PREFIX}SELECT ?x ?v ?name {{ STREAM :s [COUNT 2] {{ ?x :v ?v }} SERVICE <{remote.url}> {{ ?x :name ?name }} }}"
        engine = cqels.Engine(checkpoint=tmp_path)
        engine.register(text, name="named")
        pushed(engine, 1)
        engine.close()
    # The endpoint is no longer there.
    for _ in range(2):
        engine = cqels.Engine(checkpoint=tmp_path)
        query = engine.register(text, name="named")
        assert query.restored
        pushed(engine, 2 + engine.statistics.elements)
        assert [str(result.bindings["name"]) for result in query.results()][-1] == "A"
        engine.checkpoint()
        engine.close()
    blank = (URIRef(f"{EX}a"), URIRef(f"{EX}name"), BNode())
    with endpoint([blank]) as remote:
        text = f"{PREFIX}SELECT ?x ?v ?name {{ STREAM :s [COUNT 2] {{ ?x :v ?v }} SERVICE <{remote.url}> {{ ?x :name ?name }} }}"
        engine = cqels.Engine(checkpoint=tmp_path / "other")
        with pytest.raises(UnsupportedQuery, match="an answer of SERVICE has a blank node"):
            engine.register(text)
        engine.close()


def test_a_query_that_was_stopped_stays_away(tmp_path: Path) -> None:
    engine = cqels.Engine(checkpoint=tmp_path, max_state=500_000)
    engine.register(COUNT, name="small")
    engine.register(f"{PREFIX}SELECT ?x ?v {{ STREAM :s [RANGE 100000s] {{ ?x :v ?v }} }}", name="large").subscribe(
        lambda r: None
    )
    times = [second * SECOND for second in range(40_000)]
    rows = pa.table(
        {
            "time": pa.array(times, pa.timestamp("us", tz="UTC")),
            "subject": [iri(f"x{second}") for second in times],
            "predicate": [iri("v")] * len(times),
            "object": ['"1"'] * len(times),
        }
    )
    with pytest.raises(cqels.RunError, match="has been stopped"):
        for start in range(0, len(times), 4000):
            engine.push_batch(f"{EX}s", rows.slice(start, 4000))
    taken = engine.statistics.elements
    engine.close()
    engine = cqels.Engine(checkpoint=tmp_path, max_state=500_000)
    assert [query.name for query in engine.queries] == ["small"]
    assert engine.statistics.elements == taken
    engine.close()


def test_threads_push_at_once_and_each_push_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = [0]
    sync = durable_files.sync

    def counted(descriptor: int) -> None:
        syncs[0] += 1
        sync(descriptor)

    monkeypatch.setattr(durable_files, "sync", counted)
    engine = cqels.Engine(checkpoint=tmp_path, durable="batch", lateness=10**9)
    found: list[int] = []
    engine.register(f"{PREFIX}SELECT ?x ?v {{ STREAM :s [COUNT 500] {{ ?x :v ?v }} }}", name="all").subscribe(
        lambda result: found.append(result.number)
    )

    def push(thread: int) -> None:
        for number in range(20):
            engine.push(f"{EX}s", [(iri(f"t{thread}"), iri("v"), f'"{number}"')], time=number)

    threads = [threading.Thread(target=push, args=(thread,)) for thread in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert syncs[0] < 120
    engine.finish()
    assert found == list(range(1, 121))
    again = cqels.Engine(checkpoint=tmp_path, durable="batch", lateness=10**9)
    assert again.statistics.elements == 120
    results = list(again.queries[0].results())
    assert {(str(result.bindings["x"]), str(result.bindings["v"])) for result in results} == {
        (f"{EX}t{thread}", str(number)) for thread in range(6) for number in range(20)
    }
    again.close()


def test_a_snapshot_copies_arrays_that_queries_share_once() -> None:
    shared, own = np.arange(3), np.arange(3)
    found = copied({"query/0/scan": {"ids": shared}, "query/1/scan": {"ids": shared}, "query/2/scan": {"ids": own}})
    first, second, third = (found[f"query/{place}/scan"]["ids"] for place in range(3))
    assert first is second and first is not third
    shared[0] = 9
    assert np.array_equal(first, [0, 1, 2]) and np.array_equal(third, own)
