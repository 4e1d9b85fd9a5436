"""The state of a query on Spark survives crashes, or an error says why not."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cqels_py.checkpoints import store
from cqels_py.checkpoints.shared_folder import SharedFolder
from cqels_py.checkpoints.store import Attempt, Loaded, OtherRows, PartStore, Saved
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError, UsageError
from cqels_py.runners import local
from cqels_py.runners.spark import parts, stage
from cqels_py.spark import heavy_values, loads, migrate, prepare, statistics
from tests.oracle.naive import Static
from tests.runners.spark import simulation
from tests.runners.spark.simulation import Answers, Cluster, counted, rows_of
from tests.runners.spark.test_simulated import EX, STREAMS, drawn

QUERY = f"""PREFIX : <{EX}> SELECT ?c (SUM(?v) AS ?n)
WHERE {{ STREAM :s [RANGE 60us] {{ ?c :v ?v }} STREAM :t [COUNT 5] {{ ?c :w ?w }} }} GROUP BY ?c"""
STAGED = f"""PREFIX : <{EX}> SELECT ?v (AVG(?w) AS ?n)
WHERE {{ STREAM :s [RANGE 60us] {{ ?c :v ?v }} STREAM :t [COUNT 5] {{ ?c :w ?w }} }} GROUP BY ?v ORDER BY DESC(?n) LIMIT 3"""
"""Three stages: a join partitioned by ?c, groups partitioned by ?v, and the first rows in one partition."""
ELEMENTS = drawn(5, 40)
BATCHES = 5


@pytest.fixture
def state() -> Iterator[Path]:
    with simulation.scratch() as folder:
        yield folder


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot after about every other micro-batch."""
    monkeypatch.setattr(store, "_outweighs", lambda inputs, snapshot: inputs > 4_000)


def begin(state: Path, parts: int = 1, query: str = QUERY, **options: Any) -> Cluster:
    job, _ = prepare(query, state=state, partitions=parts, changelog=True, **options)
    return Cluster(job, chance=0)


def tasks(batch: int) -> list[Any]:
    size = len(ELEMENTS) // BATCHES
    piece = ELEMENTS[batch * size : (batch + 1) * size]
    return [rows_of(piece, STREAMS, [f"g{batch}x{i}" for i in range(len(piece))])]


def wanted(query: str = QUERY) -> Answers:
    from cqels_py.algebra.nodes import Output

    return simulation.expected(query, ELEMENTS, Static(), Output.CHANGELOG)


def run(cluster: Cluster, first: int = 0, last: int = BATCHES) -> list[dict[str, Any]]:
    return [row for batch in range(first, last) for row in cluster.run(batch, tasks(batch), final=batch == BATCHES - 1)]


# --- crashes ----------------------------------------------------------------------------------------------------------


class Crash(BaseException):
    """The worker is gone; nothing in it can catch that."""


class Disk:
    """Counts file operations; the operation with the number `fatal` fails, and so do all after it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = 0
        self.fatal: int | None = None
        for owner, name in ((Path, "open"), (Path, "rename"), (Path, "unlink"), (os, "fsync")):
            monkeypatch.setattr(owner, name, self._counting(name, getattr(owner, name)))

    def _counting(self, name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if self.fatal is not None and self.done >= self.fatal:
                if name == "fsync" and self.done == self.fatal:
                    tear(arguments[0])
                self.done += 1
                raise Crash
            self.done += 1
            return operation(*arguments, **options)

        return counted


def tear(descriptor: int) -> None:
    """Half of the written bytes have reached the disk."""
    size = os.fstat(descriptor).st_size
    if os.path.isfile(f"/proc/self/fd/{descriptor}"):
        os.ftruncate(descriptor, size // 2)


@pytest.mark.usefixtures("often")
def test_a_crash_at_any_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever operation on a file is the last one, the micro-batch is run again, and nothing is lost or duplicated."""
    disk = Disk(monkeypatch)
    expected, fatal, crashes = wanted(), 0, 0
    while True:
        with simulation.scratch() as state:
            cluster = begin(state)
            disk.done, disk.fatal = 0, fatal
            rows: list[dict[str, Any]] = []
            for batch in range(BATCHES):
                try:
                    rows += run(cluster, batch, batch + 1)
                except Crash:
                    crashes += 1
                    disk.fatal = None
                    rows += run(begin(state), batch, batch + 1)
            assert counted(rows) == expected, f"after a crash at operation {fatal}"
            if disk.fatal is not None:
                break
        fatal += 1
    assert crashes == fatal > 30


@pytest.mark.usefixtures("often")
def test_a_crash_in_any_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every so many operations on files: some partitions of a stage have done the micro-batch, others have not."""
    expected, disk = wanted(STAGED), Disk(monkeypatch)
    # The first of all runs also opens files of compiled kernels.
    for _ in range(2):
        with simulation.scratch() as state:
            cluster = begin(state, 2, STAGED)
            assert cluster.job.parts == (2, 2, 1)
            disk.done = 0
            assert counted(run(cluster)) == expected
    operations, stages = range(2, disk.done, 13), Counter[str]()
    assert len(operations) > 10
    for fatal in operations:
        with simulation.scratch() as state:
            cluster = begin(state, 2, STAGED)
            disk.done, disk.fatal = 0, fatal
            rows: list[dict[str, Any]] = []
            for batch in range(BATCHES):
                try:
                    rows += run(cluster, batch, batch + 1)
                except Crash:
                    disk.fatal = None
                    stages[next((f"{n}" for n in (2, 1) if any((state / f"stage{n}").glob(f"*/{batch}-*"))), "0")] += 1
                    rows += run(begin(state, 2, STAGED), batch, batch + 1)
            assert counted(rows) == expected, f"after a crash at operation {fatal}"
    assert sum(stages.values()) == len(operations)
    assert all(stages[stage] for stage in "012"), "some in each stage"


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("fatal", range(8))
def test_a_crash_while_the_state_is_created(state: Path, fatal: int, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    disk.fatal = fatal
    with pytest.raises(Crash):
        begin(state, parts=2)
    disk.fatal = None
    assert counted(run(begin(state, parts=2))) == wanted()


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("query", [QUERY, STAGED], ids=["one stage", "three stages"])
def test_a_micro_batch_that_is_run_again_gives_the_same_results(state: Path, query: str) -> None:
    """Spark runs it again when it was stopped before it recorded the end."""
    cluster, rows = begin(state, 2, query), []
    for batch in range(BATCHES):
        once = run(cluster, batch, batch + 1)
        again = run(begin(state, 2, query), batch, batch + 1)
        assert once == again
        rows += again
    assert counted(rows) == wanted(query)


def test_a_failure_in_a_later_stage_leaves_nothing_half_done(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage before has done the micro-batch already, and does it again."""
    cluster = begin(state, 2, STAGED)
    cluster._chance = 1
    rows = run(cluster, 0, 2)

    def fail(self: Any, *arguments: Any, **options: Any) -> None:
        take(self, *arguments, **options)
        raise OSError("no more memory")

    take = parts.LaterState.take
    monkeypatch.setattr(parts.LaterState, "take", fail)
    with pytest.raises(OSError, match="no more memory"):
        run(cluster, 2, 3)
    monkeypatch.setattr(parts.LaterState, "take", take)
    assert counted(rows + run(cluster, 2)) == wanted(STAGED)


def test_a_failure_in_the_middle_leaves_nothing_half_done(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = begin(state)
    cluster._chance = 1
    rows = run(cluster, 0, 2)

    def fail(self: Any, batch: Any) -> None:
        # The elements are in the state already.
        push(self, batch)
        raise OSError("no more memory")

    push = local.LocalRunner.push
    monkeypatch.setattr(local.LocalRunner, "push", fail)
    with pytest.raises(OSError, match="no more memory"):
        run(cluster, 2, 3)
    monkeypatch.setattr(local.LocalRunner, "push", push)
    assert counted(rows + run(cluster, 2)) == wanted()


def test_a_state_in_memory_is_used_only_for_its_own_history(state: Path) -> None:
    """Another worker has run a micro-batch in between."""
    stale = begin(state)
    stale._chance = 1
    rows = run(stale, 0, 2)
    kept = dict(stage._HOT)
    stage._HOT.clear()
    rows += run(begin(state), 2, 4)
    stage._HOT.clear()
    stage._HOT.update(kept)
    assert counted(rows + run(stale, 4)) == wanted()


# --- files ------------------------------------------------------------------------------------------------------------


def files(state: Path, kind: str) -> list[Path]:
    return sorted((state / "0").glob(f"*.{kind}"), key=lambda path: int(path.name.split("-")[0]))


@pytest.mark.usefixtures("often")
def test_the_folder_does_not_grow_with_the_stream(state: Path) -> None:
    run(begin(state))
    assert len(files(state, "snapshot")) == 2
    assert len(files(state, "input")) < BATCHES


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(path.read_bytes()[:-9]), lambda path: path.unlink()])
def test_the_snapshot_before_replaces_a_damaged_one(state: Path, damage: Callable[[Path], None]) -> None:
    rows = run(begin(state), 0, BATCHES - 1)
    newest = files(state, "snapshot")[-1]
    assert int(newest.name.split("-")[0]) > 0
    damage(newest)
    assert counted(rows + run(begin(state), BATCHES - 1)) == wanted()


@pytest.mark.parametrize("content", [b"", b"abc", b"something else entirely"])
def test_a_damaged_input_is_named(state: Path, content: bytes) -> None:
    run(begin(state), 0, 3)
    path = files(state, "input")[1]
    path.write_bytes(content)
    with pytest.raises(RunError, match=rf"{path.name} is damaged.*remove both the state and Spark's checkpoint"):
        run(begin(state), 3, 4)


def test_a_missing_input_is_named(state: Path) -> None:
    run(begin(state), 0, 3)
    files(state, "input")[1].unlink()
    with pytest.raises(
        RunError,
        match=r"micro-batch 1 has ended there, and the object with its input is not there any more\. .*remove both",
    ):
        run(begin(state), 3, 4)


def test_a_state_that_was_removed_without_its_checkpoint(state: Path) -> None:
    with pytest.raises(RunError, match=r"has no micro-batch that has ended, and Spark goes on with 3: .*remove both"):
        run(begin(state), 3, 4)


@pytest.mark.usefixtures("often")
def test_a_checkpoint_that_was_removed_without_its_state(state: Path) -> None:
    run(begin(state))
    with pytest.raises(RunError, match=r"later micro-batches than the first.*it is another one. .*remove both"):
        run(begin(state), 0, 1)


def test_files_left_by_a_crash_are_no_objects(state: Path) -> None:
    cluster = begin(state)
    rows = run(cluster, 0, 1)
    (state / "0" / "0-9-9-9-0123456789abcdef.outcome.0123456789ab.aside").write_bytes(b"half")
    assert counted(rows + run(begin(state), 1)) == wanted()


@pytest.mark.parametrize("content", [b"", b"0123456789abcdefghijkl"])
def test_an_outcome_that_is_part_of_an_upload_counts_as_missing(state: Path, content: bytes) -> None:
    rows = run(begin(state), 0, 2)
    (state / "0" / "1-9-9-9-0123456789abcdef.outcome").write_bytes(content)
    assert counted(rows + run(begin(state), 2)) == wanted()


def test_a_state_has_no_code_in_it(state: Path) -> None:
    """A pickle of protocol 2 or later begins with a mark, wherever it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_outweighs", lambda inputs, snapshot: True)
        run(begin(state, 2, STAGED), 0, 3)
    found = [path.read_bytes() for path in state.rglob("*") if path.is_file()]
    assert len(found) > 20
    assert not any(
        mark in data for data in found for mark in (b"\x80\x04\x95", b"\x80\x05\x95", b"numpy", b"cqels_py.")
    )


# --- whose state ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"query": QUERY.replace("60us", "61us")}, "another query"),
        ({"partitions": 3}, "another number of partitions"),
        ({"lateness": 5}, "another lateness"),
        ({"changelog": False}, "another changelog"),
        ({"static": b"<http://e/s> <http://e/p> <http://e/o> .\n"}, "other static data"),
    ],
)
def test_another_query_on_the_state_is_refused(state: Path, changed: dict[str, Any], what: str) -> None:
    options: dict[str, Any] = {"query": QUERY, "state": state, "partitions": 2, "changelog": True}
    prepare(**options)
    prepare(**options)
    with pytest.raises(UsageError, match=f"made with {what}: give the query a new folder"):
        prepare(**options | changed)


OLDER = {
    "the first": '{"format": 1, "query": "0c37", "partitions": 2, "lateness": 0}',
    "one with a number of its own": '{"format": 12, "query": "2da9", "changelog": 0, "partitions": "2", "mark": "cec4"}',
    "the last": '{"format": 32, "query": "2da9", "changelog": 0, "heavy values": "", "partitions": "2", "mark": "c48e"}',
}
"""Descriptions of states as they were written by former versions."""


@pytest.mark.parametrize("name", [*OLDER, "this one"])
def test_a_state_of_another_format_is_refused_and_left_as_it_is(state: Path, name: str) -> None:
    run(begin(state, 2), 0, 2)
    path = state / "query.json"
    path.write_text(OLDER[name] if name in OLDER else json.dumps(json.loads(path.read_text()) | {"format": 1 << 20}))
    kept = contents(state)
    more = state.with_name(f"{state.name}-more")
    asked: list[Callable[[], object]] = [
        lambda: begin(state, 2),
        lambda: migrate(state, QUERY, to=more, partitions=4, changelog=True),
        lambda: statistics(state),
        lambda: loads(state),
        lambda: heavy_values(state),
    ]
    for ask in asked:
        with pytest.raises(
            UsageError, match="another version of cqels_py, whose format differs: give the query a new folder"
        ):
            ask()
    assert contents(state) == kept
    assert not more.exists()
    assert counted(run(begin(more, 2))) == wanted(), "the way out"


def test_values_of_a_folder_without_a_state_are_refused(tmp_path: Path) -> None:
    for ask in (statistics, loads, heavy_values):
        with pytest.raises(UsageError, match="does not hold the state of a query"):
            ask(tmp_path)


def test_applications_that_work_on_a_state_are_numbered(state: Path) -> None:
    asked: dict[str, Any] = {"query": QUERY, "state": state, "partitions": 2}
    runs = [prepare(**asked, application=name)[0].run for name in ("a", "a", "b", None, None, "b", "b")]
    assert runs == [1, 1, 2, 3, 4, 5, 5]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"state": "wasb://box/state"}, "a folder of s3a:, gs:, abfss:, hdfs: or file:, or one that is mounted"),
        ({"state": "dbfs:/states/one"}, "the folder that is mounted, /dbfs/states/one"),
        ({"state": "s3a:/state"}, "names no bucket or container, as s3a://bucket/state does"),
        ({"state": f"file://{__file__}"}, "the state is a folder, which"),
        ({"state": __file__}, "the state is a folder, which"),
        ({"state": None}, "the state is the path or the URI of a folder"),
        ({"partitions": "2"}, "partitions is 1 or more, not '2'"),
        ({"partitions": True}, "partitions is 1 or more, not True"),
        ({"lateness": "60s"}, "lateness is 0 or more microseconds, .* not '60s'"),
    ],
)
def test_wrong_arguments(state: Path, wrong: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"query": QUERY, "state": state, "partitions": 2} | wrong
    with pytest.raises(UsageError, match=message):
        prepare(**options)
    assert not state.exists()


def test_a_folder_of_something_else_is_not_touched(state: Path) -> None:
    state.mkdir()
    (state / "thesis.tex").write_text("important")
    with pytest.raises(UsageError, match="is not empty, and does not hold the state"):
        begin(state)
    assert [path.name for path in state.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_folder_without_a_valid_description(state: Path, text: str) -> None:
    begin(state)
    (state / "query.json").write_text(text)
    with pytest.raises(UsageError, match="does not describe the state of a query"):
        begin(state)


def test_statistics_of_a_folder_without_a_state(state: Path) -> None:
    with pytest.raises(UsageError, match="does not hold the state"):
        statistics(state)
    begin(state)
    assert statistics(state).elements == 0


def no_state() -> dict[str, Any]:
    return {}


def saved(parts: PartStore, attempt: Attempt, data: bytes, counts: dict[str, Any]) -> Saved | None:
    return parts.save(attempt, parts.start(attempt), data, no_state, counts)


def test_all_attempts_at_an_execution_have_the_input_of_the_first(state: Path) -> None:
    parts = PartStore(SharedFolder(state), "here")
    attempt = Attempt(0, 1, 5)
    start = parts.start(attempt)
    first = parts.save(attempt, start, b"one", no_state, {})
    assert first is not None
    assert parts.save(attempt, start, b"one", no_state, {}) == first
    assert parts.save(Attempt(0, 1, 5, 2), start, b"two", no_state, {}) is None
    assert parts.start(attempt).settled == b"one"
    assert parts.load(parts.start(Attempt(1, 1, 6))) == Loaded([b"one"])


def test_attempts_that_cannot_know_which_one_counts_fail(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One has died between its input and its outcome, and another one got other rows; a later execution goes on."""
    parts = PartStore(SharedFolder(state), "here")
    with monkeypatch.context() as patch:
        patch.setattr(PartStore, "_check_others", lambda *arguments: exit())
        with pytest.raises(SystemExit):
            saved(parts, Attempt(0, 1, 5, 1), b"one", {})
    for number in (2, 3):
        with pytest.raises(OtherRows, match="gives other rows when it is read again"):
            saved(parts, Attempt(0, 1, 5, number), b"two", {})
    assert saved(parts, Attempt(0, 1, 6, 4), b"two", {}) is not None
    assert parts.load(parts.start(Attempt(1, 1, 7))) == Loaded([b"two"])


def test_a_later_execution_counts_from_then_on(state: Path) -> None:
    """The driver has been restarted, and has planned the micro-batch again; then an attempt from before ends."""
    parts = PartStore(SharedFolder(state), "here")
    for attempt, data in ((Attempt(0, 2, 1), b"two"), (Attempt(0, 1, 9), b"one")):
        found = saved(parts, attempt, data, {"of": attempt.run})
        assert found is not None
        assert not found.late
    assert parts.counts() == {"of": 2}
    following = Attempt(1, 2, 2)
    assert parts.load(parts.start(following)) == Loaded([b"two"])
    saved(parts, following, b"next", {"of": 2})
    assert parts.load(parts.start(Attempt(2, 3, 0))) == Loaded([b"two", b"next"])


# --- late attempts ----------------------------------------------------------------------------------------------------


def contents(state: Path) -> dict[str, bytes]:
    return {str(path.relative_to(state)): path.read_bytes() for path in sorted(state.rglob("*")) if path.is_file()}


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("query", [QUERY, STAGED], ids=["one stage", "three stages"])
@pytest.mark.parametrize("states", ["read back", "left by another worker", "in memory"])
def test_an_attempt_that_ends_after_the_next_micro_batch_changes_nothing(state: Path, query: str, states: str) -> None:
    """Micro-batches 0 to 3, then 2 again as another attempt, then 4."""
    job = begin(state, 2, query).job
    near = state.parent if states == "left by another worker" else None
    cluster = Cluster(job, chance=states == "in memory", near=near)
    rows = run(cluster, 0, 2)
    rows += (once := run(cluster, 2, 3))
    rows += run(cluster, 3, 4)
    before, counts = contents(state), statistics(state)
    copies = contents(state.parent)
    kept = dict(stage._HOT)
    assert run(cluster, 2, 3) == once
    assert contents(state) == before
    assert contents(state.parent) == copies
    assert statistics(state) == counts
    assert states != "in memory" or all(stage._HOT[key] is each for key, each in kept.items())
    assert counted(rows + run(cluster, 4)) == wanted(query)


@pytest.mark.usefixtures("often")
def test_a_late_attempt_with_other_rows_gives_the_results_of_the_first(state: Path) -> None:
    """As when a source gives its rows in another order: the input that Spark has accepted already counts."""
    cluster = begin(state)
    rows = run(cluster, 0, 2)
    once = run(cluster, 2, 3)
    rows += once + run(cluster, 3, 4)
    assert cluster.run(2, tasks(1)) == once
    assert counted(rows + run(cluster, 4)) == wanted()


def test_a_late_attempt_whose_files_were_removed_is_reported(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_outweighs", lambda inputs, snapshot: True)
    cluster = begin(state)
    rows = run(cluster, 0, 4)
    before = contents(state)
    with pytest.raises(RunError, match="this attempt came too late"):
        run(cluster, 1, 2)
    assert contents(state) == before
    assert counted(rows + run(cluster, 4)) == wanted()


def test_results_are_decoded_before_their_terms_are_released(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terms of a result need not be in any window any more."""
    monkeypatch.setattr(local, "_COLLECT_FROM", 1)
    assert counted(run(begin(state))) == wanted()
    released = []
    collect = Dictionary.collect
    monkeypatch.setattr(Dictionary, "collect", lambda self, live: released.append(collect(self, live)))
    text = f"PREFIX : <{EX}> SELECT ?c ?w WHERE {{ STREAM :s [NOW] {{ ?c :v ?v }} BIND(CONCAT('a', STR(?v)) AS ?w) }}"
    found = simulation.run(text, ELEMENTS, Static(), changelog=False, cuts=[9, 20], tasks=1, parts=2)
    assert found == simulation.expected(text, ELEMENTS, Static(), None)
    assert sum(released) > 0
