"""The cluster of a Kafka URL, for sources and sinks: confluent-kafka, with any option of its library librdkafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cqels_py.connections.location import Location
from cqels_py.connections.schemes import needed
from cqels_py.errors import RunError, UsageError

_OWN = (
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "auto.offset.reset",
    "group.id",
    "transactional.id",
)
"""Options of librdkafka on which the guarantees rest."""
_ANSWER_WITHIN = 10.0


def kafka_for(location: Location) -> Any:
    """The module confluent_kafka. MissingExtra if it is missing."""
    return needed("confluent_kafka", "confluent-kafka", "kafka", f"{location.scheme}://")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the brokers are, and a topic. `settings`: of a client of librdkafka."""

    shown: str
    topic: str
    settings: Mapping[str, str]

    @classmethod
    def of(cls, location: Location) -> Cluster:
        """The topic of `kafka://user@host:9092,host:9092/topic?security.protocol=SSL`. MissingExtra without confluent-kafka.

        The options with a dot in their names, and those that have not been asked for before, are those of librdkafka.
        """
        kafka_for(location)
        if not location.path or location.fragment is not None:
            raise UsageError(
                f"{location.shown} names no topic: put one behind the host, as in kafka://localhost/readings"
            )
        settings = {"bootstrap.servers": location.host or "localhost:9092", "log_level": "0"}
        if location.port is not None:
            settings["bootstrap.servers"] = f"{location.host}:{location.port}"
        if location.user is not None:
            settings |= {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
            settings |= {"sasl.username": location.user, "sasl.password": location.password or ""}
        given = location.options.rest()
        if own := next((name for name in given if name in _OWN), None):
            raise UsageError(f"{location.shown}: the option {own} is set by cqels itself")
        return cls(location.shown, location.path, {"client.id": "cqels", **settings, **given})

    def client(self, kind: str, settings: Mapping[str, object]) -> Any:
        """A client of a kind: Consumer or Producer. UsageError for an option that librdkafka does not know."""
        kafka = needed("confluent_kafka", "confluent-kafka", "kafka", "kafka://")
        try:
            return getattr(kafka, kind)({**self.settings, **settings})
        except kafka.KafkaException as error:
            raise UsageError(
                f"{self.shown}: {said(error)}; options that are not in cqels' docs are those of librdkafka"
            ) from None

    def partitions(self, client: Any) -> list[int]:
        """The numbers of the topic's partitions. RunError if the cluster is not there, or has no such topic."""
        kafka = needed("confluent_kafka", "confluent-kafka", "kafka", "kafka://")
        try:
            found = client.list_topics(self.topic, timeout=_ANSWER_WITHIN).topics[self.topic]
        except kafka.KafkaException as error:
            raise RunError(
                f"{self.shown}: cannot connect to {self.settings['bootstrap.servers']}: {said(error)}"
            ) from None
        if found.error is not None:
            raise RunError(f"{self.shown}: there is no topic {self.topic!r} that can be used: {found.error.str()}")
        return sorted(found.partitions)


def said(error: Any) -> str:
    """The message of an exception of confluent-kafka."""
    return str(error.args[0].str())
