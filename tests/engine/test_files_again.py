"""Runs over files in an engine with a checkpoint: their elements are not logged, but read again behind the last snapshot.

A process that ends at any operation on the checkpoint's files is followed by others that run the same program. All of them together
tell the results of one that was not disturbed, each number once.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import cqels_py as cqels
from cqels_py.checkpoints import log
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.engine.durable import logged
from cqels_py.errors import CqelsError, DataError, UsageError
from cqels_py.sources import marked_file
from tests.support.amount import step
from tests.support.faults import Crash, Faults, PowerFailures, crash

EX = "http://ex.org/"
S, T = f"{EX}s", f"{EX}t"
PREFIX = f"PREFIX : <{EX}> "
SECOND = 1_000_000
QUERIES = {
    "join": "SELECT * { STREAM :s [RANGE 6s] { ?x :v ?a } STREAM :t [COUNT 4] { ?x :v ?b } }",
    "step": "SELECT ?x (COUNT(*) AS ?n) { STREAM :t [RANGE 7s STEP 5s] { ?x :v ?b } } GROUP BY ?x",
    "nodes": "SELECT ?x ?b { STREAM :s [COUNT 5] { ?x :v ?b } FILTER(isBlank(?b)) }",
    "match": "SELECT ?x ?a ?b { MATCH WITHIN 8s { EVENT ON :s { ?x :v ?a } SEQ EVENT ON :t { ?x :v ?b } } }",
    "random": "REGISTER RSTREAM :random AS SELECT ?x (RAND() AS ?r) FROM NAMED WINDOW :w ON :s [RANGE PT6S STEP PT2S] "
    "WHERE { WINDOW :w { ?x :v ?b } }",
}
STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"


@dataclass
class Receiver:
    """The results of each query, by number, beyond the end of a process."""

    results: dict[str, dict[int, Any]] = field(default_factory=dict)

    def take(self, name: str, result: cqels.Result) -> None:
        known = self.results.setdefault(name, {})
        assert result.number == len(known) + 1, "each number once, in order"
        known[result.number] = (
            result.time,
            result.sign,
            sorted((each, str(term)) for each, term in result.bindings.items()),
        )


class Process:
    """An engine with some queries, until it ends."""

    def __init__(self, folder: Path | None, receiver: Receiver, names: Sequence[str], **options: Any) -> None:
        self.engine = cqels.Engine(checkpoint=folder, **{"batch": 5, **options})
        try:
            for name in names:
                query = self.engine.register(
                    PREFIX + QUERIES[name], name=name, changelog="REGISTER" not in QUERIES[name]
                )
                following = len(receiver.results.get(name, ())) + 1
                query.subscribe(lambda result, name=name: receiver.take(name, result), from_number=following)
        except Crash:
            self.__exit__()
            raise

    def __enter__(self) -> cqels.Engine:
        return self.engine

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Crash):
            self.engine._inputs._saving.wait()
        self.engine._inputs._resources.close()


def iri(name: str) -> str:
    return f"<{EX}{name}>"


def stamp(second: float) -> str:
    return f"2024-01-01T00:{int(second) // 60:02}:{second % 60:06.3f}Z"


def written(folder: Path, form: str, seed: int = 9, length: int = 40) -> dict[str, str]:
    """Two streams with blank nodes that belong to the whole file, some of their elements at the same instants."""
    random = Random(seed)
    found = {}
    for name in "st":
        elements = []
        for number in range(length):
            second = number / 2 + 30
            value = random.choice(["_:n", "_:m", iri("a"), '"7"'])
            elements.append((stamp(second), iri(random.choice("abc")), value))
        path = folder / f"{name}.{form}"
        content = text(elements, form.removesuffix(".gz")).encode()
        path.write_bytes(gzip.compress(content) if form.endswith(".gz") else content)
        found[EX + name] = str(path)
    return found


def text(elements: Sequence[tuple[str, str, str]], form: str) -> str:
    """Elements of one triple each, in a format of text."""
    date = "<http://www.w3.org/2001/XMLSchema#dateTime>"
    if form == "csv":
        rows = [f"{time},{x},{iri('v')},{value.replace(chr(34), '')}" for time, x, value in elements]
        rows = [row.removesuffix(",7") + ',"""7"""' if row.endswith(",7") else row for row in rows]
        return "\n".join(["time,subject,predicate,object", *rows]) + "\n"
    if form == "ndjson":
        return "".join(
            json.dumps({"@id": x[1:-1], STAMP[1:-1]: {"@value": time, "@type": date[1:-1]}, f"{EX}v": json_term(value)})
            + "\n"
            for time, x, value in elements
        )
    lines = []
    for number, (time, x, value) in enumerate(elements):
        graph = iri(f"g{number}")
        if form in ("ttl", "nt"):
            # One subject is an element.
            lines.append(f'{graph} {STAMP} "{time}"^^{date} .\n{graph} {iri("v")} {value} .')
        else:
            lines.append(f'{graph} {STAMP} "{time}"^^{date} .')
            lines.append(
                f"{x} {iri('v')} {value} {graph} ." if form == "nq" else f"{graph} {{ {x} {iri('v')} {value} }}"
            )
    return "\n".join(lines) + "\n"


def json_term(value: str) -> Any:
    return {"@id": value.strip("<>")} if value[0] in "<_" else value.strip('"')


def table_of(path: Path) -> pa.Table:
    """The rows of a file of `text`."""
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    times = pa.array([datetime.fromisoformat(row[0]) for row in rows], pa.timestamp("us", tz="UTC"))
    objects = [row[3].replace('"""', '"') for row in rows]
    return pa.table(
        {"time": times, "subject": [row[1] for row in rows], "predicate": [row[2] for row in rows], "object": objects}
    )


def as_tables(sources: dict[str, str], form: str) -> dict[str, str]:
    """CSV files as Parquet, Arrow IPC, or rows for a map."""
    found = {}
    for stream, name in sources.items():
        path = Path(name)
        table = table_of(path)
        target = path.with_suffix(f".{form}")
        if form == "parquet":
            parquet.write_table(table, target, row_group_size=7)
        else:
            with pa.ipc.new_stream(target, table.schema) as out:
                out.write_table(table, max_chunksize=7)
        found[stream] = str(target)
    return found


@pytest.fixture(autouse=True)
def unlogged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also small files are left out of the log, and read in many chunks, and random values are the same in all engines."""
    monkeypatch.setattr(logged, "pays", lambda files, state: True)
    monkeypatch.setattr(marked_file, "CHUNK_BYTES", 600)
    monkeypatch.setattr("cqels_py.engine.durable.registration.new_seed", lambda: "5e" * 16)


Program = Callable[[cqels.Engine], None]


def told(
    folder: Path, names: Sequence[str], program: Program, faults: Faults, at: Sequence[int], **options: Any
) -> Any:
    """The results of processes that end at these operations, and of a last one."""
    receiver = Receiver()
    for place in at:
        faults.count, faults.at = 0, place
        with contextlib.suppress(Crash), Process(folder, receiver, names, **options) as engine:
            program(engine)
    faults.at = -1
    for _ in range(2):
        # The second one finds nothing to do.
        with Process(folder, receiver, names, **options) as engine:
            program(engine)
    return receiver.results


def operations(folder: Path, names: Sequence[str], program: Program, faults: Faults, **options: Any) -> tuple[int, Any]:
    faults.count, faults.at = 0, -1
    receiver = Receiver()
    with Process(folder, receiver, names, **options) as engine:
        program(engine)
    return faults.count, receiver.results


def log_bytes(folder: Path) -> int:
    return sum((folder / log.name_of(number)).stat().st_size for number in log.numbers(folder))


def kinds(folder: Path) -> list[int]:
    return [record.kind for number in log.numbers(folder) for record in log.look(folder, number)]


class Clock:
    """Seconds that pass as a test says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def saving_every(engine: cqels.Engine, elements: int) -> Callable[[Any], None]:
    """A `progress` after which, each so many elements, ten minutes have passed."""
    clock = engine._inputs.clock = Clock()
    engine._inputs._saved_at = 0.0

    def look(statistics: Any) -> None:
        if statistics.elements % elements == 0:
            engine._inputs._saving.wait()
            clock.now += logged.MOST_APART

    return look


def reading(sources: dict[str, str], **how: Any) -> Program:
    def program(engine: cqels.Engine) -> None:
        engine.run(sources, progress=saving_every(engine, 10), **how)

    return program


@pytest.mark.parametrize(
    ("form", "names", "places"),
    [("csv", ["join", "nodes", "random"], 9), ("nq", ["match", "step"], 3), ("nq.gz", ["match"], 2)],
)
def test_a_process_may_end_at_any_operation(
    form: str, names: list[str], places: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = written(tmp_path, form, length=24)
    program = reading(sources)
    faults = Faults(monkeypatch, crash)
    count, expected = operations(tmp_path / "whole", names, program, faults)
    plain = Receiver()
    Process(None, plain, names).engine.run(sources)
    assert expected == plain.results
    assert len(expected[names[0]]) > 10
    for at in range(2, count + 1, -(-count // places)):
        assert told(tmp_path / str(at), names, program, faults, [at, 7]) == expected, at


MAP = """PREFIX : <http://ex.org/>
CONSTRUCT { ?x :v ?value } WHERE { BIND(IRI(REPLACE(?subject, "[<>]", "")) AS ?x) BIND(?object AS ?value) }
"""


@pytest.mark.parametrize("form", ["ttl", "trig", "nt", "ndjson", "csv.gz", "nq", "parquet", "arrow", "map"])
def test_each_format_is_read_again(form: str, tmp_path: Path) -> None:
    """A process ends in the middle, after the last snapshot; the next one ends soon behind that."""
    tables = form in ("parquet", "arrow", "map")
    more: dict[str, Any] = {"time_predicates": {S: STAMP[1:-1]}} if form in ("ttl", "nt") else {}
    sources = written(tmp_path, "csv" if tables else form)
    if form == "map":
        (tmp_path / "map.rq").write_text(MAP)
        more["maps"] = {S: str(tmp_path / "map.rq")}
    elif tables:
        sources = as_tables(sources, form)
    whole, found = Receiver(), Receiver()
    Process(None, whole, ["nodes"]).engine.run({S: sources[S]}, **more)
    draw = Random(len(form))
    for stop in [draw.randrange(12, 39), draw.randrange(30, 39), None]:
        with contextlib.suppress(Crash), Process(tmp_path / "state", found, ["nodes"], batch=3) as engine:
            look = saving_every(engine, 6)

            def stops(statistics: Any, stop: int | None = stop, look: Any = look) -> None:
                look(statistics)
                if stop is not None and statistics.elements >= stop:
                    raise Crash

            engine.run({S: sources[S]}, progress=stops, **more)
            assert engine.statistics.elements == 40
    assert found.results == whole.results
    if form != "map":
        assert len(found.results["nodes"]) > 10
    assert logged.Kind.READ not in kinds(tmp_path / "state")


def test_a_machine_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = reading(written(tmp_path, "csv", length=24))
    _, expected = operations(tmp_path / "whole", ["join"], program, Faults(monkeypatch, crash))
    power = PowerFailures(monkeypatch, lambda synced, written: synced)
    faults = Faults(monkeypatch, power.fail)
    for at in range(9, 60, 10):
        assert told(tmp_path / str(at), ["join"], program, faults, [at, 12]) == expected, at


@pytest.mark.parametrize("seed", range(8))
def test_drawn_sources_go_on_at_their_positions(seed: int, tmp_path: Path) -> None:
    """Several files out of order, with wrong clocks and malformed lines, some in formats that have no positions."""
    draw = Random(seed)
    options: dict[str, Any] = {
        "lateness": draw.choice([0, 4 * SECOND]),
        "ahead": draw.choice([None, 20 * SECOND]),
        "on_error": "skip",
        "blank_nodes": draw.choice(["source", "element"]),
        "batch": draw.choice([1, 4, None]),
        "report": lambda error: None,
    }
    name = draw.choice(["join", "nodes", "match"])
    sources = {}
    for stream in [S] if name == "nodes" else [S, T]:
        elements, second = [], 30.0
        for _ in range(draw.randrange(20, 90)):
            second += draw.choice([0, 0.5, 1, 2])
            jump = draw.choice([0, 0, 0, -3, -6, 30])
            elements.append(
                (stamp(second + jump), iri(draw.choice("abc")), draw.choice(["_:n", "_:m", iri("a"), '"7"']))
            )
        form = draw.choice(["nq", "nq", "nq", "csv"])
        lines = text(elements, form).splitlines(keepends=True)
        for _ in range(draw.randrange(3)):
            lines.insert(draw.randrange(2, len(lines)), "nothing\n")
        sources[stream] = str(tmp_path / f"{stream[-1]}.{form}")
        Path(sources[stream]).write_text("".join(lines))
    whole, found = Receiver(), Receiver()
    plain = Process(None, whole, [name], **options).engine
    plain.run(sources)
    total = plain.statistics
    for end in range(6):
        with contextlib.suppress(Crash), Process(tmp_path / "state", found, [name], **options) as engine:
            stop = draw.randrange(engine.statistics.elements + 1, total.elements + 5) if end < 5 else None
            look = saving_every(engine, draw.randrange(1, 9))

            def stops(statistics: Any, stop: int | None = stop, look: Any = look) -> None:
                look(statistics)
                if stop is not None and statistics.elements >= stop:
                    raise Crash

            engine.run(sources, progress=stops)
            now = engine.statistics
            assert (now.elements, now.late, now.ahead, now.malformed) == (
                total.elements,
                total.late,
                total.ahead,
                total.malformed,
            )
    assert found.results == whole.results


def test_what_is_before_a_position_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = written(tmp_path, "nq", length=400)
    stopped_within(tmp_path / "state", sources, stop=600)
    begun = []
    read = marked_file.read_chunks

    def noted(location: str, *how: Any, start: int) -> Any:
        begun.append(start)
        return read(location, *how, start=start)

    monkeypatch.setattr(marked_file, "read_chunks", noted)
    with Process(tmp_path / "state", Receiver(), []) as engine:
        assert engine.statistics.elements == 590
        engine.run(sources)
        assert engine.statistics.elements == 800
    size = os.path.getsize(sources[S])
    assert all(size * 0.7 < start < size * 0.8 for start in begun)


def element(second: int) -> list[tuple[str, str, str]]:
    return [(iri("a"), iri("v"), f'"{second}"')]


def pushing_behind(sources: dict[str, str]) -> Program:
    """History from files, then pushes, then the files have grown, and more."""

    def program(engine: cqels.Engine) -> None:
        if engine.statistics.elements < 48:
            engine.run(sources, progress=saving_every(engine, 10), more=True)
        for number in range(48, 52):
            if engine.statistics.elements == number:
                engine.push(S, element(number), time=stamp(number + 60))
                engine.flush()
        if len(engine.queries) == 1:
            engine.register(PREFIX + QUERIES["nodes"], name="later")
        engine.advance(stamp(130))

    return program


def test_what_comes_behind_files_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = pushing_behind(written(tmp_path, "csv", length=24))
    faults = Faults(monkeypatch, crash)
    count, expected = operations(tmp_path / "whole", ["join"], program, faults)
    assert len(expected["join"]) > 40
    for at in range(count // 2, count + 1, step(6)):
        found = told(tmp_path / str(at), ["join"], program, faults, [at, 9])
        assert found["join"] == expected["join"], at


def test_nothing_comes_before_files_that_were_being_read(tmp_path: Path) -> None:
    sources = written(tmp_path, "csv")

    def stops(statistics: Any) -> None:
        if statistics.elements == 30:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt), Process(tmp_path / "state", Receiver(), ["join"]) as engine:
        engine.run(sources, progress=stops)
    with Process(tmp_path / "state", Receiver(), [], batch=None) as engine:
        assert engine.statistics.elements == 0
        with pytest.raises(
            UsageError, match=r"was reading .*s.csv, .*t.csv, and had results .* call run\(\) with the same"
        ):
            engine.push(S, element(1), time=stamp(1))
        engine.run(sources)
        engine.push(S, element(1), time=stamp(99))
        assert engine.statistics.elements == 81


def test_a_push_within_a_run_comes_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a subscriber, which pushes once; before and behind it elements are in no log, those between are."""
    sources = written(tmp_path, "csv")
    monkeypatch.setattr(logged, "LEAST", 1500)
    monkeypatch.setattr(logged, "APART", 0)
    receivers = []
    for stopped in (False, True):
        receiver, pushed = Receiver(), []

        def program(engine: cqels.Engine, pushed: list[int] = pushed, stopped: bool = stopped) -> None:
            def push(result: cqels.Result) -> None:
                if result.number == 9 and not pushed:
                    pushed.append(engine.statistics.elements)
                    engine.push(T, element(3), time=result.time)

            def stops(statistics: Any) -> None:
                if stopped and statistics.elements in (41, 71):
                    raise Crash

            query = next(each for each in engine.queries if each.name == "join")
            query.subscribe(push)
            engine.run(sources, progress=stops)

        for _ in range(4):
            with contextlib.suppress(Crash), Process(tmp_path / str(stopped), receiver, ["join"]) as engine:
                program(engine)
                break
            stopped = stopped and engine.statistics.elements < 71
        receivers.append(receiver.results)
        assert len(pushed) == 1
    assert receivers[0] == receivers[1]
    assert len(receivers[0]["join"]) > 40


class Live:
    """Elements one by one, from a position on."""

    resumes = True

    def __init__(self, seconds: Sequence[int]) -> None:
        self.seconds = seconds
        self.idle = False

    def open(self, opening: Any) -> Live:
        self._opening, self._at = opening, opening.position or 0
        return self

    def poll(self) -> Any:
        if self._at == len(self.seconds):
            return None
        second = self.seconds[self._at]
        self._at += 1
        return self._opening.elements([((1704067200 + second) * SECOND, element(second))])

    def position(self) -> int:
        return self._at

    def commit(self, position: object) -> None: ...

    def close(self) -> None: ...


def test_files_beside_a_live_source_are_logged_once_that_speaks(tmp_path: Path) -> None:
    files = written(tmp_path, "csv", length=60)
    found = []
    for stop in (0, 20, 40, 55):
        folder, receiver = tmp_path / str(stop), Receiver()
        live = Live(range(40, 57))
        for place in range(2):
            with contextlib.suppress(Crash), Process(folder, receiver, ["join"], batch=1) as engine:

                def stops(statistics: Any, stop: int = stop, place: int = place) -> None:
                    if statistics.elements == stop and not place:
                        raise Crash

                engine.run({S: files[S], T: live}, progress=stops)
                assert engine.statistics.elements == 77
        assert {logged.Kind.UNLOGGED, logged.Kind.READ} <= {*kinds(folder)}
        found.append(receiver.results)
    assert found[1:] == found[:1] * 3
    assert len(found[0]["join"]) > 10


@pytest.mark.parametrize("form", ["csv", "nq"])
def test_the_log_of_files_stays_small(form: str, tmp_path: Path) -> None:
    sources = written(tmp_path, form, length=3000)
    most = 0
    with Process(tmp_path / "state", Receiver(), ["join"], batch=200) as engine:

        def look(statistics: Any) -> None:
            nonlocal most
            most = max(most, log_bytes(tmp_path / "state"))

        engine.run(sources, progress=look)
        assert engine.statistics.elements == 6000
    # The query alone takes a part of it.
    assert most < 3000
    assert sum(os.path.getsize(path) for path in sources.values()) > 100 * most


def test_small_files_are_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with Process(tmp_path / "state", Receiver(), ["join"]) as engine:
        engine.run(written(tmp_path, "csv"))
    assert logged.Kind.UNLOGGED not in kinds(tmp_path / "state")
    with Process(tmp_path / "state", Receiver(), ["join"]) as engine:
        assert engine.statistics.elements == 80


def test_a_snapshot_comes_after_ten_minutes(tmp_path: Path) -> None:
    sources = written(tmp_path, "csv")
    numbers = []
    with Process(tmp_path / "state", Receiver(), ["join"]) as engine:
        inputs, clock = engine._inputs, Clock()
        inputs.clock, inputs._saved_at = clock, 0.0

        def look(statistics: Any) -> None:
            inputs._saving.wait()
            numbers.append(inputs._number)
            clock.now += 100

        engine.run(sources, progress=look)
    assert numbers[:13] == [0] * 6 + [1] * 6 + [2]
    with Process(tmp_path / "state", Receiver(), []) as engine:
        assert engine.statistics.elements == 80


# --- what cannot go on ------------------------------------------------------------------------------------------------


def stopped_within(folder: Path, sources: dict[str, str], stop: int = 30, **options: Any) -> None:
    """A process that ends there, or after it; its last snapshot may be some elements before."""

    def stops(statistics: Any) -> None:
        if statistics.elements >= stop:
            engine._inputs._saving.wait()
            raise Crash

    with contextlib.suppress(Crash), Process(folder, Receiver(), ["join"], **options) as engine:
        look = saving_every(engine, 10)
        engine.run(sources, progress=lambda statistics: (look(statistics), stops(statistics)))


@pytest.mark.parametrize("change", ["shorter", "other", "gone", "longer", "touched"])
def test_a_file_that_has_changed_is_refused(change: str, tmp_path: Path) -> None:
    sources = written(tmp_path, "csv")
    stopped_within(tmp_path / "state", sources)
    path = Path(sources[S])
    lines = path.read_text().splitlines(keepends=True)
    expected: str | None = None
    if change == "shorter":
        path.write_text("".join(lines[:20]))
        expected = "s.csv has become shorter since 10 elements of it were taken in"
    elif change == "other":
        path.write_text("".join([*lines[:5], lines[5].replace("ex.org", "ex.net"), *lines[6:]]))
        os.utime(path, ns=(1, 1))
        expected = (
            "s.csv has changed since 10 elements of it were taken in, and the run cannot go on behind them: restore"
        )
    elif change == "gone":
        path.rename(tmp_path / "elsewhere")
        expected = (
            "s.csv is missing, and the run has to go on behind the 10 elements of it that were taken in: put it back"
        )
    elif change == "longer":
        path.write_text("".join([*lines, lines[-1].replace("00:49.500", "01:49.500")]))
    else:
        os.utime(path, ns=(1, 1))
    with Process(tmp_path / "state", Receiver(), []) as engine:
        assert engine.statistics.elements == 20
        if expected is not None:
            with pytest.raises(UsageError, match=expected):
                engine.run(sources)
            assert engine.statistics.elements == 20
        else:
            engine.run(sources)
            assert engine.statistics.elements == 80 + (change == "longer")
    if change == "gone":
        (tmp_path / "elsewhere").rename(path)
        with Process(tmp_path / "state", Receiver(), []) as engine:
            engine.run(sources)
            assert engine.statistics.elements == 80


def test_a_damaged_snapshot_behind_files(tmp_path: Path) -> None:
    """The one before it leads to the same, by reading; but not to inputs that came behind."""
    sources = written(tmp_path, "csv")
    receivers = Receiver(), Receiver()
    for folder, receiver in zip("ab", receivers, strict=True):
        with Process(tmp_path / folder, receiver, ["join"]) as engine:
            engine.run(sources)
            if folder == "b":
                engine.push(S, element(1), time=stamp(99))
                engine.flush()
        damaged = max((tmp_path / folder).glob("*.snapshot"))
        damaged.write_bytes(damaged.read_bytes()[:-9])
    reports: list[CqelsError] = []
    with Process(tmp_path / "a", receivers[0], ["join"], report=reports.append) as engine:
        assert "the one before it is" in str(reports[0])
        before = dict(receivers[0].results["join"])
        engine.run(sources)
        assert engine.statistics.elements == 80
        assert receivers[0].results["join"] == before
    files = {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()}
    # However often it is tried.
    for _ in range(2):
        with pytest.raises(
            StorageError, match=r"snapshot 1 is not used.* Inputs since then follow elements that are in no log"
        ):
            cqels.Engine(checkpoint=tmp_path / "b", report=reports.append)
        assert {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()} == files


def test_elements_of_files_are_not_in_the_log_for_others(tmp_path: Path) -> None:
    sources = written(tmp_path, "csv")
    with Process(tmp_path / "state", Receiver(), ["join"]) as engine:
        engine.run(sources)
        with pytest.raises(
            UsageError, match=f'"log": the log does not have the elements of <{S}>, which were read from files'
        ):
            engine.register(PREFIX + QUERIES["nodes"], name="later", backfill="log")
        query = engine.register(PREFIX + QUERIES["nodes"], name="later", backfill={S: sources[S]})
        assert next(query.results())


def test_malformed_input_is_counted_once(tmp_path: Path) -> None:
    sources = written(tmp_path, "csv")
    for path in sources.values():
        lines = Path(path).read_text().splitlines(keepends=True)
        Path(path).write_text("".join([*lines[:4], "nothing\n", *lines[4:30], "none\n", *lines[30:]]))
    stopped_within(tmp_path / "state", sources, on_error="skip")
    for _ in range(2):
        with Process(tmp_path / "state", Receiver(), [], on_error="skip") as engine:
            engine.run(sources)
            assert (engine.statistics.elements, engine.statistics.malformed) == (80, 4)
    with pytest.raises(DataError), Process(tmp_path / "other", Receiver(), ["join"]) as engine:
        engine.run(sources)
    # After it others may come.
    with Process(tmp_path / "other", Receiver(), []) as engine:
        with pytest.raises(DataError):
            engine.run(sources)
        engine.push(S, element(1), time=stamp(99))


def test_a_query_that_a_subscriber_removes_stays_away(tmp_path: Path) -> None:
    sources = written(tmp_path, "csv")
    with Process(tmp_path / "state", Receiver(), ["join", "nodes"]) as engine:
        first = engine.queries[0]
        first.subscribe(lambda result: engine.unregister(first) if result.number == 9 else None)
        engine.run(sources)
        assert [query.name for query in engine.queries] == ["nodes"]
    with Process(tmp_path / "state", Receiver(), []) as engine:
        assert [query.name for query in engine.queries] == ["nodes"]
        assert engine.statistics.elements == 80


class Keeping:
    """A sink that keeps the number of its last result, as a database does in the transaction with its rows."""

    keeps_number = True
    can_retry = changelog = False

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.run: str | None = None

    def open(self, opening: Any) -> Keeping:
        self.held = opening.held(len(self.rows) or None, self.run, "the sink")
        self.run = opening.run
        return self

    def write(self, batch: Any) -> None:
        self.rows += [number for number in range(batch.number, batch.number + len(batch)) if number > len(self.rows)]

    def flush(self) -> None: ...

    def commit(self) -> None: ...


def test_a_sink_may_have_more_results_than_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = written(tmp_path, "csv")
    keeping = Keeping()
    monkeypatch.setattr("cqels_py.engine.query.sink_of", lambda url: keeping)

    def stops(statistics: Any) -> None:
        if statistics.elements in (35, 45):
            raise Crash

    for place in range(3):
        with contextlib.suppress(Crash), Process(tmp_path / "state", Receiver(), []) as engine:
            engine.register(PREFIX + QUERIES["join"], name="join", changelog=True).write_to("kept:")
            if place == 2:
                engine.run(sources)
                break
            look = saving_every(engine, 20)
            engine.run(sources, progress=lambda statistics, look=look: (stops(statistics), look(statistics)))
    engine = cqels.Engine(batch=5)
    expected = engine.register(PREFIX + QUERIES["join"], changelog=True)
    engine.run(sources)
    assert keeping.rows == [result.number for result in expected.results()]
