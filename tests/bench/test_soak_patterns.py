"""A slice of the soak of event patterns: flat memory over ever-new keys, with lists and with heaps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.suites import soak_patterns


@pytest.mark.parametrize("options", [[], ["--guarantee"]])
def test_a_slice(options: list[str], tmp_path: Path) -> None:
    assert soak_patterns.main(["--elements", "400000", "--output", str(tmp_path), *options]) == 0
    figures = json.loads((tmp_path / "soak_patterns.json").read_text())["figures"]
    assert figures["matches"] > 100_000
    samples = figures["samples"]
    # Terms of 50,000 elements are within reach: once the window is full, there are no more of them.
    full = [sample for sample in samples if sample["triples"] >= samples[-1]["triples"] // 2]
    assert max(sample["terms"] for sample in full) < 250_000
    assert len({sample["query_mb"] for sample in full}) == 1
