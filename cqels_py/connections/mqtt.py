"""The client of an MQTT broker, as its URL describes it, for sources and sinks: MQTT 5.0 with paho-mqtt."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cqels_py.connections.location import Location
from cqels_py.connections.schemes import needed
from cqels_py.errors import RunError, UsageError

_PORTS = {"mqtt": 1883, "mqtts": 8883}
_KEEP_ALIVE = 30
LONGEST_PAUSE = 30
"""Seconds between two attempts to connect again, which begin with one second."""
_TAKEN_OVER = 0x8E
_REFUSED = 0x80


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the broker is, and who connects. `client`: the fixed id of the session; None: it is made of the URL."""

    shown: str
    host: str
    port: int
    tls: bool
    user: str | None
    password: str | None
    client: str | None
    ca: str | None
    certificate: str | None
    key: str | None

    @classmethod
    def of(cls, location: Location) -> Broker:
        """The broker of `mqtt(s)://user@host:port/…` with the options client, ca, cert and key. MissingExtra without paho-mqtt."""
        needed("paho.mqtt.client", "paho-mqtt", "mqtt", f"{location.scheme}://")
        tls = location.scheme == "mqtts"
        options = location.options
        files = {name: options.text(name) for name in ("ca", "cert", "key")}
        if not tls and (given := next((name for name, value in files.items() if value is not None), None)):
            raise UsageError(f"{location.shown}: the option {given} is for mqtts://")
        return cls(
            location.shown,
            location.host or "localhost",
            location.port or _PORTS[location.scheme],
            tls,
            location.user,
            location.password,
            options.text("client"),
            files["ca"],
            files["cert"],
            files["key"],
        )

    def new_client(self, purpose: str, *, manual_ack: bool = False) -> Any:
        """A client that is not connected yet. `purpose`: with the URL, it gives the client's id, where none is given."""
        paho = needed("paho.mqtt.client", "paho-mqtt", "mqtt", "mqtt://")
        digest = hashlib.blake2b(f"{self.host} {self.port} {purpose}".encode(), digest_size=8).hexdigest()
        client = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            client_id=self.client or f"cqels-{digest}",
            protocol=paho.MQTTv5,
            manual_ack=manual_ack,
        )
        if self.user is not None:
            client.username_pw_set(self.user, self.password)
        if self.tls:
            try:
                client.tls_set(self.ca, self.certificate, self.key)
            except OSError as error:
                raise UsageError(f"{self.shown}: the certificates cannot be read: {error}") from None
        client.reconnect_delay_set(1, LONGEST_PAUSE)
        return client

    def connect(self, client: Any, session: int, unacknowledged: int | None = None) -> None:
        """Connect. RunError if the broker is not there.

        `session`: seconds for which the broker keeps the session without a connection. `unacknowledged`: so many messages may be.
        """
        properties = needed("paho.mqtt.properties", "paho-mqtt", "mqtt", "mqtt://")
        packets = needed("paho.mqtt.packettypes", "paho-mqtt", "mqtt", "mqtt://")
        asked = properties.Properties(packets.PacketTypes.CONNECT)
        asked.SessionExpiryInterval = session
        if unacknowledged is not None:
            asked.ReceiveMaximum = unacknowledged
        try:
            client.connect(self.host, self.port, _KEEP_ALIVE, clean_start=False, properties=asked)
        except (OSError, ValueError) as error:
            raise RunError(f"{self.shown}: cannot connect to {self.host}:{self.port}: {error}") from None

    def refusal(self, reason: Any) -> RunError | None:
        """The error of a reason for which the broker refuses or ends a connection for good; None where it may be there again."""
        if reason.value == _TAKEN_OVER:
            return RunError(
                f"{self.shown}: another client with the same id has taken the session over: give each run another client=NAME"
            )
        if reason.value in (0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C, 0x8D, 0x90, 0x95, 0x97, 0x99, 0x9B):
            return RunError(f"{self.shown}: the broker refuses the client: {reason}")
        return None


def is_refused(reason: Any) -> bool:
    """Is this reason code of an answer a failure?"""
    return int(reason.value) >= _REFUSED


def disconnected(client: Any) -> None:
    """Disconnect the client, and end its thread."""
    with suppress(OSError, ValueError):
        client.disconnect()
    client.loop_stop()
