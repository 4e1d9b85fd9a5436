"""Elements of files, which the log need not have: a new process reads them again behind the last snapshot.

    log 6   … RUN  UNLOGGED │ elements of files: in no log          snapshot 7 │ log 7   FINISH  RAN  …

Behind UNLOGGED nothing follows in that log which a replay would need in its place among these elements: it comes behind a snapshot
that has them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.checkpoints.log import Record
from cqels_py.engine.durable.records import Kind

SMALL = 1 << 16
"""Bytes of files that are logged in any case."""
MOST_APART = 600.0
"""Seconds after which the state is saved although the log has nothing, so that not more than that is to be evaluated again."""

_BESIDE: Final = (Kind.LEFT_OUT, Kind.REFUSED)
"""Kinds that decide about no step: they may stand anywhere."""
_MADE_AGAIN: Final = (Kind.UNLOGGED, Kind.RUN, Kind.RAN, Kind.FINISH, Kind.PLACES, Kind.PASSED, Kind.STOPPED, *_BESIDE)
"""Kinds that come again when files are read again to their ends."""


@dataclass(slots=True)
class Unlogged:
    """Which elements are not logged, and whether the last snapshot has them.

    `streams`: the numbers of those whose source in the current run is a file, if its elements need not be logged; `alone`: the run
    has no other sources. `steps`: how many steps such elements have had so far, `saved`: those before the last snapshot that is on
    the disk. `told`: the number of the log that says so. `removed`: a query has been removed behind such elements.
    """

    streams: frozenset[int] = frozenset()
    alone: bool = True
    on: bool = False
    steps: int = 0
    saved: int = 0
    told: int = -1
    removed: bool = False

    def begin(self, streams: Iterable[int], *, alone: bool) -> None:
        """A run begins over the files of these streams."""
        self.streams, self.alone = frozenset(streams), alone
        self.on = bool(self.streams)

    def end(self) -> None:
        """The run has ended."""
        self.streams, self.on = frozenset(), False

    def has(self, batch: ElementBatch) -> bool:
        """Is a part of a run not to be logged?"""
        return self.on and self.streams.issuperset(np.unique(batch.stream).tolist())

    @property
    def any(self) -> bool:
        """Does something depend on elements that are neither in the log nor in a snapshot?"""
        return self.steps > self.saved

    def pause(self) -> None:
        """Something else has come: until the next snapshot, elements are logged. Where it comes between them again and again, to
        the run's end."""
        self.on = False

    def go_on(self) -> None:
        """A snapshot has been begun."""
        self.on = self.on or (self.alone and bool(self.streams))


def pays(files: int, state: int) -> bool:
    """Is leaving files of so many bytes out of the log less work than logging them? Behind them comes a snapshot of the state."""
    return files > max(SMALL, state)


def is_followed_by_files(records: Iterable[Record]) -> bool:
    """Do elements that are in their files alone follow the last of these records?"""
    return next((each.kind for each in reversed(list(records)) if each.kind not in _BESIDE), None) == Kind.UNLOGGED


def comes_again(records: Iterable[Record]) -> bool:
    """Does all that these records say come again when the files before them are read to their ends?"""
    return all(each.kind in _MADE_AGAIN for each in records)
