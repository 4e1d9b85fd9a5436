"""Following the results of a query by their numbers, across connections that break."""

from __future__ import annotations

import json
from typing import Any

from cqels_py.client import requests
from cqels_py.client.failures import Unreachable, foreign
from cqels_py.connections.retry import Backoff
from cqels_py.errors import CqelsError, RunError
from cqels_py.service.failures import NotFound

Result = dict[str, Any]
PATIENCE = 300.0
"""Seconds for which a server that was there is waited for."""
SILENCE = 45.0
"""Seconds after which a connection without any byte is given up: the server gives signs of life more often."""
_MOST_BYTES = 64 << 20
"""Of the line of a result."""


class Following:
    """The place of a reader: each result comes once, and none is left out. `start`: see `Client.tail`."""

    def __init__(self, name: str, start: int | None, patience: float) -> None:
        self._name = name
        self._number = start
        self._created: float | None = None
        self._backoff = Backoff(patience)
        self._connected = False
        self._rest = b""

    def begin(self, figures: dict[str, Any]) -> requests.Request[None]:
        """The request for the results that follow, after a look at the query's figures.

        RunError where nothing more will come, NotFound for another query of this name, whose numbers are others.
        """
        if self._created not in (None, figures["created"]):
            raise NotFound(f"the query {self._name!r} was removed, and another one has its name now")
        self._created = figures["created"]
        if self._number is None:
            self._number = figures["results"] + 1
        elif self._number == 0:
            self._number = figures["first"]
        if figures["state"] == "failed" and self._number > figures["results"]:
            raise RunError(f"the query {self._name!r} has stopped: {figures.get('failure')}")
        self._rest = b""
        return requests.results(self._name, self._number)

    def take(self, chunk: bytes) -> list[Result]:
        """The results that are complete with this part of a response."""
        self._connected = True
        self._backoff.reset()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _MOST_BYTES:
            raise RunError(f"a result of {self._name!r} has more than {_MOST_BYTES >> 20} MiB")
        try:
            found = [json.loads(line) for line in lines if line]
        except ValueError:
            raise foreign(200) from None
        new = [result for result in found if result.get("number", 0) >= (self._number or 0)]
        if new:
            self._number = new[-1]["number"] + 1
        return new

    def ended(self) -> Unreachable:
        """The response has ended: the figures of the query will tell why."""
        return Unreachable(f"the results of {self._name!r} have ended")

    def pause(self, error: CqelsError) -> float:
        """Seconds until the next try; the error if it is too late for that, or if the server was never there."""
        seconds = self._backoff.pause() if self._connected or not isinstance(error, Unreachable) else None
        if seconds is None:
            raise error
        return seconds
