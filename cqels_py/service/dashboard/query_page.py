"""The page of a query: its state, its last results as a table and over time, its plan with live counters, its text."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from nicegui import ui

from cqels_py.dataflow.explain import size_text
from cqels_py.engine.explained import with_prefixes
from cqels_py.service.dashboard.layout import COLORS, TEXT, chart, counted, error_label, heading, table
from cqels_py.service.dashboard.plan_part import PlanPart
from cqels_py.service.dashboard.rates import Rates
from cqels_py.service.dashboard.result_chart import ResultChart
from cqels_py.service.dashboard.result_rows import Names, columns_of, row_of
from cqels_py.service.result_store import NotKept
from cqels_py.service.service import ServedQuery, Service

_MOST_ROWS, _MOST_POINTS = 200, 300


class QueryPage:
    """The parts of a query's page that change."""

    def __init__(self, service: Service, running: ServedQuery) -> None:
        self._service = service
        self._running = running
        self._rates = Rates()
        self._points: deque[tuple[float, float]] = deque(maxlen=_MOST_POINTS)
        self._generation = 0
        self._value_chart: Any = None
        with ui.row().classes("items-center w-full"):
            self._state = ui.badge()
            self._figures = ui.label().classes("tabular-nums")
            ui.space()
            self._pause = ui.button("Pause", on_click=self._pause_or_resume).props("outline no-caps dense")
            change = ui.button("Change", on_click=lambda: ui.navigate.to(f"/ui/new?query={running.name}"))
            change.props("outline no-caps dense")
            ui.button("Stop", on_click=self._ask_to_stop).props("outline no-caps dense color=negative")
        self._failure = error_label()
        with ui.element("div").classes("grid grid-cols-1 lg:grid-cols-2 gap-4 w-full"):
            self._rate_chart = chart("results a second").props('role="img" aria-label="Results a second"')
            self._values = ui.column().classes("w-full gap-0")
        heading("Last results", 2)
        self._results = ui.column().classes("w-full")
        heading("Plan", 2)
        ui.label(
            "Rows since the server began, and rows a second at the edges; the most time is spent in the orange box."
        )
        self._plan = PlanPart()
        with ui.expansion("The text of the query, and its plan as text").classes("w-full"):
            self._text = ui.label().classes(TEXT)
            ui.separator()
            self._plan_text = ui.label().classes(TEXT)

    async def refresh(self) -> None:
        """Show the query as it is now."""
        if self._running.removed:
            self._state.text, self._figures.text = "stopped", "the query was removed"
            self._state.props(f"color={COLORS['stopped']}")
            return
        found = await asyncio.to_thread(self._service.query_figures, self._running)
        if self._generation != found["generation"]:
            self._generation = found["generation"]
            await self._begin(found)
        self._show_figures(found)
        await self._read_results()
        query = self._running.query
        if query is not None and self._running.failure is None:
            self._plan.show(await asyncio.to_thread(self._plan.live, query))

    async def _begin(self, found: dict[str, Any]) -> None:
        """The query has another text, or is shown for the first time."""
        store, query = self._running.store, self._running.query
        names = Names(found["text"])
        self._rows: deque[dict[str, str]] = deque(maxlen=_MOST_ROWS)
        self._names, self._chart = names, ResultChart([] if query is None else query.variables, names)
        self._next = max(store.first, store.last - _MOST_ROWS + 1)
        self._text.text, self._column, self._value_chart = found["text"], "", None
        self._results.clear()
        self._values.clear()
        with self._results:
            columns = columns_of(query.variables, query.form) if query is not None else []
            empty = "No result yet: they come when elements of its streams match."
            self._table = table([name for name, _ in columns], "number", empty, dict(columns))
        if query is not None:
            self._plan_text.text = with_prefixes(await asyncio.to_thread(query.explain), found["text"])

    def _show_figures(self, found: dict[str, Any]) -> None:
        state = found["state"]
        rate = self._rates.of("results", found["results"], time.monotonic())
        self._points.append((time.time() * 1000, round(rate, 1)))
        self._state.text = state
        self._state.props(f"color={COLORS[state]}")
        memory = size_text(found.get("state_bytes", 0))
        self._figures.text = f"{counted(found['results'], 'result')} · {rate:,.0f}/s · state {memory}"
        self._pause.text = "Resume" if state == "paused" else "Pause"
        self._failure.text = found.get("failure", "")
        line = {"type": "line", "showSymbol": False, "areaStyle": {"opacity": 0.2}, "data": list(self._points)}
        self._rate_chart.options["series"] = [line]
        self._rate_chart.update()

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
            self._rows.extendleft(row_of(line, query.variables, self._names) for line in lines)
            self._table.rows = list(self._rows)
            self._chart.add(lines)
            self._align_numbers()
            self._draw_values()

    def _align_numbers(self) -> None:
        """Columns with numbers are aligned at the right."""
        headings = {f"?{name}" for name in self._chart.columns}
        for column in self._table.columns:
            if column["label"] in headings and column["align"] != "right":
                column["align"] = "right"
                self._table.update()

    def _draw_values(self) -> None:
        """The chart of a column with numbers, once there is one."""
        columns = self._chart.columns
        if not columns:
            return
        if self._value_chart is None:
            self._column = columns[0]
            with self._values:
                self._value_chart = chart("").props('role="img" aria-label="Values of results over time"')
                if len(columns) > 1:
                    named = {name: f"?{name}" for name in columns}
                    chosen = ui.select(named, value=self._column, label="Values over time", on_change=self._choose)
                    chosen.props("dense outlined").classes("w-48")
        options = self._value_chart.options
        options["title"]["text"] = f"?{self._column} over time"
        lines = self._chart.lines_of(self._column)
        points = [point for _, each in lines for point in each]
        if len(points) < 2 * len(lines):
            # No groups, but single results.
            options["series"] = [{"type": "scatter", "symbolSize": 6, "data": points}]
        else:
            options["series"] = [
                {"type": "line", "step": "end", "showSymbol": False, "name": group, "data": each}
                for group, each in lines
            ]
        several = len(options["series"]) > 1
        options["legend"] = {"show": several, "type": "scroll", "bottom": 0, "textStyle": {"color": "#888"}}
        options["grid"]["bottom"] = 50 if several else 25
        self._value_chart.update()

    def _choose(self, event: Any) -> None:
        self._column = event.value
        self._draw_values()

    async def _pause_or_resume(self) -> None:
        await asyncio.to_thread(self._service.pause, self._running.name, paused=not self._running.kept.paused)
        await self.refresh()

    async def _ask_to_stop(self) -> None:
        with ui.dialog() as dialog, ui.card():
            ui.label(f"Stop {self._running.name}? Its state and its results are removed.")
            with ui.row():
                ui.button("Stop it", on_click=lambda: dialog.submit(True)).props("outline no-caps color=negative")
                ui.button("Keep it", on_click=lambda: dialog.submit(False)).props("no-caps flat autofocus")
        if await dialog:
            await asyncio.to_thread(self._service.delete_query, self._running.name)
            ui.navigate.to("/")
