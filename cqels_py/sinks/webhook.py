"""Results as HTTP requests: a POST each, tried again while the other side is away, and signed."""

from __future__ import annotations

import hashlib
import hmac
import io
import logging
import time
from dataclasses import dataclass
from typing import Any, ClassVar

from cqels_py.batches.results import ResultBatch
from cqels_py.connections.http import Endpoint, endpoint_of, httpx_for, may_pass
from cqels_py.connections.location import Location
from cqels_py.connections.reach import httpx_hooks
from cqels_py.connections.retry import Backoff
from cqels_py.connections.schemes import needed
from cqels_py.errors import RefusedResult, RunError, UsageError
from cqels_py.sinks.files import open_sink
from cqels_py.sinks.protocol import SinkOpening

NUMBER, SIGNATURE = "X-Cqels-Number", "X-Cqels-Signature"
_LOG = logging.getLogger("cqels_py")
_SECONDS = 10.0


def webhook_sink(location: Location) -> WebhookConnector:
    """`http(s)://host/path?for=server#secret=${NAME}`; the options stand behind "#"."""
    httpx_for(location)
    endpoint, options = endpoint_of(location)
    connector = WebhookConnector(
        endpoint,
        secret=options.text("secret"),
        most=options.whole("batch", 1, 1, 10_000),
        patience=options.seconds("retry", "5m"),
    )
    options.done()
    return connector


@dataclass(frozen=True, slots=True)
class WebhookConnector:
    """An address that takes results. `most`: in one request. `patience`: seconds for which an absent server is waited for."""

    endpoint: Endpoint
    secret: str | None
    most: int
    patience: float
    changelog: bool = False
    can_retry: ClassVar[bool] = True

    def open(self, opening: SinkOpening) -> Webhook:
        """Nothing is sent yet. UsageError for a query without solutions."""
        if opening.form == "CONSTRUCT":
            raise UsageError(f"{self.endpoint.shown}: requests hold the results of SELECT and ASK, not of CONSTRUCT")
        return Webhook(self, opening)


class Webhook:
    """Sends results in order, one request after the other. A request that was answered with 2xx has been delivered."""

    def __init__(self, to: WebhookConnector, opening: SinkOpening) -> None:
        self._httpx: Any = needed("httpx", "httpx", "http", "http://")
        self._to = to
        self._opening = opening
        self._file = io.StringIO()
        self._lines = open_sink(
            "json", self._file, dictionary=opening.dictionary, form=opening.form, variables=opening.variables
        )
        self._waiting: list[str] = []
        self._number = opening.written or 0
        self._client = self._httpx.Client(
            timeout=_SECONDS,
            headers=to.endpoint.headers,
            event_hooks=httpx_hooks(opening.reach),
            trust_env=opening.reach is None,
        )

    def write(self, batch: ResultBatch) -> None:
        if not len(batch):
            return
        self._lines.write(batch)
        self._lines.flush()
        self._waiting += self._file.getvalue().removesuffix("\n").split("\n")
        self._file.seek(0)
        self._file.truncate()

    def flush(self) -> None:
        """Send the results that were written. RunError when the patience of `retry` is at its end."""
        while self._waiting:
            part = self._waiting[: self._to.most]
            self._send("\n".join(part).encode(), self._number + 1)
            self._number += len(part)
            del self._waiting[: len(part)]

    def commit(self) -> int:
        self.flush()
        return self._number

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _send(self, body: bytes, number: int) -> None:
        kind = "application/json" if self._to.most == 1 else "application/x-ndjson"
        headers = {"Content-Type": kind, NUMBER: str(number)}
        backoff = Backoff(self._to.patience)
        warned = False
        while True:
            answer = self._tried(body, headers | self._signature(body), number)
            if answer is None:
                return
            if not warned:
                _LOG.warning("%s: %s; trying again for %g s", self._to.endpoint.shown, answer, self._to.patience)
                warned = True
            if not backoff.wait():
                raise RunError(
                    f"{self._to.endpoint.shown}: no success within {self._to.patience:g} s (retry=): {answer}"
                )

    def _tried(self, body: bytes, headers: dict[str, str], number: int) -> str | None:
        """Send a request; the reason for which it is to be tried again, if it is. A refused one is reported, and left out."""
        try:
            status = self._client.post(self._to.endpoint.url, content=body, headers=headers).status_code
        except self._httpx.HTTPError as error:
            return str(error) or type(error).__name__
        if 200 <= status < 300:
            return None
        if may_pass(status):
            return f"status {status}"
        refused = RefusedResult(
            f"{self._to.endpoint.shown} refuses a result with status {status}: {body.decode()}"
        ).about(number, body.decode())
        if self._opening.report is None:
            raise refused
        self._opening.report(refused)
        return None

    def _signature(self, body: bytes) -> dict[str, str]:
        """`t=SECONDS,sha256=HEX` over "SECONDS.BODY"."""
        if self._to.secret is None:
            return {}
        now = str(int(time.time()))
        digest = hmac.new(self._to.secret.encode(), now.encode() + b"." + body, hashlib.sha256).hexdigest()
        return {SIGNATURE: f"t={now},sha256={digest}"}
