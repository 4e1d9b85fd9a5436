"""Single pushes into a window with a STEP, beside a loop that keeps the window's elements and asks pyoxigraph at each step.

    python -m bench.suites.pushes [--quick] [--rounds N] [--output FOLDER]

from the repository's root. An element comes each 10 ms, the window is [RANGE 10s STEP 1s], and the whole answer is delivered at
each step (RSTREAM), so a hundred pushes belong to an answer. Every contender gets the texts of one element at a time: the engine
in `Engine.push`, the loops in the form of which pyoxigraph makes terms soonest. `naive, store filled anew` keeps them and fills
a new store with them at each step; `naive, store kept` also removes what has expired from a store that it keeps. Contenders
take turns, round by round. Printed are microseconds a push, answers included, as the median of the rounds with the lowest and the
highest; and medians of the pushes that wait for a step and of those that bring an answer. Answers have to be equal at each step,
or the suite stops. bench/results/pushes.json has all rounds. `--quick` tests that everything runs; its figures are meaningless.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import pyoxigraph
from rich.console import Console
from rich.table import Table

import cqels_py as cqels
from bench.suites.outcome import add_rounds, folder_of, parser_of, taken_now
from bench.suites.stepping import Disagreement

_APART, _RANGE, _STEP = 10_000, 10_000_000, 1_000_000
"""Microseconds of event time."""
_A_STEP = _STEP // _APART
_FULL = _RANGE // _APART
_KEYS = 50
_PREFIX = "http://ex.org/"
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True, slots=True)
class Question:
    """`patterns`: by stream. `answer`: SELECT and GROUP BY around them."""

    name: str
    patterns: Mapping[str, str]
    value: str

    @property
    def continuous(self) -> str:
        windows = " ".join(f"STREAM :{name} [RANGE 10s STEP 1s] {{ {each} }}" for name, each in self.patterns.items())
        return f"PREFIX : <{_PREFIX}>\nREGISTER RSTREAM :answers AS {self._around(windows)}"

    @property
    def sparql(self) -> str:
        return f"PREFIX : <{_PREFIX}>\n{self._around(' . '.join(self.patterns.values()))}"

    def _around(self, patterns: str) -> str:
        return f"SELECT ?k (AVG({self.value}) AS ?mean) WHERE {{ {patterns} }} GROUP BY ?k"


QUESTIONS = (
    Question("AVG by group", {"a": "?k :a ?x"}, "?x"),
    Question("join of 2 windows, AVG by group", {"a": "?k :a ?x", "b": "?k :b ?y"}, "?x + ?y"),
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One element of one triple: plain texts."""

    stream: str
    key: str
    value: str
    time: int


def arrivals(question: Question, first: int, count: int) -> list[Arrival]:
    """The streams alternate. Values differ within a window: in a store, equal triples would be one."""
    names = list(question.patterns)
    return [
        Arrival(
            names[i % len(names)],
            f"k{i * 7 % 13 * 5 % _KEYS + i // 7 % 5}",
            str(i * 7919 % 1_000_003),
            (i + 1) * _APART,
        )
        for i in range(first, first + count)
    ]


Answer = dict[str, float]
"""The mean of each group, rounded to six decimals: implementations divide with different precision."""
Push = Callable[[], None]


class Contender:
    """Takes elements one by one; `answers` has the whole answer of each step, by event time."""

    name: str

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answers: dict[int, Any] = {}

    def pushes(self, elements: Sequence[Arrival]) -> list[Push]:
        """Calls that take the elements; their arguments are made in advance."""
        raise NotImplementedError

    def answer(self, time: int) -> Answer:
        """What was answered at a step, as plain values; not timed."""
        raise NotImplementedError


class Pushed(Contender):
    """The engine."""

    name = "engine, push"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self._engine = cqels.Engine()
        query = self._engine.register(question.continuous)
        query.subscribe(self._keep)

    def _keep(self, result: cqels.Result) -> None:
        self.answers.setdefault(result.time, []).append(result.bindings)

    def pushes(self, elements: Sequence[Arrival]) -> list[Push]:
        return [self._push(each) for each in elements]

    def _push(self, element: Arrival) -> Push:
        push, stream, at = self._engine.push, f"{_PREFIX}{element.stream}", element.time
        value = f'"{element.value}"^^<{_INTEGER}>'
        triples = [(f"<{_PREFIX}{element.key}>", f"<{_PREFIX}{element.stream}>", value)]
        return lambda: push(stream, triples, time=at)

    def answer(self, time: int) -> Answer:
        return {str(row["k"]): round(float(row["mean"]), 6) for row in self.answers[time]}


class FilledAnew(Contender):
    """Keeps the window's elements; at each step they fill a new store."""

    name = "naive, store filled anew"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.window: deque[tuple[int, pyoxigraph.Quad]] = deque()
        self._next = _STEP
        self._integer = pyoxigraph.NamedNode(_INTEGER)

    def pushes(self, elements: Sequence[Arrival]) -> list[Push]:
        return [self._push(each) for each in elements]

    def _push(self, element: Arrival) -> Push:
        key, predicate, value = f"{_PREFIX}{element.key}", f"{_PREFIX}{element.stream}", element.value
        return lambda: self.take(key, predicate, value, element.time)

    def take(self, key: str, predicate: str, value: str, at: int) -> None:
        """An element arrives: first the steps before it are answered."""
        while at > self._next:
            store = self.contents(self._next - _RANGE)
            found: Any = store.query(self.question.sparql)
            self.answers[self._next] = [(row[0], row[1]) for row in found]
            self._next += _STEP
        quad = pyoxigraph.Quad(
            pyoxigraph.NamedNode(key),
            pyoxigraph.NamedNode(predicate),
            pyoxigraph.Literal(value, datatype=self._integer),
        )
        self.window.append((at, quad))

    def contents(self, start: int) -> pyoxigraph.Store:
        """A store of the elements after `start`."""
        while self.window and self.window[0][0] <= start:
            self.window.popleft()
        store = pyoxigraph.Store()
        store.extend(quad for _, quad in self.window)
        return store

    def answer(self, time: int) -> Answer:
        return {key.value: round(float(mean.value), 6) for key, mean in self.answers[time]}


class Kept(FilledAnew):
    """Keeps a store too: at each step what has come is added, and what has expired is removed."""

    name = "naive, store kept"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self._store = pyoxigraph.Store()
        self._known = -1

    def contents(self, start: int) -> pyoxigraph.Store:
        window, store = self.window, self._store
        while window and window[0][0] <= start:
            store.remove(window.popleft()[1])
        store.extend(quad for at, quad in window if at > self._known)
        self._known = window[-1][0] if window else self._known
        return store


@dataclass(slots=True)
class Case:
    """One question and one contender: figures of each round, in microseconds. `answers`: how many were compared."""

    question: str
    contender: str
    push: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    answering: list[float] = field(default_factory=list)
    answers: int = 0


def measure(
    question: Question, contenders: Sequence[Callable[[Question], Contender]], *, rounds: int, steps: int
) -> list[Case]:
    """The figures of each contender, over `steps` steps a round. Disagreement where answers differ."""
    made = [each(question) for each in contenders]
    cases = [Case(question.name, each.name) for each in made]
    # A full window, and one step more: what is loaded at first use has been loaded.
    at = _FULL + _A_STEP + 1
    for contender in made:
        for push in contender.pushes(arrivals(question, 0, at)):
            push()
    for _ in range(rounds):
        elements = arrivals(question, at, steps * _A_STEP)
        for contender, case in zip(made, cases, strict=True):
            _round(contender.pushes(elements), case)
        at += len(elements)
    for contender, case in zip(made, cases, strict=True):
        case.answers = compared(made[0], contender)
    return cases


def _round(pushes: Sequence[Push], case: Case) -> None:
    """Rounds begin with the second element of a step, so that the last push of each hundred brings an answer."""
    taken, now = [0] * len(pushes), time.perf_counter_ns
    began = now()
    for i, push in enumerate(pushes):
        start = now()
        push()
        taken[i] = now() - start
    case.push.append((now() - began) / len(pushes) / 1000)
    answering = taken[_A_STEP - 1 :: _A_STEP]
    case.answering.append(median(answering) / 1000)
    case.waiting.append(median(taken) / 1000)


def compared(first: Contender, other: Contender) -> int:
    """The number of steps at which both have the same answer. Disagreement names one at which they have not."""
    if first.answers.keys() != other.answers.keys():
        raise Disagreement(f"{first.name} and {other.name} answered at different steps")
    for step in first.answers:
        if first.answer(step) != other.answer(step) or not first.answers[step]:
            raise Disagreement(f"{first.name} and {other.name} differ at {step / 1e6:g} s: {first.question.name}")
    return len(first.answers)


def table(cases: Sequence[Case]) -> Table:
    made = Table("query", title="microseconds")
    for heading in ("a push", "lowest … highest", "waits", "answers", "equal answers"):
        made.add_column(heading, justify="right", no_wrap=True)
    for question in dict.fromkeys(case.question for case in cases):
        made.add_section()
        made.add_row(question, style="bold")
        for case in (each for each in cases if each.question == question):
            spread = f"{min(case.push):.1f} … {max(case.push):.1f}"
            figures = (f"{median(each):,.1f}" for each in (case.waiting, case.answering))
            made.add_row(f"  {case.contender}", f"{median(case.push):.1f}", spread, *figures, f"{case.answers:,}")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("pushes", __doc__)
    add_rounds(parser, "rounds of 5,000 pushes")
    given = parser.parse_args(arguments)
    rounds, steps = (1, 2) if given.quick else (given.rounds, 50)
    cases = [
        case for each in QUESTIONS for case in measure(each, (Pushed, FilledAnew, Kept), rounds=rounds, steps=steps)
    ]
    Console().print(table(cases))
    figures = {
        "queries": {each.name: each.continuous for each in QUESTIONS},
        "cases": [asdict(case) for case in cases],
    }
    libraries = ("pyoxigraph",)
    found = taken_now("pushes", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick, libraries=libraries)
    print(f"written to {found.write(folder_of(given))}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
