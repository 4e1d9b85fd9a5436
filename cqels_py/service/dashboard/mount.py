"""The dashboard beside the requests of the service: which of both answers a path."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI
from nicegui import ui
from starlette.types import ASGIApp, Receive, Scope, Send

from cqels_py.engine.last_elements import LastElements
from cqels_py.service.dashboard.pages import Pages
from cqels_py.service.service import Service

PAGES = "/ui"


class Dashboard:
    """The pages of a service; one for each process, as the library has one application.

    `app` answers the paths that `answers` names, while `running` is entered.
    """

    def __init__(self, service: Service) -> None:
        self.app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        service.engine.watched = LastElements(service.engine.dictionary)
        pages = Pages(service)
        ui.page("/", title="cqels")(pages.overview)
        ui.page(f"{PAGES}/new", title="New query · cqels")(pages.new)
        ui.page(f"{PAGES}/new-stream", title="New stream · cqels")(pages.new_stream)
        ui.page(f"{PAGES}/queries/{{name}}", title="Query · cqels")(pages.query)
        ui.page(f"{PAGES}/streams/{{name}}", title="Stream · cqels")(pages.stream)
        ui.run_with(self.app, title="cqels", dark=None, show_welcome_message=False)

    def running(self) -> AbstractAsyncContextManager[Any]:
        """The library's tasks run inside."""
        return self.app.router.lifespan_context(self.app)


class ByPath:
    """The dashboard answers its pages and their parts, the requests everything else."""

    def __init__(self, requests: ASGIApp, dashboard: ASGIApp) -> None:
        self._requests = requests
        self._dashboard = dashboard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        its = path == "/" or path.startswith((f"{PAGES}/", "/_nicegui"))
        await (self._dashboard if its else self._requests)(scope, receive, send)
