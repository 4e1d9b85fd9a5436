"""The streams of `cqels serve --demo`: none is late behind the other, however slow the machine is."""

from __future__ import annotations

import io
from itertools import count
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from cqels_py.cli import serve_demo
from cqels_py.cli.serve_demo import Pending
from cqels_py.service.service import Pushed

MINUTE = 60_000_000


class Recording:
    """Takes bodies as a service does. `late`: how many rows were more than the lateness behind the latest one; `rows`: all."""

    def __init__(self) -> None:
        self.latest = self.rows = self.late = 0

    def stream(self, name: str) -> Any:
        return SimpleNamespace(map=None)

    def push(self, given: list[Pushed]) -> list[None]:
        table = pa.ipc.open_stream(io.BytesIO(given[0].document.body)).read_all()
        for time in table.column("time").to_pylist():
            self.rows += 1
            self.late += time < self.latest - serve_demo._LATENESS
            self.latest = max(self.latest, time)
        return [None]


def test_a_slow_machine_sends_neither_stream_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    # Three seconds, which are six hours of stream time, pass between two looks at the clock.
    seconds = count(0, 3)
    monkeypatch.setattr(serve_demo.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(serve_demo.time, "sleep", lambda _: None)
    batches = [pa.record_batch({"time": pa.array(range(start, 3_000 * MINUTE, 10 * MINUTE))}) for start in (7, 9)]
    pending = {
        str(n): Pending(pa.RecordBatchReader.from_batches(each.schema, [each])) for n, each in enumerate(batches)
    }
    found: Any = Recording()
    serve_demo._send(found, pending, None)
    assert (found.rows, found.late) == (600, 0)
