"""The outcome of a run with its machine and settings: as JSON, as CSV, and compared with an earlier run."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from cqels_py.errors import UsageError
from cqels_py.suites.machine import machine, versions
from cqels_py.suites.task import Measured

BOTH = "both"
"""The runner of a report in which each query was measured on one runner, then on the other."""
_LISTS = ("latency_quantiles", "memory")
_ROUNDED = {
    "seconds": 4, "register_seconds": 4, "triples_per_second": 1, "latency_rate": 1, "peer_triples_per_second": 1,
    "peer_ratio": 2, "local_ratio": 4, "peak_rss_mb": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the run. `threads` None: two threads if the files are large enough."""

    suite: str
    runner: str
    partitions: int | None
    triples: int
    seed: int
    check: bool
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """`queries`: one entry for each query, window and runner."""

    settings: Settings
    date: str
    machine: dict[str, Any]
    versions: dict[str, str]
    queries: list[Measured]

    @staticmethod
    def here(settings: Settings, queries: list[Measured]) -> Report:
        """The report of a run on this machine, now."""
        return Report(settings, datetime.now(UTC).isoformat(timespec="seconds"), machine(), versions(), queries)

    def as_json(self) -> str:
        settings = {each.name: getattr(self.settings, each.name) for each in fields(self.settings)}
        queries = [_rounded(query.as_json(checked=self.settings.check)) for query in self.queries]
        found = {**settings, "date": self.date, "machine": self.machine, "versions": self.versions, "queries": queries}
        return json.dumps(found, indent=1, ensure_ascii=False) + "\n"

    def as_csv(self) -> str:
        """One row per query, without the columns that are lists."""
        rows = [_rounded(query.as_json(checked=self.settings.check)) for query in self.queries]
        columns = [name for name in rows[0] if name not in _LISTS]
        out = StringIO()
        writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()


def read_report(path: Path) -> Report:
    """An earlier run's JSON. UsageError for any other file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--compare {path}: cannot read it: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"--compare {path} is not JSON ({error}); give a file written by --json") from None
    try:
        # Before files were read ahead, there was one thread.
        settings = Settings(**{each.name: {"threads": 1, **found}[each.name] for each in fields(Settings)})
        # Reports of a single runner did not always name it for each query.
        queries = [_query({"runner": settings.runner, **each}) for each in found["queries"]]
        return Report(settings, str(found["date"]), dict(found["machine"]), dict(found["versions"]), queries)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(
            f"--compare {path} is not a report of `cqels bench` ({reason}); give a file written by --json"
        ) from None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A query in two runs: ratio of the rates (above 1 if the later run is faster), of latencies and of memory (above 1
    if it needs more). None if either run lacks the value.
    """

    id: str
    window: int | None
    runner: str
    before: float | None
    now: float | None
    throughput: float | None
    latency: float | None
    memory: float | None


def compared(earlier: Report, later: Report) -> list[Comparison]:
    """The queries of both runs side by side, if both have them with the same windows; on the same runner, if a run has both."""
    several = BOTH in (earlier.settings.runner, later.settings.runner)

    def key(query: Measured) -> tuple[str, int | None, str]:
        return query.id, query.window, query.runner if several else ""

    before = {key(query): query for query in earlier.queries}
    both = [(before[key(query)], query) for query in later.queries if key(query) in before]
    return [
        Comparison(
            new.id,
            new.window,
            new.runner,
            old.triples_per_second,
            new.triples_per_second,
            _ratio(new.triples_per_second, old.triples_per_second),
            _ratio(new.latency_p99_us, old.latency_p99_us),
            _ratio(new.peak_rss_mb, old.peak_rss_mb),
        )
        for old, new in both
    ]


def beside_local(queries: list[Measured]) -> list[str]:
    """Fill in the ratios to the local runner. Returns the queries for which the runners delivered different numbers of
    results.
    """
    local = {(query.id, query.window): query for query in queries if query.runner == "local" and query.error is None}
    wrong = []
    for query in queries:
        other = local.get((query.id, query.window))
        if other is None or other is query or query.error is not None:
            continue
        query.local_ratio = _ratio(query.triples_per_second, other.triples_per_second)
        if query.results != other.results:
            wrong.append(
                f"query {query.id}: {query.results:,} results on {query.runner}, {other.results:,} on the local runner"
            )
    return wrong


def differences(earlier: Settings, later: Settings) -> list[str]:
    """The differences between the settings of two runs, in words."""
    names = ("runner", "partitions", "threads", "triples", "seed")
    both = ((name, getattr(earlier, name), getattr(later, name)) for name in names)
    return [f"{name}: {old} before, {new} now" for name, old, new in both if old != new]


def _ratio(now: float | None, before: float | None) -> float | None:
    return now / before if now is not None and before else None


def _query(found: dict[str, Any]) -> Measured:
    known = {each.name for each in fields(Measured)}
    query = Measured(**{name: value for name, value in found.items() if name in known})
    for name in ("triples_per_second", "latency_p99_us", "peak_rss_mb"):
        if not isinstance(getattr(query, name), int | float | None):
            raise ValueError(f"{name} of query {query.id} is not a number")
    return query


def _rounded(found: dict[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, _ROUNDED[name]) if name in _ROUNDED and value is not None else value
        for name, value in found.items()
    }
