"""How many events per second do event patterns take, beside a kernel by hand and beside CORE, and how many steps has the longest?

Events have a kind (A, B, C, N), one of as many keys as there are elements within reach, and a value: three triples each.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.match_program import match_program
from cqels_py.dataflow.match_scan import MatchScan
from cqels_py.engine.engine import Engine, Query
from cqels_py.engine.stream_opening import opening_of
from cqels_py.errors import UsageError
from cqels_py.kernels.patterns import by_hand
from cqels_py.kernels.patterns import runs as kernel
from cqels_py.sources.opened import table_in_order
from cqels_py.state.match_state import MatchState
from cqels_py.suites.running import null_sink

Int64 = npt.NDArray[np.int64]
EX = "http://ex.org/"
STREAM = f"{EX}s"
WINDOWS = (100, 10_000, 100_000)
_GENERATED = "<http://www.w3.org/ns/prov#generatedAtTime>"
_DATE_TIME = "^^<http://www.w3.org/2001/XMLSchema#dateTime>"
_KINDS = "ABCN"
_PUSHES = 2_000
_BATCH = 1 << 14
_CORE_EVENTS = 50_000
"""CORE gets the first events only: it is slower."""


@dataclass(frozen=True, slots=True)
class Case:
    """A pattern over events {a}, {b}, {c}, {n}, and the text after it; `core`: the same for CORE, if it can say it."""

    name: str
    pattern: str
    after: str = ""
    core: str | None = None
    kinds: str = "ABC"
    selected: str = "?a ?b ?c"

    def text(self, window: int, *, policy: str = "") -> str:
        """The query."""
        events = {kind.lower(): _event(kind) for kind in _KINDS}
        match = f"MATCH {policy} WITHIN {window} EVENTS {{ {self.pattern.format(**events)} }}"
        return f"PREFIX : <{EX}>\nSELECT {self.selected} ?k {{ {match} {self.after} }}"

    def core_query(self, window: int) -> str | None:
        """CORE's query."""
        return (
            None if self.core is None else f"SELECT * FROM S WHERE {self.core} PARTITION BY [k] WITHIN {window} EVENTS"
        )


def _event(kind: str) -> str:
    name = kind.lower()
    return f"EVENT ON :s {{ ?{name} a :{kind} ; :k ?k ; :v ?v{name} }}"


CASES = (
    Case("A SEQ B SEQ C", "{a} SEQ {b} SEQ {c}", core="A as a; B as b; C as c"),
    Case("A SEQ B+ SEQ C", "{a} SEQ {b}+ SEQ {c}", core="A as a; B+ as b; C as c", selected="?a ?c"),
    Case("(A AND B) SEQ C", "{{ {a} AND {b} }} SEQ {c}"),
    Case("A SEQ NOT N SEQ C", "{a} SEQ NOT {n} SEQ {c}", kinds="ANC", selected="?a ?c"),
    Case("A SEQ C, ?vc > ?va", "{a} SEQ {c}", after="FILTER(?vc > ?va)", kinds="AC", selected="?a ?c"),
)


@dataclass(frozen=True, slots=True)
class Events:
    """Columns: the number of the kind in the case's kinds, key and value."""

    kind: Int64
    key: Int64
    value: Int64

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(slots=True)
class Figures:
    """Of one case and window. Events per second; `push_us`: half of the pushes take no longer; None: not measured.

    `to_json`: from a file of N-Quads to JSON, which is not kept.
    """

    case: str
    window: int
    events: int
    matches: int = 0
    to_json: float = 0.0
    from_texts: float = 0.0
    from_ids: float = 0.0
    kernel: float = 0.0
    by_hand: float | None = None
    core: float | None = None
    push_us: float = 0.0
    most_steps: int = 0
    most_between: int = 0


def drawn(case: Case, window: int, count: int, seed: int) -> Events:
    """Events drawn at random."""
    random = np.random.default_rng(seed)
    return Events(
        random.integers(0, len(case.kinds), count), random.integers(0, window, count), random.integers(0, 1_000, count)
    )


def measure(case: Case, window: int, count: int, seed: int, core: Path | None) -> Figures:
    """The figures of a case; `core`: a Python that has pycer. UsageError if answers differ."""
    events = drawn(case, window, count, seed)
    figures = Figures(case.name, window, count)
    table = _table(case, events)
    _from_table(case, window, table.slice(0, 3 * min(count, 2_000)))
    figures.from_texts, figures.matches = _from_table(case, window, table)
    figures.to_json = _to_json(case, window, table)
    figures.from_ids = _from_ids(case, window, table)
    _time_kernel(figures, case, window, events)
    if case is CASES[0]:
        figures.by_hand = _time_by_hand(window, events, figures.matches)
    figures.push_us = _time_pushes(case, window, table)
    asked = case.core_query(window)
    if core is not None and asked is not None:
        figures.core = _time_core(core, asked, case, window, events)
    return figures


def _table(case: Case, events: Events) -> pa.Table:
    """Three triples for each event, a millisecond apart."""
    count = len(events)
    subjects = np.array([f"<{EX}e{number}>" for number in range(count)], object)
    kinds = np.array([f"<{EX}{kind}>" for kind in case.kinds], object)[events.kind]
    keys = np.array([f"<{EX}k{key}>" for key in events.key.tolist()], object)
    values = np.array(
        [f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>' for value in events.value.tolist()], object
    )
    predicates = ["<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", f"<{EX}k>", f"<{EX}v>"]
    return pa.table(
        {
            "time": np.repeat(np.arange(count) * 1_000 + 1_704_067_200_000_000, 3),
            "graph": np.repeat(np.array([f"<{EX}g{number}>" for number in range(count)], object), 3),
            "subject": np.repeat(subjects, 3),
            "predicate": pa.array(predicates * count),
            "object": np.stack([kinds, keys, values], axis=1).reshape(-1),
        }
    )


class _Counter:
    """A subscriber that counts results."""

    def __init__(self, case: Case, window: int) -> None:
        self.engine = Engine()
        self.query: Query = self.engine.register(case.text(window))
        self.results = 0
        self.query.subscribe_batches(self.take, ids=True)

    def take(self, batch: ResultBatch) -> None:
        self.results += len(batch)


def _from_table(case: Case, window: int, table: pa.Table) -> tuple[float, int]:
    counter = _Counter(case, window)
    began = time.perf_counter()
    counter.engine.push_batch(STREAM, table)
    counter.engine.flush()
    return table.num_rows / 3 / (time.perf_counter() - began), counter.results


def _to_json(case: Case, window: int, table: pa.Table) -> float:
    """From a file of N-Quads, an element for each graph with its time, to JSON, as `cqels run` does it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.nq"
        with file.open("w", encoding="utf-8") as text:
            columns = [table.column(name).to_pylist() for name in ("time", "graph", "subject", "predicate", "object")]
            for number, (at, graph, *triple) in enumerate(zip(*columns, strict=True)):
                if number % 3 == 0:
                    text.write(f'{graph} {_GENERATED} "{np.datetime64(at, "us")}Z"{_DATE_TIME} .\n')
                text.write(f"{' '.join(triple)} {graph} .\n")
        for path in (file, file):  # The first run compiles.
            engine = Engine()
            query: Query = engine.register(case.text(window))
            with null_sink(query.plan, engine.dictionary) as sink:
                query.write_to(sink)
                began = time.perf_counter()
                engine.run({STREAM: str(path)})
                seconds = time.perf_counter() - began
    return float(table.num_rows) / 3 / seconds


def _from_ids(case: Case, window: int, table: pa.Table) -> float:
    counter = _Counter(case, window)
    engine = counter.engine
    opening = opening_of(engine, STREAM, None, engine._reports.malformed)
    batches = list(table_in_order(table, opening, None, 0, sort=False))
    began = time.perf_counter()
    for batch in batches:
        engine._process_part(batch)
    engine.flush()
    return float(table.num_rows) / 3 / (time.perf_counter() - began)


def _time_kernel(figures: Figures, case: Case, window: int, events: Events) -> None:
    """Rows of events in, rows of matches out; the comparison behind the MATCH is not part of it."""
    counter = _Counter(case, window)
    (scan,) = [each for each in counter.query._dataflow._scans if isinstance(each, MatchScan)]  # type: ignore[union-attr]
    node = scan.node
    program = match_program(node)
    state = MatchState(
        program.arrays, scan.state._values, width=program.width, variables=program.variables,
        outputs=len(node.variables), longest_key=program.longest_key,
    )  # fmt: skip
    columns = {"k": events.key + 1, **{f"v{kind.lower()}": events.value + 1 for kind in case.kinds}}
    places = np.arange(len(events)) + 1
    rows = np.zeros((len(events), kernel.VALUES + program.width), np.int64)
    # Events of NOT have the last numbers in the plan.
    order = [*(kind for kind in case.kinds if kind != "N"), *(kind for kind in case.kinds if kind == "N")]
    for number, kind in enumerate(order):
        mine = events.kind == case.kinds.index(kind)
        rows[mine, kernel.EVENT] = number
        for column, name in enumerate(node.events[number].variables):
            rows[mine, kernel.VALUES + column] = columns.get(name, places)[mine]
    rows[:, kernel.AT] = np.arange(len(events))
    rows[:, kernel.WHEN] = rows[:, kernel.AT] * 1_000
    began = time.perf_counter()
    for first in range(0, len(rows), _BATCH):
        part = rows[first : first + _BATCH]
        part[:, kernel.TICK] = np.arange(len(part))
        last = first + len(part) - 1
        state.step(
            part, part[:, kernel.WHEN].copy(), part[:, kernel.TICK].copy(), np.array([first, last, last * 1_000])
        )
    figures.kernel = len(events) / (time.perf_counter() - began)
    figures.most_steps, figures.most_between = state.most_steps, state.most_between


def _time_by_hand(window: int, events: Events, expected: int) -> float:
    def power_of_2(least: int) -> int:
        return 1 << (least - 1).bit_length()

    out = np.zeros((expected, 3), np.int64)
    for _ in range(2):  # The first run compiles.
        nodes = np.zeros((power_of_2(window + 2), by_hand.FIELDS), np.int64)
        slots = power_of_2(8 * window)
        began = time.perf_counter()
        found = by_hand.three_in_sequence(
            events.kind, events.key, window, nodes, np.zeros(slots, np.int64), np.zeros(slots, np.int64), out
        )
        seconds = time.perf_counter() - began
    if found != expected:
        raise UsageError(f"the kernel by hand finds {found:,} matches, MATCH {expected:,}")
    return len(events) / seconds


def _time_pushes(case: Case, window: int, table: pa.Table) -> float:
    """The median of single pushes, in microseconds."""
    counter = _Counter(case, window)
    columns = table.slice(0, 3 * min(_PUSHES, table.num_rows // 3)).to_pydict()
    rows = list(zip(columns["subject"], columns["predicate"], columns["object"], strict=True))
    taken = []
    for first in range(0, len(rows), 3):
        began = time.perf_counter_ns()
        counter.engine.push(STREAM, rows[first : first + 3], time=columns["time"][first])
        taken.append(time.perf_counter_ns() - began)
    return float(np.median(taken)) / 1_000


def _time_core(python: Path, query: str, case: Case, window: int, events: Events) -> float:
    """CORE's events per second over the first events. UsageError where it cannot run or finds other matches."""
    count = min(len(events), _CORE_EVENTS)
    kinds = [case.kinds[number] for number in events.kind[:count].tolist()]
    asked = {
        "query": query,
        "kinds": list(case.kinds),
        "events": list(zip(kinds, events.key[:count].tolist(), events.value[:count].tolist(), strict=True)),
    }
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        finished = subprocess.run(
            [str(python), str(Path(__file__).with_name("core_peer.py")), str(answer)],
            input=json.dumps(asked), capture_output=True, text=True, check=False, cwd=folder,
        )  # fmt: skip
        if finished.returncode or not answer.exists():
            last = (finished.stderr.strip().splitlines() or ["no message"])[-1]
            raise UsageError(f"CORE did not run: {last}")
        found = json.loads(answer.read_text(encoding="utf-8"))
    first = Events(events.kind[:count], events.key[:count], events.value[:count])
    _, expected = _from_table(case, window, _table(case, first))
    if found["matches"] != expected:
        raise UsageError(f"{case.name} WITHIN {window}: CORE finds {found['matches']:,} matches, MATCH {expected:,}")
    return float(found["events_per_second"])


def run(windows: Sequence[int], count: int, seed: int, core: Path | None, tell: Callable[[str], None]) -> list[Figures]:
    """All cases over all windows. `tell`: told about each before it starts."""
    found = []
    for window in windows:
        for case in CASES:
            tell(f"{case.name} WITHIN {window:,} EVENTS")
            found.append(measure(case, window, count, seed, core))
    return found
