"""Elements that wait for the boundary of STEP windows wait as texts: nothing else changes by that."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cqels_py as cqels
from cqels_py.dictionary import Dictionary
from cqels_py.engine import engine
from cqels_py.errors import DataError
from cqels_py.formats import triples
from cqels_py.formats.triples import are_plain

STREAM = "http://ex.org/s"
QUERY = """PREFIX : <http://ex.org/>
REGISTER RSTREAM :r AS SELECT ?k (COUNT(*) AS ?n) WHERE { STREAM :s [RANGE 4s STEP 2s] { ?k :p ?v } } GROUP BY ?k"""
PLAIN, OTHER = "<http://ex.org/k%d>", "<http://ex.org/(k%d)>"
"""Both are valid; the second one takes a closer look."""


def triple(key, number):
    return [(key % (number % 3), "<http://ex.org/p>", f'"{number}"')]


def run(key, times, *, flushes=()):
    """Results, and the statistics after each push."""
    engine = cqels.Engine()
    query = engine.register(QUERY)
    seen = []
    for number, time in enumerate(times):
        engine.push(STREAM, triple(key, number), time=time)
        seen.append((engine.statistics, [(r.time, r.sign, int(r.bindings["n"])) for r in query.results()]))
        if number in flushes:
            engine.flush()
    engine.finish()
    return [*seen, (engine.statistics, sorted((r.time, r.sign, int(r.bindings["n"])) for r in query.results()))]


@pytest.mark.parametrize("seed", range(8))
def test_results_and_statistics_are_the_same_after_each_push(seed, monkeypatch):
    monkeypatch.setattr(engine, "MOST_UNENCODED", 5)
    drawn = random.Random(seed)
    # Some are late, and some wait for the same boundary in great numbers.
    times, now = [], 0
    for _ in range(60):
        now += drawn.choice((0, 100_000, 700_000, 2_500_000))
        times.append(now - drawn.choice((0, 0, 0, 0, 300_000)))
    flushes = {drawn.randrange(60) for _ in range(5)}
    plain = run(PLAIN, times, flushes=flushes)
    assert plain == run(OTHER, times)
    assert plain[-1][0].late > 0
    assert sum(len(rows) for _, rows in plain) > 10


def test_a_wrong_term_is_told_by_its_own_push():
    engine = cqels.Engine()
    query = engine.register(QUERY)
    for number in range(3):
        engine.push(STREAM, triple(PLAIN, number), time=number * 1_000)
    for wrong in ('"a', "<no iri>", "_:"):
        with pytest.raises(DataError, match=r"an element pushed to <http://ex\.org/s>"):
            engine.push(STREAM, [("<http://ex.org/k0>", "<http://ex.org/p>", wrong)], time=4_000)
    with pytest.raises(DataError):
        engine.push(STREAM, [('"literal"', "<http://ex.org/p>", '"1"')], time=4_000)
    engine.finish()
    assert sum(int(result.bindings["n"]) for result in query.results() if result.time == 2_000_000) == 3


def test_the_terms_of_a_step_are_looked_up_together(monkeypatch):
    looked_up = []

    def counted(pushed, *others):
        looked_up.append(len(pushed))
        return triples.elements_of_pushed(pushed, *others)

    monkeypatch.setattr("cqels_py.engine.engine.elements_of_pushed", counted)
    engine = cqels.Engine()
    engine.register(QUERY)
    for number in range(81):
        engine.push(STREAM, triple(PLAIN, number), time=number * 100_000)
    # The first one tells the boundary, which it is at; the second one is behind it. Each step has twenty from then on, and is
    # complete with the first element behind it.
    assert looked_up == [1, 1, 20, 20, 20]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.from_regex(triples._TRIPLE, fullmatch=True), min_size=1, max_size=3))
def test_plain_terms_are_valid(lines):
    texts = [text for line in lines for text in _split(line)]
    assert are_plain(texts)
    wrong: dict[int, DataError] = {}
    first = triples.np.array([0, len(lines)])
    _, misplaced = Dictionary().encode_triples(texts, first, 1, wrong)
    assert not misplaced and not wrong


def _split(line):
    subject, predicate, object_ = line.split(b"\n", 2)
    return [subject, predicate, object_]


@pytest.mark.parametrize(
    "texts",
    [
        [b"<http://e/s>", b"<http://e/p>", b"_:b"],
        [b"<http://e/s>", b'"p"', b'"v"'],
        [b"<http://e/s>", b"<http://e/p>", b'"v"@en'],
        [b"<http://e/s>", b"<http://e/p>", b'"v\n"'],
        [b"<http://e/s>", b"<http://e/p>", b"<http://e/o>\n<http://e/s>\n<http://e/p>", b"<http://e/s>"],
        [b"<http://e/s> <http://e/p>", b"<http://e/p>", b"<http://e/s>"],
        [],
    ],
)
def test_other_texts_take_a_closer_look(texts):
    assert not are_plain(texts)
