"""A faster way through paho-mqtt for messages that come by the ten thousand.

Of each packet, paho reads the first bytes one by one from the socket, waits for the socket again, and makes an object with
properties and callbacks of its own: four times as much work as all that follows. Here the socket is read in large blocks, the
packets of a block are taken without waiting between them, and messages without properties are decoded at once. All else is
paho's: connections, TLS, subscriptions, keep-alive, and messages with properties.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

_BLOCK, _AT_ONCE = 1 << 18, 4096
_ACKNOWLEDGEMENT = 0x40
_DUPLICATE, _RETAINED = 8, 1

Publish = Callable[[bytes, str, int, int, bool, bool], object]
"""Takes a message: its payload, topic, QoS and packet id (0 at QoS 0); is it sent again, was it retained?"""


class BlockSocket:
    """A socket that is read in blocks; its other methods are the socket's."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._block = b""
        self._at = 0
        self.recv_block = socket.recv
        self.pending_below = getattr(socket, "pending", None)

    def recv(self, count: int) -> bytes:
        """The next bytes, at most so many. Raises the exception of the socket if there are none yet."""
        if self._at >= len(self._block):
            self._block, self._at = self.recv_block(_BLOCK), 0
        found = self._block[self._at : self._at + count]
        self._at += len(found)
        return found

    def pending(self) -> int:
        """The number of bytes for which nobody has to wait."""
        rest = len(self._block) - self._at
        return rest or (0 if self.pending_below is None else self.pending_below())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


def read_in_blocks(client: Any, publish: Publish) -> None:
    """Let a client of paho that is not connected yet read in blocks, and give messages without properties to `publish`.

    Whoever does so calls `take_packets` in a thread of its own instead of the client's `loop_start`.
    """
    slowly = client._handle_publish

    def opened(client: Any, userdata: Any, socket: Any) -> None:
        client._sock = BlockSocket(socket)

    def handle_publish() -> Any:
        packet, command = client._in_packet["packet"], client._in_packet["command"]
        qos, end = (command >> 1) & 3, 2 + int.from_bytes(packet[:2], "big")
        begin = end + 2 if qos else end
        if begin >= len(packet) or packet[begin] or qos > 1:
            return slowly()
        mid = int.from_bytes(packet[end:begin], "big")
        try:
            topic = packet[2:end].decode()
        except UnicodeDecodeError:
            return slowly()
        publish(bytes(packet[begin + 1 :]), topic, qos, mid, bool(command & _DUPLICATE), bool(command & _RETAINED))
        return 0

    client.on_socket_open = opened
    # Then packets are written by the thread that reads, and by no other.
    client.on_socket_register_write = lambda *_: None
    client._handle_publish = handle_publish


def take_packets(client: Any, wait: float) -> int:
    """Wait for packets, and take those that have come together; a code of paho other than 0 if the connection is lost."""
    code = client.loop(wait)
    for _ in range(_AT_ONCE):
        socket = client.socket()
        if code or socket is None or not socket.pending():
            break
        code = client.loop_read()
    return int(code)


def acknowledge(client: Any, mids: Sequence[int]) -> None:
    """Acknowledge messages of QoS 1, in one write."""
    if mids:
        packets = b"".join([struct.pack("!BBH", _ACKNOWLEDGEMENT, 2, mid) for mid in mids])
        client._packet_queue(_ACKNOWLEDGEMENT, packets, mids[-1], 1)
