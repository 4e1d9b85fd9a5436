"""The available memory, from files as Linux has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cqels_py.kernels.compiler import memory
from cqels_py.kernels.compiler import parallel_build as build

MEBIBYTE = 1 << 20


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_without_files_nothing_is_known(tmp_path: Path) -> None:
    assert memory.available(tmp_path) is None


def test_the_available_memory_of_the_machine(tmp_path: Path) -> None:
    write(tmp_path, proc__meminfo="MemTotal:  8192 kB\nMemAvailable:    4096 kB\nHugePages_Total:  0\n")
    assert memory.available(tmp_path) == 4 * MEBIBYTE


@pytest.mark.parametrize(
    ("folder", "limit", "current", "files"),
    [
        ("sys__fs__cgroup__", "memory_dot_max", "memory_dot_current", "inactive_file"),
        (
            "sys__fs__cgroup__memory__",
            "memory_dot_limit_in_bytes",
            "memory_dot_usage_in_bytes",
            "total_inactive_file",
        ),
    ],
)
def test_the_memory_left_for_a_container(tmp_path: Path, folder: str, limit: str, current: str, files: str) -> None:
    write(tmp_path, proc__meminfo=f"MemAvailable: {1 << 20} kB\n")
    write(
        tmp_path,
        **{
            f"{folder}{limit}": f"{500 * MEBIBYTE}\n",
            f"{folder}{current}": f"{300 * MEBIBYTE}\n",
            f"{folder}memory_dot_stat": f"anon 7\n{files} {100 * MEBIBYTE}\n",
        },
    )
    assert memory.available(tmp_path) == 300 * MEBIBYTE
    write(tmp_path, **{f"{folder}{limit}": "max\n"})
    assert memory.available(tmp_path) == 1024 * MEBIBYTE


@pytest.mark.parametrize(
    ("mebibytes", "workers"), [(None, 4), (100_000, 4), (1_900, 3), (1_200, 2), (1_100, 1), (300, 0)]
)
def test_each_worker_needs_memory(mebibytes: int | None, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    room = None if mebibytes is None else mebibytes * MEBIBYTE
    monkeypatch.setattr(memory, "available", lambda: room)
    monkeypatch.setattr(build, "_cores", lambda: 4)
    assert build.workers() == workers
