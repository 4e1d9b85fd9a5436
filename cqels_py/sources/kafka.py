"""The records of a Kafka topic as a stream: all partitions are read by this process, which knows how far it is in each of them.

Nothing is asked of the cluster's groups: a group only gets told the offsets up to which results have been committed.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from operator import methodcaller
from typing import Any, Final, cast

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.connections.kafka import Cluster, kafka_for, said
from cqels_py.connections.location import Location
from cqels_py.connections.schemes import needed
from cqels_py.errors import CqelsError, RunError, UsageError
from cqels_py.formats.times import NO_TIME, time_of_text
from cqels_py.sources.live import MOST_BYTES, MOST_MESSAGES, MessageColumns
from cqels_py.sources.malformed import HeldReports
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.partitions import Partition, PartitionMerge, Returned
from cqels_py.sources.protocol import Opening

_LOG = logging.getLogger("cqels_py")
_EARLIEST, _LATEST, _GROUP = "earliest", "latest", "group"
_RANGES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
_AT_ONCE = 16_384
_LOOK_EVERY, _LOOK_WHILE_AWAY = 10.0, 2.0
"""Seconds between two looks at the cluster: for new partitions, and for brokers that were away."""
_LOOK_WITHIN, _ANSWER_WITHIN = 2.0, 10.0
_LEAST_BYTES = 1 << 20

Position = tuple[tuple[int, int, int], ...]
"""By partition: its number, an offset, and how many elements of the records from there on have been taken."""


def kafka_source(location: Location) -> KafkaConnector:
    """`kafka://host:9092,host:9092/topic?start=earliest&group=NAME&partitions=0-3`."""
    kafka_for(location)
    options = location.options
    group = options.text("group")
    start = options.text("start", _EARLIEST if group is None else _GROUP)
    assert start is not None
    if start not in (_EARLIEST, _LATEST, _GROUP) and time_of_text(start) == NO_TIME:
        raise UsageError(
            f"{location.shown}: the option start is earliest, latest, group or a time like 2024-05-01T12:00:00Z, not {start!r}"
        )
    if start == _GROUP and group is None:
        raise UsageError(f"{location.shown}: start=group begins where a group is: name it with group=NAME")
    given = options.text("partitions")
    if given is not None and not _RANGES.fullmatch(given):
        raise UsageError(
            f"{location.shown}: the option partitions is a list of numbers or ranges, such as 0-3,7, not {given!r}"
        )
    format_, idle = MessageFormat.of(options), options.seconds("idle", "30s")
    return KafkaConnector(Cluster.of(location), start, group, given, idle, format_)


@dataclass(frozen=True, slots=True)
class KafkaConnector:
    """A topic. `start`: earliest, latest, group or a time. `partitions`: such as 0-3,7; None: all."""

    cluster: Cluster
    start: str
    group: str | None
    partitions: str | None
    idle: float
    format: MessageFormat

    def open(self, opening: Opening) -> KafkaSource:
        """Connect, and find where each partition begins. RunError if the cluster is not there, or has not that topic."""
        return KafkaSource(self, opening)

    def chosen(self, existing: Sequence[int]) -> list[int]:
        """The partitions that are read. RunError for one that is not there."""
        if self.partitions is None:
            return list(existing)
        wanted: set[int] = set()
        for part in self.partitions.split(","):
            first, _, last = part.partition("-")
            wanted.update(range(int(first), min(int(last or first), max(existing) + 1) + 1))
        if missing := sorted(wanted - set(existing)):
            raise RunError(
                f"{self.cluster.shown}: {self.cluster.topic} has no partition {missing[0]}; there are {len(existing)}"
            )
        return sorted(wanted)


class KafkaSource:
    """Reads the partitions with one consumer.

    `_away`: no broker is there. `_paused`: partitions of which enough records wait already.
    """

    def __init__(self, connector: KafkaConnector, opening: Opening) -> None:
        self._kafka: Any = needed("confluent_kafka", "confluent-kafka", "kafka", "kafka://")
        self._connector = connector
        self._cluster = connector.cluster
        self._opening = opening
        self._failure: CqelsError | None = None
        self._said = ""
        self._away = False
        self._paused: set[int] = set()
        self._reported: dict[int, int] = {}
        self._look_at = time.monotonic() + _LOOK_EVERY
        # The thread that asks the cluster, and what it has found: new partitions and their bounds; None: nobody has answered.
        self._asking: threading.Thread | None = None
        self._answered = threading.Event()
        self._found: Mapping[int, tuple[int, int]] | None = None
        self._consumer = self._cluster.client("Consumer", self._settings())
        try:
            self._merge = PartitionMerge(self._begin(), connector.idle, time.monotonic, is_logged=opening.continues)
        except CqelsError:
            self._consumer.close()
            raise
        self._assign()

    def _settings(self) -> dict[str, object]:
        unnamed = hashlib.blake2b(f"{self._cluster.shown} {self._opening.stream}".encode(), digest_size=8).hexdigest()
        return {
            "group.id": self._connector.group or f"cqels-{unnamed}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "error_cb": self._on_error,
        }

    # --- the protocol of sources --------------------------------------------------------------------------------------

    resumes = True

    @property
    def idle(self) -> bool:
        return self._merge.idle

    @property
    def caught_up(self) -> bool:
        """Is it at the end of every partition, as far as can be known?"""
        return not self._away and self._merge.at_end

    @property
    def returned(self) -> Returned | None:
        """The elements of the last poll by partition; None if there is only one."""
        return self._merge.returned

    def poll(self) -> ElementBatch:
        """The elements that have come and that no partition holds up. RunError for a cluster that refuses."""
        self._pump()
        if self._answered.is_set():
            self._take_answer()
        elif time.monotonic() >= self._look_at:
            self._look()
        if self._failure is not None and not self._merge.can_decode:
            raise self._failure
        return self._merge.take()

    def position(self) -> Position:
        return self._merge.position()

    def commit(self, position: object) -> None:
        """Tell the group, if there is one, in the background."""
        if self._connector.group is None:
            return
        assert isinstance(position, tuple)
        offsets = {number: offset for number, offset, _ in position if offset > self._reported.get(number, 0)}
        if offsets:
            self._reported |= offsets
            with suppress(self._kafka.KafkaException):
                self._consumer.commit(offsets=self._places(offsets), asynchronous=True)

    def close(self) -> None:
        """Leave the cluster, once the last commit has reached it."""
        if self._asking is not None:
            # It uses the consumer.
            self._asking.join()
        if self._reported and not self._away:
            with suppress(self._kafka.KafkaException, RuntimeError):
                self._consumer.commit(offsets=self._places(self._reported), asynchronous=False)
        self._consumer.close()

    def advance(self, time: int) -> None:
        """As of `Partitioned`."""
        self._merge.advance(time)

    def holds_before(self, time: int) -> bool:
        """As of `Partitioned`."""
        return self._merge.holds_before(time)

    def live_ids(self) -> Iterable[Ids]:
        """As of `Partitioned`."""
        return self._merge.live_ids()

    # --- where partitions begin ---------------------------------------------------------------------------------------

    def _begin(self) -> list[Partition]:
        try:
            existing = self._cluster.partitions(self._consumer)
        except RunError as error:
            # The reason, if there is one, waits to be told.
            self._consumer.poll(0)
            raise self._failure or RunError(f"{error.message}{self._said and f' ({self._said})'}") from None
        chosen = self._connector.chosen(existing)
        try:
            if self._opening.position is not None:
                return self._continued(chosen)
            offsets = self._first_offsets(chosen)
            return [self._partition(number, offsets[number]) for number in chosen]
        except self._kafka.KafkaException as error:
            raise RunError(f"{self._cluster.shown}: {said(error)}") from None

    def _continued(self, numbers: Sequence[int]) -> list[Partition]:
        """From the opening's position on; partitions that it does not have are new. RunError for records that are gone."""
        places = {number: (offset, taken) for number, offset, taken in cast(Position, self._opening.position)}
        found = []
        for number in numbers:
            low, high = self._bounds(number)
            offset, taken = places.get(number, (low, 0))
            if not low <= offset <= high:
                raise self._gone(number, offset, f"there are those from {low} to {high}")
            found.append(self._partition(number, offset, taken))
        return found

    def _gone(self, number: int, offset: int, reason: str) -> RunError:
        return RunError(
            f"{self._cluster.shown}: partition {number} has not the records from offset {offset} on, with which it is to go on: "
            f"{reason}. They are no longer kept, or the topic was made anew"
        )

    def _partition(self, number: int, offset: int, taken: int = 0, bounds: tuple[int, int] | None = None) -> Partition:
        """A partition from an offset on; one in which nothing ever was holds up nobody before it speaks."""
        reports = HeldReports(self._opening.report)
        opening = replace(self._opening, report=reports.hold)
        decoder = MessageDecoder(opening, f"{self._cluster.shown} partition {number}", self._connector.format)
        topic = self._cluster.topic

        def decode(bodies: Sequence[bytes], arrived: Sequence[int], offsets: Sequence[int]) -> ElementBatch:
            count = len(bodies)
            return decoder.elements(MessageColumns(bodies, [topic] * count, [None] * count, arrived), offsets)

        since = float("-inf") if (bounds or self._bounds(number)) == (0, 0) else time.monotonic()
        return Partition(number, offset, decode, skip=taken, silent_since=since, reports=reports)

    def _first_offsets(self, numbers: Sequence[int]) -> Mapping[int, int]:
        """Where to begin. KafkaException if that cannot be found out."""
        start = self._connector.start
        if start == _LATEST:
            return {number: self._bounds(number)[1] for number in numbers}
        if start == _EARLIEST:
            return {number: self._bounds(number)[0] for number in numbers}
        places = self._places(dict.fromkeys(numbers, 0))
        if start == _GROUP:
            found = self._consumer.committed(places, timeout=_ANSWER_WITHIN)
        else:
            for place in places:
                place.offset = time_of_text(start) // 1000
            found = self._consumer.offsets_for_times(places, timeout=_ANSWER_WITHIN)
        offsets = {}
        for place in found:
            if place.error is not None:
                raise self._kafka.KafkaException(place.error)
            low, high = self._bounds(place.partition)
            # A negative offset: the group has none, or no record is that late.
            offsets[place.partition] = place.offset if place.offset >= 0 else low if start == _GROUP else high
        return offsets

    def _bounds(self, number: int) -> tuple[int, int]:
        """The offset of the first record that is kept, and that of the next one to come."""
        low, high = self._consumer.get_watermark_offsets(self._places({number: 0})[0], timeout=_ANSWER_WITHIN)
        return low, high

    def _places(self, offsets: Mapping[int, int]) -> list[Any]:
        return [self._kafka.TopicPartition(self._cluster.topic, number, offset) for number, offset in offsets.items()]

    def _assign(self) -> None:
        """Read on from where each partition is; their ends are told anew."""
        self._paused.clear()
        for each in self._merge.partitions.values():
            each.end = -1
        self._consumer.assign(self._places({each.number: each.next for each in self._merge.partitions.values()}))

    # --- records ------------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Take the records that have come to the partitions; wait briefly if there is nothing to do."""
        records = self._consumer.consume(_AT_ONCE, 0)
        if not records and not self._merge.can_decode:
            first = self._consumer.poll(self._opening.pause)
            if first is not None:
                records = [first, *self._consumer.consume(_AT_ONCE, 0)]
        for number, run in groupby(records, key=_PARTITION):
            self._put(number, list(run))
        self._restrain()

    def _put(self, number: int, records: list[Any]) -> None:
        errors = [record for record in records if record.error() is not None]
        if errors:
            records = [record for record in records if record.error() is None]
        now = time.monotonic()
        if records:
            after = records[-1].offset() + 1
            # Records without a value say that a key is gone, which makes no element.
            records = [record for record in records if record.value() is not None]
            bodies, offsets = [record.value() for record in records], [record.offset() for record in records]
            arrived = [1000 * record.timestamp()[1] if self._connector.format.arrival else 0 for record in records]
            self._merge.partitions[number].put(bodies, arrived, offsets, after, now)
        for record in errors:
            error = record.error()
            if error.code() == self._kafka.KafkaError._PARTITION_EOF:
                self._merge.partitions[number].end = record.offset()
            else:
                self._refuse(error, record)

    def _restrain(self) -> None:
        """Let partitions wait of which much has come already, because others are behind."""
        share = max(_LEAST_BYTES, MOST_BYTES // len(self._merge.partitions))
        for each in self._merge.partitions.values():
            full = each.bytes >= share or each.messages >= MOST_MESSAGES
            if full and each.number not in self._paused:
                self._consumer.pause(self._places({each.number: 0}))
                self._paused.add(each.number)
            elif each.number in self._paused and each.bytes < share // 2 and each.messages < MOST_MESSAGES // 2:
                self._consumer.resume(self._places({each.number: 0}))
                self._paused.discard(each.number)

    # --- the cluster --------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Find new partitions, and brokers that are there again: another thread asks, as a broker may say nothing."""
        if self._asking is not None:
            return
        self._asking = threading.Thread(target=self._ask, name="cqels kafka", daemon=True)
        self._asking.start()

    def _ask(self) -> None:
        try:
            found = self._consumer.list_topics(self._cluster.topic, timeout=_LOOK_WITHIN).topics[self._cluster.topic]
            known = self._merge.partitions
            new = [] if self._connector.partitions is not None else sorted({*found.partitions} - {*known})
            self._found = {number: self._bounds(number) for number in new}
        except (self._kafka.KafkaException, RuntimeError):
            # No broker is there, or the consumer has been closed.
            self._found = None
        self._answered.set()

    def _take_answer(self) -> None:
        """Read new partitions from their beginnings, and all others again once a broker is there."""
        self._answered.clear()
        self._asking, found = None, self._found
        self._look_at = time.monotonic() + (_LOOK_WHILE_AWAY if self._away else _LOOK_EVERY)
        if found is None:
            return
        if found:
            self._merge.partitions |= {
                number: self._partition(number, bounds[0], bounds=bounds) for number, bounds in found.items()
            }
            shown, topic, count = self._cluster.shown, self._cluster.topic, len(self._merge.partitions)
            _LOG.info("%s: %s has %d partitions now", shown, topic, count)
        if self._away:
            self._away = False
            self._look_at = time.monotonic() + _LOOK_EVERY
            _LOG.warning("%s: connected again", self._cluster.shown)
        elif not found:
            return
        self._assign()

    def _refuse(self, error: Any, record: Any) -> None:
        """An error in place of a record: it is for good, unless the client says otherwise."""
        shown = self._cluster.shown
        if error.code() in (self._kafka.KafkaError._AUTO_OFFSET_RESET, self._kafka.KafkaError.OFFSET_OUT_OF_RANGE):
            self._failure = self._gone(record.partition(), self._merge.partitions[record.partition()].next, error.str())
        elif not error.retriable():
            self._failure = RunError(f"{shown}: {error.str()}")

    def _on_error(self, error: Any) -> None:
        """Called in a poll."""
        codes = self._kafka.KafkaError
        self._said = error.str()
        if error.fatal() or error.code() in (codes._AUTHENTICATION, codes.SASL_AUTHENTICATION_FAILED):
            self._failure = RunError(f"{self._cluster.shown}: {error.str()}")
        elif error.code() == codes._ALL_BROKERS_DOWN and not self._away:
            self._away = True
            self._look_at = time.monotonic() + _LOOK_WHILE_AWAY
            _LOG.warning("%s: no broker is there; connecting again until one is", self._cluster.shown)


_PARTITION: Final = methodcaller("partition")
