"""An HTTP proxy before a server that loses requests and answers, delays them and repeats them, by chance."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOST, UNANSWERED, DELAYED, REPEATED, FINE = "lost", "unanswered", "delayed", "repeated", "fine"
_DELAY = 0.05
_OF_A_CONNECTION = ("expect", "connection", "transfer-encoding", "content-length")


class LossyProxy(ThreadingHTTPServer):
    """`faults`: the chance that something happens to a request; `refused`: paths of requests that get an error of the server."""

    daemon_threads = True

    def __init__(self, port: int, *, seed: int = 0, faults: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = port
        self.chance = random.Random(seed)
        self.faults = faults
        self.refused: Callable[[str, str], bool] = lambda method, path: False
        self.happened: Counter[str] = Counter()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def draw(self) -> str:
        found = FINE
        if self.chance.random() < self.faults:
            found = self.chance.choice([LOST, UNANSWERED, DELAYED, REPEATED])
        self.happened[found] += 1
        return found

    def handle_error(self, request: object, client_address: object) -> None:
        """The other side has given up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LossyProxy

    def _forward(self) -> None:
        body = self._body()
        if self.server.refused(self.command, self.path):
            self._answer(403, [], b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
            return
        happens = self.server.draw()
        if happens == LOST:
            self._hang_up()
            return
        if happens == DELAYED:
            time.sleep(_DELAY)
        for _ in range(2 if happens == REPEATED else 1):
            answer = self._ask(body)
        if happens == UNANSWERED:
            self._hang_up()
            return
        self._answer(*answer)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        found = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        behind = http.client.HTTPConnection("127.0.0.1", self.server.behind)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_A_CONNECTION}
        behind.request(self.command, self.path, body, headers)
        found = behind.getresponse()
        content = found.read()
        behind.close()
        return found.status, found.getheaders(), content

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        length = str(len(content))
        for name, value in headers:
            if name.lower() == "content-length":
                length = value
            elif name.lower() not in ("transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(content)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _forward

    def log_message(self, *arguments: object) -> None:
        """Nothing: faults are meant."""


@contextmanager
def running(proxy: LossyProxy) -> Iterator[LossyProxy]:
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
