"""Draws the pictures of docs/: python scripts/draw_pictures.py [FOLDER] (default: docs/pictures).

The timelines are those of the engine: it runs the queries, and the bars stand where its results come and go. The pictures are SVG
without scripts; they follow the reader's choice of light or dark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import cqels_py as cqels

ROOT = Path(__file__).parents[1]
SECOND = 1_000_000
STREAM = "http://ex.org/s"
STYLE = """
text { font: 13px system-ui, sans-serif; fill: var(--ink); }
.code { font: 12.5px ui-monospace, monospace; }
.small { font-size: 11px; fill: var(--dim); }
.line { stroke: var(--dim); stroke-width: 1; fill: none; }
.grid { stroke: var(--grid); stroke-width: 1; }
.step { stroke: var(--dim); stroke-width: 1; stroke-dasharray: 2 3; }
.box { fill: var(--paper); stroke: var(--dim); }
.c0 { fill: #0072b2; } .c1 { fill: #e69f00; } .c2 { fill: #009e73; } .c3 { fill: #d55e00; } .c4 { fill: #cc79a7; }
.mark { fill: var(--ink); }
.lost { stroke: #d55e00; stroke-width: 2.5; fill: none; }
.water { stroke: #0072b2; stroke-width: 2; fill: none; }
.on { fill: #ffffff; font-weight: 600; }
svg { --ink: #1f2328; --dim: #6b7280; --grid: #e5e7eb; --paper: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e6edf3; --dim: #9aa4b2; --grid: #333a45; --paper: #262b33; }
  .c0 { fill: #56b4e9; } .water { stroke: #56b4e9; } .on { fill: #10141a; }
}
"""


@dataclass
class Picture:
    """Shapes on a surface, in pixels."""

    width: int
    height: int
    about: str
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>')

    def bar(self, x: float, y: float, width: float, height: float, kind: str, round_: int = 2) -> None:
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{max(width, 3):g}" height="{height:g}" rx="{round_}" class="{kind}"/>'
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str = "line") -> None:
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" class="{kind}"/>')

    def dot(self, x: float, y: float, kind: str, radius: float = 6) -> None:
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}"/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="line" marker-end="url(#head)"/>'
        )

    def save(self, path: Path) -> None:
        head = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0,0 L8,4 L0,8 z" style="fill: var(--dim)"/></marker></defs>'
        )
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'role="img" aria-label="{escape(self.about)}">\n<style>{STYLE}</style>\n{head}\n'
            + "\n".join(self.parts)
            + "\n</svg>\n",
            encoding="utf-8",
        )


@dataclass(frozen=True)
class Axis:
    """Seconds from left to right."""

    left: float
    scale: float
    end: int

    def x(self, seconds: float) -> float:
        return self.left + seconds * self.scale

    def draw(self, picture: Picture, top: float, bottom: float) -> None:
        for second in range(self.end + 1):
            picture.line([(self.x(second), top), (self.x(second), bottom)], "grid")
            picture.text(self.x(second), bottom + 15, f"{second} s", "small", "middle")


ELEMENTS = [("a", 1), ("b", 2), ("c", 4), ("d", 5), ("e", 9)]
WINDOWS = [
    ("[RANGE 4s]", "each for four seconds"),
    ("[RANGE 4s STEP 2s]", "the same, looked at every two seconds"),
    ("[RANGE 4s TUMBLING]", "windows that follow each other"),
    ("[COUNT 2]", "the last two elements"),
    ("[SESSION 2s]", "until two seconds pass without an element"),
    ("[NOW]", "the current instant"),
    ("[ALL]", "for ever"),
]


def results_of(query: str, values: Sequence[tuple[str, float]], end: float) -> list[tuple[float, int, str]]:
    """Seconds, sign and value of each result of a query of one variable, up to the end."""
    engine = cqels.Engine()
    registered = engine.register(f"PREFIX : <http://ex.org/> {query}", changelog="REGISTER" not in query)
    for value, second in values:
        engine.push(STREAM, [("<urn:e>", "<http://ex.org/v>", f'"{value}"')], time=round(second * SECOND))
    engine.advance(round(end * SECOND))
    return [(each.time / SECOND, each.sign, str(each.bindings["v"])) for each in registered.results()]


def spans(window: str, end: int) -> Iterator[tuple[str, float, float]]:
    """For each element how long it is in a window: from and to, in seconds."""
    begun: dict[str, float] = {}
    for time, sign, name in results_of(f"SELECT ?v {{ STREAM :s {window} {{ ?s :v ?v }} }}", ELEMENTS, end):
        if sign > 0:
            begun[name] = time
        else:
            yield name, begun.pop(name), time
    for name, time in begun.items():
        yield name, time, end + 0.6


def windows() -> Picture:
    """How long each of five elements is in each kind of window."""
    picture = Picture(860, 478, "How long five elements stay in windows of seven kinds")
    axis, lane = Axis(260, 40, 14), 56
    axis.draw(picture, 42, 450)
    picture.text(12, 26, "five elements arrive")
    for number, (name, second) in enumerate(ELEMENTS):
        picture.dot(axis.x(second), 22, f"c{number}", 10)
        picture.text(axis.x(second), 26, name, "on", "middle")
    names = [name for name, _ in ELEMENTS]
    for number, (window, about) in enumerate(WINDOWS):
        top = 52 + number * lane
        picture.text(12, top + 20, window, "code")
        picture.text(12, top + 36, about, "small")
        for name, begin, stop in spans(window, axis.end):
            row = names.index(name)
            picture.bar(axis.x(begin), top + row * 9, (stop - begin) * axis.scale, 7, f"c{row}")
    return picture


TEMPERATURES = [("20", 1), ("30", 2), ("25", 4), ("25", 5), ("22", 9)]
HOTTEST = "SELECT (MAX(?t) AS ?v) FROM NAMED WINDOW :w ON :s [RANGE PT4S] WHERE { WINDOW :w { ?s :v ?t } }"


def outputs() -> Picture:
    """The answer of a MAX over time, and the streams that tell of it."""
    picture = Picture(860, 268, "An answer over time, and the four streams that tell of it")
    axis = Axis(200, 46, 13)
    axis.draw(picture, 42, 240)
    picture.text(12, 26, "readings")
    for value, second in TEMPERATURES:
        picture.dot(axis.x(second), 22, "c0", 12)
        picture.text(axis.x(second), 26, value, "on", "middle")
    picture.text(12, 68, "the answer: MAX")
    picture.text(12, 83, "of the last four seconds", "small")
    changes = results_of(HOTTEST, TEMPERATURES, axis.end)
    begins = [(time, value) for time, sign, value in changes if sign > 0]
    ends = [time for time, sign, _ in changes if sign < 0]
    for (begin, value), stop in zip(begins, [*ends, axis.end], strict=False):
        picture.bar(axis.x(begin), 56, (stop - begin) * axis.scale - 2, 26, "c2")
        picture.text(axis.x((begin + stop) / 2), 74, value, "on", "middle")
    lanes = [
        ("ISTREAM", "that is new", 1, "c0"), ("DSTREAM", "that is gone", -1, "c3"), ("changelog", "both, with signs", 0, "mark"),
        ("RSTREAM", "all of it, each time", 2, "c4"),
    ]  # fmt: skip
    for number, (name, about, kind, color) in enumerate(lanes):
        y = 108 + number * 34
        picture.text(12, y + 8, name, "code")
        picture.text(100, y + 8, about, "small")
        found = changes if kind < 2 else results_of(f"REGISTER RSTREAM :r AS {HOTTEST}", TEMPERATURES, axis.end)
        for time, sign, value in found:
            if kind in (0, 2) or sign == kind:
                picture.dot(axis.x(time), y + 4, color, 3)
                shown = value if kind else f"{'+' if sign > 0 else '−'}{value}"
                # In the changelog what is gone stands above that which is new at the same instant.
                picture.text(axis.x(time) + 6, y + 8 + (0 if kind else 7 if sign > 0 else -7), shown)
    return picture


ARRIVALS = [1, 2, 5, 3, 8, 4, 9, 7]


def watermark() -> Picture:
    """Elements out of order, the watermark with a lateness of three seconds, and those that are too late."""
    picture = Picture(860, 300, "Event times by order of arrival, the watermark, and elements that are late")
    left, step, bottom, scale = 110, 80, 256, 24

    def y(second: float) -> float:
        return bottom - second * scale

    for second in range(0, 10, 2):
        picture.line([(left - 20, y(second)), (left + step * len(ARRIVALS), y(second))], "grid")
        picture.text(left - 28, y(second) + 4, f"{second} s", "small", "end")
    picture.text(12, 22, "event time")
    picture.text(left + step * len(ARRIVALS) / 2, 285, "order of arrival →", "small", "middle")
    engine = cqels.Engine(lateness="3s", report=lambda _: None)
    query = engine.register("PREFIX : <http://ex.org/> SELECT ?v { STREAM :s [RANGE 1s] { ?s :v ?v } }")
    line: list[tuple[float, float]] = []
    mark = 0
    for number, second in enumerate(ARRIVALS):
        before = engine.statistics.late
        engine.push(STREAM, [("urn:e", "http://ex.org/v", second)], time=second * SECOND)
        late = engine.statistics.late > before
        x = left + number * step + 20
        line.append((x, y(max(mark - 3, 0))))
        mark = max(mark, second)
        line.append((x, y(max(mark - 3, 0))))
        if late:
            picture.line([(x - 7, y(second) - 7), (x + 7, y(second) + 7)], "lost")
            picture.line([(x - 7, y(second) + 7), (x + 7, y(second) - 7)], "lost")
            picture.text(x + 12, y(second) + 4, f"{second} s: late, counted and told", "small")
        else:
            picture.dot(x, y(second), "c2", 11)
            picture.text(x, y(second) + 4, str(second), "on", "middle")
    line.append((left + step * len(ARRIVALS), line[-1][1]))
    picture.line(line, "water")
    picture.text(line[-1][0] + 6, line[-1][1] + 4, "watermark")
    assert query.streams == (STREAM,)
    return picture


def engine() -> Picture:
    """The two ways through the engine: that of a query, once, and that of an element."""
    picture = Picture(860, 330, "The way of a query and the way of an element through the engine")
    ways = [
        (
            "a query, once",
            20,
            ["text", "algebra", "plan", "dataflow"],
            ["parser", "rewrites, planner", "compiled kernels"],
        ),
    ]
    for title, top, boxes, steps in ways:
        picture.text(12, top + 2, title)
        for number, name in enumerate(boxes):
            x = 12 + number * 218
            picture.bar(x, top + 14, 110, 40, "box", 6)
            picture.text(x + 55, top + 39, name, "", "middle")
            if number < len(steps):
                picture.arrow(x + 114, top + 34, x + 214, top + 34)
                picture.text(x + 164, top + 26, steps[number], "small", "middle")
    picture.arrow(721, 78, 721, 112)
    top = 130
    picture.text(12, top - 6, "an element, each time")
    stages = [
        ("sources", ["files, brokers,", "push, tables"]), ("terms", ["to 64-bit ids"]), ("windows", ["insert, expire"]),
        ("operators", ["join, filter,", "group; state"]), ("results", ["+ and −"]), ("sinks", ["callbacks, files,", "databases"]),
    ]  # fmt: skip
    picture.bar(286, top + 4, 416, 150, "box", 10)
    for number, (name, about) in enumerate(stages):
        x = 12 + number * 143
        inside = 2 <= number <= 4
        picture.bar(x, top + 40, 108, 76, f"c{(number - 2) * 2 % 5}" if inside else "box", 6)
        picture.text(x + 54, top + 62, name, "on" if inside else "", "middle")
        for row, text in enumerate(about):
            picture.text(x + 54, top + 82 + row * 15, text, "on small" if inside else "small", "middle")
        if number < len(stages) - 1:
            picture.arrow(x + 110, top + 78, x + 141, top + 78)
    picture.text(494, top + 24, "one step: a batch of elements at a time, one clock", "small", "middle")
    picture.text(494, top + 142, "changes (tick, sign, ids) pass in columns; kernels touch the rows", "small", "middle")
    picture.text(
        12, 308, "The same plan runs in this process, or on Spark with the state divided among its executors.", "small"
    )
    return picture


PICTURES = {"windows": windows, "outputs": outputs, "watermark": watermark, "engine": engine}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        draw().save(folder / f"{name}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures")
