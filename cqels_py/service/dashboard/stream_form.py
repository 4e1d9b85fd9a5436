"""The page on which a stream is declared."""

from __future__ import annotations

import asyncio
from typing import Any

from nicegui import ui

from cqels_py.engine.options import EVENTS, WALL
from cqels_py.errors import CqelsError
from cqels_py.formats.json_documents import json_value
from cqels_py.service.dashboard.layout import error_label, with_line
from cqels_py.service.definitions import StreamDefinition
from cqels_py.service.service import Service

_CLOCKS = {WALL: "goes on with the clock of the server", EVENTS: "goes on with elements alone"}


class StreamForm:
    """The fields of the page: the members of `PUT /streams/{name}`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        with ui.column().classes("gap-2 w-full max-w-screen-md"):
            self._name = _field("Name", "readings")
            self._iri = _field("IRI, by which queries name it", "http://example.org/readings")
            self._source = _field("Source, if elements are not only sent to the server", "mqtt://localhost/rooms/+")
            self._lateness = _field("How late elements may be", "10s")
            self._clock = ui.select(_CLOCKS, value=WALL, label="Time").props("outlined dense").classes("w-full")
            self._context = ui.textarea("JSON-LD context for plain JSON").props("outlined dense autogrow")
            self._map = ui.textarea("Map of JSON or rows: a CONSTRUCT, instead of a context").props(
                "outlined dense autogrow"
            )
            for area in (self._context, self._map):
                area.classes("w-full font-mono")
            self._error = error_label()
            ui.button("Declare", on_click=self._declare).props("no-caps unelevated color=brand")

    def _asked(self) -> StreamDefinition:
        """The definition in the fields. UsageError, DataError."""
        given: dict[str, Any] = {"iri": self._iri.value.strip(), "clock": self._clock.value}
        texts = {"source": self._source, "lateness": self._lateness, "map": self._map}
        given |= {name: field.value.strip() for name, field in texts.items() if field.value.strip()}
        if context := self._context.value.strip():
            given["context"] = json_value(context.encode())
        return StreamDefinition.of(given)

    async def _declare(self) -> None:
        name = self._name.value.strip()
        try:
            definition = self._asked()
            if name in self._service.streams:
                self._error.text = f"there is a stream {name!r} already"
                return
            await asyncio.to_thread(self._service.put_stream, name, definition)
        except CqelsError as error:
            self._error.text = with_line(error)
            return
        ui.navigate.to(f"/ui/streams/{name}")


def _field(label: str, example: str) -> ui.input:
    return ui.input(label, placeholder=example).props("outlined dense").classes("w-full")
