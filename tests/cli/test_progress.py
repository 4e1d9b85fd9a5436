"""Progress and statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from cqels_py.cli.progress import Pace, Progress, reports
from cqels_py.engine.reports import IN_FULL


@dataclass
class Counted:
    elements: int = 0
    triples: int = 0
    results: int = 0
    late: int = 0
    ahead: int = 0
    malformed: int = 0
    subscriber_errors: int = 0
    no_numbers: int = 0
    event_time: int | None = None
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_are_shown_now_and_then_only() -> None:
    clock, lines = Clock(), list[str]()
    progress = Progress(lines.append, clock)
    for _ in range(100):
        clock.now += 0.01
        progress.update(Counted(elements=50))
    assert 5 <= len(lines) <= 8


def test_a_line_has_rate_and_event_time_and_omissions_only_where_there_are_any() -> None:
    clock = Clock()
    progress = Progress(None, clock)
    clock.now = 2.0
    line = progress.line(Counted(elements=3000, results=7, event_time=1_357_035_420_000_000))
    assert line == "2013-01-01 10:17:00 UTC · 3,000 elements · 7 results · 1,500 elements/s"
    line = progress.line(Counted(late=2, malformed=1))
    assert line.endswith("2 late elements dropped · 1 malformed skipped")
    assert line.startswith("no event yet")


def test_the_summary_has_every_count() -> None:
    clock = Clock()
    progress = Progress(None, clock)
    clock.now = 0.5
    text = progress.summary(
        Counted(
            elements=1_000,
            triples=2_000,
            results=3,
            late=4,
            malformed=5,
            no_numbers=6,
            event_time=0,
            rejected={("s", "late"): 4, ("t", "malformed"): 5},
        )
    )
    rows = {line[:22].strip(): line[22:].strip() for line in text.splitlines()}
    assert rows == {
        "elements": "1,000",
        "triples": "2,000",
        "results": "3",
        "late elements dropped": "4",
        "malformed skipped": "5",
        "late in <s>": "4",
        "malformed in <t>": "5",
        "no numbers in SUM, AVG": "6",
        "event time": "1970-01-01 00:00:00 UTC",
        "seconds": "0.50",
        "triples a second": "4,000",
    }


@pytest.mark.parametrize(
    ("micros", "shown"),
    [
        (400_000_000_000_000_000, "14645-06-30 15:06:40 UTC"),
        (-62_135_596_800_000_001, "0000-12-31 23:59:59 UTC"),
        (-(2**62) + 1, "-144169-06-28 09:59:32 UTC"),
        (-1, "1969-12-31 23:59:59 UTC"),
    ],
)
def test_event_times_of_any_year_are_shown(micros: int, shown: str) -> None:
    assert Progress(None).line(Counted(event_time=micros)).startswith(f"{shown} · ")


def test_a_flood_of_reports_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    report = reports()
    for number in range(1000):
        report(f"line {number}")
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == IN_FULL + 1
    assert lines[0] == "warning: line 0"
    assert "counted, not shown" in lines[-1]


def test_pace_waits_for_event_time() -> None:
    slept: list[float] = []
    pace = Pace(3600.0, slept.append)
    pace.wait(None)
    pace.wait(1_000_000_000_000)
    assert slept == []
    pace.wait(1_000_000_000_000 + 7_200_000_000)
    assert slept == [pytest.approx(2.0, abs=0.1)]
