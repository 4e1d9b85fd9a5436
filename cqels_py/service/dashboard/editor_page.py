"""The page on which a query is written: errors at their place, its plan beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nicegui import ui

from cqels_py.errors import CqelsError
from cqels_py.service.dashboard.layout import TEXT, error_label, heading, with_line
from cqels_py.service.dashboard.plan_part import PlanPart, explained
from cqels_py.service.dashboard.query_editor import QueryEditor
from cqels_py.service.dashboard.trial_part import TrialPart
from cqels_py.service.dashboard.vocabulary import vocabulary
from cqels_py.service.definitions import QueryDefinition
from cqels_py.service.service import Service

_EXAMPLE = """PREFIX : <http://example.org/>
SELECT ?sensor (AVG(?t) AS ?mean)
WHERE { STREAM :readings [RANGE 1m] { ?sensor :temperature ?t } }
GROUP BY ?sensor
"""
_REST = 0.7
"""Seconds without a key after which the text is checked."""
_NEW_WORDS = 5.0
"""Seconds after which streams, queries and terms that have come meanwhile complete, too."""


class EditorPage:
    """The parts of the page. `name`: of a query whose text is changed, or ""."""

    def __init__(self, service: Service, name: str, words: list[dict[str, Any]]) -> None:
        self._service = service
        known = service.queries.get(name)
        self._given = known.kept.definition if known is not None else QueryDefinition(_EXAMPLE)
        self._changed_at: float | None = None
        self._words = words
        with ui.element("div").classes("grid grid-cols-1 lg:grid-cols-2 gap-4 w-full"):
            with ui.column().classes("gap-2 min-w-0"):
                self._name = ui.input("Name", value=name or self._free_name()).props("outlined dense").classes("w-64")
                self._editor = QueryEditor(self._given.text, words)
                self._editor.on_change(self._touched)
                ui.label("Ctrl+Space completes a word; Esc and then Tab leaves the editor.").classes(
                    "text-xs opacity-70"
                )
                self._error = error_label()
                self._changelog = ui.checkbox("Also tell results that no longer hold", value=self._given.changelog)
                with ui.row():
                    ui.button("Explain", on_click=self._explain).props("outline no-caps")
                    ui.button("Try out", on_click=self._try_out).props("outline no-caps")
                    ui.button("Submit", on_click=self._submit).props("no-caps unelevated color=brand")
            with ui.column().classes("gap-2 min-w-0"):
                heading("Plan", 2)
                self._told = ui.label("Explain shows how the query would run.").classes(
                    "whitespace-pre-wrap break-words"
                )
                self._plan = PlanPart()
                with ui.expansion("The plan as text").classes("w-full") as self._as_text:
                    self._text = ui.label().classes(TEXT)
                self._as_text.visible = False
                heading("Try-out", 2)
                self._trial = TrialPart(service)
        ui.timer(0.3, self._check_after_a_rest)
        ui.timer(_NEW_WORDS, self._look_for_words)

    def _free_name(self) -> str:
        return next(name for n in range(1, 1 << 30) if (name := f"query{n}") not in self._service.queries)

    def _asked(self) -> QueryDefinition:
        return replace(self._given, text=self._editor.text, changelog=self._changelog.value)

    def _touched(self) -> None:
        self._changed_at = time.monotonic()

    async def _check_after_a_rest(self) -> None:
        if self._changed_at is not None and time.monotonic() - self._changed_at >= _REST:
            self._changed_at = None
            await self._attempt(lambda: self._service.check(self._asked()), typing=True)

    async def _look_for_words(self) -> None:
        words = await asyncio.to_thread(vocabulary, self._service)
        if words != self._words:
            self._words = words
            self._editor.know(words)

    async def _attempt(self, done: Callable[[], Any], *, typing: bool = False) -> Any:
        """The result of a call that may block; None after an error, which is shown at its place."""
        self._changed_at = None
        try:
            found = await asyncio.to_thread(done)
        except CqelsError as error:
            self._show(error, reveal=not typing)
            return None
        self._error.text = ""
        self._editor.mark(None, reveal=False)
        return found

    def _show(self, error: CqelsError, *, reveal: bool = True) -> None:
        self._error.text = with_line(error)
        self._editor.mark(error.place, reveal=reveal)

    async def _explain(self) -> None:
        found = await self._attempt(lambda: explained(self._service, self._asked()))
        if found is not None:
            self._told.text = "\n".join([f"Memory: {found.memory}.", *found.warnings])
            self._plan.show(found.picture)
            self._text.text, self._as_text.visible = found.text, True

    async def _try_out(self) -> None:
        asked = self._asked()
        streams = await self._attempt(lambda: self._trial.streams_of(asked))
        if streams is None:
            return
        try:
            await self._trial.run(asked, streams)
        except CqelsError as error:
            self._show(error)

    async def _submit(self) -> None:
        name = self._name.value
        if await self._attempt(lambda: self._service.put_query(name, self._asked())) is not None:
            ui.navigate.to(f"/ui/queries/{name}")


async def editor_page(service: Service, name: str) -> EditorPage:
    """The page, whose words are gathered first."""
    return EditorPage(service, name, await asyncio.to_thread(vocabulary, service))
