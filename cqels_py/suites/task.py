"""The task of one measuring process, and its outcome: plain data, written as JSON between processes and into reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Task:
    """One query over one suite's files. `streams` and `static` are paths; `marks`: times of some elements of each
    stream in microseconds, with the first and the last.

    `window`: the value of `--window` for the report (0: the query's own windows).
    """

    id: str
    text: str
    title: str
    streams: dict[str, str]
    static: str
    marks: dict[str, list[int]] = field(default_factory=dict)
    triples: int = 0
    window: int = 0
    runner: str = "local"
    partitions: int | None = None
    check: bool = False
    threads: int | None = None

    @property
    def source(self) -> str:
        """The query's name in messages."""
        return f"{self.id}.rq"


@dataclass(slots=True)
class Measured:
    """The measurements of a query on one runner; None: not measured.

    `triples` and `elements` are those of the streams that the query reads. `seconds`: from the first byte of the files
    to the last result rendered. `register_seconds`: from the text to a query that is ready, including static data.
    Latencies are microseconds from the moment an element is due until its results are rendered, `latency_rate` the
    triples per second at which they were taken, `latency_quantiles` the latencies at 0, 1 … 100 per cent of the
    elements. `memory`: samples (second, triples so far, MB). `equal`: the answer equals that of re-evaluation at all
    `compared` instants; `note`: why it was not compared, or only partly; `check_error`: the error of the comparison.
    `local_ratio`: ratio to the local runner's rate, if both were measured. `peer_triples_per_second`: re-evaluation
    with pyoxigraph at every tick; `peer_ratio`: the ratio to it. `error`: why nothing could be measured.
    """

    id: str
    title: str = ""
    window: int | None = None
    runner: str = "local"
    triples: int = 0
    elements: int = 0
    results: int = 0
    seconds: float | None = None
    triples_per_second: float | None = None
    latency_p50_us: float | None = None
    latency_p99_us: float | None = None
    peak_rss_mb: float | None = None
    equal: bool | None = None
    compared: int | None = None
    note: str | None = None
    check_error: str | None = None
    local_ratio: float | None = None
    peer_triples_per_second: float | None = None
    peer_ratio: float | None = None
    paper_triples_per_second: float | None = None
    register_seconds: float | None = None
    latency_rate: float | None = None
    latency_quantiles: list[float] = field(default_factory=list)
    memory: list[tuple[float, int, float]] = field(default_factory=list)
    error: str | None = None

    def as_json(self, *, checked: bool) -> dict[str, Any]:
        """As an object. Without a check, the fields of the check are left out."""
        found = asdict(self)
        if not checked:
            for name in ("equal", "compared", "note", "check_error", "peer_triples_per_second", "peer_ratio"):
                del found[name]
        return found
