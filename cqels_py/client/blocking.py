"""The client that waits for each answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from cqels_py.client import requests
from cqels_py.client.connection import TIMEOUT, Connection
from cqels_py.client.failures import TO_BE_TRIED_AGAIN
from cqels_py.client.following import PATIENCE, Following, Result
from cqels_py.client.requests import Answer, Request


class Client:
    """Speaks to a server, one request after another; a context manager.

    `server`: its address; without it that of CQELS_SERVER, or of this machine. `token`: that of the server, if it needs one.
    `timeout`: seconds for which an answer is waited for. Errors are those of `cqels_py.errors`, as the server tells them, with line
    and column; Unreachable where there is no server.
    """

    def __init__(self, server: str | None = None, *, token: str | None = None, timeout: float = TIMEOUT) -> None:
        self._connection = Connection(server, token, timeout)
        self._http = self._connection.httpx.Client(**self._connection.arguments)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def streams(self) -> list[dict[str, Any]]:
        """The streams and their figures."""
        return self._ask(requests.streams())

    def stream(self, name: str) -> dict[str, Any]:
        """A stream and its figures."""
        return self._ask(requests.stream(name))

    def put_stream(
        self,
        name: str,
        iri: str,
        *,
        lateness: str | int | None = None,
        clock: str | None = None,
        context: Any = None,
        map: str | None = None,
        duplicates: str | None = None,
    ) -> dict[str, Any]:
        """Declare a stream; returns its figures. The members are those of docs/service.md."""
        members = {"lateness": lateness, "clock": clock, "context": context, "map": map, "duplicates": duplicates}
        return self._ask(requests.put_stream(name, iri, members))

    def rejects(self, name: str) -> list[dict[str, Any]]:
        """The last elements of a stream that were left out, each with the reason."""
        return self._ask(requests.rejects(name))

    def delete_stream(self, name: str) -> None:
        """Remove a stream. Conflict while a query reads it."""
        self._ask(requests.delete_stream(name))

    def send(
        self, stream: str, data: bytes | Path, *, media_type: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Send elements, all or none; returns the counts once they are durable.

        `data`: a file, whose ending tells the media type, or bytes. `key`: a body that is sent again with the same key, such as
        after Unreachable, counts once.
        """
        return self._ask(requests.send(stream, data, media_type, key))

    def queries(self) -> list[dict[str, Any]]:
        """The queries and their figures."""
        return self._ask(requests.queries())

    def submit(
        self,
        name: str,
        text: str,
        *,
        static: Sequence[Path | str | Mapping[str, str]] = (),
        changelog: bool | None = None,
        entailment: str | None = None,
        clock: str | None = None,
        dialect: str | None = None,
        keep: int | Mapping[str, Any] | None = None,
        backfill: str | None = None,
        source: str | None = None,
    ) -> dict[str, Any]:
        """Register a query, or replace it by another text; returns its figures once it runs.

        `static`: files of this side (Path), or files and addresses of the server's (str). `changelog`: with retractions. `dialect`,
        `keep`, `backfill`: as in docs/service.md. `source`: names the text in errors. QuerySyntaxError, UnsupportedQuery.
        """
        members: dict[str, Any] = {"changelog": changelog, "entailment": entailment, "clock": clock}
        members |= {"dialect": dialect, "keep": keep, "backfill": backfill}
        return self._ask(requests.submit(name, text, static, members, source))

    def show(self, name: str) -> dict[str, Any]:
        """A query and its figures. NotFound."""
        return self._ask(requests.show(name))

    def plan(self, name: str) -> str:
        """The plan of a query."""
        return self._ask(requests.plan(name))

    def answer(self, name: str, media_type: str | None = None) -> str:
        """The answer as it stands: SPARQL's JSON, or Turtle of CONSTRUCT, or another media type of docs/service.md."""
        return self._ask(requests.answer(name, media_type))

    def ask(self, text: str, media_type: str | None = None) -> str:
        """Ask once, by SPARQL 1.1, over static data and the triples in windows. Solutions are in SPARQL's JSON, if not otherwise."""
        return self._ask(requests.ask(text, media_type))

    def pause(self, name: str) -> dict[str, Any]:
        """Deliver no results until `resume`; they are kept."""
        return self._ask(requests.pause(name))

    def resume(self, name: str) -> dict[str, Any]:
        """Deliver results again."""
        return self._ask(requests.resume(name))

    def stop(self, name: str) -> None:
        """Remove a query, its state and its results."""
        self._ask(requests.stop(name))

    def tail(self, name: str, start: int | None = None, *, patience: float = PATIENCE) -> Iterator[Result]:
        """The results as they come, without end: each once, and in the order of their numbers, also across restarts of the server.

        `start`: the number of the first; 0: the first that is kept; None: those from now on. `patience`: seconds for which a server
        that has gone is waited for; then Unreachable. RunError when the query has failed, NotFound when it was removed, Gone if
        results are no longer kept.
        """
        for results in self.tail_batches(name, start, patience=patience):
            yield from results

    def tail_batches(
        self, name: str, start: int | None = None, *, patience: float = PATIENCE
    ) -> Iterator[list[Result]]:
        """As `tail`, but those that came together as a list; one without results is a sign of life."""
        following = Following(name, start, patience)
        while True:
            try:
                request = following.begin(self.show(name))
                with self._opened(request) as response:
                    for chunk in response.iter_bytes():
                        yield following.take(chunk)
                raise following.ended()
            except TO_BE_TRIED_AGAIN as error:
                pause = following.pause(error)
            time.sleep(pause)

    def _ask(self, request: Request[Answer]) -> Answer:
        with self._connection.errors():
            response = self._http.request(**request.arguments)
        return request.answer(response.status_code, response.content)

    @contextmanager
    def _opened(self, request: Request[None]) -> Iterator[Any]:
        """A response whose body has not come yet."""
        waiting = self._connection.while_following
        with self._connection.errors(), self._http.stream(**request.arguments, timeout=waiting) as response:
            if response.status_code != 200:
                request.answer(response.status_code, response.read())
            yield response
