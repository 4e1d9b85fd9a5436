"""Counted joins beside the strategy of the paper's proof, on trees; and the paper's worked trace."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import datetime
from itertools import groupby
from pathlib import Path
from random import Random

import pytest
from rdflib import XSD, Literal, URIRef

import cqels_py as cqels
from tests.oracle.naive import Element
from tests.oracle.naive_synopses import Stream, end, instant
from tests.support.drawn_events import EX, SECOND, START
from tests.support.harness import run_engine

DATA = Path(os.environ.get("CQELS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data")) / "seeds" / "bounded"
TRACE, QUERIES = DATA / "worked_example_trace.json", DATA / "queries.json"
INTEGER = "DATATYPE(?{0}) = xsd:integer"
QUERY = f"""PREFIX : <{EX}>\nPREFIX xsd: <{XSD}>\nSELECT ?a ?b WHERE {{
  EVENT ON :S AT ?i {{ ?x :n ?a FILTER({INTEGER.format("a")}) }}
  EVENT ON :T AT ?j {{ ?y :n ?b FILTER({INTEGER.format("b")} && ?b > 0 && ?b < 5) }}
  EVENT ON :U AT ?k {{ ?z :n ?c FILTER({INTEGER.format("c")}) }} FILTER(?i > ?j && ?j > ?k && ?a > ?b)
}}"""


def chain():
    """S after T after U, with S.a > T.b and 0 < T.b < 5; the result shows both."""
    last = Stream("U", keeps=False)
    middle = Stream("T", keeps=True, children=[last], passes=lambda value: 0 < value < 5)
    return Stream("S", keeps=True, children=[middle], agrees=lambda value, below: value > below[0]), middle, last


def told(arrivals):
    elements = [
        Element(START + time * SECOND, URIRef(EX + name), ((URIRef(f"{EX}e{n}"), URIRef(f"{EX}n"), Literal(value)),))
        for n, (time, name, value) in enumerate(arrivals)
    ]
    found: Counter[tuple[int, ...]] = Counter()
    for result in run_engine(QUERY, elements, batch=3):
        row = {str(variable): int(term) for variable, term in result.mapping}
        found[(result.time - START) // SECOND, row["a"], row["b"]] += 1
    return found


@pytest.mark.parametrize("seed", range(20))
def test_counters_and_synopses_give_the_same(seed):
    random, time, arrivals = Random(seed), 0, []
    for _ in range(40):
        time += random.choice((0, 0, 1))
        arrivals.append((time, random.choice("STU"), random.randrange(-1, 7)))
    root, _, _ = chain()
    expected: Counter[tuple[int, ...]] = Counter()
    for instant_, those in groupby(arrivals, key=lambda each: each[0]):
        for row, count in instant(root, [(name, value) for _, name, value in those]).items():
            expected[instant_, *row] += count
        end(root)
    assert told(arrivals) == expected


def test_verdicts_and_answers_of_the_examples():
    if not QUERIES.exists():
        pytest.skip("the examples are not there")
    for case in json.loads(QUERIES.read_text()):
        assert str(cqels.analyse(case["query"]).memory).startswith(case["verdict"])
        elements = [
            Element(
                micros(time),
                URIRef(EX + name),
                tuple((URIRef(f"{EX}e{n}"), URIRef(EX + p), literal(v)) for p, v in pairs.items()),
            )
            for n, (time, name, pairs) in enumerate(case["elements"])
        ]
        expected = Counter()
        for time, bindings, *count in case["rows"]:
            expected[micros(time), tuple(sorted((name, str(value)) for name, value in bindings.items()))] += (
                sum(count) or 1
            )
        for batch in (1, 4, None):
            found = run_engine(case["asked"], elements, batch=batch)
            rows = Counter((r.time, tuple(sorted((str(v), str(term)) for v, term in r.mapping))) for r in found)
            assert rows == expected, case["query"]


def micros(time):
    return int(datetime.fromisoformat(time).timestamp()) * SECOND


def literal(value):
    """A text is a decimal."""
    return Literal(value, datatype=XSD.decimal) if isinstance(value, str) else Literal(value)


def test_the_worked_trace():
    if not TRACE.exists():
        pytest.skip("the trace of the paper's example is not there")
    root, middle, last = chain()
    steps = json.loads(TRACE.read_text())["steps"]
    for step in steps:
        output = instant(root, [tuple(each) for each in step["arrivals"]])
        assert sorted(map(list, middle.now.items())) == sorted(step["s_n_T"])
        assert sorted(map(list, middle.before.items())) == sorted(step["s_p_T"])
        assert (last.now[None], last.before[None]) == (step["s_n_U"], step["s_p_U"])
        assert sorted([list(row), count] for row, count in output.items()) == sorted(step["output"])
        end(root)
    arrivals = [(step["t"], name, value) for step in steps for name, value in step["arrivals"]]
    assert told(arrivals) == Counter({(s["t"], *row): count for s in steps for row, count in s["output"]})
