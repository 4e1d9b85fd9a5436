"""Which queries read which scans, and which of them a step affects.

A query takes part in a step if one of its scans has a match or a mapping that expires, or if it has to see every step: the cost of a
step follows these, not the number of queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from cqels_py.dataflow.router import Routed
from cqels_py.dataflow.timers import Timed, Timers


class ReadableScan(Timed, Protocol):
    """A scan as its readers see it. `patterns`: the numbers of those whose matches may change it, as the router gave them."""

    @property
    def patterns(self) -> Collection[int]: ...


@dataclass(eq=False, slots=True)
class ScanReader:
    """A query that reads scans; `number`: in the order in which queries were attached."""

    number: int
    scans: tuple[ReadableScan, ...]


class ScanReaders:
    """The queries on shared scans, by number."""

    def __init__(self) -> None:
        self._numbers = count()
        self._readers: dict[int, ScanReader] = {}
        self._unparked: dict[int, ScanReader] = {}
        self._of_scan: dict[ReadableScan, dict[int, ScanReader]] = {}
        self._by_pattern: dict[int, list[ReadableScan]] = {}
        self._timers: Timers[ReadableScan] = Timers()
        self._moved: list[ReadableScan] = []

    def __iter__(self) -> Iterator[ScanReader]:
        return iter(self._readers.values())

    def __len__(self) -> int:
        return len(self._readers)

    def attach(self, scans: Iterable[ReadableScan]) -> ScanReader:
        """A query reads these scans from now on. It takes part in every step until it is parked."""
        reader = ScanReader(next(self._numbers), tuple(scans))
        # Whatever may fail comes before the first change.
        patterns = [(scan, tuple(scan.patterns)) for scan in reader.scans]
        self._readers[reader.number] = self._unparked[reader.number] = reader
        for scan, of_scan in patterns:
            if scan not in self._of_scan:
                self._of_scan[scan] = {}
                for pattern in of_scan:
                    self._by_pattern.setdefault(pattern, []).append(scan)
            self._of_scan[scan][reader.number] = reader
        return reader

    def park(self, reader: ScanReader) -> None:
        """From now on the query takes part only in steps that change one of its scans, as far as these have timers."""
        if all(scan.next_timer is not None for scan in reader.scans):
            self._unparked.pop(reader.number, None)

    def resume(self, reader: ScanReader) -> None:
        """The state of the scans has been restored: they wait for their next timers."""
        for scan in reader.scans:
            self._timers.set(scan)

    def detach(self, reader: ScanReader) -> None:
        """The query takes part in no more steps."""
        if self._readers.pop(reader.number, None) is None:
            return
        self._unparked.pop(reader.number, None)
        for scan in reader.scans:
            readers = self._of_scan[scan]
            del readers[reader.number]
            if not readers:
                del self._of_scan[scan]
                for pattern in scan.patterns:
                    self._by_pattern[pattern].remove(scan)
                self._timers.cancel(scan)

    def affected(self, routed: Routed) -> list[ScanReader]:
        """The queries that a step affects, in the order in which they were attached."""
        scans = [scan for pattern in routed.matched_patterns() for scan in self._by_pattern.get(pattern, ())]
        scans += self._timers.due(routed)
        readers = dict(self._unparked)
        for scan in scans:
            readers.update(self._of_scan[scan])
        self._moved = scans
        return [readers[number] for number in sorted(readers)]

    def set_timers(self) -> None:
        """The step has ended: the scans that it changed wait for their next timers, if they are still read."""
        for scan in self._moved:
            if scan in self._of_scan:
                self._timers.set(scan)
        self._moved = []

    @property
    def waiting(self) -> set[ReadableScan]:
        """The scans that wait for a timer."""
        return self._timers.waiting
