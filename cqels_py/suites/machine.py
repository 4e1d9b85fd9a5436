"""The machine and the versions of a measurement; a rate is meaningless without them."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

_LIBRARIES = ("cqels_py", "numba", "llvmlite", "numpy", "pyarrow", "pyoxigraph")
_RUNNER = "pyspark"
_ROOT = Path(__file__).parents[2]


def machine() -> dict[str, str | int | float]:
    """Processor, cores that this process may use, memory in GB, operating system."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
    }


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that rates depend on, and the commit (with a + if files differ from it)."""
    found = {"python": f"{platform.python_implementation()} {platform.python_version()}"}
    found |= {library: metadata.version(library) for library in _LIBRARIES}
    if find_spec(_RUNNER) is not None:
        found[_RUNNER] = metadata.version(_RUNNER)
    commit = _git("rev-parse", "--short", "HEAD")
    if commit:
        found["commit"] = commit + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    return found


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _git(*arguments: str) -> str:
    """Git's answer about the repository of this file; empty if the package is installed elsewhere."""
    if not (_ROOT / ".git").exists():
        return ""
    try:
        return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
