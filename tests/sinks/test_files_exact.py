"""Results as exact text: every kind of term in every format, and a sink's use of its file."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pyoxigraph
import pytest

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.sinks.files import GRAPH_FORMATS, SOLUTION_FORMATS, open_sink

XSD = "http://www.w3.org/2001/XMLSchema#"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
Template = tuple[tuple[str, str, str], ...]
Column = list[str | None]


class Flushed(io.StringIO):
    """Remembers how much of the text had been written at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.flushes: list[int] = []

    def flush(self) -> None:
        self.flushes.append(self.tell())
        super().flush()


class Closed(io.StringIO):
    """A pipe that nobody reads any more, after the heading."""

    def write(self, text: str) -> int:
        if "1970" in text:
            raise BrokenPipeError(32, "Broken pipe")
        return len(text)


def results(dictionary: Dictionary, columns: dict[str, Column], signs: list[int] | None = None) -> ResultBatch:
    """A batch with the columns; result i is at second i."""
    size = len(next(iter(columns.values())))
    times = np.arange(size, dtype=np.int64) * 1_000_000
    sign = np.array(signs or [1] * size, np.int8)
    return ResultBatch(tuple(columns), times, sign, tuple(dictionary.encode(column) for column in columns.values()))


def written(
    format_: str, columns: dict[str, Column], *, form: str | None = None, template: Template = (), signs: list[int] | None = None
) -> str:  # fmt: skip
    dictionary = Dictionary()
    file = io.StringIO()
    form = form or ("CONSTRUCT" if format_ in GRAPH_FORMATS else "SELECT")
    sink = open_sink(format_, file, dictionary=dictionary, form=form, variables=tuple(columns), template=template)
    sink.write(results(dictionary, columns, signs))
    sink.commit()
    return file.getvalue()


# --- terms ------------------------------------------------------------------------------------------------------------

LABEL = Dictionary().decode(Dictionary().encode(["_:x"]))[0]
"""The name of a blank node, equal everywhere."""

TERMS = [
    # the term, its value in JSON, in CSV, in TSV
    ("<http://ex.org/a>", '{"type":"uri","value":"http://ex.org/a"}', "http://ex.org/a", "<http://ex.org/a>"),
    ("<http://é.org/,>", '{"type":"uri","value":"http://é.org/,"}', '"http://é.org/,"', "<http://é.org/,>"),
    ("_:x", f'{{"type":"bnode","value":"{str(LABEL)[2:]}"}}', LABEL, LABEL),
    ('"a"', '{"type":"literal","value":"a"}', "a", '"a"'),
    ('""', '{"type":"literal","value":""}', '""', '""'),
    ('" "', '{"type":"literal","value":" "}', " ", '" "'),
    ('"a"@de-AT', '{"type":"literal","value":"a","xml:lang":"de-at"}', "a", '"a"@de-at'),
    ('"a"@en', '{"type":"literal","value":"a","xml:lang":"en"}', "a", '"a"@en'),
    (
        f'"05"^^<{XSD}integer>',
        f'{{"type":"literal","value":"05","datatype":"{XSD}integer"}}',
        "05",
        f'"05"^^<{XSD}integer>',
    ),
    (
        f'"12.50"^^<{XSD}decimal>',
        f'{{"type":"literal","value":"12.50","datatype":"{XSD}decimal"}}',
        "12.50",
        f'"12.50"^^<{XSD}decimal>',
    ),
    (
        '"a,b"^^<http://ex.org/t>',
        '{"type":"literal","value":"a,b","datatype":"http://ex.org/t"}',
        '"a,b"',
        '"a,b"^^<http://ex.org/t>',
    ),
    ('"\\"q\\""', '{"type":"literal","value":"\\"q\\""}', '"""q"""', '"\\"q\\""'),
    ('"^^<"', '{"type":"literal","value":"^^<"}', "^^<", '"^^<"'),
    ('"a\\\\nb"', '{"type":"literal","value":"a\\\\nb"}', "a\\nb", '"a\\\\nb"'),
    ('"a\\tb"', '{"type":"literal","value":"a\\tb"}', "a\tb", '"a\\tb"'),
    ('"a\\r\\nb"', '{"type":"literal","value":"a\\r\\nb"}', '"a\r\nb"', '"a\\r\\nb"'),
    ('"caf\\u00e9 \\U0001F600"', '{"type":"literal","value":"café 😀"}', "café 😀", '"café 😀"'),
    ('"\\u0001"', '{"type":"literal","value":"\\u0001"}', "\x01", '"\x01"'),
]


@pytest.mark.parametrize(("term", "json_", "csv", "tsv"), TERMS)
def test_each_kind_of_term(term: str, json_: str, csv: str, tsv: str) -> None:
    time = "1970-01-01T00:00:00Z"
    assert written("json", {"x": [term]}) == f'{{"time":"{time}","sign":"+","bindings":{{"x":{json_}}}}}\n'
    assert written("csv", {"x": [term]}) == f"time,sign,x\n{time},+,{csv}\n"
    assert written("tsv", {"x": [term]}) == f"time\tsign\t?x\n{time}\t+\t{tsv}\n"


def test_unbound_is_left_out_or_empty() -> None:
    columns: dict[str, Column] = {"a": [None, None], "b": ['"1"', None]}
    assert written("json", columns, signs=[1, -1]).splitlines() == [
        '{"time":"1970-01-01T00:00:00Z","sign":"+","bindings":{"b":{"type":"literal","value":"1"}}}',
        '{"time":"1970-01-01T00:00:01Z","sign":"-","bindings":{}}',
    ]
    assert written("csv", columns, signs=[1, -1]) == (
        "time,sign,a,b\n1970-01-01T00:00:00Z,+,,1\n1970-01-01T00:00:01Z,-,,\n"
    )
    assert written("tsv", columns, signs=[1, -1]) == (
        'time\tsign\t?a\t?b\n1970-01-01T00:00:00Z\t+\t\t"1"\n1970-01-01T00:00:01Z\t-\t\t\n'
    )


def test_ask() -> None:
    columns: dict[str, Column] = {"boolean": [f'"true"^^<{XSD}boolean>', f'"false"^^<{XSD}boolean>']}
    assert written("json", columns, form="ASK", signs=[1, -1]).splitlines() == [
        '{"time":"1970-01-01T00:00:00Z","sign":"+","boolean":true}',
        '{"time":"1970-01-01T00:00:01Z","sign":"-","boolean":false}',
    ]
    assert written("csv", columns, form="ASK").splitlines()[1:] == [
        "1970-01-01T00:00:00Z,+,true",
        "1970-01-01T00:00:01Z,+,false",
    ]


@pytest.mark.parametrize(
    ("format_", "text"),
    [("json", ""), ("csv", "time,sign,x\n"), ("tsv", "time\tsign\t?x\n"), ("nquads", ""), ("turtle", "")],
)
def test_nothing_has_a_heading_at_most(format_: str, text: str) -> None:
    assert written(format_, {"x": []}, template=(("?x", "<a:p>", "?x"),)) == text
    file = io.StringIO()
    form = "CONSTRUCT" if format_ in GRAPH_FORMATS else "SELECT"
    open_sink(format_, file, dictionary=Dictionary(), form=form, variables=("x",)).commit()
    assert file.getvalue() == text


# --- graphs -----------------------------------------------------------------------------------------------------------


def stamped(number: int, second: int) -> str:
    return f'<urn:cqels:result:{number}> <{PROV}> "1970-01-01T00:00:0{second}Z"^^<{XSD}dateTime> .'


def numbered(text: str) -> str:
    """The text with its blank nodes' labels numbered in the order in which they come."""
    for number, label in enumerate(dict.fromkeys(re.findall(r"_:b[0-9a-f]{15}", text))):
        text = text.replace(label, f"_:{number}")
    return text


def test_nquads_trig_and_turtle() -> None:
    template: Template = (("?x", "<a:p>", "_:n"), ("_:n", "<a:q>", '"é\\n"'))
    columns: dict[str, Column] = {"x": ["<a:1>", "<a:2>", "<a:3>"]}
    assert numbered(written("nquads", columns, template=template, signs=[1, -1, 1])).splitlines() == [
        stamped(0, 0),
        "<a:1> <a:p> _:0 <urn:cqels:result:0> .",
        '_:0 <a:q> "é\\n" <urn:cqels:result:0> .',
        stamped(1, 2),
        "<a:3> <a:p> _:1 <urn:cqels:result:1> .",
        '_:1 <a:q> "é\\n" <urn:cqels:result:1> .',
    ]
    assert numbered(written("trig", columns, template=template, signs=[-1, -1, 1])).splitlines() == [
        stamped(0, 2),
        "<urn:cqels:result:0> {",
        "  <a:3> <a:p> _:0 .",
        '  _:0 <a:q> "é\\n" .',
        "}",
    ]
    assert numbered(written("turtle", columns, template=template, signs=[1, -1, 1])).splitlines() == [
        "# result 0 at 1970-01-01T00:00:00Z",
        "<a:1> <a:p> _:0 .",
        '_:0 <a:q> "é\\n" .',
        "# result 1 at 1970-01-01T00:00:02Z",
        "<a:3> <a:p> _:1 .",
        '_:1 <a:q> "é\\n" .',
    ]


def test_ill_placed_and_unbound_terms_leave_their_triple_out() -> None:
    template: Template = (("?a", "?b", "?c"), ("<a:s>", "<a:p>", "?c"))
    columns: dict[str, Column] = {
        "a": ['"literal"', "<a:a>", "<a:a>", "<a:a>", None, "_:x"],
        "b": ["<a:b>", '"literal"', "_:x", "<a:b>", "<a:b>", "<a:b>"],
        "c": ["<a:c>", "<a:c>", "<a:c>", None, "<a:c>", '"literal"'],
    }
    lines = written("nquads", columns, template=template).splitlines()
    kept = [f"<a:s> <a:p> <a:c> <urn:cqels:result:{n}> ." for n in range(4)]
    kept += [f'{LABEL} <a:b> "literal" <urn:cqels:result:4> .', '<a:s> <a:p> "literal" <urn:cqels:result:4> .']
    assert [line for line in lines if PROV not in line] == kept
    assert [line for line in lines if PROV in line] == [stamped(*pair) for pair in enumerate((0, 1, 2, 4, 5))]


def test_a_graph_holds_a_triple_once() -> None:
    template: Template = (("?a", "<a:p>", "?b"), ("?b", "<a:p>", "?a"), ("<a:1>", "?c", "?b"))
    columns: dict[str, Column] = {"a": ["<a:1>", "<a:1>"], "b": ["<a:1>", "<a:2>"], "c": ["<a:p>", "<a:p>"]}
    assert [line for line in written("nquads", columns, template=template).splitlines() if PROV not in line] == [
        "<a:1> <a:p> <a:1> <urn:cqels:result:0> .",
        "<a:1> <a:p> <a:2> <urn:cqels:result:1> .",
        "<a:2> <a:p> <a:1> <urn:cqels:result:1> .",
    ]


def test_an_empty_template_writes_nothing() -> None:
    assert written("nquads", {"a": ["<a:1>"]}, template=()) == ""


@pytest.mark.parametrize("format_", ["nquads", "trig"])
def test_another_reader_finds_the_terms(format_: str) -> None:
    terms = [term for term, *_ in TERMS if not term.startswith("_:")]
    text = written(format_, {"x": list(terms)}, template=(("<a:s>", "<a:p>", "?x"),))
    form = pyoxigraph.RdfFormat.N_QUADS if format_ == "nquads" else pyoxigraph.RdfFormat.TRIG
    quads = list(pyoxigraph.parse(text, format=form))
    found = {str(quad.graph_name): quad.object for quad in quads if quad.predicate.value == "a:p"}
    nquads = "".join(f"<a:s> <a:p> {term.lower() if '@' in term else term} .\n" for term in terms)
    expected = [quad.object for quad in pyoxigraph.parse(nquads, format=pyoxigraph.RdfFormat.N_TRIPLES)]
    assert [found[f"<urn:cqels:result:{n}>"] for n in range(len(terms))] == expected
    times = [quad for quad in quads if quad.predicate.value == PROV]
    assert {quad.graph_name for quad in times} == {pyoxigraph.DefaultGraph()}
    assert [str(quad.subject) for quad in times] == [f"<urn:cqels:result:{n}>" for n in range(len(terms))]


# --- the file and the form --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", [*SOLUTION_FORMATS, *GRAPH_FORMATS])
def test_what_was_written_is_there_after_a_flush(format_: str) -> None:
    dictionary = Dictionary()
    file = Flushed()
    form = "CONSTRUCT" if format_ in GRAPH_FORMATS else "SELECT"
    sink = open_sink(
        format_, file, dictionary=dictionary, form=form, variables=("x",), template=(("?x", "<a:p>", "?x"),)
    )
    for number in range(2):
        sink.write(results(dictionary, {"x": [f"<a:{number}>"]}))
        sink.flush()
        assert file.flushes[-1] == len(file.getvalue())
    assert file.flushes[-2] < file.flushes[-1]


@pytest.mark.parametrize("format_", [*SOLUTION_FORMATS, *GRAPH_FORMATS])
def test_a_closed_pipe_is_not_hidden(format_: str) -> None:
    dictionary = Dictionary()
    form = "CONSTRUCT" if format_ in GRAPH_FORMATS else "SELECT"
    sink = open_sink(
        format_, Closed(), dictionary=dictionary, form=form, variables=("x",), template=(("?x", "<a:p>", "?x"),)
    )
    with pytest.raises(BrokenPipeError):
        sink.write(results(dictionary, {"x": ["<a:1>"]}))


@pytest.mark.parametrize(
    ("format_", "form", "message"),
    [
        ("json", "CONSTRUCT", "json cannot hold the results of CONSTRUCT; choose one of nquads, turtle, trig, jelly"),
        ("csv", "CONSTRUCT", "csv cannot hold the results of CONSTRUCT; choose one of nquads, turtle, trig, jelly"),
        ("nquads", "SELECT", "nquads cannot hold the results of SELECT; choose one of json, csv, tsv"),
        ("trig", "ASK", "trig cannot hold the results of ASK; choose one of json, csv, tsv"),
    ],
)
def test_a_format_that_does_not_fit_is_refused(format_: str, form: str, message: str) -> None:
    file = io.StringIO()
    with pytest.raises(UsageError) as refusal:
        open_sink(format_, file, dictionary=Dictionary(), form=form, variables=("x",))
    assert str(refusal.value) == message
    assert file.getvalue() == ""


@pytest.mark.parametrize("year", [-290_000, -3, 0, 1, 9999, 10_000, 290_000])
def test_far_years_are_written(year: int) -> None:
    dictionary = Dictionary()
    file = io.StringIO()
    micros = int((np.datetime64(year - 1970, "Y")).astype("datetime64[us]").astype(np.int64)) + 250_000
    batch = ResultBatch(("x",), np.array([micros]), np.ones(1, np.int8), (dictionary.encode([None]),))
    open_sink("csv", file, dictionary=dictionary, form="SELECT", variables=("x",)).write(batch)
    assert file.getvalue().splitlines()[1].endswith("-01-01T00:00:00.25Z,+,")
    assert int(file.getvalue().splitlines()[1].split("-01-01T")[0]) == year


def test_a_commit_says_how_long_the_file_is(tmp_path: Path) -> None:
    dictionary = Dictionary()
    with (tmp_path / "out.csv").open("w", encoding="utf-8", newline="") as file:
        sink = open_sink("csv", file, dictionary=dictionary, form="SELECT", variables=("x",))
        sink.write(results(dictionary, {"x": ["<a:é>"]}))
        assert sink.commit() == (tmp_path / "out.csv").stat().st_size > len("time,sign,x\n")
    assert open_sink("json", io.StringIO(), dictionary=dictionary, form="SELECT", variables=("x",)).commit() is None
