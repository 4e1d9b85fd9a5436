"""The pages. Calls of the service block, so they run in threads; what they return is shown at most once a second.

Texts of clients are shown in elements that take texts, never as HTML.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from nicegui import ui

from cqels_py.dataflow.explain import size_text
from cqels_py.errors import CqelsError
from cqels_py.service.dashboard.rates import Rates
from cqels_py.service.dashboard.result_rows import columns_of, row_of
from cqels_py.service.definitions import QueryDefinition
from cqels_py.service.result_store import NotKept
from cqels_py.service.service import ServedQuery, Service

_SECOND = 1.0
_MOST_ROWS, _MOST_POINTS = 200, 300
_TEXT = "whitespace-pre-wrap font-mono text-sm"
_WIDE_TEXT = "whitespace-pre font-mono text-sm overflow-x-auto w-full"
_EXAMPLE = """PREFIX : <http://example.org/>
SELECT ?sensor (AVG(?t) AS ?mean)
WHERE { STREAM :readings [RANGE 1m] { ?sensor :temperature ?t } }
GROUP BY ?sensor
"""
_QUERIES = ("name", "state", "results", "rate", "memory", "streams")
_STREAMS = ("name", "iri", "elements", "rate", "late", "rejected", "queries")
_NUMBERS = ("results", "rate", "memory", "elements", "late", "rejected", "number")
_COLORS = {"running": "positive", "paused": "warning", "failed": "negative"}


class Pages:
    """Each method builds one page."""

    def __init__(self, service: Service) -> None:
        self._service = service

    # --- all streams and queries ------------------------------------------------------------------------------------

    async def overview(self) -> None:
        """Queries and streams with their figures."""
        rates = Rates()
        with _frame("Queries"):
            queries = _table(_QUERIES, "name", "No query yet. Write one: New query.")
            queries.add_slot(
                "body-cell-name",
                '<q-td :props="props"><a class="text-primary" :href="\'/ui/queries/\' + props.value">{{ props.value }}</a></q-td>',
            )
            _heading("Streams")
            streams = _table(_STREAMS, "name", "No stream yet. Declare one: PUT /streams/NAME, or cqels serve --demo.")

        async def refresh() -> None:
            now = time.monotonic()
            queries.rows = await asyncio.to_thread(self._query_rows, rates, now)
            streams.rows = await asyncio.to_thread(self._stream_rows, rates, now)

        await refresh()
        ui.timer(_SECOND, refresh)

    def _query_rows(self, rates: Rates, now: float) -> list[dict[str, str]]:
        rows = []
        for each in list(self._service.queries.values()):
            found = self._service.query_figures(each)
            rows.append(
                {
                    "name": each.name,
                    "state": found["state"],
                    "results": f"{found['results']:,}",
                    "rate": f"{rates.of(f'query {each.name}', found['results'], now):,.0f}/s",
                    "memory": size_text(found.get("state_bytes", 0)),
                    "streams": ", ".join(found.get("streams", [])),
                }
            )
        return rows

    def _stream_rows(self, rates: Rates, now: float) -> list[dict[str, str]]:
        rows = []
        for name in list(self._service.streams):
            found = self._service.stream_figures(name)
            rejected = found["rejected"]
            rows.append(
                {
                    "name": name,
                    "iri": found["iri"],
                    "elements": f"{found['elements']:,}",
                    "rate": f"{rates.of(f'stream {name}', found['elements'], now):,.0f}/s",
                    "late": f"{rejected.get('late', 0):,}",
                    "rejected": f"{sum(rejected.values()) + found['refused']:,}",
                    "queries": ", ".join(found["queries"]),
                }
            )
        return rows

    # --- one query --------------------------------------------------------------------------------------------------

    async def query(self, name: str) -> None:
        """A query: its state, text and plan, and its last results."""
        running = self._service.queries.get(name)
        if running is None:
            with _frame("No such query"):
                ui.label(f"There is no query {name!r}.")
                ui.link("All queries", "/")
            return
        with _frame(name):
            shown = _ShownQuery(self._service, running)
            await shown.refresh()
            ui.timer(_SECOND, shown.refresh)

    # --- a new query ------------------------------------------------------------------------------------------------

    async def new(self) -> None:
        """An editor: its query is explained, with errors at their place, and submitted."""
        with _frame("New query"):
            name = ui.input("Name", value="query1").props("outlined dense").classes("w-64")
            editor = ui.codemirror(_EXAMPLE, language="SPARQL", line_wrapping=True).classes("w-full border")
            editor.props('aria-label="Query text"')
            changelog = ui.checkbox("Also tell results that no longer hold")
            with ui.row():
                explain = ui.button("Explain").props("outline no-caps")
                submit = ui.button("Submit").props("no-caps unelevated")
            problem = ui.label().classes("text-negative whitespace-pre-wrap font-mono").props('role="alert"')
            plan = ui.label().classes(_WIDE_TEXT)

        def asked() -> QueryDefinition:
            return QueryDefinition.of({"text": editor.value, "changelog": changelog.value})

        async def attempt(done: Callable[[], Any]) -> Any:
            plan.text = problem.text = ""
            try:
                return await asyncio.to_thread(done)
            except CqelsError as error:
                problem.text = _with_line(error, editor.value)
            return None

        async def explained() -> None:
            plan.text = await attempt(lambda: self._service.explain(asked())) or ""

        async def submitted() -> None:
            if await attempt(lambda: self._service.put_query(name.value, asked())) is not None:
                ui.navigate.to(f"/ui/queries/{name.value}")

        explain.on_click(explained)
        submit.on_click(submitted)


class _ShownQuery:
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
            ui.button("Stop", on_click=self._ask_to_stop).props("outline no-caps dense color=negative")
        self._failure = ui.label().classes("text-negative whitespace-pre-wrap").props('role="alert"')
        self._chart = ui.echart(_chart([])).classes("w-full h-40").props('aria-label="Results a second"')
        _heading("Last results")
        query = running.query
        columns = columns_of(query.variables, query.form) if query is not None else []
        self._table = _table([name for name, _ in columns], "number", "No result yet.", dict(columns))
        with ui.expansion("Query and plan").classes("w-full"):
            self._text = ui.label().classes(_TEXT)
            ui.separator()
            self._plan = ui.label().classes(_WIDE_TEXT)
        with ui.expansion("Operators, with rows and time since the server began").classes("w-full") as self._operators:
            self._profile = ui.label().classes(_WIDE_TEXT)

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
        self._state.props(f"color={_COLORS[state]}")
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


def _frame(title: str) -> Any:
    """The page's header, and the column of its content."""
    with ui.header().classes("items-center"):
        ui.link("cqels", "/").classes("text-white text-lg no-underline font-bold")
        ui.space()
        ui.link("New query", "/ui/new").classes("text-white no-underline")
    column = ui.column().classes("w-full max-w-screen-xl mx-auto p-2 gap-3")
    with column:
        _heading(title)
    return column


def _heading(text: str) -> None:
    ui.label(text).classes("text-xl break-all").props('role="heading" aria-level="2"')


def _table(names: Any, key: str, empty: str, headings: dict[str, str] | None = None) -> ui.table:
    columns = [
        {
            "name": name,
            "label": name if headings is None else headings[name],
            "field": name,
            "align": "right" if name in _NUMBERS else "left",
        }
        for name in names
    ]
    table = ui.table(columns=columns, rows=[], row_key=key, pagination=20).classes("w-full tabular-nums")
    return table.props(f'flat bordered dense no-data-label="{empty}"')


def _chart(points: list[tuple[float, float]]) -> dict[str, Any]:
    return {
        "animation": False,
        "grid": {"left": 50, "right": 10, "top": 30, "bottom": 25},
        "title": {"text": "results a second", "textStyle": {"fontSize": 12, "color": "#888", "fontWeight": "normal"}},
        "xAxis": {"type": "time"},
        "yAxis": {"type": "value", "min": 0, "splitLine": {"lineStyle": {"color": "#8884"}}},
        "series": [{"type": "line", "showSymbol": False, "areaStyle": {"opacity": 0.2}, "data": points}],
    }


def _with_line(error: CqelsError, text: str) -> str:
    """The message, and the line of the text with a mark below the column, where the error has a place."""
    place = error.place
    lines = text.splitlines()
    if place is None or not 0 < place.line <= len(lines):
        return error.message
    mark = "" if place.column is None else "\n" + " " * (place.column - 1) + "^"
    return f"line {place.line}: {error.message}\n\n{lines[place.line - 1]}{mark}"
