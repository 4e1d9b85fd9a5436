"""The folders of compiled kernels; no state of such a folder breaks a run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from cqels_py.kernels.compiler.cache import FOLDER, folders_of

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")


def mixed(folder: Path, **variables: str) -> tuple[int, bool, str]:
    """The kernel's result, whether it was loaded, and what was said on standard error."""
    code = (
        "from cqels_py.kernels.structures.hashing import mix; print(mix(7)); print(sum(mix.stats.cache_hits.values()))"
    )
    environment = os.environ | {FOLDER: str(folder)} | variables
    finished = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    result, hits = map(int, finished.stdout.split())
    return result, hits > 0, finished.stderr


def test_kernels_are_kept_in_the_folder_that_the_environment_names(tmp_path: Path) -> None:
    numbas = tmp_path / "numba's"
    first = mixed(tmp_path / "ours", NUMBA_CACHE_DIR=str(numbas))
    assert first[1:] == (False, "")
    assert mixed(tmp_path / "ours", NUMBA_CACHE_DIR=str(numbas)) == (first[0], True, "")
    assert not numbas.exists()


def test_without_one_they_are_kept_in_numbas_folder_or_beside_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "/somewhere/kernels/join.py"
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "/told")
    (told,) = folders_of(module, "text")
    assert told.parent == Path("/told") and told.name.startswith("join_")
    assert folders_of("/unpacked/elsewhere/kernels/join.py", "text") == [told]
    assert folders_of(module, "other text") != [told]
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    beside, users = folders_of(module, "text")
    assert beside == Path("/somewhere/kernels/__pycache__") and users.name == told.name
    monkeypatch.setenv(FOLDER, "/ours")
    assert folders_of(module, "text") == [Path("/ours", told.name)]


def test_a_package_that_is_moved_keeps_its_kernels(tmp_path: Path) -> None:
    """As an environment that is unpacked in another folder each time."""
    sound = mixed(tmp_path / "cache")
    for place in ("one", "two"):
        copied = tmp_path / place / "cqels_py"
        shutil.copytree(ROOT / "cqels_py", copied, ignore=shutil.ignore_patterns("__pycache__"))
        assert mixed(tmp_path / "cache", PYTHONPATH=str(copied.parent)) == (sound[0], True, "")
        (copied / "kernels" / "structures" / "hashing.py").open("a").write("# Another source.\n")
        assert mixed(tmp_path / "cache", PYTHONPATH=str(copied.parent)) == (sound[0], place == "two", "")
    assert mixed(tmp_path / "cache") == (sound[0], True, "")


def test_damaged_files_are_compiled_again_and_replaced(tmp_path: Path) -> None:
    sound = mixed(tmp_path)
    kept = list(tmp_path.rglob("*.nbc"))
    assert kept
    for file in kept:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 255
        file.write_bytes(content)
    assert mixed(tmp_path) == sound
    assert mixed(tmp_path) == (sound[0], True, "")
    assert sorted(tmp_path.rglob("*.nbc")) == sorted(kept)


def test_a_read_only_folder_is_reported_once_and_the_run_continues(tmp_path: Path) -> None:
    no_folder = tmp_path / "file"
    no_folder.touch()
    result, loaded, said = mixed(no_folder)
    assert (result, loaded) == (mixed(tmp_path / "folder")[0], False)
    assert said.count("\n") == 1 and "compiled kernels cannot be kept" in said and str(no_folder) in said
