"""The client for asyncio: the methods of `Client`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from cqels_py.client import requests
from cqels_py.client.connection import TIMEOUT, Connection
from cqels_py.client.failures import TO_BE_TRIED_AGAIN
from cqels_py.client.following import PATIENCE, Following, Result
from cqels_py.client.requests import Answer, Request


class AsyncClient:
    """Speaks to a server, for many tasks at a time; an asynchronous context manager.

    `server`: its address; without it that of CQELS_SERVER, or of this machine. `token`: that of the server, if it needs one.
    `timeout`: seconds for which an answer is waited for. Errors are those of `cqels_py.errors`, as the server tells them, with line
    and column; Unreachable where there is no server.
    """

    def __init__(self, server: str | None = None, *, token: str | None = None, timeout: float = TIMEOUT) -> None:
        self._connection = Connection(server, token, timeout)
        self._http = self._connection.httpx.AsyncClient(**self._connection.arguments)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()

    async def streams(self) -> list[dict[str, Any]]:
        """The streams and their figures."""
        return await self._ask(requests.streams())

    async def stream(self, name: str) -> dict[str, Any]:
        """A stream and its figures."""
        return await self._ask(requests.stream(name))

    async def put_stream(
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
        return await self._ask(requests.put_stream(name, iri, members))

    async def rejects(self, name: str) -> list[dict[str, Any]]:
        """The last elements of a stream that were left out, each with the reason."""
        return await self._ask(requests.rejects(name))

    async def delete_stream(self, name: str) -> None:
        """Remove a stream. Conflict while a query reads it."""
        await self._ask(requests.delete_stream(name))

    async def send(
        self, stream: str, data: bytes | Path, *, media_type: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Send elements, all or none; returns the counts once they are durable.

        `data`: a file, whose ending tells the media type, or bytes. `key`: a body that is sent again with the same key, such as
        after Unreachable, counts once.
        """
        return await self._ask(await asyncio.to_thread(requests.send, stream, data, media_type, key))

    async def queries(self) -> list[dict[str, Any]]:
        """The queries and their figures."""
        return await self._ask(requests.queries())

    async def submit(
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
        return await self._ask(await asyncio.to_thread(requests.submit, name, text, static, members, source))

    async def show(self, name: str) -> dict[str, Any]:
        """A query and its figures. NotFound."""
        return await self._ask(requests.show(name))

    async def plan(self, name: str) -> str:
        """The plan of a query."""
        return await self._ask(requests.plan(name))

    async def answer(self, name: str, media_type: str | None = None) -> str:
        """The answer as it stands: SPARQL's JSON, or Turtle of CONSTRUCT, or another media type of docs/service.md."""
        return await self._ask(requests.answer(name, media_type))

    async def ask(self, text: str, media_type: str | None = None) -> str:
        """Ask once, by SPARQL 1.1, over static data and the triples in windows. Solutions are in SPARQL's JSON, if not otherwise."""
        return await self._ask(requests.ask(text, media_type))

    async def pause(self, name: str) -> dict[str, Any]:
        """Deliver no results until `resume`; they are kept."""
        return await self._ask(requests.pause(name))

    async def resume(self, name: str) -> dict[str, Any]:
        """Deliver results again."""
        return await self._ask(requests.resume(name))

    async def stop(self, name: str) -> None:
        """Remove a query, its state and its results."""
        await self._ask(requests.stop(name))

    async def tail(self, name: str, start: int | None = None, *, patience: float = PATIENCE) -> AsyncIterator[Result]:
        """The results as they come, without end: each once, and in the order of their numbers, also across restarts of the server.

        `start`: the number of the first; 0: the first that is kept; None: those from now on. `patience`: seconds for which a server
        that has gone is waited for; then Unreachable. RunError when the query has failed, NotFound when it was removed, Gone if
        results are no longer kept.
        """
        async for results in self.tail_batches(name, start, patience=patience):
            for result in results:
                yield result

    async def tail_batches(
        self, name: str, start: int | None = None, *, patience: float = PATIENCE
    ) -> AsyncIterator[list[Result]]:
        """As `tail`, but those that came together as a list; one without results is a sign of life."""
        following = Following(name, start, patience)
        while True:
            try:
                request = following.begin(await self.show(name))
                async with self._opened(request) as response:
                    async for chunk in response.aiter_bytes():
                        yield following.take(chunk)
                raise following.ended()
            except TO_BE_TRIED_AGAIN as error:
                pause = following.pause(error)
            await asyncio.sleep(pause)

    async def _ask(self, request: Request[Answer]) -> Answer:
        with self._connection.errors():
            response = await self._http.request(**request.arguments)
        return request.answer(response.status_code, response.content)

    @asynccontextmanager
    async def _opened(self, request: Request[None]) -> AsyncIterator[Any]:
        """A response whose body has not come yet."""
        with self._connection.errors():
            waiting = self._connection.while_following
            async with self._http.stream(**request.arguments, timeout=waiting) as response:
                if response.status_code != 200:
                    request.answer(response.status_code, await response.aread())
                yield response
