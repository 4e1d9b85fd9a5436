"""Deliberate errors: one family of exceptions, messages that show a correct form, and an engine that remains usable."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rdflib import BNode, Literal, URIRef, Variable

from cqels_py.engine.compile import compile_query
from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Query
from cqels_py.errors import CqelsError, DataError, QuerySyntaxError, RunError, UsageError
from cqels_py.runners import local
from tests.engine.test_engine import (
    COUNT,
    EX,
    LABELS,
    OTHER,
    PREFIX,
    ROWS,
    STREAM,
    VALUES,
    iri,
    seen,
    table,
    terms,
    texts,
)

GOOD = texts("a", 1)
A, V, ONE = GOOD


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.register(VALUES)
    return engine


SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"lateness": -1}, "0 or more microseconds, not -1"),
    ({"lateness": 1 << 62}, "less than 4611686018427387904 microseconds, not 4611686018427387904"),
    ({"lateness": 1.5}, 'lateness is an integer of microseconds, a timedelta, or a text such as "10s", not 1.5'),
    ({"lateness": "5 parsecs"}, "lateness is a duration such as 10s, not '5 parsecs'"),
    ({"lateness": timedelta(seconds=-1)}, "0 or more microseconds, not -1000000"),
    ({"idle": "0s"}, "idle is 1 or more microseconds, not 0"),
    ({"lateness_of": {STREAM: None}}, "lateness_of <.*> is an integer of microseconds, .*not None"),
    ({"batch": 0}, "1 or more elements, not 0"),
    ({"batch": True}, "integer of elements, not True"),
    ({"on_error": "ignore"}, "'stop' or 'skip', not 'ignore'"),
    ({"report": 5}, "report is a function of a DataError, not 5"),
]


@pytest.mark.parametrize(("settings", "message"), SETTINGS)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Engine(**settings)


TIMES: list[tuple[Any, str]] = [
    (None, "integer of microseconds since the epoch, a datetime with a time zone, or a text .* not None"),
    (1.0, "not 1.0"),
    ("1", "not '1'"),
    (True, "not True"),
    (datetime(2024, 1, 1), "which has no time zone: write time.replace"),
    ("yesterday", "not 'yesterday'"),
    (np.datetime64("NaT"), "NaT"),
    (1 << 63, "far beyond any date"),
    (-(1 << 62), "far beyond any date"),
]


@pytest.mark.parametrize(("time", "message"), TIMES)
def test_times_that_are_none(engine: Engine, time: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        engine.push(STREAM, [GOOD], time=time)
    with pytest.raises(UsageError, match=message):
        engine.advance(time)
    engine.push(STREAM, [GOOD], time=1)
    assert engine.statistics.elements == 1


NOT_TRIPLES: list[tuple[Any, str]] = [
    (GOOD, r"a triple is \(subject, predicate, object\), and triples are a list of such: not '<http"),
    (terms("a", 1), r"triples are a list of such: not rdflib"),
    ("<a> <b> <c> .", "a list of .*, not '<a> <b> <c> .'"),
    (b"<a> <b> <c> .", "a list of"),
    (5, "a list of .*, not 5"),
    (None, "not None"),
    ([GOOD[:2]], "a triple is"),
    ([(*GOOD, A)], "a triple is"),
    ([5], "a triple is .*not 5"),
    ([(A, V, 5j)], r"a term is an rdflib term, a text in N-Triples syntax, int, .* not 5j: write rdflib\.Literal"),
    ([(A, V, None)], "not None: leave the triple out where a value is missing"),
    ([(A, V, [1])], "a triple for each of them"),
    ({"v": 1}, r"'v' is no property: write its IRI, .* or add a context"),
    ({EX + "v": {"@value": object()}}, "a dict of JSON-LD such as"),
    ([(A, V, Variable("x"))], "not an RDF term"),
]


@pytest.mark.parametrize(("triples", "message"), NOT_TRIPLES)
def test_invalid_triples(engine: Engine, triples: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        engine.push(STREAM, triples, time=1)
    assert engine.statistics.elements == 0


NOT_TERMS: list[tuple[tuple[Any, Any, Any], str]] = [
    ((A, V, "words"), 'words is not a term in N-Triples syntax: a text must be in quotes, write "words"'),
    ((A, V, "http://ex.org/a"), "an IRI must be in angle brackets, write <http://ex.org/a>"),
    ((A, V, "urn:a:1"), "an IRI must be in angle brackets, write <urn:a:1>"),
    ((A, V, "<http://ex.org/a"), "the angle bracket at its end is missing, write <http://ex.org/a>"),
    (("<<http://ex.org/a>>", V, A), "brackets too many, write <http://ex.org/a>"),
    ((URIRef("<http://ex.org/a>"), V, A), "rdflib.URIRef is given without any"),
    (("ex:a", V, A), "prefixes are not known here"),
    ((A, V, "21"), 'write "21"\\^\\^<http://www.w3.org/2001/XMLSchema#integer>'),
    ((A, V, "-2.5"), 'write "-2.5"\\^\\^<http://www.w3.org/2001/XMLSchema#decimal>'),
    ((A, V, "1e5"), 'write "1e5"\\^\\^<http://www.w3.org/2001/XMLSchema#double>'),
    ((A, V, '"1"^^xsd:integer'), "N-Triples syntax: <iri>, "),
    ((A, V, ""), "an empty text is not a term"),
    ((A, V, "<http://ex.org/un closed>"), "is not a term"),
    ((A, V, '"unclosed'), "is not a term"),
    ((A, V, '"a"@'), "is not a term"),
    ((A, V, '"a\\x"'), r"unknown escape \\x"),
    ((A, V, '"\ud800"'), "half a character"),
    ((A, V, "?x"), "is not a term"),
    ((URIRef("a b"), URIRef(EX + "v"), Literal(1)), "<a b> is not a term"),
    (('"a"', V, ONE), 'the subject of a triple is an IRI or a blank node, not "a"'),
    ((Literal("a"), V, ONE), "the subject of a triple is"),
    ((A, '"v"', ONE), 'the predicate of a triple is an IRI, not "v"'),
    ((A, BNode("v"), ONE), "the predicate of a triple is an IRI, not _:v"),
]


@pytest.mark.parametrize(("triple", "message"), NOT_TERMS)
@pytest.mark.parametrize("batch", [1, 3])
def test_an_element_with_a_term_that_is_none(batch: int, triple: Any, message: str) -> None:
    """It is left out as a whole, and alone."""
    engine = Engine(batch=batch)
    query = engine.register(VALUES)

    def push_all() -> None:
        engine.push(STREAM, [texts("a", 1)], time=1)
        engine.push(STREAM, [texts("b", 2), triple, texts("c", 3)], time=2)

    with pytest.raises(DataError, match=f"an element pushed to <{STREAM}>: .*{message}"):
        push_all()
        engine.push(STREAM, [texts("d", 4)], time=3)
    engine.push(STREAM, [texts("e", 5)], time=4)
    engine.flush()
    found = [row[2] for row in seen(query.results())]
    assert found in (["a", "e"], ["a", "d", "e"])
    with pytest.raises(DataError, match=message):
        Engine().register(LABELS, static=[[GOOD, triple]])


@pytest.mark.parametrize("batch", [1, 3, 10])
def test_malformed_elements_can_be_skipped(batch: int) -> None:
    reports: list[DataError] = []
    engine = Engine(batch=batch, on_error="skip", report=reports.append)
    query = engine.register(VALUES)
    for time, (triple, _) in enumerate(NOT_TERMS):
        engine.push(STREAM, [texts("a", time), triple], time=time)
        engine.push(STREAM, [texts("b", time)], time=time)
    engine.finish()
    assert [row[2:] for row in seen(query.results())] == [("b", time) for time in range(len(NOT_TERMS))]
    assert engine.statistics.malformed == len(reports) == len(NOT_TERMS)
    assert engine.statistics.elements == len(NOT_TERMS)


def test_all_that_is_wrong_in_a_batch_is_named() -> None:
    engine = Engine(batch=3)
    engine.register(VALUES)
    for word in ("one", "two"):
        engine.push(STREAM, [(A, V, word)], time=1)
    with pytest.raises(DataError, match="one is not a term") as caught:
        engine.push(STREAM, [GOOD], time=1)
    assert any("two is not a term" in note for note in caught.value.__notes__)
    assert engine.statistics.elements == 1


def test_errors_are_reported_even_if_a_subscriber_raises() -> None:
    engine = Engine(batch=2)
    engine.register(VALUES).subscribe(fail)
    engine.push(STREAM, [(A, V, "one")], time=1)
    with pytest.raises(ZeroDivisionError) as caught:
        engine.push(STREAM, [GOOD], time=1)
    assert any("one is not a term" in note for note in caught.value.__notes__)


def test_skipped_elements_are_counted_even_if_a_subscriber_raises() -> None:
    reports: list[DataError] = []
    engine = Engine(batch=4, on_error="skip", report=reports.append)
    engine.register(VALUES).subscribe(fail)
    engine.push(STREAM, [(A, V, "one")], time=1)
    engine.push(STREAM, [GOOD], time=5)
    engine.push(STREAM, [GOOD], time=1)
    with pytest.raises(ZeroDivisionError):
        engine.push(STREAM, [GOOD], time=6)
    assert (engine.statistics.malformed, engine.statistics.late) == (1, 1)
    assert sorted("dropped" in str(report) for report in reports) == [False, True]


def fail(_: object) -> None:
    raise ZeroDivisionError


def test_who_interrupts_while_elements_are_encoded_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    engine = Engine(batch=3)
    query = engine.register(VALUES)
    for time in range(2):
        engine.push(STREAM, [texts("a", time)], time=time)
    with monkeypatch.context() as patch:
        patch.setattr("cqels_py.engine.engine.elements_of_pushed", interrupt)
        with pytest.raises(KeyboardInterrupt):
            engine.push(STREAM, [texts("a", 2)], time=2)
    engine.flush()
    assert [row[3] for row in seen(query.results())] == [0, 1, 2]


def wrong_tables() -> Iterable[tuple[Any, type[CqelsError], str]]:
    good = table(ROWS)
    yield good.drop_columns(["object"]), DataError, "no column object"
    yield good.drop_columns(["time"]), DataError, "no column time"
    yield good.to_pylist(), UsageError, "an Arrow table or reader, not list"
    yield "s.csv", UsageError, "an Arrow table or reader, not str"
    yield good.append_column("subject", good["subject"]), DataError, "more than one column subject"
    yield (
        good.set_column(0, "time", good["time"].cast(pa.duration("us"))),
        DataError,
        "a length of time, not a point in time",
    )
    far = good.set_column(0, "time", pa.array([1, 2, 1 << 62, 7]))
    yield far, DataError, "row:3: the time is 4611686018427387904, far beyond any date"
    bounds = pa.py_buffer(np.array([0, 4, 8, 10, 14], np.int32))
    bytes_ = pa.Array.from_buffers(pa.string(), 4, [None, bounds, pa.py_buffer(b"<a:><a:>\xff><a:>")])
    yield good.set_column(1, "subject", bytes_), DataError, "row:3: the subject: the byte 0xff is not UTF-8"
    wrong = good.set_column(3, "object", pa.array([ONE, ONE, "words", ONE]))
    yield pandas_table([1.5, "x"]), DataError, "cannot be read as Arrow .*'x'.*texts in N-Triples syntax, all of them"
    yield pandas_table(["x", 1.5]), DataError, "cannot be read as Arrow .*float.*texts in N-Triples syntax, all of them"
    yield wrong, DataError, "row:3: the object: words is not a term"


def pandas_table(objects: list[object]) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"time": [1, 2], "subject": [A, A], "predicate": [V, V], "object": objects})


@pytest.mark.parametrize("place", range(11))
def test_tables_that_are_none(engine: Engine, place: int) -> None:
    wrong, kind, message = list(wrong_tables())[place]
    with pytest.raises(kind, match=message):
        engine.push_batch(STREAM, wrong)
    engine.push(STREAM, [GOOD], time=100)
    assert engine.statistics.event_time == 100


def test_malformed_rows_can_be_skipped() -> None:
    reports: list[DataError] = []
    engine = Engine(on_error="skip", report=reports.append)
    query = engine.register(VALUES)
    wrong = list(wrong_tables())[-1][0]
    engine.push_batch(STREAM, wrong)
    assert [row[2] for row in seen(query.results())] == ["a", "b", "a"]
    assert [str(report)[:6] for report in reports] == ["row:3:"]
    assert engine.statistics.malformed == 1


def test_the_element_that_is_open_at_a_wrong_row_is_not_processed(engine: Engine) -> None:
    """The wrong row may have been part of it; those before it have ended."""
    got: list[str] = []
    next(iter(engine._queries)).subscribe(lambda result: got.append(str(result.bindings["s"])))
    objects = pa.array([ONE, ONE, "words", ONE])
    with pytest.raises(DataError, match="row:3"):
        engine.push_batch(STREAM, table(ROWS).set_column(3, "object", objects))
    assert got == [EX + "a"]


RUNS: list[tuple[Any, dict[str, Any], str]] = [
    ("temp.csv", {}, "the argument of run is a mapping, {iri: source}, not 'temp.csv'"),
    ([table(ROWS)], {}, "the argument of run is a mapping, {iri: source}"),
    ({5: table(ROWS)}, {}, "an IRI is a text, not 5"),
    (None, {"time_predicates": "x"}, "time_predicates is a mapping, {iri: IRI of a property}, not 'x'"),
    (None, {"time_predicates": {OTHER: "x"}}, f"time_predicates has the stream <{OTHER}>, which has no source"),
    (None, {"time_predicates": {STREAM: 5}}, f"the time predicate of <{STREAM}> is an IRI as a text, not 5"),
    (None, {"progress": 5}, "progress is a function of the statistics, not 5"),
    (None, {"threads": 3}, "threads is 1 or 2, not 3"),
]


@pytest.mark.parametrize(("sources", "options", "message"), RUNS)
def test_runs_that_are_none(engine: Engine, sources: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        engine.run({STREAM: table(ROWS)} if sources is None else sources, **options)
    assert engine.run({STREAM: table(ROWS)}).elements == 3


def test_streams_may_be_named_by_rdflib() -> None:
    engine = Engine()
    engine.register(VALUES)
    held = table(ROWS).drop_columns(["time"]).append_column("graph", pa.array(["1", "2", "3", "4"]))
    with pytest.raises(DataError, match=f"no time: no triple with the predicate <{EX}at>"):
        engine.run({URIRef(STREAM): held}, time_predicates={URIRef(STREAM): URIRef(EX + "at")})


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_files_in_a_folder_that_may_not_be_entered(
    engine: Engine, threads: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    stat = Path.stat

    def may_enter(path: Path, **options: Any) -> Any:
        if path.parent == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", may_enter)
    for name in ("s.csv", "s.nq.gz", "s.parquet"):
        with pytest.raises(
            UsageError, match=r"cannot read .*: Permission denied|can only read files ahead, and a source is not a file"
        ):
            engine.run({STREAM: closed / name}, threads=threads)
    with pytest.raises(UsageError, match=r"cannot read .*rooms.ttl: Permission denied"):
        engine.register(LABELS, static=closed / "rooms.ttl")
    file = (closed / "rooms.ttl").as_uri()
    with pytest.raises(UsageError, match="no data was given for it"):
        engine.register(LABELS.replace("SELECT ?l {", f"SELECT ?l FROM <{file}> {{"))


@pytest.mark.parametrize("wrong", [5, None, [GOOD], [5]])
def test_sources_that_are_none(engine: Engine, wrong: Any) -> None:
    with pytest.raises(UsageError, match='a file, "-", a URL, an Arrow table or reader, or batches of elements'):
        engine.run({STREAM: wrong})


def test_streams_and_sources_must_fit(engine: Engine) -> None:
    unknown = rf"no registered query reads the stream <{OTHER}>; streams read: <{STREAM}>"
    with pytest.raises(UsageError, match=unknown):
        engine.push(OTHER, [GOOD], time=1)
    with pytest.raises(UsageError, match=unknown):
        engine.push_batch(OTHER, table(ROWS))
    with pytest.raises(UsageError, match=unknown):
        engine.run({STREAM: table(ROWS), OTHER: table(ROWS)})
    engine.register(PREFIX + "SELECT * { STREAM :t [NOW] { ?s :v ?v } }")
    with pytest.raises(UsageError, match=f"no source was given for <{OTHER}>"):
        engine.run({STREAM: table(ROWS)})
    with pytest.raises(UsageError, match=r"there is no file none\.nq in /"):
        engine.run({STREAM: "none.nq", OTHER: table(ROWS)})
    with pytest.raises(UsageError, match=f"without angle brackets here: {STREAM}$"):
        engine.push(f"<{STREAM}>", [GOOD], time=1)
    with pytest.raises(UsageError, match=f"did you mean {OTHER}.$"):
        engine.push(OTHER + "/", [GOOD], time=1)
    with pytest.raises(UsageError, match="streams read: none"):
        Engine().push(STREAM, [GOOD], time=1)


QUERIES: list[tuple[Any, type[CqelsError], str]] = [
    ("SELECT", QuerySyntaxError, ":1:"),
    ("SELECT * { ?s ?p ?o }", CqelsError, "STREAM <"),
    (None, UsageError, "a query is a text, not None"),
    (b"SELECT", UsageError, "a query is a text"),
]


@pytest.mark.parametrize(("text", "kind", "message"), QUERIES)
def test_queries_that_are_none(engine: Engine, text: Any, kind: type[CqelsError], message: str) -> None:
    with pytest.raises(kind, match=message):
        engine.register(text)
    with pytest.raises(kind):
        compile_query(text)
    engine.push(STREAM, [GOOD], time=1)
    assert engine.statistics.results == 1


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"changelog": "yes"}, "changelog is True or False, not 'yes'"),
    ({"source": 5}, "source is the name of the query's text in messages, not 5"),
    ({"static_graphs": ["rooms.ttl"]}, r"static_graphs is a mapping, {iri: data}, not \['rooms.ttl'\]"),
    ({"static_graphs": []}, "static_graphs is a mapping"),
    ({"static_graphs": {5: b""}}, "an IRI is a text, not 5"),
    ({"entailment": "owl"}, "'rdfs' or None, not 'owl'"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_options_that_make_no_sense(engine: Engine, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        engine.register(LABELS, **options)
    if "static_graphs" in options:
        query = engine.register(LABELS)
        for update in (query.update_static, lambda **data: engine.update_static(query, **data)):
            with pytest.raises(UsageError, match=message):
                update(**options)
    engine.push(STREAM, [GOOD], time=1)
    assert engine.statistics.results == 1


def test_a_subscriber_is_a_function(engine: Engine) -> None:
    query = engine.register(VALUES)
    with pytest.raises(UsageError, match="the callback is a function of a Result, not 5"):
        query.subscribe(5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the callback is a function of a ResultBatch, not 5"):
        query.subscribe_batches(5, ids=True)  # type: ignore[arg-type]
    engine.push(STREAM, [GOOD], time=1)
    assert len(list(query.results())) == 1


@pytest.mark.parametrize("wrong", [5, [], "SELECT"])
def test_methods_refuse_anything_but_a_registered_query(engine: Engine, wrong: Any) -> None:
    for method in (engine.unregister, engine.update_static, lambda query: engine.connect(query, STREAM)):
        with pytest.raises(UsageError, match="not registered here"):
            method(wrong)


def test_messages_name_the_source_of_a_query() -> None:
    with pytest.raises(QuerySyntaxError, match=r"^hot\.rq:2:"):
        Engine().register("SELECT *\nWHERE STREAM", source="hot.rq")


STATIC: list[tuple[Any, type[CqelsError], str]] = [
    (5, UsageError, "a file, the URL of a table, N-Triples as bytes, triples, or an rdflib Graph"),
    ([5], UsageError, "a file, the URL of a table, N-Triples as bytes, triples, or an rdflib Graph"),
    ("none.ttl", UsageError, "none.ttl"),
    (["data.xlsx"], UsageError, "data.xlsx"),
    (b"<http://ex.org/a> <http://ex.org/label> .", DataError, "<static data>:1"),
    ([GOOD], UsageError, "triples are a list of such"),
]


@pytest.mark.parametrize(("static", "kind", "message"), STATIC)
def test_static_data_that_is_none(engine: Engine, static: Any, kind: type[CqelsError], message: str) -> None:
    with pytest.raises(kind, match=message):
        engine.register(LABELS, static=static)
    one = static[0] if isinstance(static, list) else static
    with pytest.raises(kind, match=message):
        engine.register(LABELS, static_graphs={EX + "g": one})
    engine.push(STREAM, [GOOD], time=1)
    assert engine.statistics.results == 1


CLOSED: dict[str, Callable[[Engine], object]] = {
    "register": lambda engine: engine.register(COUNT),
    "push": lambda engine: engine.push(STREAM, [GOOD], time=9),
    "push_batch": lambda engine: engine.push_batch(STREAM, table(ROWS)),
    "advance": lambda engine: engine.advance(9),
    "run": lambda engine: engine.run({STREAM: table(ROWS)}),
}


@pytest.mark.parametrize("method", CLOSED)
def test_after_the_end_there_is_nothing_more(engine: Engine, method: str) -> None:
    engine.finish()
    for _ in range(2):
        with pytest.raises(UsageError, match="the engine's streams have ended: make a new engine"):
            CLOSED[method](engine)
    engine.flush()
    engine.finish()


def test_a_query_can_leave_after_the_end() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    engine.push(STREAM, [GOOD], time=1)
    engine.finish()
    engine.unregister(query)
    assert len(list(query.results())) == 1


FAILED = r"the engine has failed \(MemoryError: no room\): make a new one"


@pytest.mark.parametrize("method", CLOSED)
def test_after_a_failure_in_the_middle_there_is_no_going_on(
    engine: Engine, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(engine._runner, "push", fail)
        with pytest.raises(RunError, match=FAILED) as raised:
            engine.push(STREAM, [GOOD], time=1)
        assert isinstance(raised.value.__cause__, MemoryError)
    with pytest.raises(RunError, match=FAILED):
        CLOSED[method](engine)


def test_another_engines_query() -> None:
    engine, other = Engine(), Engine()
    query: Query = other.register(VALUES)
    with pytest.raises(UsageError, match="not registered here"):
        engine.unregister(query)
    assert iri("a") == A


def test_a_time_of_another_unit_is_not_reported_step_by_step() -> None:
    engine = Engine()
    engine.register(f"""
        {PREFIX} REGISTER RSTREAM :report AS SELECT ?s ?v FROM NAMED WINDOW :w ON <{STREAM}> [RANGE PT1M STEP PT1S]
        WHERE {{ WINDOW :w {{ ?s :v ?v }} }}
    """)
    engine.push(STREAM, [GOOD], time=1_000_000)
    with pytest.raises(
        RunError, match=r"at once, past more than 100,000,000 steps of 1000000 microseconds.*another unit"
    ):
        engine.push(STREAM, [GOOD], time=1_000_000_000_000_000)


def test_a_batch_kept_for_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_COLLECT_FROM", 100)
    engine = Engine()
    query = engine.register(f"{PREFIX} SELECT ?x WHERE {{ STREAM :s [COUNT 1] {{ ?x :v ?y }} }}")
    kept: list[Any] = []
    query.subscribe_batches(kept.append, ids=True)
    for i in range(500):
        engine.push(f"{EX}s", [(f"<{EX}{'long' * 8}{i}>", f"<{EX}v>", '"1"')], time=i)
    with pytest.raises(UsageError, match=r"released.*decode a batch.* in the callback"):
        engine.dictionary.decode(kept[0].columns[0])
    assert engine.dictionary.decode(kept[-1].columns[0]) == [f"<{EX}{'long' * 8}499>"]


def test_a_byte_order_mark_before_a_query_is_no_part_of_it() -> None:
    assert Engine().register(f"\ufeff{VALUES}").explain() == Engine().register(VALUES).explain()
    with pytest.raises(QuerySyntaxError, match=r"^<query>:1:8: "):
        Engine().register("\ufeffSELECT SELECT")


def test_the_public_names_are_listed_before_anything_is_imported() -> None:
    program = "import cqels_py; assert not set(cqels_py.__all__) - set(dir(cqels_py)), dir(cqels_py)"
    subprocess.run([sys.executable, "-c", program], check=True)
