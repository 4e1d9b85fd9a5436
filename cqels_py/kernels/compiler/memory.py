"""How much memory is left for other processes, according to the system and to the limits of a container."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_KIBIBYTE = 1024
_CONTAINERS = (
    ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Control groups, version 2 and 1: their folder, and the files with the limit, the memory in use, and the part of that
which is reclaimable page cache."""


def available(root: Path = Path("/")) -> int | None:
    """Available bytes: the least of all figures found; None where there is none."""
    figures: list[int] = []
    with suppress(OSError, KeyError, ValueError):
        figures.append(_numbers(root / "proc" / "meminfo")["MemAvailable"] * _KIBIBYTE)
    for folder, limit, taken, files in _CONTAINERS:
        # A limit of "max" raises ValueError: there is none.
        with suppress(OSError, KeyError, ValueError):
            place = root / folder
            used = int((place / taken).read_text()) - _numbers(place / "memory.stat")[files]
            figures.append(int((place / limit).read_text()) - used)
    return min(figures, default=None)


def _numbers(file: Path) -> dict[str, int]:
    """The numbers in lines like `name: 12 kB` or `name 12`."""
    words = [line.replace(":", " ").split() for line in file.read_text().splitlines()]
    return {found[0]: int(found[1]) for found in words if len(found) > 1 and found[1].isdigit()}
