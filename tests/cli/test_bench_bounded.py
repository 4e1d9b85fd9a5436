"""`cqels bench bounded`: counters, joins of all rows, DuckDB and the kernel by hand find the same, and memory is flat."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from cqels_py.errors import UsageError
from cqels_py.kernels.joins import counted_by_hand
from cqels_py.suites import bounded, bounded_duckdb, bounded_plots
from cqels_py.suites.bounded_events import Curve, Point
from tests.cli.conftest import Cqels


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(bounded, "_BATCH", 1_000)
    monkeypatch.setattr(bounded, "_MOST_FOR_ROWS", 500)
    monkeypatch.setattr(bounded, "_MOST_FOR_SUMS", 600)
    yield


def test_counters_are_measured_over_time(cqels: Cqels, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    finished = cqels("bench", "bounded", "--triples", 8_000, "--json", file)
    assert finished.status == 0, finished.err
    figures = json.loads(file.read_text())["figures"]
    assert figures["counters"] == 5
    assert min(figures[name] for name in ("from_texts", "from_ids", "kernel", "by_hand")) > 0
    names = [curve["name"] for curve in figures["curves"]]
    there = find_spec("duckdb") is not None
    assert names == [bounded.COUNTERS, bounded.COUNTERS, bounded.ALL_ROWS, *[bounded.JOIN, bounded.SUMS] * there]
    assert ("cqels_py[bench]" in finished.out) is not there
    counters, _, rows = (curve["points"] for curve in figures["curves"][:3])
    # The first batches find how many rows an instant has; after that nothing grows, while the join of all rows does.
    assert len({each["nbytes"] for each in counters[1:]}) == 1
    assert rows[-1]["nbytes"] > 1.5 * rows[0]["nbytes"]


def test_duckdb_that_is_not_installed_is_told(cqels: Cqels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "find_spec", lambda name: None)
    finished = cqels("bench", "bounded", "--triples", 500)
    assert finished.status == 0, finished.err
    assert "DuckDB is left out: pip install 'cqels_py[bench]'." in finished.out


@pytest.mark.parametrize("where", ["by_hand", "duckdb"])
def test_different_answers_are_an_error(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    if where == "by_hand":
        monkeypatch.setattr(counted_by_hand, "readings_above_thresholds", lambda *arguments: 1)
    else:
        pytest.importorskip("duckdb")
        wrong = bounded_duckdb.RUNNING_SUMS.replace("value > 1", "value > 0")
        monkeypatch.setattr(bounded_duckdb, "RUNNING_SUMS", wrong)
    with pytest.raises(UsageError, match=r"the kernel by hand finds .*" + (bounded.SUMS if where == "duckdb" else "")):
        bounded.measure(500, 1, lambda text: None)


def test_plots_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    curves = [_curve("counters", [100, 100]), _curve("DuckDB", [None, None])]
    assert bounded_plots.draw(curves, "a machine", tmp_path / "plots") == [
        tmp_path / "plots" / "bounded.png",
        tmp_path / "plots" / "bounded.svg",
    ]
    text = (tmp_path / "plots" / "bounded.svg").read_text()
    assert text.count("<!-- DuckDB, -->") == 1, "its memory is not known: it is in one of two panels"
    assert text.count("<!-- counters, -->") == 2


def _curve(name: str, sizes: Sequence[int | None]) -> Curve:
    return Curve(name, 64, tuple(Point(10**n, 1e4, size) for n, size in enumerate(sizes)))


def test_plots_go_into_a_folder(cqels: Cqels, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "file").touch()
    finished = cqels("bench", "bounded", "--triples", 100, "--plots", tmp_path / "file")
    assert finished.status == 2
    assert "is not a folder" in finished.err
