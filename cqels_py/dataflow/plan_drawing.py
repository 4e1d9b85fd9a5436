"""A plan drawn as SVG: results on top, each operator above those that it reads. Texts are texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from xml.etree.ElementTree import Element, SubElement, tostring

_WIDTH, _GAP, _RISE, _LINE, _PAD, _STACKED = 290, 22, 40, 16, 10, 26
"""Pixels: of a box, between boxes, above a row of boxes, of a line of text, around it, from the line of a stack to its boxes."""
_CHARACTERS, _MOST_LINES, _MOST_ABREAST = 36, 5, 1
_STYLE = """
.plan-box rect { fill: #8881; stroke: #8888 }
.plan-hot rect { fill: #e0862240; stroke: #e08622 }
.plan text { font: 12px ui-monospace, monospace; fill: currentColor }
.plan .plan-figures { opacity: .75 }
.plan path { fill: none; stroke: #8889; stroke-width: 1.5 }
"""


@dataclass(frozen=True, slots=True)
class Box:
    """A box of the drawing. `inputs`: the boxes that it reads, by their places. `figures`: lines below the text.

    `told`: a text beside the edge to the box that reads it. `hot`: is it to be seen at once?
    """

    text: str
    inputs: tuple[int, ...] = ()
    figures: tuple[str, ...] = ()
    told: str = ""
    hot: bool = False


def svg(boxes: Sequence[Box], title: str) -> str:
    """The drawing; the first box delivers the results. `title`: for screen readers."""
    drawing = _Drawing(boxes)
    width, height = drawing.place(0, 0.0, 0.0)
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "plan", "role": "img", "aria-label": title})
    root.attrib |= {
        "viewBox": f"-1 -1 {width + 2:g} {height + 2:g}",
        "width": f"{width + 2:g}",
        "height": f"{height + 2:g}",
    }
    SubElement(root, "style").text = _STYLE
    drawing.draw(root)
    return tostring(root, encoding="unicode")


class _Drawing:
    """Where boxes are. A box with several leaves below it has them in a column, at a line of their own."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        self._boxes = boxes
        self._lines = [_wrapped(box.text) for box in boxes]
        self._at: dict[int, tuple[float, float]] = {}
        # Those that are in a column, by the x of its line.
        self._stacks: dict[int, float] = {}

    def place(self, number: int, left: float, top: float) -> tuple[float, float]:
        """Place a box and all that it reads, with this left upper corner; returns where they end, to the right and below."""
        self._at[number] = left, top
        below = [child for child in self._boxes[number].inputs if child not in self._at]
        leaves = [child for child in below if not self._boxes[child].inputs]
        stacked = leaves if len(leaves) > _MOST_ABREAST else []
        x, y = left, top + self._height(number) + _RISE
        bottom, centres = y - _RISE, []
        for child in below:
            if child in stacked or child in self._at:
                continue
            x, end = self.place(child, x, y)
            centres.append(self._at[child][0])
            x, bottom = x + _GAP, max(bottom, end)
        if stacked:
            end = self._stack(stacked, x, y)
            centres.append(x + _STACKED)
            x, bottom = x + _STACKED + _WIDTH + _GAP, max(bottom, end)
        if centres:
            self._at[number] = (centres[0] + centres[-1]) / 2, top
        return max(x - _GAP, self._at[number][0] + _WIDTH), bottom

    def _stack(self, children: Sequence[int], x: float, y: float) -> float:
        for child in children:
            self._stacks[child] = x + _STACKED / 2
            self._at[child] = x + _STACKED, y
            y += self._height(child) + _GAP
        return y - _GAP

    def _height(self, number: int) -> float:
        return 2 * _PAD + _LINE * (len(self._lines[number]) + len(self._boxes[number].figures))

    def draw(self, root: Element) -> None:
        """Draw edges, and boxes above them."""
        for number, box in enumerate(self._boxes):
            for child in box.inputs:
                self._edge(root, child, number)
        for number, box in enumerate(self._boxes):
            self._box(root, number, box)

    def _edge(self, root: Element, child: int, reader: int) -> None:
        (x, y), (above_x, above_y) = self._at[child], self._at[reader]
        x1, y1, told = above_x + _WIDTH / 2, above_y + self._height(reader), self._boxes[child].told
        if child in self._stacks:
            line = self._stacks[child]
            y0 = y + self._height(child) / 2
            path = f"M{x:g} {y0:g}H{line:g}V{y1 + _RISE / 2:g}H{x1:g}V{y1:g}"
            place = {"x": f"{x + _WIDTH:g}", "y": f"{y - 4:g}", "text-anchor": "end"}
        else:
            x0, middle = x + _WIDTH / 2, (y + y1) / 2
            path = f"M{x0:g} {y:g}C{x0:g} {middle:g} {x1:g} {middle:g} {x1:g} {y1:g}"
            place = {"x": f"{x0 + 8:g}", "y": f"{y - 6:g}"}
        SubElement(root, "path", {"d": path})
        if told:
            SubElement(root, "text", {**place, "class": "plan-figures"}).text = told

    def _box(self, root: Element, number: int, box: Box) -> None:
        x, y = self._at[number]
        group = SubElement(root, "g", {"class": "plan-box plan-hot" if box.hot else "plan-box"})
        SubElement(group, "title").text = box.text
        frame = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{_WIDTH}", "height": f"{self._height(number):g}", "rx": "5"}
        SubElement(group, "rect", frame)
        lines: list[tuple[str, dict[str, str]]] = [(line, {}) for line in self._lines[number]]
        lines += [(line[:_CHARACTERS], {"class": "plan-figures"}) for line in box.figures]
        for place, (line, kind) in enumerate(lines):
            at = {"x": f"{x + _PAD:g}", "y": f"{y + _PAD + _LINE * (place + 0.78):g}"}
            SubElement(group, "text", {**at, **kind}).text = line


def _wrapped(text: str) -> list[str]:
    lines = wrap(text, _CHARACTERS, break_on_hyphens=False) or [""]
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[: _MOST_LINES - 1], lines[_MOST_LINES - 1][: _CHARACTERS - 2] + " …"]
