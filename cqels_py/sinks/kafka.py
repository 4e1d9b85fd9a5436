"""Results as records of a Kafka topic, a JSON object each, in transactions that note the number of their last result.

The number is in a header of each record, and in a record of the topic `…-progress` in the same transaction: a run that continues
reads that number there, and leaves out the results up to it. A transaction that fails is made again with the same results.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.connections.kafka import Cluster, kafka_for, said
from cqels_py.connections.location import Location
from cqels_py.connections.retry import Backoff
from cqels_py.connections.schemes import needed
from cqels_py.errors import RunError, UsageError
from cqels_py.formats.values import columns_of_terms, value_of
from cqels_py.sinks.json_bodies import JsonBodies
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.templates import Names
from cqels_py.suggestions import unknown

NUMBER = "cqels-number"
"""The header with the number of a result, from 1."""
_PROGRESS_PARTITION = 0
_MOST_RECORDS = 100_000
"""The number of results after which a transaction is made although more results of the same step follow."""
_ANSWER_WITHIN, _OUTCOME_WITHIN = 10.0, 2.0
_LOOK_BACK = 1000

_LOG = logging.getLogger("cqels_py")

Record = tuple[int, str | None, bytes]
"""The number of a result, its key and its body."""


def kafka_sink(location: Location) -> KafkaSinkConnector:
    """`kafka://host:9092/topic?key=room`: the records have the value of the variable ?room as their key."""
    kafka_for(location)
    options = location.options
    key, name, patience = options.text("key"), options.text("id"), options.seconds("retry", "5m")
    return KafkaSinkConnector(Cluster.of(location), key, name, patience)


@dataclass(frozen=True, slots=True)
class KafkaSinkConnector:
    """A topic. `key`: a variable; `id`: that of the transactions; `patience`: seconds for which an absent cluster is waited for."""

    cluster: Cluster
    key: str | None
    id: str | None
    patience: float
    changelog: bool = False
    keeps_number: bool = True
    can_retry: ClassVar[bool] = True

    def open(self, opening: SinkOpening) -> KafkaSink:
        """Connect. RunError if the cluster is not there or refuses, UsageError for a variable that the query does not have."""
        if opening.form == "CONSTRUCT":
            raise UsageError(f"{self.cluster.shown}: records hold the results of SELECT and ASK, not of CONSTRUCT")
        if self.key is not None and self.key not in opening.variables:
            raise UsageError(f"{self.cluster.shown}: {unknown('variable', self.key, opening.variables)}")
        return KafkaSink(self, opening)


class KafkaSink:
    """Collects results, and writes them in a transaction when the step is complete.

    `_held`: the number of the last result that the topic has; `_number`: that of the last one that was written here.
    """

    def __init__(self, to: KafkaSinkConnector, opening: SinkOpening) -> None:
        self._kafka: Any = needed("confluent_kafka", "confluent-kafka", "kafka", "kafka://")
        self._to = to
        self._opening = opening
        self._bodies = JsonBodies(opening)
        self._names = Names(to.cluster.shown, "key")
        unnamed = hashlib.blake2b(f"{to.cluster.topic} {opening.name}".encode(), digest_size=8).hexdigest()
        self._id = to.id or f"cqels-{unnamed}"
        self._progress = f"{to.cluster.topic}-progress"
        self._backoff = Backoff(to.patience)
        self._records: list[Record] = []
        self._number = opening.written or 0
        self._producer = to.cluster.client("Producer", {"transactional.id": self._id, "compression.type": "lz4"})
        try:
            to.cluster.partitions(self._producer)
            # Transactions of a run before, which is dead or will be told so, have ended then.
            self._producer.init_transactions(_ANSWER_WITHIN)
        except self._kafka.KafkaException as error:
            raise RunError(f"{to.cluster.shown}: {said(error)}") from None
        held = None
        if opening.written is not None:
            held = opening.held(*self._last_noted_number(), f"{to.cluster.shown}: the topic")
        self._held = held or 0
        if held is None:
            self._patiently(self._transaction)

    # --- the protocol of sinks ----------------------------------------------------------------------------------------

    def write(self, batch: ResultBatch) -> None:
        """Results that the topic has already, of a run that continues, are left out."""
        have = max(0, min(len(batch), self._held - self._number))
        numbers = range(self._number + 1, self._number + 1 + len(batch))
        records = zip(numbers, self._keys(batch), map(str.encode, self._bodies.of(batch)), strict=True)
        self._records += list(records)[have:]
        self._number += len(batch)
        if len(self._records) > _MOST_RECORDS:
            # A batch has all results of its ticks.
            self.flush()

    def flush(self) -> None:
        """Write the collected records, however long the cluster is away. RunError when the patience of `retry` is at its end."""
        if self._records:
            self._patiently(self._transaction)
            self._held, self._records = self._number, []

    def commit(self) -> int:
        """The number of the last result, which the topic has now."""
        self.flush()
        return self._number

    def close(self) -> None:
        """Records that were not flushed are dropped."""
        self._records = []

    def _keys(self, batch: ResultBatch) -> Sequence[str | None]:
        if self._to.key is None:
            return [None] * len(batch)
        column = batch.columns[batch.variables.index(self._to.key)]
        distinct, places = np.unique(column, return_inverse=True)
        (terms,) = columns_of_terms([distinct], self._opening.dictionary)
        keys = [None if term is None else value_of(term) for term in terms]
        for key, term in zip(keys, terms, strict=True):
            if key is not None:
                self._names.note(key, (term,))
        return [keys[place] for place in places.tolist()]

    # --- transactions -------------------------------------------------------------------------------------------------

    def _transaction(self) -> None:
        """The collected results, and the number of the last one. KafkaException if it has failed; then it has no effect."""
        topic = self._to.cluster.topic
        self._producer.begin_transaction()
        try:
            for number, key, body in self._records:
                self._produce(topic, body, key=key, headers={NUMBER: str(number)})
            run = {} if self._opening.run is None else {"run": self._opening.run}
            noted = json.dumps({"number": self._number if self._records else 0, **run})
            self._produce(self._progress, noted.encode(), key=self._id, partition=_PROGRESS_PARTITION)
            # An outcome that is not known is asked for again.
            self._patiently(lambda: self._producer.commit_transaction(_OUTCOME_WITHIN))
        except self._kafka.KafkaException as error:
            if not error.args[0].fatal():
                self._patiently(lambda: self._producer.abort_transaction(_OUTCOME_WITHIN))
            raise

    def _produce(self, topic: str, body: bytes, **more: Any) -> None:
        while True:
            try:
                self._producer.produce(topic, body, **more)
                return
            except BufferError:
                # The client's queue is full; it empties as the cluster takes records.
                self._producer.poll(0.1)

    def _patiently(self, action: Callable[[], object]) -> None:
        """Do it, and again while the cluster is away. KafkaException if the transaction must be aborted, RunError for good."""
        warned = False
        while True:
            try:
                action()
                self._backoff.reset()
                return
            except self._kafka.KafkaException as error:
                found = error.args[0]
                own = action == self._transaction
                if found.fatal() or not (found.retriable() or (own and found.txn_requires_abort())):
                    if not own and found.txn_requires_abort():
                        raise
                    raise RunError(f"{self._to.cluster.shown}: {self._reason(found)}") from None
                if not warned:
                    shown, patience = self._to.cluster.shown, self._to.patience
                    _LOG.warning("%s: %s; trying again for %g s", shown, found.str(), patience)
                warned = True
                if not self._backoff.wait():
                    raise RunError(
                        f"{self._to.cluster.shown}: no success within {self._to.patience:g} s (retry=): {found.str()}"
                    ) from None

    def _reason(self, error: Any) -> str:
        codes = self._kafka.KafkaError
        if error.code() in (codes._FENCED, codes.INVALID_PRODUCER_EPOCH):
            return (
                f"another run writes with the id {self._id}, or a transaction took longer than the cluster allows: "
                "give each run another id=NAME"
            )
        return str(error.str())

    # --- progress -----------------------------------------------------------------------------------------------------

    def _last_noted_number(self) -> tuple[int | None, str | None]:
        """The number of the last result that was committed under this id, and of which run it is; None if there is none."""
        settings = {
            "group.id": self._id,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
        consumer = self._to.cluster.client("Consumer", settings)
        place = self._kafka.TopicPartition(self._progress, _PROGRESS_PARTITION)
        try:
            low, high = consumer.get_watermark_offsets(place, timeout=_ANSWER_WITHIN)
            back = _LOOK_BACK
            while True:
                place.offset = max(low, high - back)
                consumer.assign([place])
                found = self._last_noted(consumer)
                if found is not None or place.offset == low:
                    return found or (None, None)
                back *= 10
        except self._kafka.KafkaException as error:
            raise RunError(f"{self._to.cluster.shown}: {said(error)}") from None
        finally:
            consumer.close()

    def _last_noted(self, consumer: Any) -> tuple[int, str | None] | None:
        """The last number up to the end, and its run; None if there is none. KafkaException if the topic cannot be read."""
        found = None
        while True:
            record = consumer.poll(_ANSWER_WITHIN)
            if record is None:
                raise RunError(f"{self._to.cluster.shown}: {self._progress} does not answer")
            error = record.error()
            if error is None:
                if record.key() == self._id.encode() and record.value() is not None:
                    noted = json.loads(record.value())
                    found = int(noted["number"]), noted.get("run")
            elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
                return found
            elif not error.retriable():
                raise self._kafka.KafkaException(error)
