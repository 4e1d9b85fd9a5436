"""The resident memory of processes, current and peak, in MB (2**20 bytes)."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def peak() -> float:
    """The peak of this process."""
    # getrusage starts with the value of the parent process, which may be larger.
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 1024


def now(process: int | str = "self") -> float:
    """The current memory of a process; 0 if it is unknown or the process has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE / 2**20
    except OSError:
        return 0.0


def of_all() -> float:
    """The memory of this process and of all processes that it and they started (Spark's)."""
    return sum(map(now, _family(os.getpid())))


def _family(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may contain any character.
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    family = {root}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    return family
