"""The findings of a run: counts by feature, refusals by reason, and failing cases as text."""

from __future__ import annotations

import re
import time
from collections import Counter

from bench.suites.fuzz.case import EX, Case, Triple
from bench.suites.fuzz.compare import Verdict
from bench.suites.fuzz.texts import Plain, continuous


class Summary:
    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self._features: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._rows = 0
        self._empty = 0
        self._started = time.monotonic()

    def add(self, case: Case, verdict: Verdict) -> None:
        self.states[verdict.state] += 1
        if verdict.state in ("refused", "not asked"):
            self._reasons[f"{verdict.state}: {_general(verdict.why[0])}"] += 1
        elif verdict.state == "equal":
            self._features.update(case.features)
            self._rows += verdict.rows
            self._empty += verdict.rows == 0

    @property
    def total(self) -> int:
        return self.states.total()

    def counts(self) -> str:
        """One line: the number of cases, their rate, and their outcomes."""
        seconds = time.monotonic() - self._started
        return (
            f"{self.total:,} cases in {seconds:,.0f} s ({self.total / max(seconds, 1e-9):.1f} a second): "
            f"{self.states['equal']:,} equal ({self._empty:,} without a row, {self._rows:,} rows), "
            f"{self.states['different']:,} different, {self.states['refused']:,} refused, "
            f"{self.states['not asked']:,} not asked"
        )

    def text(self) -> str:
        """The counts, those of equal cases by feature, and the reasons of the others."""
        lines = [self.counts()]
        lines += [f"  {name:20} {number:7,}" for name, number in sorted(self._features.items())]
        lines += [f"  {number:7,} {reason}" for reason, number in self._reasons.most_common()]
        return "\n".join(lines)


def _general(reason: str) -> str:
    """The text without names and positions that differ from case to case."""
    reason = re.sub(r"\?\w+", "?…", reason.splitlines()[0])
    return re.sub(r"(?<=line )\d+|(?<=column )\d+|:\d+:\d+|\d+", "N", reason)[:150]


def described(case: Case, verdict: Verdict) -> str:
    """A failing case: its seed, query, data, and the difference."""
    lines = [f"=== --seed {case.seed}: {case.dialect}, {case.output}", continuous(case), "--- elements, as they arrive"]
    for element in case.elements:
        name = f" {_short(element.graph)}" if element.graph else ""
        lines.append(f"{element.time} {element.stream}{name}  {_triples(element.triples)}")
    if case.lateness:
        lines.append(f"lateness {case.lateness}")
    if case.static:
        lines.append(f"--- static  {_triples(case.static)}")
    lines += [f"--- static {_short(name)}  {_triples(triples)}" for name, triples in case.named]
    lines += ["--- query for pyoxigraph", Plain(case, numbered=False).select(case.query), "--- differences"]
    return "\n".join([*lines, *verdict.why[:20], f"({len(verdict.why)} lines)" if len(verdict.why) > 20 else ""])


def _triples(triples: tuple[Triple, ...]) -> str:
    return " . ".join(" ".join(map(_short, triple)) for triple in triples)


def _short(term: str) -> str:
    term = term.replace("http://www.w3.org/2001/XMLSchema#", "xsd:")
    return re.sub(rf"<{EX}(\w+)>|{EX}(\w+)", r":\1\2", term)
