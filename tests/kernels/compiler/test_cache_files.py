"""Files of compiled kernels: independent of each other, atomic, and valid only for the source they were compiled from."""

from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cqels_py.kernels.compiler import cache_files as files_module
from cqels_py.kernels.compiler.cache_files import KernelFiles

MACHINE = ("x86_64", "some processor")
ONE = (("int64",), MACHINE, "code")
OTHER = (("float64",), MACHINE, "code")


def cut(sound: bytes) -> bytes:
    return sound[: len(sound) // 2]


def emptied(sound: bytes) -> bytes:
    return b""


def with_a_bit_flipped(sound: bytes) -> bytes:
    return sound[:-1] + bytes([sound[-1] ^ 4])


def with_zeros_at_the_end(sound: bytes) -> bytes:
    return sound[:-9] + bytes(9)


def extended(sound: bytes) -> bytes:
    return sound + sound


DAMAGES = [cut, emptied, with_a_bit_flipped, with_zeros_at_the_end, extended]


def files(folder: Path, stamp: str = "text") -> KernelFiles:
    return KernelFiles([folder], "module.kernel-7", stamp)


def test_a_saved_kernel_is_found_for_the_same_types_only(tmp_path: Path) -> None:
    files(tmp_path).save(ONE, "compiled")
    assert files(tmp_path).load(ONE) == "compiled"
    assert files(tmp_path).load(OTHER) is None


def test_processes_that_save_at_once_keep_both(tmp_path: Path) -> None:
    here, there = files(tmp_path), files(tmp_path)
    assert (here.load(ONE), there.load(OTHER)) == (None, None)
    here.save(ONE, "for whole numbers")
    there.save(OTHER, "for others")
    assert (files(tmp_path).load(ONE), files(tmp_path).load(OTHER)) == ("for whole numbers", "for others")


def test_a_kernel_of_another_source_is_compiled_again_and_replaced(tmp_path: Path) -> None:
    files(tmp_path).save(ONE, "old")
    assert files(tmp_path, stamp="new text").load(ONE) is None
    files(tmp_path, stamp="new text").save(ONE, "new")
    assert files(tmp_path, stamp="new text").load(ONE) == "new"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_changed_kernel_of_the_same_types_is_another_one(tmp_path: Path) -> None:
    files(tmp_path).save(ONE, "compiled")
    assert files(tmp_path).load((*ONE[:2], "other code")) is None


def test_folders_are_created_with_their_first_file(tmp_path: Path) -> None:
    kept = files(tmp_path / "some" / "folder")
    assert kept.load(ONE) is None
    assert list(tmp_path.iterdir()) == []
    kept.save(ONE, "compiled")
    assert kept.load(ONE) == "compiled"


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_counts_as_missing_and_is_replaced(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    files(tmp_path).save(ONE, "compiled")
    (file,) = tmp_path.iterdir()
    sound = file.read_bytes()
    file.write_bytes(damage(sound))
    assert files(tmp_path).load(ONE) is None
    files(tmp_path).save(ONE, "compiled")
    assert (*tmp_path.iterdir(),) == (file,) and file.read_bytes() == sound


def test_a_damaged_file_is_not_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path).save(ONE, "compiled")
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)
    monkeypatch.setattr(pickle, "loads", lambda _: pytest.fail("what is damaged could call anything"))
    assert files(tmp_path).load(ONE) is None


def test_files_of_other_library_versions_count_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path).save(ONE, "compiled")

    def fail(_: Any) -> Any:
        raise AttributeError("there is no such class any more")

    monkeypatch.setattr(pickle, "loads", fail)
    assert files(tmp_path).load(ONE) is None


def test_a_file_is_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("sync"), sync(file))[1])
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("rename"), replace(*names))[1])
    files(tmp_path).save(ONE, "compiled")
    assert done == ["sync", "rename"]


def full(file: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_folder_is_reported_once_and_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(files_module, "_WARNED", [])
    monkeypatch.setattr(os, "fsync", full)
    for key in (ONE, OTHER):
        files(tmp_path).save(key, "compiled")
    (said,) = caplog.messages
    assert str(tmp_path) in said and "No space left on device" in said and "CQELS_CACHE_DIR" in said
    assert list(tmp_path.iterdir()) == []


def test_it_is_known_whether_kernels_can_be_kept(tmp_path: Path) -> None:
    no_folder = tmp_path / "file"
    no_folder.touch()
    assert not files(no_folder).can_be_written
    assert files(tmp_path).can_be_written
    assert list(tmp_path.iterdir()) == [no_folder]


def test_a_kernel_for_another_machine_is_used_where_there_is_none_for_this_one(tmp_path: Path) -> None:
    types, _, code = ONE
    machine = ("x86_64-unknown-linux-gnu", "x86-64-v3", "")
    own, beside = tmp_path / "own", tmp_path / "shipped"
    files(beside).save((types, machine, code), "for many machines")
    both = KernelFiles([own], "module.kernel-7", "text", (beside, machine))
    assert (both.load(ONE), both.has(ONE)) == ("for many machines", True)
    assert (both.load(OTHER), both.has(OTHER)) == (None, False)
    both.save(ONE, "for this machine")
    assert both.load(ONE) == "for this machine"
    other_source = KernelFiles([], "module.kernel-7", "another text", (beside, machine))
    assert (other_source.load(ONE), other_source.has(ONE)) == (None, False)


def test_a_kernel_is_kept_in_the_first_writable_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    files(first).save(ONE, "came with an image")
    sound = next(first.iterdir())
    both = KernelFiles([sound / "below a file", second], "module.kernel-7", "text")
    both.save(OTHER, "compiled here")
    assert (both.load(ONE), both.load(OTHER)) == (None, "compiled here")
    both = KernelFiles([first, second], "module.kernel-7", "text")
    assert (both.load(ONE), both.load(OTHER)) == ("came with an image", "compiled here")
    assert caplog.messages == []


def test_flushing_leaves_the_files_of_other_kernels(tmp_path: Path) -> None:
    other = KernelFiles([tmp_path], "module.kernel-70", "text")
    other.save(ONE, "another")
    files(tmp_path).save(ONE, "compiled")
    files(tmp_path).flush()
    assert (files(tmp_path).load(ONE), other.load(ONE)) == (None, "another")
