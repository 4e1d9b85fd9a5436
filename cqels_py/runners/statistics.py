"""Counts of a run: the counters that a runner advances, and the snapshots that others see."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Statistics:
    """A snapshot of the counts of an engine; it does not change.

    `elements` and `triples` that were taken in, `results` that were made; `late` elements that were dropped, `malformed` ones that
    were skipped. `event_time`: microseconds of the last element, None before the first. `no_numbers`: values that came to a SUM or
    AVG and are no numbers. `subscriber_errors`: exceptions of subscribers that were reported rather than raised.
    """

    elements: int = 0
    triples: int = 0
    results: int = 0
    late: int = 0
    malformed: int = 0
    event_time: int | None = None
    no_numbers: int = 0
    subscriber_errors: int = 0


@dataclass(slots=True)
class Counters:
    """The counts behind `Statistics`, which has the same fields; one thread at a time advances them."""

    STATE: ClassVar[tuple[str, ...]] = tuple(field.name for field in fields(Statistics))

    elements: int = 0
    triples: int = 0
    results: int = 0
    late: int = 0
    malformed: int = 0
    event_time: int | None = None
    no_numbers: int = 0
    subscriber_errors: int = 0

    def snapshot(self) -> Statistics:
        """The counts at this instant; any thread may ask at any time, also while another one is in a step."""
        # Nothing between the reads of the fields is a call, so no other thread runs there.
        return Statistics(
            self.elements,
            self.triples,
            self.results,
            self.late,
            self.malformed,
            self.event_time,
            self.no_numbers,
            self.subscriber_errors,
        )

    def add_no_numbers(self, count: int) -> None:
        """Count values that are no numbers."""
        self.no_numbers += count
