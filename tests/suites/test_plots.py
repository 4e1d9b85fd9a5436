"""Pictures of a run: which there are, and that each is one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.suites.report import Report, Settings
from cqels_py.suites.task import Measured

pytest.importorskip("matplotlib")
from cqels_py.suites.plot_style import spread
from cqels_py.suites.plots import draw

SETTINGS = Settings("rides", "local", None, 1_000, 1, check=False)
FULL = Measured(
    "1", triples_per_second=2e5, latency_quantiles=[float(n + 1) for n in range(101)], memory=[(0.1, 5, 1.5), (0.2, 9, 2.5)],
    paper_triples_per_second=2e4, peer_triples_per_second=3e3,
)  # fmt: skip


def report(*queries: Measured) -> Report:
    return Report(SETTINGS, "2026-01-02T03:04:05+00:00", {"cpu": "a machine"}, {}, list(queries))


def names(paths: list[Path]) -> set[str]:
    return {path.name for path in paths}


def test_all_that_was_measured_is_drawn_as_png_and_svg(tmp_path: Path) -> None:
    paths = draw([report(FULL, Measured("2", error="no"))], tmp_path / "plots")
    kinds = ("throughput", "latency", "memory")
    assert names(paths) == {f"rides-{kind}.{form}" for kind in kinds for form in ("png", "svg")}
    for path in paths:
        head = path.read_bytes()[:200]
        assert head.startswith(b"\x89PNG") if path.suffix == ".png" else b"<?xml" in head
    latency = (tmp_path / "plots" / "rides-latency.svg").read_text()
    assert all(f"<!-- {text} -->" in latency for text in ("p50", "p99", "Q1"))
    picture = (tmp_path / "plots" / "rides-throughput.svg").read_text()
    assert "prefers-color-scheme: dark" in picture
    for text in ("Q1", "the paper", "re-evaluation", "rides, 1,000"):
        assert f"<!-- {text}" in picture


@given(st.lists(st.floats(0, 500), min_size=1, max_size=20))
def test_names_are_apart_and_near_their_lines(heights: list[float]) -> None:
    heights = sorted(heights)
    places = spread(heights, 12.0)
    assert all(after - before > 12.0 - 1e-6 for before, after in pairwise(places))
    if all(after - before >= 12.0 for before, after in pairwise(heights)):
        assert places == pytest.approx(heights)
    # Moved both ways alike: none has to move further than half of the room that all take.
    assert max(abs(place - height) for place, height in zip(places, heights, strict=True)) <= 12.0 * len(heights)


def test_several_window_sizes_are_a_picture(tmp_path: Path) -> None:
    earlier = report(replace(FULL, window=10))
    assert "rides-windows.svg" not in names(draw([earlier], tmp_path))
    assert "rides-windows.svg" in names(draw([earlier, report(replace(FULL, window=100))], tmp_path))


def test_missing_measurements_are_not_drawn(tmp_path: Path) -> None:
    assert names(draw([report(Measured("1", triples_per_second=5.0))], tmp_path)) == {
        "rides-throughput.png",
        "rides-throughput.svg",
    }
    assert draw([report(Measured("1", error="no"))], tmp_path) == []
