"""Results as messages of a NATS JetStream stream, a JSON object each, with ids by which the server knows one that it has."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cqels_py.batches.results import ResultBatch
from cqels_py.connections.location import Location
from cqels_py.connections.nats import NatsConnection, NatsServers, nats_module, said
from cqels_py.connections.retry import Backoff
from cqels_py.errors import RunError, UsageError
from cqels_py.sinks.json_bodies import JsonBodies
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.templates import Names, Template
from cqels_py.suggestions import unknown

NUMBER, ID = "Cqels-Number", "Nats-Msg-Id"
"""Headers: the number of a result, from 1; and that by which the server recognises a message."""
_SAFE = "!\"'(),-/:;<=?@[]^_`{|}~$&#+"
"""Characters that stand in a subject as they are: not those of tokens and wildcards, not %, and no space."""
_AT_ONCE = 1000
_MOST_MESSAGES = 10_000
_CONFIRMED_WITHIN = 5.0

_LOG = logging.getLogger("cqels_py")

Sent = tuple[int, str, bytes]
"""The number of a result, its subject and its body."""


def nats_sink(location: Location) -> NatsSinkConnector:
    """`nats://host:4222/alerts.{room}`: `{room}` is the value of the variable ?room."""
    servers = NatsServers.of(location)
    subject = Template(location.path, _SAFE)
    if any(token in ("", "*", ">") for token in location.path.split(".")):
        raise UsageError(
            f"{location.shown} is no subject: put one behind the host, as in nats://localhost/alerts.{{room}}"
        )
    return NatsSinkConnector(servers, subject, location.options.seconds("retry", "5m"))


@dataclass(frozen=True, slots=True)
class NatsSinkConnector:
    """A subject, with variables. `patience`: seconds for which an absent server is waited for."""

    servers: NatsServers
    subject: Template
    patience: float
    changelog: bool = False
    can_retry: ClassVar[bool] = True

    def open(self, opening: SinkOpening) -> NatsSink:
        """Connect. RunError if no server is there or it refuses, UsageError for a variable that the query does not have."""
        if opening.form == "CONSTRUCT":
            raise UsageError(f"{self.servers.shown}: messages hold the results of SELECT and ASK, not of CONSTRUCT")
        for name in self.subject.variables:
            if name not in opening.variables:
                raise UsageError(f"{self.servers.shown}: {unknown('variable', name, opening.variables)}")
        return NatsSink(self, opening)


class NatsSink:
    """Collects messages, and publishes them when the step is complete. `_run`: makes the ids of two runs different."""

    def __init__(self, to: NatsSinkConnector, opening: SinkOpening) -> None:
        self._nats = nats_module()
        self._to = to
        self._opening = opening
        self._bodies = JsonBodies(opening)
        self._names = Names(to.servers.shown, "subject")
        self._run = opening.run or uuid.uuid4().hex[:12]
        self._number = opening.written or 0
        self._messages: list[Sent] = []
        self._connection = NatsConnection(to.servers)
        self._jetstream = self._connection.client.jetstream(timeout=_CONFIRMED_WITHIN)

    def write(self, batch: ResultBatch) -> None:
        """Take the next results."""
        subjects = self._to.subject.of(batch, self._opening.dictionary, self._names)
        numbers = range(self._number + 1, self._number + 1 + len(batch))
        self._messages += zip(numbers, subjects, map(str.encode, self._bodies.of(batch)), strict=True)
        self._number += len(batch)
        if len(self._messages) > _MOST_MESSAGES:
            self.flush()

    def flush(self) -> None:
        """Publish, until the server has confirmed all messages. RunError when the patience of `retry` is at its end."""
        backoff = Backoff(self._to.patience)
        while self._messages:
            waiting = self._messages[:_AT_ONCE]
            failure, missing = self._connection.run(self._publish(waiting))
            self._messages[:_AT_ONCE] = missing
            if failure is None:
                backoff.reset()
            else:
                self._wait(backoff, failure)

    def commit(self) -> None:
        self.flush()

    def close(self) -> None:
        """Disconnect; messages that were not flushed are dropped."""
        self._connection.close()

    def _wait(self, backoff: Backoff, failure: Exception) -> None:
        shown = self._to.servers.shown
        if isinstance(failure, self._nats.js.errors.NoStreamResponseError):
            raise RunError(f"{shown}: no stream of JetStream takes these subjects: make one")
        if isinstance(failure, self._nats.errors.MaxPayloadError):
            raise RunError(f"{shown}: a result is longer than the server allows: {said(failure)}")
        if not backoff.wait():
            raise RunError(f"{shown}: no success within {self._to.patience:g} s (retry=): {said(failure)}")

    # --- in the connection's thread -----------------------------------------------------------------------------------

    async def _publish(self, messages: Sequence[Sent]) -> tuple[Exception | None, list[Sent]]:
        """Publish messages; returns the first failure, and those that were not confirmed."""
        found = await asyncio.gather(*map(self._publish_one, messages), return_exceptions=True)
        errors = (TimeoutError, OSError, self._nats.errors.Error, self._nats.js.errors.Error)
        missing: list[Sent] = []
        failure: Exception | None = None
        for message, outcome in zip(messages, found, strict=True):
            if isinstance(outcome, errors):
                failure = failure or outcome
                missing.append(message)
            elif isinstance(outcome, BaseException):
                raise outcome
        return failure, missing

    async def _publish_one(self, message: Sent) -> Any:
        number, subject, body = message
        headers = {ID: f"cqels-{self._run}-{number}", NUMBER: str(number)}
        return await self._jetstream.publish(subject, body, headers=headers)
