"""MQTT topics as a stream. The broker keeps a message until its results have been committed, and sends it again otherwise.

The session of a fixed client id outlives a connection, so that messages that come meanwhile are kept too. A message with QoS 1 may
come twice: after a crash those that had not been acknowledged. While the process lives, one that the broker sends again is known
by its packet id, which stays in use until it is acknowledged.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cqels_py.connections.location import Location
from cqels_py.connections.mqtt import LONGEST_PAUSE, Broker, is_refused
from cqels_py.connections.mqtt_packets import acknowledge, read_in_blocks, take_packets
from cqels_py.connections.schemes import needed
from cqels_py.errors import RunError, UsageError
from cqels_py.sources.live import MOST_MESSAGES, LiveSource, Message, MessageQueue
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening

_LOG = logging.getLogger("cqels_py")
_LONGEST_SESSION = (1 << 32) - 1
_SUBSCRIBED_WITHIN, _LAST_ANSWER_WITHIN = 30.0, 5.0
_WAIT = 1.0
_KEPT_WITHIN = 1.0
"""Seconds after a subscription within which the first of the messages come that the session kept."""


def mqtt_source(location: Location) -> MqttConnector:
    """`mqtt(s)://user@host:port/filter?qos=1`; the filter may have `+` and `#`."""
    options = location.options
    broker = Broker.of(location)
    filter_ = location.path if location.fragment is None else f"{location.path}#{location.fragment}"
    if not filter_:
        raise UsageError(
            f"{location.shown} names no topics: put a filter behind the host, as in mqtt://localhost/rooms/+/temperature"
        )
    _check_filter(filter_, location)
    return MqttConnector(
        broker,
        filter_,
        qos=options.whole("qos", 1, 0, 1),
        retained=options.choice("retained", ("ignore", "take"), "ignore") == "take",
        session=min(int(options.seconds("session", "1d")), _LONGEST_SESSION),
        idle=options.seconds("idle", "30s"),
        format=MessageFormat.of(options),
    )


def _check_filter(filter_: str, location: Location) -> None:
    levels = filter_.split("/")
    if any(len(level) > 1 and ("+" in level or "#" in level) for level in levels) or "#" in levels[:-1]:
        raise UsageError(
            f"{location.shown}: {filter_!r} is not a filter of topics: + stands for a whole level, # for all levels at the end"
        )


@dataclass(frozen=True, slots=True)
class MqttConnector:
    """Topics of a broker. `session`: seconds for which it keeps messages while this client is away."""

    broker: Broker
    filter: str
    qos: int
    retained: bool
    session: int
    idle: float
    format: MessageFormat

    def open(self, opening: Opening) -> LiveSource:
        """Connect and subscribe. RunError if the broker is not there or refuses."""
        decoder = MessageDecoder(opening, self.broker.shown, self.format)
        queue = MessageQueue()
        client = MqttClient(self, queue, opening.stream)
        try:
            client.start()
        except RunError:
            client.close()
            raise
        return LiveSource(client, queue, decoder.elements, self.idle, opening.pause)


class MqttClient:
    """The connection, and the thread that reads it, which calls the methods that begin with `_on`.

    `_taken`: messages of packets that came together; they go into the queue together.
    `_outstanding`: packet ids of messages that were put into the queue and are not acknowledged. `_settled`: those that were
    acknowledged; if the broker sends one of them again, the acknowledgement was lost.
    """

    def __init__(self, connector: MqttConnector, queue: MessageQueue, stream: str) -> None:
        self._connector = connector
        self._queue = queue
        self._shown = connector.broker.shown
        self._lock = threading.Lock()
        self._outstanding: set[int] = set()
        self._settled: set[int] = set()
        self._subscribed = threading.Event()
        self._failure: RunError | None = None
        self._last = 0
        self._kept_until = 0.0
        self._client = connector.broker.new_client(f"{connector.filter} {stream}", manual_ack=True)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message
        read_in_blocks(self._client, self._on_publish)
        self._taken: list[Message] = []
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cqels mqtt", daemon=True)

    def start(self) -> None:
        """Connect, and wait for the subscription."""
        self._connector.broker.connect(self._client, self._connector.session, MOST_MESSAGES)
        self._thread.start()
        if not self._subscribed.wait(_SUBSCRIBED_WITHIN):
            self._failure = self._failure or RunError(f"{self._shown}: the broker does not answer")
        if self._failure is not None:
            raise self._failure

    @property
    def behind(self) -> bool:
        """May the broker have messages that it kept while there was no connection?"""
        connected = self._subscribed.is_set() and self._client.is_connected()
        return not connected or time.monotonic() < self._kept_until

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Acknowledge these packets; QoS 0 has nothing to be acknowledged."""
        with self._lock:
            mids = [mid for mid in tokens if isinstance(mid, int) and mid in self._outstanding]
            self._outstanding.difference_update(mids)
            self._settled.update(mids)
            acknowledge(self._client, mids)

    def close(self) -> None:
        """Disconnect; the session remains at the broker.

        Packets that the broker has not read when this session is opened again are lost: acknowledgements would be, and the messages
        would come again. So it is asked to subscribe once more, and its answer is waited for.
        """
        if self._client.is_connected() and self._subscribed.wait(_LAST_ANSWER_WITHIN) and self._failure is None:
            self._subscribed.clear()
            self._subscribe()
            self._subscribed.wait(_LAST_ANSWER_WITHIN)
        self._closed.set()
        with suppress(OSError, ValueError):
            self._client.disconnect()
        if self._thread.is_alive():
            self._thread.join()

    # --- in the thread that reads -------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._closed.is_set() and self._failure is None:
                lost = take_packets(self._client, _WAIT)
                if self._taken:
                    taken, self._taken = self._taken, []
                    self._queue.put_all(taken)
                if lost and not self._closed.is_set() and self._failure is None:
                    self._connect_again()
            # Packets that are still to be written, such as the end of the connection.
            while self._client.socket() is not None and not take_packets(self._client, _WAIT):
                pass
        except Exception as error:
            self._fail(RunError(f"{self._shown}: {error}"))

    def _connect_again(self) -> None:
        pause = 1.0
        while not self._closed.wait(pause):
            try:
                self._client.reconnect()
                return
            except (OSError, ValueError):
                pause = min(2 * pause, LONGEST_PAUSE)

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._fail(self._connector.broker.refusal(reason) or RunError(f"{self._shown}: {reason}"))
            return
        if self._subscribed.is_set():
            _LOG.warning("%s: connected again", self._shown)
            if not flags.session_present and self._connector.qos and self._connector.session:
                _LOG.warning(
                    "%s: the broker has no session of this client any more: messages that came meanwhile, and those that it had "
                    "not sent, are lost",
                    self._shown,
                )
            self._subscribed.clear()
        if flags.session_present:
            self._kept_until = time.monotonic() + _KEPT_WITHIN
        with self._lock:
            if not flags.session_present:
                # Packet ids begin anew: the broker has forgotten the messages that it sent.
                self._outstanding.clear()
                self._settled.clear()
        self._subscribe()

    def _subscribe(self) -> None:
        options = needed("paho.mqtt.subscribeoptions", "paho-mqtt", "mqtt", "mqtt://").SubscribeOptions
        handling = options.RETAIN_SEND_IF_NEW_SUB if self._connector.retained else options.RETAIN_DO_NOT_SEND
        self._client.subscribe(
            self._connector.filter, options=options(qos=self._connector.qos, retainHandling=handling)
        )

    def _on_subscribe(self, client: Any, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
        if is_refused(reasons[0]):
            self._fail(RunError(f"{self._shown}: the broker refuses the subscription: {reasons[0]}"))
        self._subscribed.set()

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        refusal = self._connector.broker.refusal(reason)
        if refusal is not None:
            self._fail(refusal)
        elif reason.is_failure:
            _LOG.warning("%s: disconnected (%s); connecting again until the broker is there", self._shown, reason)

    def _on_message(self, client: Any, userdata: Any, message: Any) -> None:
        """A message with properties."""
        kind = getattr(message.properties, "ContentType", None)
        self._take(bytes(message.payload), message.topic, message.qos, message.mid, message.dup, message.retain, kind)

    def _on_publish(self, payload: bytes, topic: str, qos: int, mid: int, dup: bool, retain: bool) -> None:
        self._take(payload, topic, qos, mid, dup, retain, None)

    def _take(self, payload: bytes, topic: str, qos: int, mid: int, dup: bool, retain: bool, kind: str | None) -> None:
        if qos and not self._is_new(mid, dup):
            return
        if retain and not self._connector.retained:
            self._client.ack(mid, qos)
            return
        # The wall clock may be set back; times of arrival never are.
        self._last = max(self._last, time.time_ns() // 1000)
        self._taken.append(Message(payload, topic, kind, self._last, mid if qos else None))

    def _is_new(self, mid: int, dup: bool) -> bool:
        """Is it a message that has not been in the queue yet? An acknowledgement that was lost is sent again."""
        with self._lock:
            if dup and mid in self._settled:
                self._client.ack(mid, 1)
                return False
            if dup and mid in self._outstanding:
                return False
            self._settled.discard(mid)
            self._outstanding.add(mid)
            return True

    def _fail(self, error: RunError) -> None:
        """The broker will not change its mind: end the connection, and let the next poll raise the error."""
        self._failure = error
        self._queue.fail(error)
        self._subscribed.set()
        self._client.disconnect()
