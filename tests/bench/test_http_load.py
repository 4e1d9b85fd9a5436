"""The load of small requests: connections that a server closes."""

from __future__ import annotations

import asyncio

from bench.suites.http_load import Posts

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def test_connections_that_were_idle_for_long_are_used_no_more() -> None:
    writers: list[asyncio.StreamWriter] = []
    bodies: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while head := await reader.readline():
            if head == b"\r\n":
                bodies.append(await reader.readexactly(1))
                writer.write(OK)

    async def load() -> list[bytes]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        posts = await Posts.connected(f"127.0.0.1:{port}", "/", "text/plain", 2)
        posts.post(b"a")
        await posts.all_answered()
        # The one that is used last, in turn.
        writers[-1].close()
        await asyncio.sleep(0.1)
        for body in (b"b", b"c"):
            posts.post(body)
        await asyncio.wait_for(posts.all_answered(), 30)
        writers[0].close()
        posts.post(b"d")
        await asyncio.wait_for(posts.all_answered(), 30)
        return posts.failures

    assert asyncio.run(load()) == [b"the connection was closed"]
    assert bodies[:3] == [b"a", b"b", b"c"]
