"""Files of results that several stores have: who appends to them, and which can be had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.service.definitions import Keep
from cqels_py.service.result_store import ResultStore

ALL = Keep(results=1_000_000)


class InCommon:
    """Lines that are in memory until the end of the test."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    @property
    def count(self) -> int:
        return len(self.lines)

    def behind(self, count: int) -> tuple[int, Sequence[bytes]]:
        return 0, self.lines[count:]

    def save(self) -> None:
        """They stay where they are."""

    def add(self, *values: int) -> None:
        self.lines += [b'{"x":%d}' % value for value in values]


def stores(folder: Path, names: str, lines: InCommon) -> list[ResultStore]:
    found = [ResultStore(folder / name, ALL) for name in names]
    for each in found:
        each.share(lines)
    return found


def kept(folder: Path, name: str) -> list[bytes]:
    """The results that are in files, as another process reads them."""
    store, found = ResultStore(folder / name, ALL), list[bytes]()
    while more := store.read(len(found) + 1, 100):
        found += more
    return found


def test_the_store_that_wrote_files_in_common_begins_another_once_they_are_not(tmp_path: Path) -> None:
    lines = InCommon()
    writer, other = stores(tmp_path, "ab", lines)
    lines.add(1, 2, 3)
    writer.lead(anew=True)
    other.follow(writer)
    assert kept(tmp_path, "b") == [b'{"number":%d,"x":%d}' % (each, each) for each in (1, 2, 3)]
    for each in (writer, other):
        each.leave()
    writer.append(4, [b'{"x":40}'])
    writer.sync()
    other.append(4, [b'{"x":41}'])
    other.sync()
    assert kept(tmp_path, "a")[3:] == [b'{"number":4,"x":40}']
    assert kept(tmp_path, "b")[3:] == [b'{"number":4,"x":41}']


def test_a_file_that_leaves_a_gap_cannot_be_had(tmp_path: Path) -> None:
    lines = InCommon()
    first, second, other = stores(tmp_path, "abc", lines)
    lines.add(1, 2, 3)
    first.lead(anew=True)
    second.follow(first)
    lines.add(4, 5)
    second.lead(anew=True)
    # It has none of the first three, and the file begins with the fourth.
    with pytest.raises(StorageError, match="does not follow"):
        other.follow(second)
    other.go_apart()
    other.flush()
    other.sync()
    assert kept(tmp_path, "c") == [b'{"number":%d,"x":%d}' % (each, each) for each in (1, 2, 3, 4, 5)]
