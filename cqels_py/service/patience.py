"""How long the server waits for a client: for the head of a request, and for each part of a body."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from cqels_py.service.failures import TooMany

HEAD_SECONDS = 60.0
_Protocol: Any = AutoHTTPProtocol


class PatientProtocol(_Protocol):  # type: ignore[misc]
    """uvicorn's protocol, which closes a connection whose request has had no complete head for `HEAD_SECONDS`.

    uvicorn itself waits without an end for the first head, and for the rest of each one that has begun.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # The cycle is the request whose head is complete.
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()
        elif self._timer is not None:
            self._end_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_timer()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        # Another protocol has the connection once it is a WebSocket.
        if self.transport.get_protocol() is self:
            self.transport.close()


@dataclass(slots=True)
class Places:
    """Places for bodies that are taken in or wait, of which one client has at most half."""

    most: int
    taken: int = 0
    by_client: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def one_for(self, client: str) -> Iterator[None]:
        """Inside, the client has a place. TooMany where there is none."""
        if self.taken >= self.most:
            raise TooMany(f"{self.taken} bodies wait already: send them a little later")
        if self.by_client[client] >= max(1, self.most // 2):
            raise TooMany(
                f"{self.by_client[client]} bodies of this client wait already: send the next one when one has an answer"
            )
        self.taken += 1
        self.by_client[client] += 1
        try:
            yield
        finally:
            self.taken -= 1
            self.by_client[client] -= 1
            if not self.by_client[client]:
                del self.by_client[client]
