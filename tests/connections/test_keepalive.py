"""The system probes the connections of HTTP clients, so that servers that have vanished are noticed."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx

from cqels_py.connections.reach import httpx_hooks


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()


def test_a_response_that_is_read_is_probed() -> None:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with (
            httpx.Client(event_hooks=httpx_hooks(None)) as client,
            client.stream("GET", f"http://127.0.0.1:{server.server_port}/") as response,
        ):
            connection = response.extensions["network_stream"].get_extra_info("socket")
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
