"""Elements for streams: `POST /streams/{name}`, of which there are thousands a second, without a framework's router and requests."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Receive, Scope, Send

from cqels_py.errors import CqelsError, UsageError
from cqels_py.service.bodies import body_of, media_type
from cqels_py.service.failures import Failed, UnknownMediaType
from cqels_py.service.patience import Places
from cqels_py.service.pushing import Pushing
from cqels_py.service.responses import json_bytes, problem_response
from cqels_py.service.service import Pushed, Service
from cqels_py.sources.documents import FORMATS

_PATH = "/streams/"
_LONGEST_KEY = 255
_LOG = logging.getLogger("cqels_py")


class ShortPath:
    """Gives `elements` the bodies that are posted to streams, and `others` all other requests."""

    def __init__(self, elements: ASGIApp, others: ASGIApp) -> None:
        self._elements = elements
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        posted = scope["type"] == "http" and scope["method"] == "POST" and is_path_of_stream(scope["path"])
        await (self._elements if posted else self._others)(scope, receive, send)


class Elements:
    """Takes in the bodies that are posted to streams."""

    def __init__(self, service: Service, pushing: Pushing) -> None:
        self._service = service
        self._pushing = pushing
        self._places = Places(service.limits.pushes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self._take(scope, receive)
        except CqelsError as error:
            await problem_response(error)(scope, receive, send)
        except Exception:
            # A mistake of this program, whose text may say too much.
            _LOG.exception("POST %s failed", scope["path"])
            failed = Failed("the request failed by a mistake of the server, which its log shows")
            await problem_response(failed)(scope, receive, send)
        else:
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    async def _take(self, scope: Scope, receive: Receive) -> bytes:
        headers = _headers_of(scope)
        stream, kind = self._service.stream(scope["path"][len(_PATH) :]), media_type(headers)
        if kind not in FORMATS:
            raise UnknownMediaType(f"elements are {', '.join(FORMATS)}, not {kind or 'without a Content-Type'}")
        key = headers.get("idempotency-key")
        if key is not None and not 0 < len(key) <= _LONGEST_KEY:
            raise UsageError(f"an Idempotency-Key has 1 to {_LONGEST_KEY} characters")
        with self._places.one_for(_client_of(scope)):
            body = await body_of(headers, receive, self._service.limits)
            taken = await self._pushing.push(Pushed.of(stream, body, FORMATS[kind], key))
        return json_bytes(
            {
                "elements": taken.elements,
                "late": taken.late,
                "ahead": taken.ahead,
                "repeated": taken.repeated,
                "unread": taken.unread,
            }
        )


def is_path_of_stream(path: str) -> bool:
    """Is it that of a stream itself, to which elements are posted?"""
    return path.startswith(_PATH) and len(path) > len(_PATH) and path.find("/", len(_PATH)) < 0


def _client_of(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _headers_of(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
