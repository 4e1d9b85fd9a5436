"""Files of compiled kernels: each by itself, whole, and only for the text that they were made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from cqels_py.kernels.building import ahead
from cqels_py.kernels.building.files import KernelFiles

MACHINE = ("x86_64", "some processor")
ONE = (("int64",), MACHINE, "code")
OTHER = (("float64",), MACHINE, "code")


def files(folder: Path, stamp: str = "text") -> KernelFiles:
    return KernelFiles(str(folder), "module.kernel-7", stamp)


def test_what_is_saved_is_found_for_the_same_types_only(tmp_path: Path) -> None:
    files(tmp_path).save(ONE, "compiled")
    assert files(tmp_path).load(ONE) == "compiled"
    assert files(tmp_path).load(OTHER) is None


def test_processes_that_save_at_once_keep_both(tmp_path: Path) -> None:
    here, there = files(tmp_path), files(tmp_path)
    assert (here.load(ONE), there.load(OTHER)) == (None, None)
    here.save(ONE, "for whole numbers")
    there.save(OTHER, "for others")
    assert (files(tmp_path).load(ONE), files(tmp_path).load(OTHER)) == ("for whole numbers", "for others")


def test_another_text_is_compiled_again_and_takes_the_place(tmp_path: Path) -> None:
    files(tmp_path).save(ONE, "old")
    assert files(tmp_path, stamp="new text").load(ONE) is None
    files(tmp_path, stamp="new text").save(ONE, "new")
    assert files(tmp_path, stamp="new text").load(ONE) == "new"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_changed_kernel_of_the_same_types_is_another_one(tmp_path: Path) -> None:
    files(tmp_path).save(ONE, "compiled")
    assert files(tmp_path).load((*ONE[:2], "other code")) is None


def test_what_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    kept = files(tmp_path / "missing")
    kept.save(ONE, "compiled")
    assert kept.load(ONE) is None


def test_a_missing_kernel_is_looked_for_again_after_others_have_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = files(tmp_path)

    def others_compile() -> bool:
        files(tmp_path).save(ONE, "by another process")
        return True

    monkeypatch.setattr(ahead, "something_is_missing", others_compile)
    assert kept.load(ONE) == "by another process"


def test_a_kernel_that_is_there_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path).save(ONE, "compiled")
    monkeypatch.setattr(ahead, "something_is_missing", lambda: pytest.fail("nothing is missing"))
    assert files(tmp_path).load(ONE) == "compiled"


def test_flushing_leaves_the_files_of_other_kernels(tmp_path: Path) -> None:
    other = KernelFiles(str(tmp_path), "module.kernel-70", "text")
    other.save(ONE, "another")
    files(tmp_path).save(ONE, "compiled")
    files(tmp_path).flush()
    assert (files(tmp_path).load(ONE), other.load(ONE)) == (None, "another")
