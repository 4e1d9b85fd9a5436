"""SRBench's queries as published by others: where they mean the same as ours, they have the same answers.

The texts are not part of the repository: CQELS_SHARED_DATA names the folder that holds them (default: shared/data
beside it). Each is repaired where it has errors (tests/parser/test_benchmark_texts.py has the reasons why the originals
are refused), and windows are made equal, so that the rest of the queries is compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cqels_py as cqels
from cqels_py.datasets import srbench

FOLDER = (
    Path(os.environ.get("CQELS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data")) / "srbench" / "queries"
)
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmark's texts are not here (CQELS_SHARED_DATA)")

HOUR = 3_600_000_000
PREFIXES = "PREFIX : <http://ex.org/> PREFIX srbench: <http://www.cwi.nl/SRBench/>\n"
POSITION = {"6300": "20", "32.892": "26.5000", "-116.4199": "-81.2500"}
"""The given location, in each spelling."""

Rows = frozenset[tuple[str, ...]]
Answers = dict[int, Rows]
"""By the times at which they change."""
Repair = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Text:
    """A file and the query that it corresponds to; `without`: observations that the two treat differently."""

    file: str
    number: str
    repairs: tuple[Repair, ...] = ()
    without: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.file


def replacing(*pairs: tuple[str, str]) -> Repair:
    def repair(text: str) -> str:
        for wrong, right in pairs:
            assert wrong in text
            text = text.replace(wrong, right)
        return text

    return repair


unnamed = replacing(("FROM NAMED STREAM", "FROM STREAM"))
here = replacing(*POSITION.items())
hash_sign = replacing(("wgs84_pos>", "wgs84_pos#>"))
one_group = replacing(("HAVING", "GROUP BY ?sensor HAVING"))
# Beaufort's 4 ends where 19 miles an hour begin, his 6 where 32 begin.
beaufort = replacing(("< 18,", "< 19,"), ("< 31,", "< 32,"))

TEXTS = (
    Text("siow_stream/q1.sparql", "01", (unnamed,)),
    Text("cqels/q1.cqels", "01", (lambda text: re.sub(r"\}\s*\{", " . ", text),)),
    Text("rspql/queries.md Q1", "01"),
    # It means rain alone.
    Text("siow_stream/q2.sparql", "02", (unnamed,), ("SnowInterval",)),
    Text("csparql/q3.csparql", "03", (replacing(("weather:WindSpeed ", "weather:_WindSpeed ")),)),
    # They mean all that has these classes.
    Text("siow_stream/q4.sparql", "04", (unnamed,), ("DewPoint", "WindGust")),
    Text("rspql/queries.md Q4", "04", (), ("DewPoint", "WindGust")),
    Text("siow_stream/q5.sparql", "05", (unnamed, one_group), (), ("sensor",)),
    Text(
        "rspql/queries.md Q5", "05", (replacing(("weather:WindObservation", "weather:WindSpeedObservation")),), (),
        ("sensor",),
    ),
    Text("siow_stream/q6.sparql", "06", (unnamed,)),
    Text("siow_stream/q8.sparql", "08", (unnamed, here, hash_sign)),
    Text("siow_stream/q9.sparql", "09", (unnamed, here, beaufort, replacing(("avgWindD", "averageWindD")))),
    Text("siow_stream/q10.sparql", "10", (unnamed,)),
    Text(
        "rspql/queries.md Q10",
        "10",
        (hash_sign, replacing(("WINDOW :w ", "WINDOW :win "), ("FROM <http://www.cwi.nl/SRBench/sensors>", "")),),
    ),
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_it_gives_the_answers_of_our_query(text: Text) -> None:
    ours = answers(windows(query(text.number)), text.without, text.columns)
    assert any(ours.values())
    assert answers(windows(theirs(text)), text.without, text.columns) == ours


def test_a_hurricane_is_where_stations_are_in_one() -> None:
    """Query 3 as stations instead of a boolean."""
    stations = answers(windows(theirs(Text("siow_stream/q3.sparql", "03", (unnamed,)))))
    booleans = answers(windows(query("03")))
    found = {time: rows == {("true",)} for time, rows in booleans.items()}
    assert {time: bool(rows) for time, rows in at(stations, found).items()} == found
    assert set(found.values()) == {True, False}


def test_broken_is_who_was_there_an_hour_ago() -> None:
    """Their query 7 returns the observing stations; ours those that observed in the hour before and do not now."""
    text = theirs(Text("siow_stream/q7.sparql", "07", (unnamed,)))
    observing = answers(re.sub(r"\[RANGE[^\]]*\]", "[RANGE 1h STEP 10m]", text))
    broken = answers(query("07"))
    assert any(broken.values())
    times = range(min(observing), max(observing), HOUR // 6)
    before, now = at(observing, [time - HOUR for time in times]), at(observing, list(times))
    assert {time: before[time - HOUR] - now[time] for time in times} == at(broken, list(times))


# --- running ------------------------------------------------------------------------------------------------------


def query(number: str) -> str:
    return (files("cqels_py.queries") / "srbench" / f"{number}.rq").read_text(encoding="utf-8")


def theirs(text: Text) -> str:
    """The repaired text."""
    name, _, part = text.file.partition(" ")
    found = (FOLDER / name).read_text(encoding="utf-8")
    if part:
        found = PREFIXES + re.search(rf"^##{part}\..*\n((?:(?!##).*\n?)*)", found, re.MULTILINE)[1]  # type: ignore[index]
    for repair in text.repairs:
        found = repair(found)
    return found


def windows(text: str) -> str:
    """The last hour every ten minutes, whatever stood there."""
    size = "RANGE PT1H STEP PT10M" if "WINDOW :win" in text else "RANGE 1h STEP 10m"
    changed, number = re.subn(r"\[RANGE[^\]]*\]", f"[{size}]", text)
    assert number == 1
    return changed


@cache
def observations() -> pa.Table:
    """A day's weather in five hours."""
    reader = srbench.streams(12_000, seed=6, stations=20, minutes=30, pace=5.0)[srbench.OBSERVATIONS]
    return reader.read_all()


def answers(text: str, without: tuple[str, ...] = (), columns: tuple[str, ...] | None = None) -> Answers:
    """The whole answers, as sets."""
    table = observations()
    for name in without:
        table = table.filter(pc.invert(pc.match_substring(table["graph"], f"Observation_{name}_")))
    engine = cqels.Engine()
    asked = engine.register(text, static=[srbench.static(seed=6, stations=20)], changelog=True)
    engine.run({srbench.OBSERVATIONS: table})
    held: dict[tuple[str, ...], int] = {}
    found: Answers = {}
    for result in asked.results():
        names = columns or sorted(result.bindings)
        row = tuple(str(result.bindings[name]) for name in names)
        if result.boolean is not None:
            row = (str(result.boolean).lower(),)
        held[row] = held.get(row, 0) + result.sign
        found[result.time] = frozenset(row for row, number in held.items() if number)
    # As sets they may be unchanged.
    before = dict(zip([*found][1:], found.values(), strict=False))
    return {time: rows for time, rows in found.items() if before.get(time) != rows}


def at(known: Answers, times: list[int] | dict[int, bool]) -> Answers:
    """The answers that hold at other times than those at which they change."""
    changes = sorted(known)
    last = {time: [change for change in changes if change <= time] for time in times}
    return {time: known[found[-1]] if found else frozenset() for time, found in last.items()}
