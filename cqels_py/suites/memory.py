"""How much memory processes have: now, and at most. In MB (2**20 bytes)."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def peak() -> float:
    """The most that this process has ever had."""
    # Where a process is started from a larger one, getrusage begins with what that one had.
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 1024


def now(process: int | str = "self") -> float:
    """What a process has; 0 where that cannot be known, or where it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE / 2**20
    except OSError:
        return 0.0


def of_all() -> float:
    """What this process has together with those it has started, and they: Spark's."""
    return sum(map(now, _family(os.getpid())))


def _family(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may contain anything.
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    family = {root}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    return family
