"""SPARQL 1.1 Protocol: a SELECT query to an endpoint, its solutions back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from rdflib import BNode, Literal, URIRef

from cqels_py.connections.reach import Reach
from cqels_py.errors import CqelsError, DataError
from cqels_py.formats.depth import TooDeep, check_depth
from cqels_py.iris import check_names_of
from cqels_py.terms.rdf import canonical, exact_literal, from_rdflib

Term = URIRef | Literal | BNode
Solution = Mapping[str, Term]

_ACCEPT = "application/sparql-results+json"
_SHOWN = 60
_LONGEST_URL = 2_000
"""The longest query sent in a URL, whose length servers and proxies limit; a longer one is posted."""


MOST_TIMEOUTS, MOST_BYTES = 10, 256 << 20
"""Limits of an answer: its total time, in timeouts, and its length."""
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class _Problem(Exception):
    message: str


def select(endpoint: str, query: str, *, timeout: float, reach: Reach | None = None) -> Sequence[Solution]:
    """The solutions of a SELECT query, as SPARQL 1.1 JSON results have them.

    `timeout`: seconds that the endpoint may be silent; its answer may take `MOST_TIMEOUTS` times as long, and have `MOST_BYTES`.
    `reach`: which addresses may be connected to. DataError names the endpoint and the fault of its answer.
    """
    if urlsplit(endpoint).scheme not in ("http", "https"):
        raise DataError(f"SERVICE <{endpoint}>: an endpoint is reached by http or https")
    try:
        answer = _in_time(lambda: _answer(endpoint, query, timeout, reach), MOST_TIMEOUTS * timeout)
    except _Problem as problem:
        raise DataError(f"SERVICE <{endpoint}>: {problem.message}") from None
    return answered(endpoint, answer)


def answered(endpoint: str, answer: bytes) -> Sequence[Solution]:
    """The solutions in an endpoint's answer. DataError names the endpoint and the fault."""
    try:
        return _solutions(answer)
    except _Problem as problem:
        raise DataError(f"SERVICE <{endpoint}>: {problem.message}") from None


def _opener(reach: Reach | None) -> OpenerDirector:
    """As `urlopen`; with `reach` each address is checked before it is asked, and proxies of the environment are not used."""
    if reach is None:
        return build_opener()
    return build_opener(ProxyHandler({}), _CheckedHttp(reach), _CheckedHttps(reach))


class _CheckedHttp(HTTPHandler):
    def __init__(self, reach: Reach) -> None:
        super().__init__()
        self._reach = reach

    def http_open(self, req: Request) -> Any:
        return self.do_open(_checking(HTTPConnection, self._reach, req.full_url), req)


class _CheckedHttps(HTTPSHandler):
    def __init__(self, reach: Reach) -> None:
        super().__init__()
        self._reach = reach

    def https_open(self, req: Request) -> Any:
        return self.do_open(_checking(HTTPSConnection, self._reach, req.full_url), req)


def _checking(kind: type[HTTPConnection], reach: Reach, url: str) -> Any:
    """The kind of connection, which sends nothing to an address that may not be connected to."""
    reach.check(url)

    class Connection(kind):  # type: ignore[valid-type, misc]
        def connect(self) -> None:
            super().connect()
            reach.check_peer(url, self.sock.getpeername()[0])

    return Connection


def _answer(endpoint: str, query: str, timeout: float, reach: Reach | None) -> bytes:
    asked = urlencode({"query": query})
    separator = "&" if urlsplit(endpoint).query else "?"
    if len(endpoint) + len(asked) < _LONGEST_URL:
        request = Request(f"{endpoint}{separator}{asked}", headers={"Accept": _ACCEPT})
    else:
        request = Request(endpoint, asked.encode(), {"Accept": _ACCEPT})
    try:
        with _opener(reach).open(request, timeout=timeout) as response:
            return _read(response, MOST_TIMEOUTS * timeout)
    except HTTPError as error:
        said = " ".join(error.read(500).decode("utf-8", "replace").split())
        raise _Problem(f"it answered {error.code} {error.reason}{f': {said}' if said else ''}") from None
    except TimeoutError:
        raise _Problem(f"it did not answer within {timeout:g} seconds; increase the timeout") from None
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            reason = f"it did not answer within {timeout:g} seconds; increase the timeout"
        raise _Problem(f"it cannot be reached: {reason}") from None


def _read(response: HTTPResponse, seconds: float) -> bytes:
    """The answer. One that is too long, or takes too long, is not read to its end."""
    until = time.monotonic() + seconds
    parts, length = [], 0
    while part := response.read1(_AT_ONCE):
        parts.append(part)
        length += len(part)
        if length > MOST_BYTES:
            raise _Problem(f"its answer has more than {MOST_BYTES >> 20} MiB; ask for less, as with LIMIT")
        if time.monotonic() > until:
            raise _too_slow(seconds)
    return b"".join(parts)


def _in_time(call: Callable[[], bytes], seconds: float) -> bytes:
    """The value of a call, which another thread makes: one that sends a byte now and then is never silent."""
    found: list[bytes] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="cqels service", daemon=True)
    thread.start()
    thread.join(seconds)
    if failure:
        raise failure[0]
    if not found:
        raise _too_slow(seconds)
    return found[0]


def _too_slow(seconds: float) -> _Problem:
    return _Problem(f"its answer took more than {seconds:g} seconds in all; ask for less, or increase the timeout")


def _solutions(answer: bytes) -> Sequence[Solution]:
    try:
        check_depth(answer, "json", "its answer")
        bindings = json.loads(answer)["results"]["bindings"]
        if not isinstance(bindings, list):
            raise TypeError(bindings)
        return [{name: _checked(_term(value)) for name, value in solution.items()} for solution in bindings]
    except TooDeep as error:
        raise _Problem(str(error)) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        begin = answer[:_SHOWN].decode("utf-8", "replace")
        raise _Problem(f"its answer is not in the SPARQL 1.1 JSON format ({_ACCEPT}), it begins {begin!r}") from None


def _term(value: Mapping[str, Any]) -> Term:
    if not isinstance(value["value"], str):
        raise TypeError(value)
    match value["type"]:
        case "uri":
            return URIRef(value["value"])
        case "bnode":
            return BNode(value["value"])
        case "literal" | "typed-literal":
            language = value.get("xml:lang")
            # The datatype of a string with a language tag may be given or left out.
            datatype = URIRef(value["datatype"]) if "datatype" in value and not language else None
            return exact_literal(value["value"], language, datatype)
        case other:
            raise _Problem(f"its answer has a term of the type {other!r}; known are uri, literal and bnode")


def _checked(term: Term) -> Term:
    """The term, if RDF has it: endpoints let through IRIs with spaces."""
    text = from_rdflib(term)
    try:
        check_names_of(canonical(text))
        text.encode()
    except (CqelsError, UnicodeError):
        raise _Problem(f"its answer has {text[:_SHOWN]!r}, which is not an RDF term") from None
    return term
