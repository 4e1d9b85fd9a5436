"""Who may send requests: hosts, origins and the token, checked before anything else of a request."""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cqels_py.errors import CqelsError, UsageError
from cqels_py.service.failures import Forbidden, ServiceError, Unauthorized
from cqels_py.service.responses import problem_response

COOKIE = "cqels_token"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SESSION = "/session"
_OPEN = ("/healthz", "/livez", SESSION)
_READING = ("GET", "HEAD", "OPTIONS")
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'self'"
)
"""Pages of the server may load nothing of other servers. The dashboard's framework compiles its templates in the browser."""
_PROTECTION = [(b"content-security-policy", _POLICY.encode()), (b"x-content-type-options", b"nosniff")]
_HOST = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]/?#@]*))(?::[0-9]*)?")


def is_loopback(host: str) -> bool:
    """Is it a name or an address of this machine alone?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Guard:
    """`hosts`: names in the header Host that are answered. `token`: None where every local program may send requests."""

    app: ASGIApp
    hosts: Sequence[str]
    token: str | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        if scope["type"] == "http":
            send = _protected(send)
        try:
            self._check(scope)
        except (ServiceError, UsageError) as error:
            if scope["type"] == "websocket":
                # Before the handshake: the client gets status 403.
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": error.message[:100]})
                return
            answer = _sign_in() if _is_page(scope, error) else problem_response(error)
            await answer(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) > 1:
            raise UsageError("the request has several headers Host: send one")
        host = _host(headers.get("host", ""))
        if host not in self.hosts:
            raise Forbidden(f"the host {host!r} is not answered here: start the server with --allow-host {host}")
        changes = scope["type"] == "websocket" or scope["method"] not in _READING
        origin = headers.get("origin")
        if changes and origin is not None and not self._is_own(origin, headers.get("host", "")):
            raise Forbidden(f"requests from pages of {origin} are not taken")
        if self.token is not None and scope["path"] not in _OPEN and not self._has_token(headers):
            raise Unauthorized(
                "the request has no token, or another one: send the header Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )

    def _is_own(self, origin: str, host: str) -> bool:
        try:
            found = urlsplit(origin)
        except ValueError:
            return False
        return found.scheme in ("http", "https") and found.netloc.lower() == host.lower()

    def _has_token(self, headers: Headers) -> bool:
        given = [_bearer(headers.get("authorization", "")), _cookie(headers.get("cookie", ""))]
        return any(is_token(each, self.token) for each in given)


def _protected(send: Send) -> Send:
    """Send responses with the headers that protect browsers."""

    async def send_protected(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_PROTECTION]
        await send(message)

    return send_protected


def _is_page(scope: Scope, error: CqelsError) -> bool:
    """Does a browser ask for a page, without the cookie?"""
    asks = scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")
    return asks and isinstance(error, Unauthorized)


def _sign_in() -> ASGIApp:
    return RedirectResponse(SESSION, status_code=303)


def is_token(given: str, token: str | None) -> bool:
    """Is it the token? The time that this takes does not tell how much of it is right."""
    return token is not None and hmac.compare_digest(given.encode(), token.encode())


def _host(header: str) -> str:
    """The name without the port; a header that is none as it is."""
    found = _HOST.fullmatch(header.lower())
    return header if found is None else found[1] or found[2]


def _bearer(header: str) -> str:
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookie(header: str) -> str:
    cookies: Any = SimpleCookie()
    try:
        cookies.load(header)
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""
