"""The server: it answers at once, and all requests as soon as the folder has been read; SIGTERM and SIGINT end it in order."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from cqels_py.checkpoints.kernel_calls import calls_to_log
from cqels_py.connections.keepalive import keep_alive
from cqels_py.dataflow.kernel_calls import calls_of
from cqels_py.engine.compile import compile_query
from cqels_py.errors import CqelsError, UsageError
from cqels_py.formats.kernel_calls import calls_to_read
from cqels_py.kernels.compiler.prepare import load
from cqels_py.service.allowed import Allowed
from cqels_py.service.app import Requests, application
from cqels_py.service.failures import Starting
from cqels_py.service.folder import Folder
from cqels_py.service.guard import LOOPBACK, Guard, is_loopback
from cqels_py.service.limits import Limits
from cqels_py.service.names import VISIBLE
from cqels_py.service.patience import PatientProtocol
from cqels_py.service.responses import json_response, problem_response
from cqels_py.service.service import Service
from cqels_py.service.start import NOT_YET, Start

_ENDING_SECONDS = 30
"""For which requests that have begun may go on once the server is to end."""
_ANY = "SELECT ?x { STREAM <urn:any> [RANGE 1m] { ?x <urn:any> ?y } FILTER(?y > 0) }"
"""A query whose kernels most others call."""
_SWITCH = 0.0005
"""Seconds for which a thread keeps the interpreter while others wait for it."""


@dataclass(frozen=True, slots=True)
class Serving:
    """`hosts`: further names in the header Host that are answered. `token`: needed beyond loopback. `port` 0: one that is free.
    `dashboard`: answer browsers with it; once in a process. `without`: names of queries that do not come back.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = 8737
    hosts: tuple[str, ...] = ()
    token: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    limits: Limits = field(default_factory=Limits)
    allowed: Allowed = field(default_factory=Allowed)
    dashboard: bool = False
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise UsageError(
                f"{self.host} can be reached from other machines: give a token (--token-file FILE, or CQELS_TOKEN), which every "
                "request has to have"
            )
        if self.token is not None and len(self.token) < 16:
            raise UsageError("the token has 16 characters or more")
        if self.token is not None and not VISIBLE.fullmatch(self.token):
            raise UsageError(
                "the token has visible characters of ASCII, and spaces between them alone: no header could have it"
            )


class Gate:
    """Answers for the application until it is there. `start`: what the folder has, once it is known."""

    def __init__(self) -> None:
        self.app: ASGIApp | None = None
        self.start: Start | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.app is not None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1013})
        elif scope["path"] == "/livez":
            await json_response({"status": "alive"})(scope, receive, send)
        else:
            await (await asyncio.to_thread(self._answer, scope["method"], scope["path"]))(scope, receive, send)

    def _answer(self, method: str, path: str) -> Response:
        """Queries are told and removed; all else comes later."""
        start, (_, kind, *names) = self.start, path.split("/")
        try:
            if start is not None and kind == "queries" and len(names) < 2:
                if method == "GET":
                    return json_response(start.figures_of(names[0]) if names else start.figures())
                if method == "DELETE" and names:
                    start.remove(names[0])
                    return Response(status_code=204)
            return problem_response(Starting(NOT_YET))
        except CqelsError as error:
            return problem_response(error)


class Server(uvicorn.Server):
    """Reads the folder while it answers already, and ends in order: subscribers first, then requests, then the state is saved.

    `prepare` is called with the service when it is there, `settle` at last, before requests are answered.
    """

    def __init__(
        self,
        serving: Serving,
        prepare: Callable[[Service], None] = lambda _: None,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._serving = serving
        self._prepare = prepare
        self._settle = settle
        self._pages = AsyncExitStack()
        self._gate = Gate()
        self.requests: Requests | None = None
        self.ready = threading.Event()
        self.failure: BaseException | None = None
        hosts = (*LOOPBACK, serving.host.lower().strip("[]"), *(host.lower() for host in serving.hosts))
        config = uvicorn.Config(
            Guard(self._gate, hosts, serving.token),
            http=PatientProtocol,
            host=serving.host,
            port=serving.port,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_ENDING_SECONDS,
            ws_max_size=1 << 16,
            h11_max_incomplete_event_size=1 << 16,
            ssl_certfile=serving.certificate,
            ssl_keyfile=serving.key,
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            for listening in [each for server in self.servers for each in server.sockets]:
                keep_alive(listening)
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._open, args=(loop,), name="cqels start", daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.requests is not None:
            self.requests.hub.end()
        await self._pages.aclose()
        await super().shutdown(sockets)
        if self.requests is not None:
            await asyncio.to_thread(self._close)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals end the server, and not the process: it closes all in order, with status 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @property
    def address(self) -> str:
        """Where it listens."""
        name: Any = self.servers[0].sockets[0].getsockname()
        host = f"[{name[0]}]" if ":" in name[0] else name[0]
        return f"http{'s' if self._serving.certificate else ''}://{host}:{name[1]}"

    def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._gate.start = start = Start(Folder(self._serving.data), self._serving.without)
            service = Service(start, limits=self._serving.limits, allowed=self._serving.allowed)
            self._prepare(service)
            self.requests = Requests(service, self._serving.token)
            app: ASGIApp = application(self.requests)
            if self._serving.dashboard:
                app = asyncio.run_coroutine_threadsafe(self._with_pages(app, service), loop).result()
            self._settle()
            self._gate.app = app
            self.ready.set()
        except BaseException as error:
            self.failure = error
            self.ready.set()
            self.should_exit = True

    async def _with_pages(self, app: ASGIApp, service: Service) -> ASGIApp:
        from cqels_py.service.dashboard.mount import ByPath, Dashboard

        dashboard = Dashboard(service)
        await self._pages.enter_async_context(dashboard.running())
        return ByPath(app, dashboard.app)

    def _close(self) -> None:
        assert self.requests is not None
        self.requests.close()
        self.requests.service.close()


def settle() -> None:
    """Load the kernels that most queries call, and look no more for garbage among all that is here, which would stop all threads for
    0.2 s again and again."""
    load([*calls_of(compile_query(_ANY).plan), *calls_to_read("nq"), *calls_to_log()])
    gc.collect()
    gc.freeze()


def serve(serving: Serving, prepare: Callable[[Service], None], tell: Callable[[str], None]) -> None:
    """Serve until a signal; `tell` gets the address. Raises why the folder cannot be used; UsageError for a port that is taken."""
    server = Server(serving, prepare, settle)
    # Otherwise a thread that has something to send waits for 5 ms while another one computes.
    sys.setswitchinterval(_SWITCH)
    threading.Thread(target=_tell_when_ready, args=(server, tell), daemon=True).start()
    try:
        server.run()
    except SystemExit:
        raise UsageError(f"the port {serving.port} of {serving.host} cannot be opened: give another --port") from None
    if server.failure is not None:
        raise server.failure


def _tell_when_ready(server: Server, tell: Callable[[str], None]) -> None:
    server.ready.wait()
    if server.failure is None:
        tell(server.address)
