"""The work of the operators of a running query so far: the plan with rows, shares of time, bytes and probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cqels_py.dataflow.counted_join import CountedJoinScan
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.delta_sources import Constant, DataflowNode, OperatorNode, unwrap
from cqels_py.dataflow.event_rows import EventRowsScan
from cqels_py.dataflow.explain import headline, size_text, tree
from cqels_py.dataflow.match_scan import MatchScan
from cqels_py.dataflow.plan_drawing import Box, svg
from cqels_py.dataflow.running_rules import RunningRules
from cqels_py.dataflow.scans import PartitionedScan, Scan
from cqels_py.dataflow.state_scan import StateScan
from cqels_py.dataflow.work import Work
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.operators.r2r.semi_anti_join import SemiAntiJoin
from cqels_py.plan.nodes import Plan

_COLUMNS = ("time", "rows in", "rows out", "state", "probes")
_HOT = 0.25
"""The greatest share of time is to be seen at once if it is so much."""
_WIDTHS = (6, 13, 13, 10, 13)


@dataclass(frozen=True, slots=True)
class OperatorProfile:
    """One operator of a plan. `number`: its place in `Profile.operators`; `inputs`: those that it reads, by their numbers.

    `text`: the operator as in `explain`. `streams`: IRIs of the streams that it reads itself. `rows_in`, `rows_out`: signed
    mappings; of operators that read streams, `rows_in` are those that enter its window, or events. `share`: of the time of the
    query's operators, 0 to 1; `seconds`: an estimate of that time. `state_bytes`: with the room in its tables. `probes`: lookups in
    its indexes, None where they are not counted. `queries`: so many read it, and its figures are of all of them together.
    """

    number: int
    text: str
    inputs: tuple[int, ...]
    streams: tuple[str, ...]
    rows_in: int
    rows_out: int
    share: float
    seconds: float
    state_bytes: int
    probes: int | None
    queries: int


@dataclass(frozen=True, slots=True)
class Profile:
    """The work of the operators of a query since the process began; `print` shows it as a table.

    `operators`: the first one delivers the results, and each comes before those that it reads. `measured`: so many steps (a
    pushed batch, or a move of time without one) have been measured. `lines`: the tree of the plan, with the numbers of operators.

    >>> print(query.profile())  # doctest: +SKIP
    """

    title: str
    operators: tuple[OperatorProfile, ...]
    measured: int
    lines: tuple[tuple[str, int | None], ...]

    def __str__(self) -> str:
        heading = " ".join(name.rjust(width) for name, width in zip(_COLUMNS, _WIDTHS, strict=True))
        rows = [f"{self._figures(number)}  {line}".rstrip() for line, number in self.lines]
        return "\n".join([self.title, "", f"{heading}  operator", *rows, "", self._footnote()]) + "\n"

    def _figures(self, number: int | None) -> str:
        figures = ("",) * len(_COLUMNS) if number is None else self._texts(self.operators[number])
        return " ".join(text.rjust(width) for text, width in zip(figures, _WIDTHS, strict=True))

    @staticmethod
    def _texts(each: OperatorProfile) -> tuple[str, ...]:
        probes = "" if each.probes is None else f"{each.probes:,}"
        return f"{each.share:.1%}", f"{each.rows_in:,}", f"{each.rows_out:,}", size_text(each.state_bytes), probes

    def _footnote(self) -> str:
        seconds = sum(each.seconds for each in self.operators)
        return f"{seconds:.3g} s in these operators, estimated from {self.measured:,} measured steps"

    def as_dict(self) -> Mapping[str, Any]:
        """The profile as plain values, for JSON; `explain --analyze --format json` prints them."""
        operators = [asdict(each) for each in self.operators]
        return {"title": self.title, "measured": self.measured, "operators": operators}

    def dot(self) -> str:
        """The plan as a graph in the language of graphviz: streams below, results on top; edges have the rows."""
        streams = list(dict.fromkeys(iri for each in self.operators for iri in each.streams))
        lines = [
            "digraph plan {",
            "  rankdir=BT;",
            "  node [shape=box, fontname=Helvetica];",
            "  edge [fontname=Helvetica];",
            *(f"  s{number} [label={_quoted([f'<{iri}>'])}, shape=ellipse];" for number, iri in enumerate(streams)),
        ]
        for each in self.operators:
            share, _, _, state, probes = self._texts(each)
            figures = [f"time {share}", f"state {state}", *([f"probes {probes}"] if probes else [])]
            lines.append(f"  o{each.number} [label={_quoted([each.text, ', '.join(figures)])}];")
            lines += [f"  s{streams.index(iri)} -> o{each.number};" for iri in each.streams]
            lines += [
                f'  o{child} -> o{each.number} [label=" {self.operators[child].rows_out:,}"];' for child in each.inputs
            ]
        return "\n".join([*lines, "}"]) + "\n"

    def boxes(self, told: Sequence[str] | None = None) -> list[Box]:
        """The plan as boxes that can be drawn. `told`: the text beside each operator's output; without it the rows."""
        told = told or [f"{each.rows_out:,}" for each in self.operators]
        most = max(each.share for each in self.operators)
        found = []
        for each in self.operators:
            share, rows_in, rows_out, state, probes = self._texts(each)
            figures = [f"{rows_in} in, {rows_out} out", f"time {share}, state {state}"]
            figures += [f"probes {probes}"] if probes else []
            figures += [f"of {each.queries} queries together"] if each.queries > 1 else []
            text = " ".join([each.text, *(f"on <{iri}>" for iri in each.streams)])
            hot = each.share == most and most >= _HOT
            found.append(Box(text, each.inputs, tuple(figures), told[each.number] if each.number else "", hot))
        return found

    def svg(self) -> str:
        """The plan as a picture: `explain --analyze --format svg` prints it."""
        return svg(self.boxes(), self.title)


def profile_of(dataflow: Dataflow) -> Profile:
    """The profile of a dataflow, between two steps."""
    return _Gathering(dataflow).profile()


class _Part:
    """A part of a dataflow before its figures are put together."""

    def __init__(self, text: str, work: Work, source: DataflowNode | None = None) -> None:
        self.text = text
        self.work = work
        self.source = source
        self.inputs: list[int] = []
        self.nbytes = 0
        self.streams: tuple[str, ...] = ()


class _Gathering:
    """Puts a profile together."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._parts: list[_Part] = []
        self._places: dict[int, int] = {}
        self._lines: list[tuple[str, int | None]] = []
        self._partitions: set[int] = set()

    def profile(self) -> Profile:
        query, steps = self._dataflow.plan, self._dataflow.shared_scans.steps
        self._dataflow.settle_counts()
        results = _Part(f"results, delivered as {query.output}", self._dataflow.results)
        results.nbytes = self._dataflow.output_bytes
        self._add(results, results.text)
        for line, source in tree(self._dataflow, self._dataflow.root):
            if source is None:
                self._lines.append((line, None))
                continue
            text = line.lstrip("│├└─ ")
            self._places[id(source)] = len(self._parts)
            part = _Part(_short(text), source.work, source)
            part.nbytes, part.streams = self._own_bytes(source), _streams(query, source)
            self._add(part, line[: len(line) - len(text)] + part.text)
        rules = {id(part.source.rules): part.source.rules for part in self._parts if isinstance(part.source, StateScan)}
        for each in rules.values():
            self._add_rules(each)
        self._connect()
        return Profile(headline(query), self._profiles(), steps.measured, tuple(self._lines))

    def _add(self, part: _Part, line: str) -> None:
        self._lines.append((line, len(self._parts)))
        self._parts.append(part)

    def _add_rules(self, rules: RunningRules) -> None:
        query = self._dataflow.plan
        assert query.rules is not None
        part = _Part("rules", rules.work)
        part.nbytes, part.streams = rules.nbytes, tuple(query.streams[number] for number in query.rules.streams)
        self._places[id(rules)] = len(self._parts)
        self._add(part, part.text)

    def _own_bytes(self, source: DataflowNode) -> int:
        match source:
            case OperatorNode():
                return source.operator.nbytes
            case PartitionedScan() if id(source.partition) not in self._partitions:
                self._partitions.add(id(source.partition))
                return source.nbytes + source.partition.nbytes
            case Scan() | MatchScan() | EventRowsScan() | CountedJoinScan():
                return source.nbytes
            case _:
                return 0

    def _connect(self) -> None:
        self._parts[0].inputs = [self._places[id(unwrap(self._dataflow.root))]]
        for part in self._parts:
            match part.source:
                case OperatorNode():
                    part.inputs = [self._places[id(unwrap(each))] for each in part.source.inputs]
                case StateScan():
                    part.inputs = [self._places[id(part.source.rules)]]

    def _profiles(self) -> tuple[OperatorProfile, ...]:
        total = sum(part.work.nanoseconds for part in self._parts) or 1
        return tuple(
            OperatorProfile(
                number,
                part.text,
                tuple(part.inputs),
                part.streams,
                part.work.rows_in or sum(_rows_out(self._parts[each]) for each in part.inputs),
                _rows_out(part),
                part.work.nanoseconds / total,
                part.work.nanoseconds / 1e9,
                part.nbytes,
                _probes(part.source),
                1 if part.source is None else max(part.source.readers, 1),
            )
            for number, part in enumerate(self._parts)
        )


def _rows_out(part: _Part) -> int:
    return part.source.columns.shape[1] if isinstance(part.source, Constant) else part.work.rows_out


def _probes(source: DataflowNode | None) -> int | None:
    operator = source.operator if isinstance(source, OperatorNode) else None
    return operator.probes if isinstance(operator, MultiwayJoin | SemiAntiJoin) else None


def _streams(query: Plan, source: DataflowNode) -> tuple[str, ...]:
    """IRIs of the streams that a source reads itself."""
    match source:
        case Scan():
            windows = [source.node.window]
        case MatchScan():
            windows = list(source.node.windows)
        case EventRowsScan():
            windows = [source.node.event.window]
        case CountedJoinScan():
            windows = [event.window for event in source.node.events]
        case _:
            windows = []
    return tuple(dict.fromkeys(query.streams[query.windows[number].stream] for number in windows))


def _short(text: str) -> str:
    """The text of an operator, without its memory: that is measured."""
    return text.split("; ")[0]


def _quoted(lines: list[str]) -> str:
    """A label of several lines, each at the left."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') + "\\l" for line in lines)
    return '"' + "".join(escaped) + '"'
