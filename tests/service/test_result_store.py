"""The store of a query's results: what can be read, what is in files, and what is there after a kill."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.engine.durable.logged import LoggedInputs
from cqels_py.service import result_store
from cqels_py.service.definitions import Keep, QueryDefinition, StreamDefinition
from cqels_py.service.result_store import NotKept, ResultStore
from cqels_py.service.service import Pushed, Service
from tests.service.support import EX, HOT, READINGS, reading

ALL = Keep(results=1_000_000)


def _line(number: int) -> bytes:
    return b'{"x":"%b"}' % (b"x" * (number * 7919 % 90))


def _read(number: int) -> bytes:
    return b'{"number":%d,%b' % (number, _line(number)[1:])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.integers(1, 60), st.sampled_from(["sync", "kill"])), max_size=25),
    st.integers(1, 4000),
    st.integers(1, 40),
)
def test_a_store_has_all_results_by_number_and_after_a_kill_those_of_files(
    steps: list[int | str], together: int, in_a_file: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as name:
        patch.setattr(result_store, "_WRITTEN_TOGETHER", together)
        patch.setattr(result_store, "_TAIL_BYTES", 500)
        patch.setattr(result_store, "IN_A_FILE", in_a_file)
        store, last, synced = ResultStore(Path(name) / "r", ALL), 0, 0
        for step in steps:
            if step == "sync":
                store.sync()
                synced = last
            elif step == "kill":
                store = ResultStore(Path(name) / "r", ALL)
                assert synced <= store.last <= last
                # The engine makes again those that follow.
                last = store.last
            else:
                assert isinstance(step, int) and store.next == last + 1
                store.add([_line(number) for number in range(last + 1, last + step + 1)])
                assert store.last == last
                store.flush()
                last += step
            assert store.last == last
            for start in {1, (last + 1) // 2, last} - {0}:
                found, number = list[bytes](), start
                while lines := store.read(number, 7):
                    found += lines
                    number += len(lines)
                assert found == [_read(number) for number in range(start, last + 1)]


def test_results_that_cannot_be_written_can_be_read_and_are_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultStore(tmp_path / "r", ALL)
    store.add([_line(1)])
    store.flush()

    def full(descriptor: int, data: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "append", full)
        with pytest.raises(StorageError, match="No space"):
            store.sync()
        assert store.failing
        store.add([_line(2)])
        with pytest.raises(StorageError):
            store.flush()
    assert list(store.read(1, 9)) == [_read(1), _read(2)]
    assert ResultStore(tmp_path / "r", ALL).last == 0
    store.flush()
    assert list(ResultStore(tmp_path / "r", ALL).read(1, 9)) == [_read(1), _read(2)]


def test_a_store_takes_results_while_it_is_synced_and_syncs_them_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, synced = ResultStore(tmp_path / "r", ALL), list[int]()
    store.add([_line(1)])
    store.flush()

    def take_one_more() -> None:
        store.add([_line(2)])
        store.flush()
        # Another thread may even sync them.
        store.sync()

    def sync(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 1:
            other = threading.Thread(target=take_one_more)
            other.start()
            other.join(60)
            assert not other.is_alive()

    monkeypatch.setattr(durable_files, "sync", sync)
    store.sync()
    # The file and its folder, for the other thread too.
    assert len(synced) == 4
    assert list(ResultStore(tmp_path / "r", ALL).read(1, 9)) == [_read(1), _read(2)]
    store.sync()
    before = len(synced)
    store.sync()
    assert len(synced) == before
    store.add([_line(3)])
    store.flush()
    store.sync()
    # The folder has no new file.
    assert len(synced) == before + 1


def test_the_entry_of_a_file_that_begins_while_the_store_is_synced_is_synced_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_store, "IN_A_FILE", 1)
    monkeypatch.setattr(result_store, "_WRITTEN_TOGETHER", 1)
    store, folders = ResultStore(tmp_path / "r", ALL), list[bool]()

    def full(descriptor: int, data: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def sync(descriptor: int) -> None:
        folders.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        if len(folders) == 1:
            store.add([_line(2)])
            with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space"):
                patch.setattr(durable_files, "append", full)
                store.flush()

    store.add([_line(1)])
    store.flush()
    monkeypatch.setattr(durable_files, "sync", sync)
    store.sync()
    assert len(list((tmp_path / "r").iterdir())) == 2
    before = len(folders)
    store.flush()
    store.sync()
    assert sorted(folders[before:]) == [False, True]


def test_a_store_that_has_ended_writes_nothing(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "r", ALL)
    store.add([_line(1)])
    store.flush()
    store.end()
    store.sync()
    assert not (tmp_path / "r").exists()


def test_a_snapshot_is_saved_once_results_are_durable_and_elements_do_not_wait_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(tmp_path / "data")
    service.put_stream("readings", StreamDefinition.of({"iri": READINGS}))
    service.put_query("hot", QueryDefinition(HOT))
    sync, syncing, goes_on = ResultStore.sync, threading.Event(), threading.Event()

    def wait(store: ResultStore, until: int | None = None) -> None:
        syncing.set()
        assert goes_on.wait(60)
        sync(store, until)

    def push(subject: str) -> None:
        service.push([Pushed.of(service.stream("readings"), reading(subject, 31), "nt", None)])

    def snapshots() -> int:
        return len(list((tmp_path / "data/engine").glob("*.snapshot")))

    push("s1")
    monkeypatch.setattr(ResultStore, "sync", wait)
    before, saving = snapshots(), threading.Thread(target=service.engine.checkpoint)
    saving.start()
    assert syncing.wait(60)
    assert snapshots() == before
    assert ResultStore(tmp_path / "data/results/hot", ALL).last == 0
    goes_on.set()
    saving.join(60)
    assert snapshots() == before + 1
    assert ResultStore(tmp_path / "data/results/hot", ALL).last == 1
    # The thread that pushes begins a snapshot, which another one saves.
    syncing.clear()
    goes_on.clear()
    with monkeypatch.context() as patch:
        patch.setattr(LoggedInputs, "_is_due", lambda _: True)
        push("s2")
    assert syncing.wait(60)
    push("s3")
    assert service.queries["hot"].store.last == 3
    goes_on.set()
    service.close()


def test_files_of_an_earlier_version_have_numbers_already(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / f"{1:016}.ndjson").write_bytes(_read(1) + b"\n" + _read(2) + b"\n")
    store = ResultStore(tmp_path / "r", ALL)
    store.add([_line(3)])
    store.flush()
    store.sync()
    assert _all_of(ResultStore(tmp_path / "r", ALL)) == [_read(1), _read(2), _read(3)]


def _flip(path: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)


def _cut(path: Path, random: Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(len(data))])


def _remove(path: Path, random: Random) -> None:
    path.unlink()


def _exchange(path: Path, random: Random) -> None:
    other = random.choice(sorted(each for each in path.parent.iterdir() if each != path))
    data = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(data)


def _replace(path: Path, random: Random) -> None:
    """By a file of another query."""
    other = path.parent.with_name("other")
    shutil.copy(random.choice(sorted(other.iterdir())), path)


@pytest.mark.parametrize("damage", [_flip, _cut, _remove, _exchange, _replace])
@pytest.mark.parametrize("is_open", [True, False])
def test_results_of_damaged_files_are_right_or_not_kept(
    damage: Callable[[Path, Random], None], is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_store, "_WRITTEN_TOGETHER", 120)
    monkeypatch.setattr(result_store, "_TAIL_BYTES", 100)
    monkeypatch.setattr(result_store, "IN_A_FILE", 9)
    random, lost = Random(damage.__name__), 0
    for attempt in range(24):
        folder = tmp_path / str(attempt)
        other = ResultStore(folder / "other", ALL)
        other.append(1, [b'{"y":%d}' % number for number in range(40)])
        other.sync()
        store = ResultStore(folder / "r", ALL)
        for number in range(1, 41):
            store.append(number, [_line(number)])
        store.sync()
        damage(random.choice(sorted((folder / "r").iterdir())), random)
        if not is_open:
            store = ResultStore(folder / "r", ALL)
        last = store.last
        assert last <= 40 and (last == 40 or not is_open)
        if last < 40:
            # The engine makes those again that its snapshot does not have.
            begin = random.randint(last + 1, 41)
            if begin > last + 1:
                store.begin_at(begin)
            for number in range(begin, 42):
                assert store.append(number, [_line(number)])
            store.sync()
        number, read = 1, 0
        while number <= store.last:
            try:
                lines = store.read(number, 7)
            except NotKept as error:
                assert error.first > number
                number = error.first
                continue
            assert lines == [_read(each) for each in range(number, number + len(lines))]
            number += len(lines)
            read += len(lines)
        lost += read < store.last
    assert lost


def test_results_that_were_read_come_again_with_their_numbers_after_a_kill(tmp_path: Path) -> None:
    def lines(service: Service) -> dict[str, list[bytes]]:
        return {name: list(query.store.read(1, 10_000)) for name, query in service.queries.items()}

    def push(service: Service, first: int) -> None:
        body = b"".join(reading(f"s{number}", 20 + number % 40) for number in range(first, first + 50))
        service.push([Pushed.of(service.stream("readings"), body, "nt", None)])

    service = Service(tmp_path / "data")
    service.put_stream("readings", StreamDefinition.of({"iri": READINGS}))
    for name, text in {
        "hot": HOT,
        "count": f"SELECT (COUNT(*) AS ?n) {{ STREAM <{READINGS}> [COUNT 30] {{ ?s <{EX}t> ?t }} }}",
        "graph": f"CONSTRUCT {{ _:x <{EX}was> ?t }} {{ STREAM <{READINGS}> [COUNT 9] {{ ?s <{EX}t> ?t }} }}",
    }.items():
        service.put_query(name, QueryDefinition(text))
    push(service, 0)
    service.engine.checkpoint()
    push(service, 50)
    read = lines(service)
    assert {name: len(each) for name, each in read.items()} == {"hot": 67, "count": 31, "graph": 100}
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    assert any(ResultStore(tmp_path / "killed/results" / name, ALL).last < len(each) for name, each in read.items())
    again = Service(tmp_path / "killed")
    assert lines(again) == read
    for each in (service, again):
        push(each, 100)
    found, expected = lines(again), lines(service)
    assert {name: len(each) for name, each in found.items()} == {name: len(each) for name, each in expected.items()}
    for each in (service, again):
        each.close()


def _results_of(service: Service) -> dict[str, list[bytes]]:
    return {name: _all_of(query.store) for name, query in service.queries.items()}


def _all_of(store: ResultStore) -> list[bytes]:
    found = list[bytes]()
    while more := store.read(len(found) + 1, 10_000):
        found += more
    return found


def test_equal_queries_keep_their_own_numbers_whoever_leaves_and_after_a_kill(tmp_path: Path) -> None:
    service, number = Service(tmp_path / "data"), 0
    service.put_stream("readings", StreamDefinition.of({"iri": READINGS}))
    count = f"SELECT (COUNT(*) AS ?n) {{ STREAM <{READINGS}> [COUNT 30] {{ ?s <{EX}t> ?t }} }}"
    graph = f"CONSTRUCT {{ ?s <{EX}hot> ?t . %s <{EX}of> ?s }} {{ STREAM <{READINGS}> [COUNT 9] {{ ?s <{EX}t> ?t }} }}"
    texts = {"hot": HOT, "count": count, "graph": graph % "?s", "blank": graph % "_:x"}

    def push() -> None:
        nonlocal number
        body = b"".join(reading(f"s{each}", 20 + each % 40) for each in range(number, number + 50))
        service.push([Pushed.of(service.stream("readings"), body, "nt", None)])
        number += 50

    for copy in range(3):
        for name, text in texts.items():
            service.put_query(f"{name}{copy}", QueryDefinition(text))
    push()
    # It has a result more than the others.
    service.put_query("other", QueryDefinition(HOT.replace("30", "31")))
    service.put_query("other", QueryDefinition(HOT))
    push()
    for name in texts:
        leaving = service.registered(f"{name}0")
        assert service.engine._queries[leaving].followers
        service.delete_query(f"{name}0")
    service.engine.checkpoint()
    push()
    assert service.registered("hot2").delivery._with is service.registered("hot1").delivery
    also: list[int] = []
    service.registered("hot2").subscribe(lambda result: also.append(result.number))
    push()
    found = _results_of(service)
    hot = [each for each in range(number) if 20 + each % 40 > 30]
    assert [len(found[name]) for name in ("hot1", "hot2", "other")] == [len(hot), len(hot), sum(e >= 50 for e in hot)]
    assert all(b"s%d" % each in line for each, line in zip(hot, found["hot2"], strict=True))
    assert also == list(range(also[0], len(hot) + 1)) and len(also) == sum(each >= 150 for each in hot)
    for name in texts:
        # The first count, 0, comes with the time of each.
        first, second = ([line.split(b",", 2)[::2] for line in found[f"{name}{copy}"]] for copy in (1, 2))
        assert first == second and len(first) > 30
        for at, line in enumerate(found[f"{name}1"], 1):
            assert line.startswith(b'{"number":%d,' % at)
            assert (b"_:r%d" % at in line) == (name == "blank"), line
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    again = Service(tmp_path / "killed")
    assert _results_of(again) == found
    for each in (service, again):
        each.close()
