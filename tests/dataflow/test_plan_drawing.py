"""Drawings of plans: every box is there, as text, none hides another, and each input has an edge."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dataflow.plan_drawing import Box, svg

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def plans(draw: st.DrawFn) -> list[Box]:
    """Boxes before those that they read; each but the first is read, some by several."""
    count = draw(st.integers(1, 9))
    inputs: list[set[int]] = [set() for _ in range(count)]
    for number in range(1, count):
        for reader in draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=2)):
            inputs[reader].add(number)
    texts = st.text(st.characters(codec="ascii", min_codepoint=32), min_size=1, max_size=300)
    return [Box(draw(texts), tuple(sorted(each)), ("1 in",) * draw(st.integers(0, 3))) for each in inputs]


@given(plans())
def test_boxes_are_apart_and_within_the_drawing(boxes: list[Box]) -> None:
    root = ElementTree.fromstring(svg(boxes, "a & b"))
    assert root.get("aria-label") == "a & b"
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    rects = [
        {name: float(each.attrib[name]) for name in ("x", "y", "width", "height")} for each in root.iter(f"{SVG}rect")
    ]
    assert len(rects) == len(boxes)
    assert len(list(root.iter(f"{SVG}path"))) == sum(len(box.inputs) for box in boxes)
    assert [each.text for each in root.iter(f"{SVG}title")] == [box.text for box in boxes]
    for each in rects:
        assert each["x"] >= 0 and each["y"] >= 0
        assert each["x"] + each["width"] <= width and each["y"] + each["height"] <= height
    for a, b in combinations(rects, 2):
        beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
        assert beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]


def test_texts_are_texts() -> None:
    root = ElementTree.fromstring(svg([Box("<script>alert(1)</script>", figures=("<b>",), told="<i>")], '"<x>'))
    assert {each.tag.removeprefix(SVG) for each in root.iter()} == {"svg", "style", "g", "title", "rect", "text"}
