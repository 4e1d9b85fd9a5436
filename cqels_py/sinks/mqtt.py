"""Results as MQTT messages, a JSON object each; the topic may have values of the result in it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from cqels_py.batches.results import ResultBatch
from cqels_py.connections.location import Location
from cqels_py.connections.mqtt import Broker, disconnected, is_refused
from cqels_py.errors import RunError, UsageError
from cqels_py.sinks.json_bodies import JsonBodies
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.templates import Names, Template
from cqels_py.suggestions import unknown

_SAFE = " !\"'()*,-.:;<=>?@[]^_`{|}~$&"
"""Characters that stand in a topic as they are: not those of levels and filters, and not % itself."""
_MOST_UNCONFIRMED = 10_000
_PAUSE = 0.01


def mqtt_sink(location: Location) -> MqttSinkConnector:
    """`mqtt(s)://user@host:port/alerts/{room}?qos=1`: `{room}` is the value of the variable ?room."""
    broker = Broker.of(location)
    options = location.options
    topic = Template(location.path, _SAFE)
    if not location.path or location.fragment is not None or "+" in topic.without_variables:
        raise UsageError(
            f"{location.shown} is no topic: put one behind the host, as in mqtt://localhost/alerts/{{room}}"
        )
    return MqttSinkConnector(
        broker,
        topic,
        qos=options.whole("qos", 1, 0, 1),
        retain=options.choice("retain", ("no", "yes"), "no") == "yes",
        patience=options.seconds("retry", "5m"),
    )


@dataclass(frozen=True, slots=True)
class MqttSinkConnector:
    """A topic, with variables. `patience`: seconds for which an absent broker is waited for."""

    broker: Broker
    topic: Template
    qos: int
    retain: bool
    patience: float
    changelog: bool = False
    can_retry: ClassVar[bool] = True

    def open(self, opening: SinkOpening) -> MqttSink:
        """Connect. RunError if the broker is not there or refuses, UsageError for a variable that the query does not have."""
        if opening.form == "CONSTRUCT":
            raise UsageError(f"{self.broker.shown}: messages hold the results of SELECT and ASK, not of CONSTRUCT")
        for name in self.topic.variables:
            if name not in opening.variables:
                raise UsageError(f"{self.broker.shown}: {unknown('variable', name, opening.variables)}")
        return MqttSink(self, opening)


class MqttSink:
    """Publishes results as they are written; `flush` and `commit` wait until the broker has them all (QoS 1)."""

    def __init__(self, to: MqttSinkConnector, opening: SinkOpening) -> None:
        self._to = to
        self._opening = opening
        self._bodies = JsonBodies(opening)
        self._names = Names(to.broker.shown, "topic")
        # `_published` is written by the engine's thread alone, `_confirmed` by paho's alone.
        self._published = self._confirmed = 0
        self._failure: RunError | None = None
        self._client = to.broker.new_client(f"to {to.topic.text}")
        self._client.max_queued_messages_set(0)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_publish = self._on_publish
        to.broker.connect(self._client, 0)
        self._client.loop_start()
        try:
            self._until(self._client.is_connected, "the connection")
        except RunError:
            self.close()
            raise

    def write(self, batch: ResultBatch) -> None:
        """Publish each result."""
        topics = self._to.topic.of(batch, self._opening.dictionary, self._names)
        for topic, body in zip(topics, self._bodies.of(batch), strict=True):
            self._publish(topic, body)

    def flush(self) -> None:
        """Wait until the broker has confirmed all messages. RunError when the patience of `retry` is at its end."""
        if self._to.qos:
            self._until(lambda: self._confirmed >= self._published, "the broker's confirmation")

    def commit(self) -> None:
        self.flush()

    def close(self) -> None:
        """Disconnect."""
        disconnected(self._client)

    def _publish(self, topic: str, body: str) -> None:
        if self._published - self._confirmed >= _MOST_UNCONFIRMED:
            self.flush()
        self._published += 1
        # The client keeps a message with QoS 1 that it cannot send now; one with QoS 0 it does not.
        while self._client.publish(topic, body.encode(), self._to.qos, self._to.retain).rc and not self._to.qos:
            self._until(self._client.is_connected, "the connection")

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _until(self, condition: Any, what: str) -> None:
        until = time.monotonic() + self._to.patience
        while not condition():
            self._check()
            if time.monotonic() > until:
                raise RunError(f"{self._to.broker.shown}: {what} did not come within {self._to.patience:g} s (retry=)")
            time.sleep(_PAUSE)
        self._check()

    # --- called by paho's thread --------------------------------------------------------------------------------------

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._failure = self._to.broker.refusal(reason) or RunError(f"{self._to.broker.shown}: {reason}")
            client.disconnect()

    def _on_publish(self, client: Any, userdata: Any, mid: int, reason: Any, properties: Any) -> None:
        if is_refused(reason):
            self._failure = RunError(f"{self._to.broker.shown}: the broker refuses a message: {reason}")
        self._confirmed += 1

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._failure = self._failure or self._to.broker.refusal(reason)
