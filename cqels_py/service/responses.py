"""Responses of the service's own kinds."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from cqels_py.errors import CqelsError
from cqels_py.service.failures import PROBLEM, ServiceError, problem_of, status_of

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def json_bytes(content: Any) -> bytes:
    """JSON without spaces."""
    return _JSON.encode(content).encode()


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON."""
    return Response(json_bytes(content), status, headers, "application/json")


def problem_response(error: CqelsError) -> Response:
    """The response to a request that failed."""
    headers = dict(error.headers) if isinstance(error, ServiceError) else {}
    status = status_of(error)
    if status in (429, 503):
        headers.setdefault("Retry-After", "1")
    return Response(json.dumps(problem_of(error), ensure_ascii=False).encode(), status, headers, PROBLEM)
