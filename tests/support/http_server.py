"""An HTTP server for tests of connectors: a function answers each request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    """A request with its body; `send` begins the answer, `write` continues it at once."""

    path: str
    headers: dict[str, str]
    body: bytes
    handler: BaseHTTPRequestHandler = field(repr=False)

    def send(self, status: int = 200, kind: str = "application/json", body: bytes = b"", **more: Any) -> None:
        """`more`: further headers, such as cache_control, as texts."""
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", kind)
        for name, value in more.items():
            self.handler.send_header(name.replace("_", "-").title(), value)
        self.handler.send_header("Connection", "close")
        self.handler.end_headers()
        self.write(body)

    def write(self, body: bytes) -> None:
        self.handler.wfile.write(body)
        self.handler.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is part of the tests."""


@contextmanager
def served(answer: Callable[[Request], object], port: int = 0) -> Iterator[str]:
    """The address of a server on 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer(Request(self.path, headers, self.rfile.read(length), self))

        do_POST = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    server = Server(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
