"""Pages over HTTP, by a thread: one request at a time, as polite as the server asks for."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from cqels_py.connections.http import may_pass
from cqels_py.connections.reach import Reach, httpx_hooks
from cqels_py.connections.retry import Backoff
from cqels_py.errors import CqelsError, RunError
from cqels_py.sources.ldes.pages import ACCEPT, media_type

_LOG = logging.getLogger("cqels_py")
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_MOST_REDIRECTS: Final = 5
_CONNECT_SECONDS, _READ_SECONDS = 10.0, 60.0
_LONGEST_WAIT: Final = 3600.0
"""Seconds: a server that asks for a longer pause is asked again after this one."""
_SETTLED: Final = 2
"""Seconds after its last change, by the server's clock, from which a page is not sent again."""
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Request:
    """A page that is wanted. `etag`, `modified`: of the response that is known, if there is one."""

    url: str
    etag: str | None = None
    modified: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A page from `url`, where redirects have led. `body`: None for a page that has not changed, or is `gone`.

    `kind`: its media type. `immutable`: it never changes. `fresh`: seconds for which it does not change.
    """

    url: str
    body: bytes | None
    kind: str = ""
    gone: bool = False
    immutable: bool = False
    fresh: float = 0.0
    etag: str | None = None
    modified: str | None = None


class Hosts:
    """The servers that may be asked: that of the first page, and others by name ("a.org" or "a.org:8080")."""

    def __init__(self, url: str, others: tuple[str, ...]) -> None:
        self._first = _origin(url)
        self._others = others

    def is_first(self, url: str) -> bool:
        """Is it the server of the first page? Only that one gets its token."""
        host, port = _origin(url)
        return (host, port) == self._first or (urlsplit(url).scheme == "https" and (host, 80) == self._first)

    def check(self, url: str, shown: str) -> None:
        """RunError for a page of another server."""
        parts = urlsplit(url)
        host, port = _origin(url)
        if parts.scheme not in _PORTS or not (self.is_first(url) or {host, f"{host}:{port}"} & {*self._others}):
            raise RunError(
                f"{shown} leads to {url}, of another server: allow it with hosts={parts.netloc.rpartition('@')[2] or '…'}"
            )


def _origin(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    try:
        return (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", 0


class PageFetcher:
    """Answers requests in order. One that the server does not answer now is tried again, for as long as it takes.

    `most`: the bytes of the largest page. `headers`: for the server of the first page.
    """

    def __init__(
        self,
        httpx: Any,
        shown: str,
        hosts: Hosts,
        headers: dict[str, str],
        most: int,
        reach: Reach | None = None,
    ) -> None:
        self._httpx = httpx
        self._shown = shown
        self._hosts = hosts
        self._headers = headers
        self._most = most
        self._requests: deque[Request] = deque()
        self._responses: deque[Response | CqelsError] = deque()
        self._changed = threading.Condition()
        self._closed = threading.Event()
        timeout = httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
        self._client = httpx.Client(
            timeout=timeout,
            headers={"Accept": ACCEPT},
            follow_redirects=False,
            event_hooks=httpx_hooks(reach),
            trust_env=reach is None,
        )
        self._thread = threading.Thread(target=self._run, name="cqels ldes", daemon=True)
        self._thread.start()

    def ask(self, request: Request) -> None:
        """Have a page fetched."""
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()

    def take(self, wait: float) -> Response | None:
        """The next answer; None after so many seconds without one. RunError if there can be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._responses, wait)
            if not self._responses:
                return None
            found = self._responses.popleft()
        if isinstance(found, CqelsError):
            raise found
        return found

    def close(self) -> None:
        """End; a request that is being answered is given up."""
        self._closed.set()
        with self._changed:
            self._changed.notify_all()
        self._client.close()

    # --- in the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._requests or self._closed.is_set())
                if self._closed.is_set():
                    return
                request = self._requests.popleft()
            try:
                found: Response | CqelsError | None = self._answered(request)
            except CqelsError as error:
                found = error
            if found is None:
                return
            with self._changed:
                self._responses.append(found)
                self._changed.notify_all()

    def _answered(self, request: Request) -> Response | None:
        """The answer; None if the fetcher was closed meanwhile. RunError for one that is none."""
        backoff = Backoff(sleep=self._closed.wait)
        while not self._closed.is_set():
            pause: float | None = None
            try:
                return self._followed(request)
            except _NotNow as error:
                reason, pause = str(error), error.pause
            except CqelsError:
                raise
            except Exception as error:
                # Whatever a broken connection makes of a response; also that of a client that is being closed.
                if self._closed.is_set():
                    return None
                if not isinstance(error, self._httpx.HTTPError):
                    raise RunError(f"{request.url}: {error}") from None
                reason = str(error) or type(error).__name__
            _LOG.warning("%s: %s; trying again", request.url, reason)
            if pause is None:
                backoff.wait()
            else:
                self._closed.wait(min(pause, _LONGEST_WAIT))
        return None

    def _followed(self, request: Request) -> Response:
        url = request.url
        for _ in range(_MOST_REDIRECTS + 1):
            self._hosts.check(url, self._shown)
            found = self._once(url, request)
            if isinstance(found, Response):
                return found
            url = urljoin(url, found)
        raise RunError(f"{request.url}: more than {_MOST_REDIRECTS} redirects")

    def _once(self, url: str, request: Request) -> Response | str:
        """The response of a URL, or where it leads."""
        headers = dict(self._headers) if self._hosts.is_first(url) else {}
        if request.etag is not None:
            headers["If-None-Match"] = request.etag
        if request.modified is not None:
            headers["If-Modified-Since"] = request.modified
        with self._client.stream("GET", url, headers=headers) as response:
            status = response.status_code
            if status in _REDIRECTS and "location" in response.headers:
                return str(response.headers["location"])
            if may_pass(status):
                raise _NotNow(f"status {status}", _seconds(response.headers.get("retry-after")))
            if status == 410:
                return Response(url, None, gone=True)
            if status not in (200, 304):
                raise RunError(f"{url} answers with status {status}")
            controls = _controls(response.headers.get("cache-control", ""))
            etag, modified = response.headers.get("etag"), _settled(response.headers)
            how: dict[str, Any] = {"immutable": "immutable" in controls, "fresh": _fresh(controls)}
            if status == 304:
                return Response(url, None, etag=etag or request.etag, modified=modified or request.modified, **how)
            kind = media_type(response.headers.get("content-type", ""), url)
            return Response(url, self._body(url, response), kind, etag=etag, modified=modified, **how)

    def _body(self, url: str, response: Any) -> bytes:
        parts, size = [], 0
        for chunk in response.iter_bytes():
            size += len(chunk)
            if size > self._most:
                raise RunError(f"{url} has more than {self._most:,} bytes: allow larger pages with page=")
            parts.append(chunk)
        return b"".join(parts)


class _NotNow(Exception):
    """The server asks for another try, after `pause` seconds if it says so."""

    def __init__(self, reason: str, pause: float | None) -> None:
        super().__init__(reason)
        self.pause = pause


def _seconds(retry_after: str | None) -> float | None:
    """The seconds of Retry-After, which is a number of them, or a date."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return None


def _settled(headers: Any) -> str | None:
    """Last-Modified, which is of whole seconds, unless the page may have changed once more within that second."""
    modified = headers.get("last-modified")
    try:
        age = parsedate_to_datetime(headers["date"]) - parsedate_to_datetime(modified)
        return modified if age.total_seconds() >= _SETTLED else None
    except (KeyError, ValueError, TypeError):
        return None


def _controls(text: str) -> dict[str, str]:
    """The directives of Cache-Control."""
    pairs = (each.strip().partition("=") for each in text.split(","))
    return {name.lower(): value.strip('"') for name, _, value in pairs if name}


def _fresh(controls: dict[str, str]) -> float:
    if "no-cache" in controls or "no-store" in controls:
        return 0.0
    age = controls.get("max-age", "0")
    return float(age) if age.isdecimal() else 0.0
