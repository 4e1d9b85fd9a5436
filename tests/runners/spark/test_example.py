"""The example job for Spark runs over files as they arrive, and the pages quote it correctly."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset
import pytest

from cqels_py.spark import statistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "sensors_on_spark.py"


def arrive(folder: Path, name: str, *readings: tuple[str, float, int]) -> None:
    lines = [
        json.dumps({"sensor": sensor, "celsius": celsius, "at": f"2024-05-01T12:{minute:02}:00Z"})
        for sensor, celsius, minute in readings
    ]
    (folder / "readings" / name).write_text("\n".join(lines) + "\n")


def answers(folder: Path) -> list[tuple[str, str, str]]:
    rows: list[dict[str, Any]] = (
        pyarrow.dataset.dataset(folder / "warm", exclude_invalid_files=True).to_table().to_pylist()
    )
    found = [(f"{row['time']:%H:%M}", row["room"].strip('"'), row["mean"].split('"')[1]) for row in rows]
    return sorted(found)


@pytest.mark.xdist_group("spark")
def test_the_example(spark: SparkSession, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("sensors_on_spark", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    (tmp_path / "readings").mkdir()
    arrive(tmp_path, "one.json", ("s1", 24.5, 0), ("s2", 12.0, 1), ("s1", 26.5, 2))
    example.main(tmp_path, spark)
    # A reading may be a minute late: that of 12:02 still waits.
    assert answers(tmp_path) == []
    arrive(tmp_path, "two.json", ("s1", 20.0, 5), ("s1", 27.0, 4), ("s3", 99.0, 6), ("s1", 30.5, 20))
    example.main(tmp_path, spark)
    assert answers(tmp_path) == [("12:02", "kitchen", "25.5"), ("12:04", "kitchen", "26")]
    arrive(tmp_path, "three.json", ("s2", 15.0, 30), ("s1", 99.0, 7))
    example.main(tmp_path, spark)
    assert answers(tmp_path)[2:] == [("12:20", "kitchen", "30.5")]
    found = statistics(tmp_path / "state")
    assert (found.elements, found.late) == (9, 1)


def test_the_page_quotes_the_example() -> None:
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    quoted, *_ = re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    example = EXAMPLE.read_text(encoding="utf-8")
    for line in filter(str.strip, quoted.splitlines()):
        assert line.strip() in example, line
