"""`cqels checkpoint`: the content of a checkpoint's folder, and a copy of it."""

from __future__ import annotations

from pathlib import Path


def show(folder: Path) -> None:
    """Print the content of the folder."""
    from cqels_py.engine.durable.summary import summary

    found = summary(folder)
    print(f"an engine's inputs: {found.elements:,} elements have been taken in")
    for name, results in found.queries.items():
        print(f"query {' '.join(name.split())}: {results:,} results before the last snapshot")
    for name, size in found.snapshots.items():
        print(f"{name}: {abs(size):,} bytes{'' if size > 0 else ', damaged'}")
    for name, size in found.logs.items():
        print(f"{name}: {size:,} bytes")
    print(f"{found.records:,} records follow the last snapshot")


def copy(folder: Path, to: Path, *, intact: bool) -> None:
    """Copy the folder's last snapshot and the log behind it. `intact`: up to a file that is missing or damaged."""
    from cqels_py.checkpoints import savepoints

    savepoints.copy(folder, to, intact=intact)
