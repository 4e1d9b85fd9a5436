"""A server of the test's own, in a thread, and clients of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from cqels_py.service.server import Server, Serving

EX = "http://ex.org/"
READINGS = f"{EX}readings"
HOT = "PREFIX : <http://ex.org/> SELECT ?s ?t { STREAM :readings [RANGE 1h] { ?s :t ?t } FILTER(?t > 30) }"
QUERY, N_TRIPLES = "application/sparql-query", "application/n-triples"


@contextmanager
def served(data: Path, **options: Any) -> Iterator[httpx.Client]:
    """Inside, a server of the folder answers a client."""
    server = Server(Serving(data=data, port=0, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    server.ready.wait(120)
    try:
        if server.failure is not None:
            raise server.failure
        with httpx.Client(base_url=server.address, timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def reading(sensor: str, value: float) -> bytes:
    return f'<{EX}{sensor}> <{EX}t> "{value}"^^<http://www.w3.org/2001/XMLSchema#double> .\n'.encode()


def declare(client: httpx.Client, **more: Any) -> None:
    assert client.put("/streams/readings", json={"iri": READINGS, **more}).status_code == 201


def register(client: httpx.Client, name: str = "hot", text: str = HOT) -> httpx.Response:
    return client.put(f"/queries/{name}", content=text, headers={"Content-Type": QUERY})


def send(client: httpx.Client, body: bytes, kind: str = N_TRIPLES, **headers: str) -> httpx.Response:
    return client.post("/streams/readings", content=body, headers={"Content-Type": kind, **headers})


def results(
    client: httpx.Client, count: int, start: int | None = 1, name: str = "hot", seconds: float = 30
) -> list[dict[str, Any]]:
    """So many results, from a number on."""
    found: list[dict[str, Any]] = []
    until = time.monotonic() + seconds
    query = {} if start is None else {"from": start}
    accept = {"Accept": "application/x-ndjson"}
    with client.stream("GET", f"/queries/{name}/results", params=query, headers=accept) as response:
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            if line:
                found.append(json.loads(line))
            if len(found) == count or time.monotonic() > until:
                break
    return found
