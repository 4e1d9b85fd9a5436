"""The page of a query: its state, text and plan, and its last results."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from nicegui import ui

from cqels_py.dataflow.explain import size_text
from cqels_py.service.dashboard.layout import COLORS, TEXT, WIDE_TEXT, heading, table
from cqels_py.service.dashboard.rates import Rates
from cqels_py.service.dashboard.result_rows import columns_of, row_of
from cqels_py.service.result_store import NotKept
from cqels_py.service.service import ServedQuery, Service

_MOST_ROWS, _MOST_POINTS = 200, 300


class QueryPage:
    """The parts of a query's page that change."""

    def __init__(self, service: Service, running: ServedQuery) -> None:
        self._service = service
        self._running = running
        self._rates = Rates()
        self._rows: deque[dict[str, str]] = deque(maxlen=_MOST_ROWS)
        self._points: deque[tuple[float, float]] = deque(maxlen=_MOST_POINTS)
        self._generation = 0
        self._next = max(running.store.first, running.store.last - _MOST_ROWS + 1)
        with ui.row().classes("items-center w-full"):
            self._state = ui.badge()
            self._figures = ui.label().classes("tabular-nums")
            ui.space()
            self._pause = ui.button("Pause", on_click=self._pause_or_resume).props("outline no-caps dense")
            ui.button("Change", on_click=lambda: ui.navigate.to(f"/ui/new?query={running.name}")).props(
                "outline no-caps dense"
            )
            ui.button("Stop", on_click=self._ask_to_stop).props("outline no-caps dense color=negative")
        self._failure = ui.label().classes("text-negative whitespace-pre-wrap").props('role="alert"')
        self._chart = ui.echart(_chart([])).classes("w-full h-40").props('aria-label="Results a second"')
        heading("Last results")
        query = running.query
        columns = columns_of(query.variables, query.form) if query is not None else []
        self._table = table([name for name, _ in columns], "number", "No result yet.", dict(columns))
        with ui.expansion("Query and plan").classes("w-full"):
            self._text = ui.label().classes(TEXT)
            ui.separator()
            self._plan = ui.label().classes(WIDE_TEXT)
        with ui.expansion("Operators, with rows and time since the server began").classes("w-full") as self._operators:
            self._profile = ui.label().classes(WIDE_TEXT)

    async def refresh(self) -> None:
        """Show the query as it is now."""
        if self._running.removed:
            self._state.text, self._figures.text = "stopped", "the query was removed"
            return
        found = await asyncio.to_thread(self._service.query_figures, self._running)
        now, state = time.monotonic(), found["state"]
        rate = self._rates.of("results", found["results"], now)
        self._points.append((time.time() * 1000, round(rate, 1)))
        self._state.text = state
        self._state.props(f"color={COLORS[state]}")
        memory = size_text(found.get("state_bytes", 0))
        self._figures.text = f"{found['results']:,} results · {rate:,.0f}/s · state {memory}"
        self._pause.text = "Resume" if state == "paused" else "Pause"
        self._failure.text = found.get("failure", "")
        self._chart.options["series"][0]["data"] = list(self._points)
        self._chart.update()
        await self._read_results()
        await self._explain(found)
        if self._operators.value and self._running.query is not None:
            self._profile.text = str(await asyncio.to_thread(self._running.query.profile))

    async def _read_results(self) -> None:
        """The last results; those between that came too quickly to be shown are left out."""
        store, query = self._running.store, self._running.query
        if query is None or self._running.kept.paused:
            return
        self._next = max(self._next, store.last - _MOST_ROWS + 1)
        try:
            lines = await asyncio.to_thread(store.read, self._next, _MOST_ROWS)
        except NotKept:
            return
        self._next += len(lines)
        if lines:
            self._rows.extendleft(row_of(line, query.variables) for line in lines)
            self._table.rows = list(self._rows)

    async def _explain(self, found: dict[str, Any]) -> None:
        if self._generation == found["generation"] or self._running.query is None:
            return
        self._generation = found["generation"]
        self._text.text = found["text"]
        self._plan.text = await asyncio.to_thread(self._running.query.explain)

    async def _pause_or_resume(self) -> None:
        await asyncio.to_thread(self._service.pause, self._running.name, paused=not self._running.kept.paused)
        await self.refresh()

    async def _ask_to_stop(self) -> None:
        with ui.dialog() as dialog, ui.card():
            ui.label(f"Stop {self._running.name}? Its state and its results are removed.")
            with ui.row():
                ui.button("Stop it", on_click=lambda: dialog.submit(True)).props("no-caps color=negative")
                ui.button("Keep it", on_click=lambda: dialog.submit(False)).props("no-caps flat")
        if await dialog:
            await asyncio.to_thread(self._service.delete_query, self._running.name)
            ui.navigate.to("/")


def _chart(points: list[tuple[float, float]]) -> dict[str, Any]:
    return {
        "animation": False,
        "grid": {"left": 50, "right": 10, "top": 30, "bottom": 25},
        "title": {"text": "results a second", "textStyle": {"fontSize": 12, "color": "#888", "fontWeight": "normal"}},
        "xAxis": {"type": "time"},
        "yAxis": {"type": "value", "min": 0, "splitLine": {"lineStyle": {"color": "#8884"}}},
        "series": [{"type": "line", "showSymbol": False, "areaStyle": {"opacity": 0.2}, "data": points}],
    }
