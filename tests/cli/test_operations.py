"""Runs that are watched by other programs: metrics, and messages as JSON."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import HEADER, QUERY, STREAM, Cqels, row


def test_metrics_are_served_while_a_run_lasts(cqels: Cqels, tmp_path: Path) -> None:
    path = tmp_path / "stream.csv"
    path.write_text(HEADER + row(1, "a", "10"))
    arguments = ("run", "-q", QUERY, "--stream", f"{STREAM}={path}", "--metrics")
    finished = cqels(*arguments, 0)
    assert finished.status == 0
    assert finished.err.startswith("metrics: http://127.0.0.1:")
    spark = cqels(*arguments, 0, "--runner", "spark")
    assert spark.status == 2
    assert "--metrics is for the local runner" in spark.err


def messages(said: str) -> list[dict[str, Any]]:
    """The lines, without their times, which are instants."""
    lines = [json.loads(line) for line in said.splitlines()]
    assert all(datetime.fromisoformat(line.pop("time")).tzinfo is not None for line in lines)
    return lines


@pytest.fixture
def late(tmp_path: Path) -> Path:
    path = tmp_path / "stream.csv"
    path.write_text(HEADER + row(5, "a", "10") + row(1, "a", "10"))
    return path


def test_messages_as_json(cqels: Cqels, late: Path) -> None:
    arguments = ("run", "-q", QUERY, "--stream", f"{STREAM}={late}", "--stats")
    finished = cqels(*arguments, "--log-format", "json")
    assert finished.status == 0
    warning, statistics = messages(finished.err)
    assert (warning["level"], "late" in warning["message"]) == ("warning", True)
    assert statistics["level"] == "info"
    counted = statistics["statistics"]
    assert (counted["elements"], counted["late"], counted["event_time"]) == (2, 1, 5_000_000)
    assert counted["rejected"] == [{"stream": STREAM, "reason": "late", "count": 1}]
    # The next command is not told.
    assert cqels(*arguments).err.startswith("warning: ")


def test_errors_as_json(cqels: Cqels, late: Path) -> None:
    wrong = QUERY.replace("?s ?v {", "?s ?w {", 1)
    given = ("--stream", f"{STREAM}={late}", "--log-format", "json")
    (error,) = messages(cqels("run", "-q", f"{wrong} ORDER", *given).err)
    assert (error["level"], error["code"], error["line"]) == ("error", "CQ-SYNTAX", 1)
    assert "error" not in error["message"]
    late.write_text(HEADER + row(1, "a", "10") + "1\n")
    (error,) = messages(cqels("run", "-q", QUERY, *given).err)
    assert (error["code"], error["file"], error["line"]) == ("CQ-DATA", str(late), 3)
