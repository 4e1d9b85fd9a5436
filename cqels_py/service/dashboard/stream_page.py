"""The page of a stream: how much comes and how far it is behind, its last elements, and those that were left out."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from nicegui import ui

from cqels_py.engine.options import WALL
from cqels_py.errors import CqelsError
from cqels_py.functions.dates import instant_text
from cqels_py.service.dashboard.layout import chart, counted, elements_of, error_label, heading, seconds_text, table
from cqels_py.service.dashboard.rates import Rates
from cqels_py.service.service import ServedStream, Service

_MOST_POINTS, _MOST_REJECTS = 300, 50
_LONGEST = 2_000
_PAUSED = (
    "Its source is paused: the results of all queries that read it wait for their sinks, until these take them again."
)
_REJECTS = {"reason": "reason", "at": "where or when", "message": "message", "element": "element"}
_LINES = '<q-td :props="props" class="!whitespace-pre font-mono align-top">{{ props.value }}</q-td>'


class StreamPage:
    """The parts of a stream's page that change."""

    def __init__(self, service: Service, stream: ServedStream) -> None:
        self._service = service
        self._name, self._iri = stream.name, stream.definition.iri
        self._rates = Rates()
        self._points: deque[tuple[float, float]] = deque(maxlen=_MOST_POINTS)
        with ui.row().classes("items-center w-full"):
            self._figures = ui.label().classes("tabular-nums")
            ui.space()
            ui.button("Remove", on_click=self._ask_to_remove).props("outline no-caps dense color=negative")
        ui.label(self._iri).classes("break-all")
        self._behind = ui.label().classes("tabular-nums")
        self._readers = ui.row().classes("gap-2")
        self._shown_readers: list[str] | None = None
        self._failure = error_label()
        self._paused = ui.label(_PAUSED).props('role="status"')
        self._paused.visible = False
        self._chart = chart("elements a second").props('role="img" aria-label="Elements a second"')
        heading("Last elements", 2)
        empty = f"No element yet: send some to POST /streams/{self._name}, or by cqels send {self._name} FILE."
        self._elements = table(("time", "triples"), "row", empty, rows=5)
        self._elements.add_slot("body-cell-triples", _LINES)
        heading("Left out", 2)
        self._rejects = table(_REJECTS, "row", "Nothing was left out.", _REJECTS, rows=5)
        for name in ("message", "element"):
            self._rejects.add_slot(f"body-cell-{name}", _LINES)

    async def refresh(self) -> None:
        """Show the stream as it is now."""
        if self._name not in self._service.streams:
            self._figures.text = "the stream was removed"
            return
        found = await asyncio.to_thread(self._service.stream_figures, self._name)
        elements = elements_of(found)
        rate = self._rates.of("elements", elements, time.monotonic())
        self._points.append((time.time() * 1000, round(rate, 1)))
        rejected = sum(found["rejected"].values())
        self._figures.text = (
            f"{counted(elements, 'element')} · {rate:,.0f}/s · {found['rejected'].get('late', 0):,} late · "
            f"{rejected:,} left out · {counted(found['refused'], 'body', 'bodies')} refused"
        )
        read = found.get("read") or {}
        self._failure.text = read.get("failure") or ""
        self._paused.visible = bool(read.get("paused"))
        line = {"type": "line", "showSymbol": False, "areaStyle": {"opacity": 0.2}, "data": list(self._points)}
        self._chart.options["series"] = [line]
        self._chart.update()
        self._show_readers(found["queries"])
        self._show_elements(found)
        rejects = await asyncio.to_thread(self._service.stream_rejects, self._name)
        self._rejects.rows = [
            _reject_row(number, each) for number, each in enumerate(reversed(rejects[-_MOST_REJECTS:]))
        ]

    def _show_readers(self, names: list[str]) -> None:
        if names == self._shown_readers:
            return
        self._shown_readers = names
        self._readers.clear()
        with self._readers:
            ui.label("Read by" if names else "No query reads it.")
            for name in names:
                ui.link(name, f"/ui/queries/{name}").classes("text-primary")

    def _show_elements(self, found: dict[str, Any]) -> None:
        seen = self._service.engine.watched
        if seen is None:
            return
        elements = seen.of(self._iri)
        self._elements.rows = [
            {"row": str(number), "time": instant_text(each.time), "triples": each.text[:_LONGEST]}
            for number, each in enumerate(reversed(elements))
        ]
        latest = seen.latest(self._iri)
        if latest is not None:
            lag = f", {seconds_text(time.time() - latest / 1e6)} behind the clock" if found["clock"] == WALL else ""
            self._behind.text = f"The latest element is of {instant_text(latest)}{lag}."

    async def _ask_to_remove(self) -> None:
        with ui.dialog() as dialog, ui.card():
            ui.label(f"Remove the stream {self._name}? Its elements stay in the windows of no query.")
            with ui.row():
                ui.button("Remove it", on_click=lambda: dialog.submit(True)).props("outline no-caps color=negative")
                ui.button("Keep it", on_click=lambda: dialog.submit(False)).props("no-caps flat autofocus")
        if not await dialog:
            return
        try:
            await asyncio.to_thread(self._service.delete_stream, self._name)
        except CqelsError as error:
            ui.notify(error.message, type="negative", multi_line=True)
            return
        ui.navigate.to("/")


def _reject_row(number: int, reject: dict[str, Any]) -> dict[str, str]:
    at = reject.get("time")
    where = instant_text(at) if isinstance(at, int) else str(reject.get("position") or "")
    return {
        "row": str(number),
        "reason": str(reject.get("reason", "")),
        "at": where,
        "message": str(reject.get("message") or "")[:_LONGEST],
        "element": str(reject.get("element") or "")[:_LONGEST],
    }
