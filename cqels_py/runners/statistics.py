"""Counts of a run: the counters that a runner advances, and the snapshots that others see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from threading import Lock
from typing import ClassVar

_REJECTING = Lock()


@dataclass(frozen=True, slots=True)
class Statistics:
    """A snapshot of the counts of an engine; it does not change.

    `elements` and `triples` that were taken in, `results` that were made; `late` elements that were dropped, others that were
    dropped because they were too far `ahead`, `malformed` ones that were skipped. `event_time`: microseconds of the latest element,
    None before the first. `no_numbers`: values that came to a SUM or AVG and are no numbers. `subscriber_errors`: exceptions of
    subscribers that were reported rather than raised. `rejected`: the elements that were left out, by the stream's IRI and the
    reason ("late", "ahead", "malformed", "split element"), and what had no place in RDF: values of JSON-LD ("no IRI") and elements
    without triples ("empty"); on Spark it is empty.
    """

    elements: int = 0
    triples: int = 0
    results: int = 0
    late: int = 0
    malformed: int = 0
    event_time: int | None = None
    no_numbers: int = 0
    subscriber_errors: int = 0
    ahead: int = 0
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict, hash=False)


@dataclass(slots=True)
class Counters:
    """The counts behind `Statistics`, which has the same fields; one thread at a time advances them."""

    STATE: ClassVar[tuple[str, ...]] = (
        *(each.name for each in fields(Statistics) if each.name != "rejected"),
        "rejected_counts",
    )

    elements: int = 0
    triples: int = 0
    results: int = 0
    late: int = 0
    malformed: int = 0
    event_time: int | None = None
    no_numbers: int = 0
    subscriber_errors: int = 0
    ahead: int = 0
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)

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
            self.ahead,
            self.rejected,
        )

    @property
    def rejected_counts(self) -> list[list[str | int]]:
        """The counts of `rejected` as plain values: stream, reason and count of each."""
        return [[stream, reason, count] for (stream, reason), count in self.rejected.items()]

    @rejected_counts.setter
    def rejected_counts(self, counts: list[tuple[str, str, int]]) -> None:
        self.rejected = {(stream, reason): count for stream, reason, count in counts}

    def move_to(self, time: int) -> None:
        """Elements up to this time have been taken in."""
        if self.event_time is None or time > self.event_time:
            self.event_time = time

    def add_no_numbers(self, count: int) -> None:
        """Count values that are no numbers."""
        self.no_numbers += count

    def reject(self, stream: str, reason: str, count: int) -> None:
        """Count elements or values of a stream that were left out; any thread may."""
        with _REJECTING:
            # A new mapping: snapshots have the former one.
            self.rejected = {**self.rejected, (stream, reason): self.rejected.get((stream, reason), 0) + count}
