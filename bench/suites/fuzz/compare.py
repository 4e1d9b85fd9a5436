"""Compares the engine's results with pyoxigraph's answers, tick by tick, at each batch size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from bench.suites.fuzz import upserts
from bench.suites.fuzz.answers import Report, Row, TooLarge, expected, unlabelled
from bench.suites.fuzz.case import Case
from bench.suites.fuzz.constructed import constructed
from bench.suites.fuzz.deviations import deviation
from bench.suites.fuzz.engines import BATCHES, Delivered, run
from bench.suites.fuzz.texts import continuous
from bench.suites.fuzz.windows import in_order
from cqels_py.errors import UnsupportedQuery
from cqels_py.suites.answers import alike, difference

State = Literal["equal", "different", "refused", "not asked"]


@dataclass
class Verdict:
    """`why`: the reason of a refusal, or the lines of a difference. `rows`: the number of rows compared at each batch size."""

    state: State
    why: list[str] = field(default_factory=list)
    rows: int = 0

    @property
    def kind(self) -> str:
        """The same value for cases with the same cause of failure: the state, and an exception's type and first words."""
        found = re.search(r"^  (\w+: .{0,30})", "\n".join(self.why), re.MULTILINE)
        return f"{self.state} {found[1] if found else ''}"


def judge(case: Case) -> Verdict:
    """Run the case everywhere and compare."""
    if found := deviation(case):
        return Verdict("not asked", [found])
    try:
        wanted = expected(case)
    except SyntaxError as error:
        return Verdict("not asked", [f"pyoxigraph refuses: {str(error)[:80]}"])
    except TooLarge as error:
        return Verdict("not asked", [str(error)])
    text = continuous(case)
    for batch in BATCHES:
        try:
            delivered = run(case, text, batch)
            lines = _differences(case, wanted, delivered)
            if not lines and case.query.form == "CONSTRUCT" and batch == BATCHES[-1]:
                lines = _graphs_difference(case, text, wanted)
            if not lines and batch == BATCHES[-1]:
                lines = upserts.differences(case, text)
        except UnsupportedQuery as error:
            return Verdict("refused", [error.message])
        except Exception as error:
            # Any other exception is a finding.
            lines = [f"  {type(error).__name__}: {str(error)[:300]}"]
        if lines:
            return Verdict("different", [f"batches of {batch or 'all elements'}:", *lines])
    return Verdict("equal", rows=sum(len(report.rows) for report in wanted))


def _differences(case: Case, wanted: Sequence[Report], delivered: Delivered) -> list[str]:
    late = len(_of_windows(case)) - len(in_order(_of_windows(case), case.lateness))
    if late != delivered.late:
        return [f"  {late} elements are late, {delivered.late} were counted"]
    times = [time for time, _, _ in delivered.rows]
    if times != sorted(times):
        return [f"  ticks are out of order: {times}"]
    return _at_instants(wanted, delivered)


def _graphs_difference(case: Case, text: str, wanted: Sequence[Report]) -> list[str]:
    graphs = constructed(case, wanted)
    return [] if graphs is None else _at_instants(graphs, run(case, text, None, graphs=True))


def _at_instants(wanted: Sequence[Report], delivered: Delivered) -> list[str]:
    got = {time: [row[1:] for row in rows] for time, rows in groupby(delivered.rows, key=lambda row: row[0])}
    lines: list[str] = []
    reports = {time: list(rows) for time, rows in groupby(wanted, key=lambda report: report.time)}
    for time in sorted(got.keys() | reports.keys()):
        lines += _at_instant(time, reports.get(time, []), got.get(time, []))
    return lines


def _of_windows(case: Case) -> list:
    streams = {window.stream for window in case.windows}
    return [element for element in case.elements if element.stream in streams]


def _at_instant(time: int, reports: Sequence[Report], got: Sequence[tuple[int, Row]]) -> list[str]:
    """The results of an instant may belong to several ticks: the ticks' sizes divide the engine's rows."""
    lines, start = [], 0
    for number, report in enumerate(reports or [Report(time, ())]):
        end = len(got) if number >= len(reports) - 1 else start + len(report.rows)
        rows, start = list(got[start:end]), end
        place = f"  {time}, tick {number + 1} of {len(reports)}:"
        if [sign for sign, _ in rows] != sorted(sign for sign, _ in rows):
            lines.append(f"{place} a retraction behind a result")
        for sign in (1, -1):
            ours = Counter(unlabelled(row) for each, row in rows if each == sign)
            theirs = Counter(unlabelled(row) for each, row in report.rows if each == sign)
            only_ours, only_theirs = difference(ours, theirs) if ours != theirs else ([], [])
            mark = "+" if sign > 0 else "-"
            lines += [f"{place} only the engine      {mark} {shown(row)}" for row in only_ours]
            lines += [f"{place} only pyoxigraph says {mark} {shown(row)}" for row in only_theirs]
        if not lines and report.ordered:
            pairs = zip(rows, report.rows, strict=True)
            lines += [
                f"{place} in another order: {shown(ours[1])} where {shown(theirs[1])} is to be"
                for ours, theirs in pairs
                if not alike(unlabelled(ours[1]), unlabelled(theirs[1]))
            ]
    return lines


def shown(row: Row) -> str:
    return " | ".join("·" if cell is None else f"{_short(cell[0])}{cell[1]}" for cell in row)


def _short(kind: str) -> str:
    name = kind.rpartition("#")[2]
    return {"iri": "", "string": "", "blank": "_:"}.get(name, f"{name} ")
