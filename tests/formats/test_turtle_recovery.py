"""Reading goes on behind malformed statements of Turtle and TriG: no well-formed element is lost, whatever is wrong beside it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from cqels_py.errors import DataError
from cqels_py.formats import turtle_syntax, turtle_text
from cqels_py.formats.turtle import put_nquads
from tests.formats.reading import TIME, Source, iri

PREFIXES = "@prefix : <http://ex.org/> .\n@prefix prov: <http://www.w3.org/ns/prov#> .\n"

# What is malformed; the column of the place that is told, from 0 on within it; and a part of the message.
STATEMENTS: dict[str, tuple[str, int, str]] = {
    "undeclared prefix": (":s3 :p zz:b .", 7, "prefix zz: has not been declared"),
    "undeclared prefix among others": (":s3 :p [ :q zz:b ] ; :r 5 .", 12, "prefix zz:"),
    "bad escape": (r':s3 :p "a\qb" .', 9, "escape"),
    "bad escape of an IRI": (r":s3 :p <http://x/\u00zz> .", 21, "hexadecimal"),
    "unclosed text": (':s3 :p "abc .', 7, "the text in quotes is not closed"),
    "unclosed text of single quotes": (":s3 :p 'abc .", 7, "the text in quotes is not closed"),
    "unclosed long text": (':s3 :p """abc .', 7, "the text in quotes is not closed"),
    "unclosed IRI": (":s3 :p <http://x/b .", 7, "an IRI ends with '>' on its line"),
    "IRI with a blank": (":s3 :p <http://x/b c> .", 7, "IRI"),
    "IRI with a control character": (":s3 :p <http://x/\x01> .", 7, "IRI"),
    "relative IRI": (":s3 :p <rel> .", 7, "a relative IRI needs a base"),
    "bad language tag": (':s3 :p "x"@1e .', 11, "language"),
    "extra bracket": (":s3 :p 3 ] .", 9, "]"),
    "unclosed bracket": (":s3 :p [ :q 3 .", 14, "]"),
    "unclosed collection": (":s3 :p (1 2 .", 12, "."),
    "bad number": (":s3 :p 1e .", 7, "exponent"),
    "number of two points": (":s3 :p 1.2.3 .", 10, ".3"),
    "no datatype": (':s3 :p "x"^^ .', 13, "datatype"),
    "bad datatype": (':s3 :p "x"^^5 .', 12, "datatype"),
    "bad blank node": (":s3 :p _: .", 7, "blank node"),
    "bad keyword": ("@prefx q: <http://x/> .", 0, "@prefx"),
    "bad boolean": (":s3 :p tru .", 7, "tru"),
    "text as predicate": (':s3 "x" :q .', 4, "predicate"),
    "no object": (":s3 :p .", 7, "object"),
    "no predicate": (":s3 .", 4, "predicate"),
    "a word alone": ("a", 0, "a"),
    "extra comma": (":s3 :p 3 ;; :q , .", 15, ","),
    "extra point": (":s3 :p 3 . .", 11, "."),
    "invalid UTF-8": (':s3 :p "\udcff" .', 8, "UTF-8"),
    "triple term": (":s3 :p <<( :a :b :c )>> .", 7, "'<<(' is a triple term of RDF 1.2, which is not supported yet"),
    "reifying triple": ("<< :a :b :c >> :p 3 .", 0, "'<<' is a reifier of RDF 1.2"),
    "reifier": (":s3 :p 3 ~ :r .", 9, "'~' is a reifier of RDF 1.2"),
    "annotation": (":s3 :p 3 {| :a :b |} .", 9, "'{|' is an annotation of RDF 1.2"),
    "base direction": (':s3 :p "x"@en--ltr .', 10, "'@en--ltr' is a base direction of RDF 1.2"),
}
OF_TURTLE: dict[str, tuple[str, int, str]] = {
    "missing point": (":s3 :p 3", 8, "A dot is expected"),
    "graph": ("{ :s3 :p 3 . }", 0, "{"),
    "closing brace": ("}", 0, "}"),
}
GRAPHS: dict[str, tuple[str, int, str]] = {
    "unclosed graph": (":g3 { :s3 :p 3 .", 0, "the graph that begins here is not closed"),
    "unclosed graph of several lines": (
        ":g3 {\n  :s3 :p 3 .\n  :s3 :q 4 .",
        0,
        "the graph that begins here is not closed",
    ),
    "missing point": (":g3 { :s3 :p 3\n    :s3 :q 4 . }", 14, "'.' is expected"),
    "extra brace": (":g3 { :s3 :p 3 . } }", 19, "}"),
    "extra point": (":g3 { :s3 :p 3 . } .", 19, "."),
    "undeclared prefix of the graph": ("zz:g3 { :s3 :p 3 . :s3 :q 4 . }", 0, "prefix zz:"),
    "two names": (":g3 :h3 { :s3 :p 3 . }", 8, "{"),
    "no name": ("GRAPH { :s3 :p 3 . }", 6, "{"),
    "text as name": ('"g3" { :s3 :p 3 . }', 0, "graph name"),
    "directive inside": (":g3 { @prefix x: <http://x/> . }", 6, "@prefix"),
}
LAYOUTS = {
    "one line": ":g3 {{ {} }}\n",
    "several lines": ":g3 {{\n  {}\n}}\n",
    "no indentation": ":g3\n{{\n{}\n:s3 :r 3 .\n}}\n",
    "beside others": "    :g3 {{ :s3 :o 3 . {} }} # :g9 {{\n",
}
SIZES = (5, 1 << 22)


def found(source: Source, name: str, text: str, size: int) -> tuple[list[str], list[str]]:
    """The objects of :p of well-formed elements with a single triple beside their time, and the errors."""
    read = source(name, text.encode("utf-8", "surrogateescape"), time_predicate=TIME, on_error="skip", chunk_bytes=size)
    assert read.error is None
    parts = [(time, triple) for time, triples in read.elements for triple in triples if triple[1] == iri("p")]
    whole = [triple[0] for time, triple in parts if triple == (iri(f"s{time}"), iri("p"), integer(time))]
    # What remains of the malformed element has no time.
    return whole, [each for each in read.reported if "has no time" not in each]


def integer(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def place(text: str, at: int) -> str:
    return f":{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}: "


def elements(form: str, *numbers: int) -> str:
    triples = {n: f":s{n} :time {n} ; :p {n} ." for n in numbers}
    return "".join(f":g{n} {{ {each} }}\n" if form == "trig" else f"{each}\n" for n, each in triples.items())


def check(source: Source, form: str, malformed: str, column: int, message: str, size: int) -> None:
    """The element of the malformed piece may come without it; those before and behind come whole."""
    before = PREFIXES + elements(form, 1, 2)
    text = before + malformed + elements(form, 4, 5)
    whole, reported = found(source, f"s.{form}", text, size)
    assert [iri(f"s{n}") for n in (1, 2, 4, 5)] == [each for each in whole if each != iri("s3")]
    assert len(reported) == 1, reported
    assert place(text, len(before) + column) in reported[0] and message in reported[0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [*STATEMENTS, *OF_TURTLE])
def test_statements_of_turtle(source: Source, kind: str, size: int) -> None:
    statement, column, message = {**STATEMENTS, **OF_TURTLE}[kind]
    check(source, "ttl", f"  {statement}\n", column + 2, message, size)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", STATEMENTS)
def test_statements_of_trig(source: Source, kind: str, layout: str) -> None:
    statement, column, message = STATEMENTS[kind]
    graph = LAYOUTS[layout].format(statement)
    for size in SIZES:
        check(source, "trig", graph, graph.index(statement) + column, message, size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", GRAPHS)
def test_graphs_of_trig(source: Source, kind: str, size: int) -> None:
    graph, column, message = GRAPHS[kind]
    check(source, "trig", f"{graph}\n", column, message, size)


@pytest.mark.parametrize("kept", [1 << 15, 24 << 20])
@pytest.mark.parametrize("form", ["ttl", "trig"])
def test_many_errors_of_a_document(source: Source, form: str, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turtle_text, "_KEPT", kept)
    drawn = random.Random(form)
    kinds = [kind for kind in STATEMENTS if kind != "unclosed long text"]
    padding = range(1000, 4000) if kept < 1 << 20 else ()
    expected, parts = [iri(f"s{n}") for n in padding], [PREFIXES, elements(form, *padding)]
    for n in range(10, 300):
        statement = STATEMENTS[drawn.choice(kinds)][0].replace("s3", f"bad{n}")
        parts.append(LAYOUTS[drawn.choice([*LAYOUTS])].format(statement) if form == "trig" else statement + "\n")
        if drawn.random() < 0.7:
            parts.append("# a line { that says nothing .\n" + elements(form, n))
            expected.append(iri(f"s{n}"))
    for size in (100, 1 << 22):
        whole, reported = found(source, f"s.{form}", "".join(parts), size)
        assert whole == expected
        assert len(reported) >= 290


def work(text: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many errors the text has, and how many bytes are read and counted to tell them and to go on."""
    done, wrong = 0, list[DataError]()
    with monkeypatch.context() as patched:

        def watch(owner: Any, name: str, size: Callable[..., int]) -> None:
            function = getattr(owner, name)

            def watched(*arguments: Any) -> Any:
                nonlocal done
                found = function(*arguments)
                done += size(found, *arguments)
                return found

            patched.setattr(owner, name, watched)

        watch(turtle_text._KeptText, "read", lambda found, *_: len(found))
        watch(turtle_text, "lines_between", lambda _found, _text, start, end: end - start)
        watch(turtle_syntax, "_line_begin", lambda _found, _text, first, at: at - first)
        watch(turtle_syntax, "_characters", lambda _found, _text, start, end: end - start)
        watch(turtle_syntax, "_tokens", lambda _found, *_: 1)
        put_nquads(iter([text]), "trig", "s", wrong.append, bytes, None)
    return len(wrong), done


@pytest.mark.parametrize(
    "piece",
    [
        "'\\q . <a:a> <a:b> ",
        "<a:a> <a:b> z:b . ",
        "<a:a> <a:b> <a:c>\n",
        "<a:g> { <a:a> <a:b> <a:c> . <a:a> <a:b> z:c . }",
        "<a:g> { <a:a> <a:b> <a:c> . <a:h> { <a:a> <a:b> <a:c> . } } ",
        "<a:a> <a:b> ' .\n",
        '<a:a> <a:b> """ \\q """ . ',
    ],
)
def test_the_work_for_an_error_does_not_grow_with_the_text(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 40_000 // len(piece)
    errors, done = work(piece.encode() * count, monkeypatch)
    assert errors >= count // 2 - 1
    # A parser reads some 1,000 bytes ahead, and a line's beginning is looked for in the 4,096 bytes before.
    assert done / errors < 10_000


def test_columns_of_a_long_line_are_exact() -> None:
    wrong = list[DataError]()
    piece = "<a:a> <a:b> 'é' . <a:g> { <a:a> <a:b> z:b . } <a:h> { <a:a> <a:b> 'é' . <a:i> { } "
    put_nquads(iter([(piece * 300).encode()]), "trig", "s", wrong.append, bytes, None)
    columns = [error.place.column for error in wrong if error.place]
    expected = [len(piece) * n + piece.index(part) + 1 for n in range(300) for part in ("z:b", "<a:h>")]
    assert columns == expected
    wrong.clear()
    # The graph begins in a line before that of the last error, whose beginning is not kept any more.
    piece = "<a:a> <a:b> 'é' . <a:g> {\n <a:a> <a:b> z:b . } <a:a> <a:b> 'é' . <a:h> {\n <a:a> <a:b> z:b . <a:i> { } "
    put_nquads(iter([(piece * 300).encode()]), "trig", "s", wrong.append, bytes, None)
    before = [(error.place.line, error.place.column) for error in wrong if error.place and "not closed" in str(error)]
    assert before == [(2 * n + 2, piece.split("\n")[1].index("<a:h>") + 1) for n in range(300)]


def test_errors_of_a_text_with_very_many_prefixes_end_it_and_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turtle_text, "_SHORT_AHEAD", 1 << 9)
    monkeypatch.setattr(turtle_text, "_MOST_AHEAD", 1 << 13)
    for prefixes, expected in ((3, 100), (20, 11)):
        declared = "".join(f"@prefix p{n}: <http://example.org/{n}> .\n" for n in range(prefixes))
        wrong = list[DataError]()
        put_nquads(iter([(declared + "<a:a> <a:b> z:b .\n" * 100).encode()]), "ttl", "s", wrong.append, bytes, None)
        assert len(wrong) == expected
        assert ["the rest of the document is not read" in str(error) for error in wrong[-2:]] == [False, expected < 100]


@pytest.mark.parametrize("form", ["ttl", "trig"])
def test_errors_of_a_text_that_comes_while_it_is_read(form: str) -> None:
    for statement, _, message in STATEMENTS.values():
        graph = statement if form == "ttl" else f":g {{ {statement} }}"
        text = (PREFIXES + elements(form, 1) + graph + "\n" + elements(form, 2)).encode("utf-8", "surrogateescape")
        put, wrong = list[bytes](), list[DataError]()
        put_nquads(
            (text[at : at + 9] for at in range(0, len(text), 9)),
            form,
            "http://b/",
            wrong.append,
            put.append,
            "http://b/",
        )
        if message == "a relative IRI needs a base":
            assert not wrong
        else:
            assert [error for error in wrong if message in str(error)] == wrong[:1]
        said = b"".join(put)
        assert said.count(b"/s1>") == said.count(b"/s2>") == 2


def test_what_is_left_out_is_told(source: Source) -> None:
    wrong = list[DataError]()
    text = f"{PREFIXES}:s1 :p 1 .\n:s2 :p [ :q 1 ] ,\n  zz:b ; :r 4 . :s3 :p 3 .\n"
    put_nquads(iter([text.encode()]), "ttl", "http://b/", wrong.append, bytes, None)
    assert [error.element for error in wrong] == [":s2 :p [ :q 1 ] ,\n  zz:b ; :r 4 ."]


def test_an_announcement_of_rdf_1_2(source: Source) -> None:
    for announced in ('VERSION "1.2"\n', "# RDF\n@version '1.2' .\n", f'{PREFIXES}version "1.2-basic"\n'):
        for form in ("ttl", "trig"):
            text = announced + (PREFIXES if PREFIXES not in announced else "") + elements(form, 1, 2)
            whole, reported = found(source, f"s.{form}", text, 1 << 22)
            assert whole == [iri("s1"), iri("s2")]
            assert len(reported) == 1 and "is an announcement of RDF 1.2, which is not supported yet" in reported[0]
            line = announced.count("\n")
            assert f"s.{form}:{line}:1: " in reported[0]
