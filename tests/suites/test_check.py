"""The check: right answers pass it, and wrong ones do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cqels_py.algebra import nodes
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.runners.statistics import Statistics
from cqels_py.suites import check, throughput
from cqels_py.suites.answers import read_terms
from cqels_py.suites.check import Recorder, chosen_instants
from cqels_py.suites.contents import Contents, elements_of
from cqels_py.suites.peer import Peer, boundaries
from cqels_py.suites.peer_query import peer_query
from cqels_py.suites.running import LocalRun
from cqels_py.suites.task import Measured, Task
from tests.support.harness import parse

SECOND = 1_000_000
P = "PREFIX : <http://ex.org/>\n"
STREAM = "http://ex.org/s"
XSD = "http://www.w3.org/2001/XMLSchema#"
QUERY = P + "SELECT ?s ?v { STREAM :s [RANGE 5s] { ?s :p ?v } }"
AVERAGES = P + "SELECT ?s (AVG(?v) AS ?mean) { STREAM :s [RANGE 5s] { ?s :p ?v } } GROUP BY ?s"


def silent(phase: str, done: int) -> None:
    pass


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """Sixty readings, one a second, of seven things."""
    lines = []
    times = [1_700_000_000 + number for number in range(60)]
    for number, time in enumerate(times):
        stamp = np.datetime64(time, "s")
        lines.append(
            f'<urn:e:{number}> <http://www.w3.org/ns/prov#generatedAtTime> "{stamp}Z"^^<{XSD}dateTime> .\n'
            f"<http://ex.org/{number % 7}> <http://ex.org/p> "
            f'"{number * number % 11}"^^<{XSD}integer> <urn:e:{number}> .\n'
        )
    (tmp_path / "s.nq").write_text("".join(lines))
    (tmp_path / "static.nq").write_text("<http://ex.org/1> <http://ex.org/q> <http://ex.org/x> .\n")
    marks = {STREAM: [time * SECOND for time in times]}
    return Task("1", QUERY, "?", {STREAM: str(tmp_path / "s.nq")}, str(tmp_path / "static.nq"), marks, 60, check=True)


def checked(task: Task) -> Measured:
    measured = throughput.measure(task, None, silent)
    check.check(task, measured, None, silent)
    return measured


@pytest.mark.parametrize(
    "text",
    [
        QUERY,
        AVERAGES,
        P + "SELECT ?s ?v { STREAM :s [COUNT 6 STEP 4] { ?s :p ?v } ?s :q ?x }",
        P
        + "REGISTER RSTREAM :o AS SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT9S STEP PT4S] WHERE { WINDOW :w { ?s :p 3 } }",
        P + "ASK { STREAM :s [RANGE 2s] { ?s :p 0 } }",
        P + "CONSTRUCT { ?s :same ?t } WHERE { STREAM :s [RANGE 7s] { ?s :p ?v . ?t :p ?v FILTER(?s != ?t) } }",
        P + "SELECT ?s ?v { STREAM :s [RANGE 9s] { ?s :p ?v } } ORDER BY DESC(?v) LIMIT 3",
        P + "SELECT ?s ?v { STREAM :s [TRIPLES 9 STEP 4] { ?s :p ?v } }",
        P + "SELECT (COUNT(*) AS ?n) { STREAM :s [RANGE 5s STEP 5s] { ?s :p 5 } }",
    ],
)
def test_right_answers_are_equal(task: Task, text: str) -> None:
    measured = checked(replace(task, text=text))
    assert (measured.equal, measured.note, measured.check_error) == (True, None, None)
    assert measured.compared is not None and measured.compared >= 5


def test_the_reason_why_a_query_cannot_be_compared_is_noted(task: Task) -> None:
    measured = checked(replace(task, text=QUERY.replace("[RANGE 5s]", "[COUNT 5 PARTITION BY ?s]")))
    assert (measured.equal, measured.compared) == (None, None)
    assert "PARTITION BY" in (measured.note or "")


def verdict(task: Task, answers: check.Answers) -> tuple[int, bool | None, str | None]:
    question = peer_query(task.text)
    contents = Contents(question.query.windows, task.static)
    return check.compare(question, contents, elements_of(task.streams), answers, Peer(question, contents), silent)


def recorded(task: Task) -> check.Answers:
    recorder = Recorder(chosen_instants(peer_query(task.text).query, task.marks))
    run = LocalRun(task, changelog=True)
    recorder.decode_with(run.dictionary)
    run.run(recorder.take, recorder.look)
    return recorder.finish()


@pytest.mark.parametrize("text", [QUERY, AVERAGES, QUERY + " ORDER BY ?v LIMIT 2"])
def test_wrong_answers_are_found(task: Task, text: str) -> None:
    task = replace(task, text=text)
    answers = recorded(task)
    assert verdict(task, answers)[1] is True
    instant = sorted(answers)[6]
    right = answers[instant]
    lost = Counter(right)
    lost.subtract([next(iter(right))])
    wrong = [+lost, right + Counter([next(iter(right))]), right + Counter([tuple(read_terms(["<x:a>", None]))])]
    for bag in wrong:
        compared, equal, note = verdict(task, answers | {instant: bag})
        assert (compared, equal) == (7, False)
        assert str(instant) in (note or "")


def test_only_rows_that_order_leaves_equal_are_free_under_limit(task: Task) -> None:
    task = replace(task, text=P + "SELECT ?s ?v { STREAM :s [RANGE 30s] { ?s :p ?v } } ORDER BY DESC(?v) LIMIT 2")
    answers = recorded(task)
    last = max(answers)
    first = next(iter(answers[last]))
    everything = recorded(replace(task, text=task.text.replace(" LIMIT 2", "")))[last]
    peers = [row for row in everything if row[1] == first[1]]
    assert len(peers) > 2
    others = [Counter(pair) for pair in ((peers[0], peers[1]), (peers[1], peers[2]))]
    assert [verdict(task, {last: bag})[1] for bag in others] == [True, True]
    lowest = min(everything, key=lambda row: row[1][1] if row[1] else "")
    assert verdict(task, {last: Counter([peers[0], lowest])})[1] is False


def test_a_triple_held_twice_counts_once_in_a_graph(task: Task) -> None:
    """Then rows are compared as a set, and aggregates at the other instants."""
    stream = Path(task.streams[STREAM])
    *lines, last = stream.read_text().splitlines(keepends=True)
    stream.write_text("".join([*lines, last, last]))
    text = P + "SELECT ?s { STREAM :s [RANGE 1m] { ?s :p ?v } }"
    task = replace(task, text=text)
    assert checked(task).equal is True
    counted = checked(replace(task, text=text.replace("SELECT ?s", "SELECT (COUNT(?s) AS ?n)")))
    assert counted.equal is True
    assert "a window held a triple twice" in (counted.note or "")
    insensitive = checked(replace(task, text=text.replace("SELECT ?s", "SELECT (COUNT(DISTINCT ?s) AS ?n)")))
    assert (insensitive.equal, insensitive.compared, insensitive.note) == (True, 9, None)


def test_instants_lie_between_the_first_tick_and_the_last_element() -> None:
    marks = {STREAM: [10 * SECOND, 25 * SECOND, 47 * SECOND], "http://ex.org/other": [99 * SECOND]}
    eager = chosen_instants(parse(QUERY), marks)
    assert set(marks[STREAM]) <= set(eager) <= {10 * SECOND, 15 * SECOND, 25 * SECOND, 30 * SECOND, 47 * SECOND}
    assert 15 * SECOND in eager
    stepped = chosen_instants(parse(QUERY.replace("RANGE 5s", "RANGE 5s STEP 4s")), marks)
    assert stepped[0] == 12 * SECOND
    assert stepped[-1] == 47 * SECOND
    assert chosen_instants(parse(QUERY), {STREAM: []}) == []


def changes(dictionary: Dictionary, *rows: tuple[int, int, str]) -> ResultBatch:
    """(time, sign, term) …"""
    time, sign, terms = zip(*rows, strict=True)
    return ResultBatch(("v",), np.array(time), np.array(sign, np.int8), (dictionary.encode(terms),))


def test_the_answer_at_an_instant_is_the_sum_of_all_changes_up_to_it() -> None:
    dictionary = Dictionary()
    recorder = Recorder([1, 5, 9, 20])
    recorder.decode_with(dictionary)
    recorder.take(
        changes(dictionary, (2, 1, "<x:a>"), (4, 1, "<x:a>"), (5, 1, "<x:b>"), (6, -1, "<x:a>"), (12, -1, "<x:b>"))
    )
    recorder.look(Statistics(event_time=20))
    recorder.take(changes(dictionary, (20, 1, "<x:c>")))
    answers = recorder.finish()
    a, b, c = ((cell,) for cell in read_terms(["<x:a>", "<x:b>", "<x:c>"]))
    assert answers == {1: Counter(), 5: Counter([a, a, b]), 9: Counter([a, b]), 20: Counter([a, c])}
    assert recorder.insertions == 4


def test_the_peer_is_timed_from_where_windows_are_full(task: Task) -> None:
    question = peer_query(task.text)
    contents = Contents(question.query.windows, task.static)
    peer = Peer(question, contents)
    elements = list(elements_of(task.streams))
    for element in elements[:30]:
        peer.take(element)
    assert peer.rate is None
    peer.start(elements[29].time)
    for element in elements[30:]:
        peer.take(element)
    assert peer.rate is not None and peer.rate > 0
    assert contents.seen(STREAM) == (60, 60)


def test_the_peer_ends_when_its_time_is_over(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    question = peer_query(task.text)
    contents = Contents(question.query.windows, task.static)
    asked_for = []
    monkeypatch.setattr(type(question), "rows", lambda self, store: asked_for.append(store) or ())
    peer = Peer(question, contents, seconds=0.0)
    peer.start(0)
    for element in elements_of(task.streams):
        peer.take(element)
    assert len(asked_for) == 1
    assert contents.seen(STREAM) == (60, 60)


def test_the_check_has_the_peers_rate(task: Task) -> None:
    measured = checked(task)
    assert measured.peer_triples_per_second is not None and measured.triples_per_second is not None
    assert measured.peer_ratio == measured.triples_per_second / measured.peer_triples_per_second


def test_boundaries_are_ticks_of_the_peer() -> None:
    (window,) = parse(QUERY).windows
    stepped = replace(window, extent=nodes.TimeRange(5, step=4, start=1))
    assert boundaries([stepped], 5, 13) == [5, 9]
    assert boundaries([stepped], 4, 10) == [5, 9]
    assert boundaries([stepped], 6, 9) == []
    assert boundaries([window], 0, 100) == []
