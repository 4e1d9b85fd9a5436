"""The requests of the service and how their answers are read, apart from how they are sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from cqels_py.client.bodies import body_of, static_of
from cqels_py.client.failures import error_of, foreign
from cqels_py.errors import UsageError
from cqels_py.service.names import VISIBLE, checked_name

Answer = TypeVar("Answer")
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Request(Generic[Answer]):
    """`read`: makes the answer of a response's body. `source`: names the text that is sent in the messages of errors."""

    method: str
    path: str
    read: Callable[[bytes], Answer]
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    source: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of httpx's `build_request`. UsageError for a header that cannot be sent."""
        for name, value in self.headers.items():
            if not VISIBLE.fullmatch(value):
                raise UsageError(
                    f"{name} has visible characters of ASCII, and spaces between them alone, not {value!r}"
                )
        return {"method": self.method, "url": self.path, "headers": dict(self.headers), "content": self.body}

    def answer(self, status: int, body: bytes) -> Answer:
        """The answer of the server. CqelsError if that is an error."""
        if not 200 <= status < 300:
            raise error_of(status, body, self.source)
        try:
            return self.read(body)
        except ValueError:
            raise foreign(status) from None


def streams() -> Request[list[dict[str, Any]]]:
    return Request("GET", "/streams", json.loads)


def stream(name: str) -> Request[dict[str, Any]]:
    return Request("GET", _stream(name), json.loads)


def put_stream(name: str, iri: str, members: Mapping[str, Any]) -> Request[dict[str, Any]]:
    given = {"iri": iri, **{member: value for member, value in members.items() if value is not None}}
    return _put(_stream(name), given, None)


def rejects(name: str) -> Request[list[dict[str, Any]]]:
    return Request("GET", f"{_stream(name)}/rejects", json.loads)


def delete_stream(name: str) -> Request[None]:
    return Request("DELETE", _stream(name), _nothing)


def send(name: str, data: bytes | Path, media_type: str | None, key: str | None) -> Request[dict[str, Any]]:
    body = body_of(data, media_type)
    keyed = {} if key is None else {"Idempotency-Key": key}
    return Request("POST", _stream(name), json.loads, {**body.headers, **keyed}, body.data, body.source)


def queries() -> Request[list[dict[str, Any]]]:
    return Request("GET", "/queries", json.loads)


def submit(
    name: str, text: str, static: Sequence[Any], members: Mapping[str, Any], source: str | None
) -> Request[dict[str, Any]]:
    given = {"text": text, "static": static_of(static)}
    given |= {member: value for member, value in members.items() if value is not None}
    return _put(_query(name), given, source)


def show(name: str) -> Request[dict[str, Any]]:
    return Request("GET", _query(name), json.loads)


def plan(name: str) -> Request[str]:
    return Request("GET", f"{_query(name)}/plan", bytes.decode, {"Accept": "text/plain"})


def answer(name: str, media_type: str | None) -> Request[str]:
    return Request("GET", f"{_query(name)}/answer", bytes.decode, {"Accept": media_type or "*/*"})


def results(name: str, number: int) -> Request[None]:
    headers = {"Accept": "application/x-ndjson"}
    return Request("GET", f"{_query(name)}/results?from={number}", _nothing, headers)


def ask(text: str, media_type: str | None) -> Request[str]:
    headers = {"Accept": media_type or "*/*", "Content-Type": "application/sparql-query"}
    return Request("POST", "/sparql", bytes.decode, headers, text.encode())


def pause(name: str) -> Request[dict[str, Any]]:
    return Request("POST", f"{_query(name)}/pause", json.loads)


def resume(name: str) -> Request[dict[str, Any]]:
    return Request("POST", f"{_query(name)}/resume", json.loads)


def stop(name: str) -> Request[None]:
    return Request("DELETE", _query(name), _nothing)


def _put(path: str, given: Mapping[str, Any], source: str | None) -> Request[dict[str, Any]]:
    body = json.dumps(given, ensure_ascii=False).encode()
    return Request("PUT", path, json.loads, {"Content-Type": _JSON}, body, source)


def _stream(name: str) -> str:
    return f"/streams/{checked_name(name)}"


def _query(name: str) -> str:
    return f"/queries/{checked_name(name)}"


def _nothing(body: bytes) -> None:
    return None
