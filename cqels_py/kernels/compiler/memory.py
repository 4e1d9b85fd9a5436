"""How much memory other processes may take: what the system has available, and what a container may still have."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_KIBIBYTE = 1024
_CONTAINERS = (
    ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Control groups of either version: their folder; what says the limit, what is taken, and how much of that is files that were read
once."""


def available(root: Path = Path("/")) -> int | None:
    """Bytes, the least that anything says; None where nothing does."""
    said: list[int] = []
    with suppress(OSError, KeyError, ValueError):
        said.append(_numbers(root / "proc" / "meminfo")["MemAvailable"] * _KIBIBYTE)
    for folder, limit, taken, files in _CONTAINERS:
        # A limit of "max" is no number.
        with suppress(OSError, KeyError, ValueError):
            place = root / folder
            used = int((place / taken).read_text()) - _numbers(place / "memory.stat")[files]
            said.append(int((place / limit).read_text()) - used)
    return min(said, default=None)


def _numbers(file: Path) -> dict[str, int]:
    """Of lines like `name: 12 kB` or `name 12`."""
    words = [line.replace(":", " ").split() for line in file.read_text().splitlines()]
    return {found[0]: int(found[1]) for found in words if len(found) > 1 and found[1].isdigit()}
