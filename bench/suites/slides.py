"""How does throughput depend on the STEP of a window, from one element to half of the window?

    python -m bench.suites.slides [--rounds N] [--seconds S] [--quick]

A join of two patterns with COUNT by group, over the last 10,000 observations of 100 sensors, two triples each. The
engine delivers changes, in blocks of 10,000 observations or (`a push a step`) as they arrive, and whole answers, which
is what re-evaluation delivers: pyoxigraph over a store that is kept, or filled anew, at each step. Every contender has
the same time for a round. Their answers must have the same checksums at all steps that two of them reach, or the suite
stops. Writes bench/results/slides.json and slides.png.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from bench.suites import paces
from bench.suites.contenders import Engine, PyoxigraphKept, PyoxigraphRebuilt, Question, StepByStep, WholeAnswers
from bench.suites.observations import Property, integers, scattered, sensor_iris, two_digits
from bench.suites.stepping import Pace, Timing

WINDOW, SENSORS = 10_000, 100
STEPS = (1, 10, 100, 1_000, 5_000)
PROPERTIES = (
    Property("sensor", lambda numbers: scattered(numbers, SENSORS), sensor_iris),
    Property("result", two_digits, integers),
)


def engines(question: Question) -> list[paces.Make]:
    """The engine in its three ways of use."""
    return [
        lambda step: Engine(question, step),
        lambda step: WholeAnswers(question, step, name="engine, whole answers"),
        lambda step: StepByStep(question, step),
    ]


def measure(quick: bool, timing: Timing) -> tuple[list[Pace], Mapping[str, Any]]:
    window, steps = (200, (1, 100)) if quick else (WINDOW, STEPS)
    question = Question(PROPERTIES, "COUNT", window)
    contenders = engines(question)
    contenders += [lambda step: PyoxigraphKept(question, step), lambda step: PyoxigraphRebuilt(question, step)]
    found = paces.taken(contenders, steps, window, timing)
    return found, {"window": window, "sensors": SENSORS, "query": question.continuous(1, whole=False)}


def main(arguments: Sequence[str] | None = None) -> int:
    title = "COUNT by group of a join of two, over the last 10,000 observations"
    return paces.main("slides", __doc__ or "", measure, title, ("png",), arguments)


if __name__ == "__main__":
    sys.exit(main())
