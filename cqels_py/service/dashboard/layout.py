"""Parts that all pages have: the header, headings, tables, and the colours of both modes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from nicegui import ui

from cqels_py.errors import CqelsError

TEXT = "whitespace-pre-wrap break-words font-mono text-sm w-full"
WIDE_TEXT = "whitespace-pre font-mono text-sm overflow-x-auto w-full"
COLORS = {"running": "positive", "paused": "warning", "failed": "negative", "stopped": "grey"}
"""Of the states of a query."""
_NUMBERS = ("results", "rate", "memory", "elements", "late", "rejected", "number", "lag")
_NOT_ON_PHONES = "cqels-wide"
_BLUE = "#2364aa"
_CSS = """
.cqels-editor { border: 1px solid #8886; border-radius: 4px; min-height: 16rem; max-height: 70vh; overflow: hidden }
.cqels-editor .cm-editor { min-height: 16rem; max-height: 70vh }
.cqels-editor .cm-content { font-size: 14px }
.cqels-window-word, .cqels-window-word * { color: #7a3e9d; font-weight: bold }
.cqels-faulty-line { background: #d93a4a26 !important }
.cqels-faulty { text-decoration: underline wavy #d93a4a; text-underline-offset: 3px }
@media (max-width: 599px) {
  .cqels-wide { display: none }
  .q-table td.cqels-name { white-space: normal; overflow-wrap: anywhere }
}
.cqels-error { color: #b3202f }
.body--dark .cqels-error { color: #ff8a94 }
.body--dark .cqels-window-word, .body--dark .cqels-window-word * { color: #d7a6f5 }
.body--dark { --q-primary: #8ab8f0 !important; --q-negative: #ff8a94 !important }
"""


def frame(title: str) -> ui.column:
    """The page's header, and the column of its content."""
    ui.add_css(_CSS)
    ui.colors(primary=_BLUE, brand=_BLUE)
    with ui.header().classes("items-center gap-4").style(f"background-color: {_BLUE} !important"):
        ui.link("cqels", "/").classes("text-white text-lg no-underline font-bold")
        ui.space()
        ui.link("New query", "/ui/new").classes("text-white no-underline")
        ui.link("New stream", "/ui/new-stream").classes("text-white no-underline")
    column = ui.column().classes("w-full max-w-screen-xl mx-auto p-2 gap-3").props('role="main"')
    with column:
        heading(title)
    return column


def heading(text: str, level: int = 1) -> None:
    """The heading of a page (level 1) or of a part of it."""
    size = "text-2xl" if level == 1 else "text-lg"
    ui.label(text).classes(f"{size} break-all").props(f'role="heading" aria-level="{level}"')


def error_label() -> ui.label:
    """Shows an error, which screen readers tell at once."""
    return ui.label().classes("cqels-error whitespace-pre-wrap break-words font-mono text-sm").props('role="alert"')


def with_line(error: CqelsError) -> str:
    """The message, after its line where it has one."""
    return error.message if error.place is None else f"line {error.place.line}: {error.message}"


def elements_of(stream: Mapping[str, Any]) -> int:
    """How many elements a stream has had, by requests and by its source. `stream`: its figures.

    >>> elements_of({"elements": 2, "read": {"elements": 3}}), elements_of({"elements": 2})
    (5, 2)
    """
    posted: int = stream["elements"]
    return posted + int(stream.get("read", {}).get("elements", 0))


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things.

    >>> counted(1, "result"), counted(2000, "result"), counted(0, "body", "bodies")
    ('1 result', '2,000 results', '0 bodies')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def seconds_text(seconds: float) -> str:
    """How long something takes, for people.

    >>> [seconds_text(each) for each in (-1, 0.25, 59, 3600, 200_000)]
    ['0.0 s', '0.2 s', '59.0 s', '60 min', '56 h']
    """
    if seconds < 60:
        return f"{max(seconds, 0.0):.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:,.0f} h"


def table(
    names: Iterable[str],
    key: str,
    empty: str,
    headings: Mapping[str, str] | None = None,
    rows: int = 20,
    wide: Container[str] = (),
) -> ui.table:
    """A table without rows yet; `empty` says what to do then. Cells are texts. `rows`: of a page. `wide`: columns that a phone has
    no room for.
    """
    columns = [
        {
            "name": name,
            "label": name if headings is None else headings[name],
            "field": name,
            "align": "right" if name in _NUMBERS else "left",
            **({"classes": _NOT_ON_PHONES, "headerClasses": _NOT_ON_PHONES} if name in wide else {}),
        }
        for name in names
    ]
    found = ui.table(columns=columns, rows=[], row_key=key, pagination=rows).classes("w-full tabular-nums")
    return found.props(f'flat bordered dense no-data-label="{empty}"')


def linked(found: ui.table, folder: str) -> None:
    """The names in a table are links to their pages in a folder."""
    found.add_slot(
        "body-cell-name",
        '<q-td :props="props" class="cqels-name">'
        f'<a class="text-primary" :href="\'{folder}/\' + props.value">{{{{ props.value }}}}</a></q-td>',
    )


def not_there(kind: str, name: str) -> None:
    """A page for a name that nothing has."""
    with frame(f"No such {kind}"):
        ui.label(f"There is no {kind} {name!r}.")
        ui.link("All queries and streams", "/")


def chart(title: str) -> Any:
    """An empty chart over time."""
    return ui.echart(
        {
            "animation": False,
            "grid": {"left": 55, "right": 15, "top": 30, "bottom": 25},
            "title": {"text": title, "textStyle": {"fontSize": 12, "color": "#888", "fontWeight": "normal"}},
            "xAxis": {"type": "time", "axisLabel": {"hideOverlap": True}},
            "yAxis": {"type": "value", "scale": True, "splitNumber": 3, "splitLine": {"lineStyle": {"color": "#8884"}}},
            "series": [],
        }
    ).classes("w-full h-40")
