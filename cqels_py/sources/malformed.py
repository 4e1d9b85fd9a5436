"""Malformed input of sources that can begin at a position: each piece is told once, whatever reading tells it."""

from __future__ import annotations

from collections.abc import Callable

from cqels_py.errors import DataError

Report = Callable[[DataError], None]


class CountedReports:
    """Counts the pieces behind a place of the source, as it counts its elements there.

    `count`: of the pieces behind the place. The first `known` of them have been told by an earlier process, and are passed over.
    """

    def __init__(self, known: int = 0) -> None:
        self.count = self._known = known

    def through(self, report: Report | None) -> Report:
        """Reports to this callable, by way of the count."""

        def counted(error: DataError) -> None:
            if self._known:
                self._known -= 1
                return
            self.count += 1
            if report is not None:
                report(error)

        return counted

    def begin(self) -> None:
        """The place is now the end of all that has been read."""
        self.count = self._known = 0


class HeldReports:
    """Holds pieces back until the position of the source is behind them: only then are they passed on to `report`."""

    def __init__(self, report: Report | None) -> None:
        self._report = report
        self._held: list[DataError] = []

    def hold(self, error: DataError) -> None:
        """A piece that was read ahead of the position."""
        self._held.append(error)

    def tell(self) -> None:
        """The position is behind all that has been read."""
        held, self._held = self._held, []
        if self._report is not None:
            for error in held:
                self._report(error)
