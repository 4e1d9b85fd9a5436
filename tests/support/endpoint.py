"""A SPARQL endpoint on this machine, for tests: it answers over given triples, or sends a given response."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pyoxigraph

from cqels_py.terms.rdf import from_rdflib
from tests.oracle.naive_algebra import Triple


class Endpoint:
    """`queries` are the received ones; `status`, `body` and `delay` replace the answers."""

    def __init__(self, url: str, triples: Sequence[Triple]) -> None:
        self.url = url
        self.queries: list[tuple[str, str]] = []
        self.status = 200
        self.body: bytes | None = None
        self.waiting = threading.Event()
        self.silent = False
        self._store = pyoxigraph.Store()
        text = "".join(" ".join(map(from_rdflib, triple)) + " .\n" for triple in triples)
        self._store.load(text.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)

    def answer(self, method: str, query: str) -> bytes:
        self.queries.append((method, query))
        if self.silent:
            self.waiting.wait(10)
        if self.body is not None:
            return self.body
        found = self._store.query(query)
        assert isinstance(found, pyoxigraph.QuerySolutions)
        answer = found.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        assert answer is not None
        return answer


@contextmanager
def endpoint(triples: Sequence[Triple] = ()) -> Iterator[Endpoint]:
    """An endpoint that runs while the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", urlsplit(self.path).query)

        def do_POST(self) -> None:
            self._answer("POST", self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, method: str, asked: str) -> None:
            body = here.answer(method, parse_qs(asked)["query"][0])
            self.send_response(here.status)
            self.send_header("Content-Type", "application/sparql-results+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here = Endpoint(f"http://127.0.0.1:{server.server_port}/sparql", triples)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield here
    finally:
        here.waiting.set()
        server.shutdown()
        server.server_close()
        thread.join()
