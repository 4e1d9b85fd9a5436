"""The errors of requests: those that the server tells, and servers that are not there."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from cqels_py.errors import CqelsError, Place
from cqels_py.service.failures import ServiceError, Starting, TooMany

_STANDARD = ("type", "title", "status", "detail", "instance", "code", "line", "column")
_OF_PROXIES = (502, 503, 504)


class Unreachable(CqelsError):
    """No server answers at the address, or the connection has broken."""

    code = "CQ-UNREACHABLE"


TO_BE_TRIED_AGAIN = (Unreachable, Starting, TooMany)
"""Errors that may pass."""


def error_of(status: int, body: bytes, source: str | None = None) -> CqelsError:
    """The exception that the server has told, of the same class as there. `source`: names the text in which its place is."""
    problem = _problem(body)
    if problem is None:
        return Unreachable(_answered(status)) if status in _OF_PROXIES else foreign(status)
    kind = _classes().get(problem.get("code", ""), ServiceError)
    message, line = str(problem.get("detail") or problem.get("title") or _phrase(status)), problem.get("line")
    place = Place(line, problem.get("column"), source) if isinstance(line, int) else None
    if issubclass(kind, ServiceError):
        return kind(message, place, **{name: each for name, each in problem.items() if name not in _STANDARD})
    return kind(message, place)


def foreign(status: int) -> ServiceError:
    """The answer of another server than that of this package."""
    return ServiceError(f"{_answered(status)}, and not in the way of cqels serve: is the address right?")


def _answered(status: int) -> str:
    return f"the server answers with status {status}{_phrase(status)}"


def _problem(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("code"), str) else None


def _phrase(status: int) -> str:
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def _classes() -> dict[str, type[CqelsError]]:
    """The classes of exceptions by their codes."""
    found: dict[str, type[CqelsError]] = {}
    waiting: list[type[CqelsError]] = [CqelsError]
    while waiting:
        kind = waiting.pop()
        found[kind.code] = kind
        waiting += kind.__subclasses__()
    return found
