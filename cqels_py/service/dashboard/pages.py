"""The pages. Calls of the service block, so they run in threads; their results are shown at most once a second.

Texts of clients are shown in elements that take texts, never as HTML.
"""

from __future__ import annotations

from nicegui import ui

from cqels_py.service.dashboard.editor_page import editor_page
from cqels_py.service.dashboard.layout import frame, not_there
from cqels_py.service.dashboard.overview import Overview
from cqels_py.service.dashboard.query_page import QueryPage
from cqels_py.service.dashboard.stream_form import StreamForm
from cqels_py.service.dashboard.stream_page import StreamPage
from cqels_py.service.service import Service

_SECOND = 1.0


class Pages:
    """Each method builds one page."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def overview(self) -> None:
        """All queries and streams."""
        with frame("Queries"):
            shown = Overview(self._service)
            await shown.refresh()
            ui.timer(_SECOND, shown.refresh)

    async def query(self, name: str) -> None:
        """One query."""
        running = self._service.queries.get(name)
        if running is None:
            not_there("query", name)
            return
        with frame(name):
            shown = QueryPage(self._service, running)
            await shown.refresh()
            ui.timer(_SECOND, shown.refresh)

    async def stream(self, name: str) -> None:
        """One stream."""
        stream = self._service.streams.get(name)
        if stream is None:
            not_there("stream", name)
            return
        with frame(name):
            shown = StreamPage(self._service, stream)
            await shown.refresh()
            ui.timer(_SECOND, shown.refresh)

    async def new_stream(self) -> None:
        """A form for a new stream."""
        with frame("New stream"):
            StreamForm(self._service)

    async def new(self, query: str = "") -> None:
        """An editor for a new query, or for another text of one that is there."""
        with frame(f"Change {query}" if query in self._service.queries else "New query"):
            await editor_page(self._service, query if query in self._service.queries else "")
