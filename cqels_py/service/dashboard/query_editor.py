"""The editor of queries: completes words, colours window clauses, and marks the place of an error."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from cqels_py.errors import Place


class _Help(ui.element, component="query_editor.js"):
    """Adds functions to an editor in the browser that the library's editor lacks."""

    def __init__(self, editor: ui.codemirror, words: list[dict[str, Any]]) -> None:
        super().__init__()
        self._props["editor"] = editor.id
        self._props["words"] = words


class QueryEditor:
    """`words`: see `vocabulary`."""

    def __init__(self, text: str, words: list[dict[str, Any]]) -> None:
        self._editor = ui.codemirror(text, language="SPARQL", line_wrapping=True).classes("w-full cqels-editor")
        self._help = _Help(self._editor, words)

    @property
    def text(self) -> str:
        """The text as it is now."""
        return self._editor.value or ""

    def on_change(self, done: Any) -> None:
        """Call back when the text has changed."""
        self._editor.on_value_change(done)

    def know(self, words: list[dict[str, Any]]) -> None:
        """From now on these words complete."""
        self._help.run_method("know", words)

    def mark(self, place: Place | None, *, reveal: bool) -> None:
        """Mark the word at this place of the text, and show its line; None: nothing is marked."""
        line, column = (0, 0) if place is None else (place.line, place.column or 0)
        self._help.run_method("mark", line, column, reveal)
