"""Pictures of a run: which there are, and that each is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cqels_py.suites.report import Report, Settings
from cqels_py.suites.task import Measured

pytest.importorskip("matplotlib")
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
    picture = (tmp_path / "plots" / "rides-throughput.svg").read_text()
    for text in ("Q1", "the paper", "re-evaluation", "rides, 1,000"):
        assert f"<!-- {text}" in picture


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
