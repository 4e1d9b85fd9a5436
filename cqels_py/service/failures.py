"""Errors of requests, each with the status of its response."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, ClassVar

from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.errors import CqelsError, MissingExtra, Place, RunError

PROBLEM = "application/problem+json"


class ServiceError(CqelsError):
    """A request that the service refuses. `headers`: of its response; `members`: more members of its body."""

    code = "CQ-SERVICE"
    status: ClassVar[int] = 400

    def __init__(
        self, message: str = "", place: Place | None = None, *, headers: dict[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(message, place)
        self.headers = headers or {}
        self.members = members


class NotFound(ServiceError):
    """A name that is not there."""

    code, status = "CQ-NOT-FOUND", 404


class Conflict(ServiceError):
    """The request contradicts the present state."""

    code, status = "CQ-CONFLICT", 409


class Gone(ServiceError):
    """Results that are no longer kept."""

    code, status = "CQ-GONE", 410


class Forbidden(ServiceError):
    """A request that the server does not allow; the message names the option that would."""

    code, status = "CQ-FORBIDDEN", 403


class Unauthorized(ServiceError):
    """A request without the token."""

    code, status = "CQ-UNAUTHORIZED", 401


class NotAcceptable(ServiceError):
    """None of the media types that the client accepts."""

    code, status = "CQ-NOT-ACCEPTABLE", 406


class TooLarge(ServiceError):
    """A body, or something in it, that is larger than its limit."""

    code, status = "CQ-TOO-LARGE", 413


class TooSlow(ServiceError):
    """A body that stopped, or came too slowly."""

    code, status = "CQ-TOO-SLOW", 408


class UnknownMediaType(ServiceError):
    """A body in a format that is not read here."""

    code, status = "CQ-MEDIA-TYPE", 415


class MethodNotAllowed(ServiceError):
    """A method that a path does not take."""

    code, status = "CQ-METHOD", 405


class Failed(ServiceError):
    """A mistake of the server."""

    code, status = "CQ-FAILED", 500


class Starting(ServiceError):
    """The server has not read its folder yet."""

    code, status = "CQ-STARTING", 503


class TookTooLong(ServiceError):
    """A one-shot query that was given up."""

    code, status = "CQ-TOOK-TOO-LONG", 503


class TooMany(ServiceError):
    """More than the server takes; some of it can be tried again."""

    code, status = "CQ-TOO-MANY", 429


def status_of(error: CqelsError) -> int:
    """The status of the response to a request that failed so."""
    if isinstance(error, ServiceError):
        return error.status
    if isinstance(error, StorageError):
        return 507
    if isinstance(error, MissingExtra):
        return 501
    return 503 if isinstance(error, RunError) else 400


def problem_of(error: CqelsError) -> dict[str, Any]:
    """The body of the response, by RFC 9457."""
    status = status_of(error)
    found: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        "code": error.code,
    }
    if error.place is not None:
        found |= {"line": error.place.line, "column": error.place.column}
    if isinstance(error, ServiceError):
        found |= error.members
    return found
