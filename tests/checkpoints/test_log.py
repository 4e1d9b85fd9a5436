"""The log: whatever a crash leaves of it, the records that were synced are read, and no other."""

from __future__ import annotations

import errno
import gc
import hashlib
import os
import struct
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import numpy as np
import pytest

import cqels_py as cqels
from cqels_py.checkpoints import durable_files, log
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.state_file import from_bytes, to_bytes
from tests.support.faults import Crash, Faults, crash

CONTENTS = [b"", b"one", bytes(range(256)) * 20, b"\xa5log" * 9, b"last"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    writer = log.Log(tmp_path)
    writer.begin(3)
    for kind, content in enumerate(CONTENTS):
        writer.append(kind, content)
    writer.sync()
    writer.close()
    return tmp_path


def path_of(folder: Path) -> Path:
    return next(folder.glob("*.log"))


def contents(folder: Path, number: int = 3) -> list[bytes]:
    return [record.content for record in log.look(folder, number)]


def resumed(folder: Path) -> log.Log:
    writer = log.Log(folder)
    writer.resume(log.read(folder, 3))
    return writer


def open_in(folder: Path) -> list[str]:
    """The files of a folder that are open."""
    found = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return [each for each in found if each.startswith(str(folder))]


def test_a_log_that_nobody_has_closed_leaves_no_file_open(tmp_path: Path) -> None:
    writer = log.Log(tmp_path)
    writer.begin(1)
    writer.append(1, b"one")
    assert len(open_in(tmp_path)) == 1
    del writer
    gc.collect()
    assert open_in(tmp_path) == []


def test_records_come_back_in_order(folder: Path) -> None:
    assert log.numbers(folder) == [3]
    found = log.look(folder, 3)
    assert [record.content for record in found] == CONTENTS
    assert [record.kind for record in found] == [0, 1, 2, 3, 4]


def test_a_log_is_cut_at_any_byte(folder: Path) -> None:
    data = path_of(folder).read_bytes()
    read = set()
    for length in range(0, len(data), 1 if len(data) < 500 else 13):
        path_of(folder).write_bytes(data[:length])
        found = contents(folder)
        assert found == CONTENTS[: len(found)]
        read.add(len(found))
        # What was cut off is gone for good, and others follow in its place.
        if log.read(folder, 3).head is None:
            # Nothing of it was there.
            assert length < log._BEGIN and found == []
            continue
        writer = resumed(folder)
        writer.append(7, b"after")
        writer.sync()
        writer.close()
        assert contents(folder) == [*found, b"after"]
    assert read == set(range(len(CONTENTS)))


def test_rubbish_at_the_end_is_cut(folder: Path) -> None:
    with path_of(folder).open("ab") as file:
        file.write(b"\0" * 5000)
    assert contents(folder) == CONTENTS


def test_a_flipped_bit_is_noticed_wherever_it_is(folder: Path) -> None:
    data = path_of(folder).read_bytes()
    last = data.rindex(b"\xa5log")
    random = Random(4)
    places = [*range(30), *(random.randrange(30, len(data)) for _ in range(200))]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << random.randrange(8)
        path_of(folder).write_bytes(damaged)
        if place >= last:
            assert contents(folder) == CONTENTS[:-1]
        else:
            with pytest.raises(StorageError, match="damaged"):
                contents(folder)


def test_records_of_another_place_or_file_do_not_count(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = path_of(folder).read_bytes()
    last = data.rindex(b"\xa5log")
    path_of(folder).write_bytes(data + data[last:])
    assert contents(folder) == CONTENTS
    other = tmp_path_factory.mktemp("other")
    writer = log.Log(other)
    writer.begin(3)
    for content in CONTENTS:
        writer.append(1, content)
    writer.close()
    # The same records behind the head of another file.
    path_of(folder).write_bytes(data[: log._BEGIN] + path_of(other).read_bytes()[log._BEGIN :])
    assert contents(folder) == []


def test_a_log_begins_with_the_digest_of_the_one_before(folder: Path) -> None:
    before = log.read(folder, 3)
    writer = resumed(folder)
    writer.begin(4)
    (head,) = [log.read(folder, 4).head]
    assert head is not None and head.before == before.digest
    path = folder / log.name_of(3)
    path.write_bytes(path.read_bytes()[:-1])
    assert log.read(folder, 3).digest != before.digest


def test_a_crash_at_any_operation_keeps_what_was_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = Faults(monkeypatch, crash)
    at = 0
    while faults.count >= at:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        faults.count, faults.at = 0, at
        written, synced = 0, 0
        try:
            writer = log.Log(folder)
            writer.begin(0)
            for content in CONTENTS:
                written += 1
                writer.append(1, content)
                writer.sync()
                synced = written
        except Crash:
            faults.at = -1
        found = contents(folder, 0) if log.numbers(folder) else []
        assert found == CONTENTS[: len(found)]
        assert synced <= len(found) <= written
    assert at > 2 * len(CONTENTS)


def test_a_full_disk_refuses_a_record_and_takes_later_ones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "append":
            os.write(arguments[0], arguments[1][:5])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = resumed(folder)
    with monkeypatch.context() as patch:
        Faults(patch, full).at = 1
        with pytest.raises(StorageError, match="No space left on device; nothing was taken in"):
            writer.append(5, b"refused")
    writer.append(5, b"taken")
    writer.sync()
    assert contents(folder) == [*CONTENTS, b"taken"]


@pytest.mark.parametrize("name", ["append", "sync", "sync_entries"])
def test_a_log_that_cannot_be_begun_leaves_the_former_one(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = resumed(folder)
    with monkeypatch.context() as patch:
        patch.setattr(durable_files, name, full)
        for _ in range(3):
            with pytest.raises(StorageError, match="No space left on device"):
                writer.begin(4)
    assert open_in(folder) == [str(path_of(folder))]
    writer.append(5, b"taken")
    writer.close()
    # Torn, as of a machine that stops.
    with path_of(folder).open("ab") as file:
        file.write(b"\xa5log")
    assert log.numbers(folder) == [3]
    assert contents(folder) == [*CONTENTS, b"taken"]


def test_no_log_follows_a_record_that_could_not_be_cut(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def torn(descriptor: int, data: Any) -> None:
        os.write(descriptor, data[:5])
        fail()

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    writer = resumed(folder)
    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "append", torn)
        patch.setattr(durable_files, "cut", fail)
        with pytest.raises(StorageError, match="cannot write"):
            writer.append(5, b"torn")
    with pytest.raises(StorageError, match="Make a new engine"):
        writer.begin(4)
    assert log.numbers(folder) == [3]
    assert contents(folder) == CONTENTS


def test_after_an_error_of_a_sync_nothing_more_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    writer = resumed(folder)
    writer.append(5, b"perhaps")
    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "sync", fail)
        with pytest.raises(StorageError, match="cannot sync"):
            writer.sync()
    for refused in (writer.sync, lambda: writer.append(5, b"more")):
        with pytest.raises(StorageError, match="Make a new engine"):
            refused()


def test_threads_share_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = [0]
    sync = durable_files.sync

    def counted(descriptor: int) -> None:
        count[0] += 1
        sync(descriptor)

    writer = log.Log(tmp_path, wait=0.02)
    writer.begin(0)
    monkeypatch.setattr(durable_files, "sync", counted)

    def write(number: int) -> None:
        for _ in range(5):
            writer.append(number, b"x" * number)
            writer.sync()

    threads = [Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(contents(tmp_path, 0)) == 40
    assert count[0] < 40


def in_a_former_format(path: Path, number: int, version: int) -> None:
    """Write a log as earlier versions did."""
    first, second = struct.Struct("<4sQQB16s"), struct.Struct("<4sqQQB")
    records = b""
    for place, (kind, content) in enumerate(log.look(path.parent, number)):
        if version == 1:
            digest = hashlib.sha256(struct.pack("<QQB", number, place, kind) + content).digest()[:16]
            records += first.pack(b"\xa5log", place, len(content), kind, digest) + content
        else:
            rest = struct.pack("<QQB", place, len(content), kind) + content
            digested = log.xxh64(np.frombuffer(rest, np.uint8).copy(), 0, len(rest), number)
            records += second.pack(b"\xa5log", digested, place, len(content), kind) + content
    path.write_bytes(b"CQELS-LOG %d\n" % version + records)


@pytest.mark.parametrize("version", [1, 2])
def test_the_formats_before_are_read(version: int, folder: Path) -> None:
    in_a_former_format(path_of(folder), 3, version)
    assert log.read(folder, 3).head is None
    assert contents(folder) == CONTENTS
    data = path_of(folder).read_bytes()
    path_of(folder).write_bytes(data[:-1])
    assert contents(folder) == CONTENTS[:-1]
    path_of(folder).write_bytes(data[:300].replace(b"one", b"two") + data[300:])
    with pytest.raises(StorageError, match=r"is damaged at byte .*, after 1 records"):
        contents(folder)


@pytest.mark.parametrize("version", [1, 2])
def test_an_engine_goes_on_with_a_folder_of_an_earlier_version(version: int, tmp_path: Path) -> None:
    text, stream = "SELECT ?o { STREAM <http://ex.org/s> [RANGE 9s] { ?s <http://ex.org/p> ?o } }", "http://ex.org/s"

    def process(values: range) -> tuple[int, list[str]]:
        engine = cqels.Engine(checkpoint=tmp_path)
        query, taken = engine.register(text, name="q"), engine.statistics.elements
        for value in values:
            engine.push(stream, [("<http://ex.org/x>", "<http://ex.org/p>", f'"{value}"')], time=value)
        engine.close()
        return taken, [str(result.bindings["o"]) for result in query.results()]

    assert process(range(3)) == (0, ["0", "1", "2"])
    in_a_former_format(tmp_path / "000000000000.log", 0, version)
    snapshot = tmp_path / "000000000000.snapshot"
    state = from_bytes(snapshot.read_bytes())
    del state["origin"]
    snapshot.write_bytes(to_bytes(state))
    (tmp_path / "manifest").unlink()
    assert process(range(3, 5)) == (3, ["0", "1", "2", "3", "4"])
    assert log.read(tmp_path, 1).head is not None
    assert process(range(0)) == (5, ["0", "1", "2", "3", "4"])
    (tmp_path / "000000000000.log").write_bytes((tmp_path / "000000000000.log").read_bytes()[:-40])
    with pytest.raises(StorageError, match=r"0\.log is damaged behind byte .* a later log follow"):
        process(range(0))
