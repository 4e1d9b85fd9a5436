"""N-Triples and N-Quads: terms as another parser reads them, elements, places of malformed input, any size of chunks."""

from __future__ import annotations

import tempfile
from itertools import groupby
from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.formats.static import load_static
from cqels_py.terms.canonical import canonical
from tests.formats.reading import GENERATED, TIME, XSD, Source, ahead, instant, iri, read_source, renamed

# --- random statements against another parser ------------------------------------------------------------------------

IRIS = st.sampled_from(
    [iri("a"), iri("b"), iri("é/ß?x=1&y=%20"), "<urn:a:b>", r"<http://ex.org/\u00e9>", iri("a" * 40)]
)
BLANKS = st.sampled_from(["_:a", "_:ab", "_:a.b", "_:1-x", "_:é"])
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters='"\\\n\r')
ESCAPES = st.sampled_from([r"\n", r"\r", r"\t", r"\"", r"\\", r"\u00e9", r"\U0001F600", r"\b", r"\f", r"\'"])
LEXICAL = st.lists(st.one_of(st.text(CHARACTERS, max_size=8), ESCAPES), max_size=4).map("".join)
SUFFIXES = st.sampled_from(["", "@en", "@EN-gb", f"^^<{XSD}string>", "^^<http://ex.org/t>", f"^^<{XSD}token>"])
NUMBERS = st.integers(-(10**19), 10**19).map(lambda n: f'"{n}"^^<{XSD}integer>')
LITERALS = st.one_of(st.builds('"{}"{}'.format, LEXICAL, SUFFIXES), NUMBERS)
GAPS = st.sampled_from([" ", "\t", "  "])
ENDS = st.sampled_from([".\n", " .\n", ". # no term\n", " .\r\n", ".\n\n", ".\n# only a comment\n", ".\n \t\r\n"])


def statement(subject: str, predicate: str, object_: str, graph: str | None, gap: str, end: str) -> str:
    return gap.join([subject, predicate, object_, *([graph] if graph else [])]) + end


SUBJECTS = st.one_of(IRIS, BLANKS)
STATEMENTS = st.builds(
    statement, SUBJECTS, IRIS, st.one_of(IRIS, BLANKS, LITERALS), st.one_of(st.none(), SUBJECTS), GAPS, ENDS
)


def parsed(text: str) -> list[tuple[str, ...]]:
    """The statements as pyoxigraph reads them: canonical texts, "" for the default graph."""
    found = []
    for quad in pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.N_QUADS):
        graph = "" if quad.graph_name == pyoxigraph.DefaultGraph() else canonical(str(quad.graph_name))
        found.append((*(canonical(str(term)) for term in (quad.subject, quad.predicate, quad.object)), graph))
    return found


@given(st.lists(STATEMENTS, max_size=12).map("".join), st.booleans())
def test_statements_are_those_of_another_parser(text: str, whole_lines: bool) -> None:
    text = text if whole_lines else text.rstrip("\n")
    dictionary = Dictionary()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.nq"
        path.write_text(text, newline="")
        columns = load_static(str(path), dictionary, 7)
    expected = parsed(text)
    ids = [dictionary.encode([row[k] or None for row in expected], scope=7).tolist() for k in range(4)]
    assert [column.tolist() for column in columns] == ids


@given(
    st.lists(STATEMENTS, min_size=1, max_size=8).map("".join),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
    st.booleans(),
)
def test_elements_are_those_of_another_parser(text: str, times: list[int], per_element: bool) -> None:
    """Every run of statements about one graph is an element, at the time ahead of it."""
    quads = [quad if quad[3] else (*quad[:3], "<http://ex.org/g>") for quad in parsed(text)]
    lines, expected = [], []
    for number, (graph, run) in enumerate(groupby(quads, key=lambda quad: quad[3])):
        seconds = times[number % len(times)]
        lines.append(ahead(graph, seconds))
        triples = list(run)
        lines.extend(" ".join(quad) + " .\n" for quad in triples)
        expected.append((seconds * 1_000_000, [quad[:3] for quad in triples]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.nq"
        path.write_text("".join(lines), newline="")
        read = read_source(path, blank_nodes="element" if per_element else "source")
    assert read.error is None
    assert read.elements == renamed(expected, per_element)


# --- elements ---------------------------------------------------------------------------------------------------------

QUADS = (
    ahead(iri("g"), 1)
    + f'{iri("a")} {iri("p")} "caf\\u00e9" {iri("g")} .\n'
    + f"_:x {iri('p')} _:y {iri('g')} .\n"
    + f"_:x {iri('q')} {iri('a')} {iri('g')} .\r\n"
    + "\n# a comment\n"
    + ahead("_:h", 2)
    + ahead("_:hh", 3)
    + f'_:x {iri("p")} "é"@EN _:h .\n'
    + f"{iri('a')} {iri('p')} _:x _:hh .\n"
    + f"{iri('a')} {iri('q')} _:x _:hh .\n"
    + ahead(iri("g"), 4)
    + f'{iri("a")} {iri("p")} "5"^^<{XSD}integer> {iri("g")} .'
)
ELEMENTS = [
    (1_000_000, [(iri("a"), iri("p"), '"café"'), ("_:0", iri("p"), "_:1"), ("_:0", iri("q"), iri("a"))]),
    (2_000_000, [("_:0", iri("p"), '"é"@en')]),
    (3_000_000, [(iri("a"), iri("p"), "_:0"), (iri("a"), iri("q"), "_:0")]),
    (4_000_000, [(iri("a"), iri("p"), f'"5"^^<{XSD}integer>')]),
]


def test_graphs_are_elements(source: Source) -> None:
    assert source("s.nq", QUADS).elements == ELEMENTS


def test_labels_can_be_scoped_to_elements(source: Source) -> None:
    [first, second, third, _] = source("s.nq", QUADS, blank_nodes="element").triples
    assert (first[1][0], second[0][0], third[0][2], third[1][2]) == ("_:0", "_:2", "_:3", "_:3")


def test_every_size_of_chunks_gives_the_same(source: Source) -> None:
    for size in [*range(1, 60), *range(60, len(QUADS) + 2, 97), len(QUADS), len(QUADS) + 1]:
        assert source("s.nq", QUADS, chunk_bytes=size).elements == ELEMENTS, size


def test_lines_may_end_as_on_other_systems(source: Source) -> None:
    assert source("s.nq", QUADS.replace("\r\n", "\n").replace("\n", "\r\n")).elements == ELEMENTS
    assert source("s.nq", b"\xef\xbb\xbf" + QUADS.encode()).elements == ELEMENTS


SUBJECT_TRIPLES = (
    f"{iri('a')} <{TIME}> {instant(1)} .\n"
    f'{iri("a")} {iri("p")} "1" .\n'
    f'_:b {iri("p")} "2" .\n'
    f'_:b <{TIME}> "2000000"^^<{XSD}integer> .\n'
    f'_:bb <{TIME}> "1970-01-01T05:30:03+05:30"^^<{XSD}dateTime> .\n'
    f'{iri("a")} <{TIME}> "1970-01-01T00:00:04.1234567"^^<{XSD}dateTime> .\n'
)


def test_subjects_are_elements_and_their_time_is_part_of_them(source: Source) -> None:
    read = source("s.nt", SUBJECT_TRIPLES, time_predicate=TIME)
    assert [time for time, _ in read.elements] == [1_000_000, 2_000_000, 3_000_000, 4_123_456]
    assert read.triples[0] == [(iri("a"), f"<{TIME}>", instant(1)), (iri("a"), iri("p"), '"1"')]
    assert [len(triples) for triples in read.triples] == [2, 2, 1, 1]
    assert read.triples[2][0][0] != read.triples[1][0][0]


def test_every_size_of_chunks_gives_the_same_subjects(source: Source) -> None:
    whole = source("s.nt", SUBJECT_TRIPLES, time_predicate=TIME).elements
    for size in range(1, len(SUBJECT_TRIPLES) + 1, 5):
        assert source("s.nt", SUBJECT_TRIPLES, time_predicate=TIME, chunk_bytes=size).elements == whole, size


def test_the_time_predicate_of_a_query_goes_before_the_graph_s_time(source: Source) -> None:
    text = ahead(iri("g"), 1) + f"{iri('a')} <{TIME}> {instant(9)} {iri('g')} .\n"
    assert [time for time, _ in source("s.nq", text, time_predicate=TIME).elements] == [9_000_000]


def test_an_element_may_be_larger_than_any_batch(source: Source) -> None:
    lines = [f'{iri("a")} {iri("p")} "{i}"^^<{XSD}integer> {iri("g")} .\n' for i in range(150_000)]
    last = ahead(iri("h"), 2) + f"{iri('a')} {iri('p')} {iri('b')} {iri('h')} .\n"
    read = source("s.nq", ahead(iri("g"), 1) + "".join(lines) + last, chunk_bytes=1 << 20)
    assert [(time, len(triples)) for time, triples in read.elements] == [(1_000_000, 150_000), (2_000_000, 1)]


def test_many_elements_come_in_batches(source: Source) -> None:
    text = "".join(f"{iri(str(i))} <{TIME}> {instant(i % 60)} .\n" for i in range(100_000))
    read = source("s.nt", text, time_predicate=TIME)
    assert len(read.elements) == 100_000
    assert max(read.sizes) <= 1 << 16
    assert read.elements[70_001][1][0][0] == iri("70001")


def test_times_may_be_declared_long_before(source: Source) -> None:
    names = [iri(f"g{i}") for i in range(3000)]
    head = "".join(ahead(name, i % 60) for i, name in enumerate(names))
    body = "".join(f"{iri('a')} {iri('p')} {iri('b')} {name} .\n" for name in reversed(names))
    read = source("s.nq", head + body)
    assert [time for time, _ in read.elements] == [(i % 60) * 1_000_000 for i in reversed(range(3000))]


def test_terms_that_share_a_hash_stay_apart(source: Source) -> None:
    triples = [(iri(f"s{i}"), iri(f"p{i}"), iri(f"o{i}")) for i in range(200)]
    lines = [f"{s} {p} {o} .\n{s} <{TIME}> {instant(i % 60)} .\n" for i, (s, p, o) in enumerate(triples)]
    read = source("s.nt", "".join(lines), dictionary=Dictionary(hash_bits=6), time_predicate=TIME)
    assert [element[0] for element in read.triples] == triples


# --- malformed input --------------------------------------------------------------------------------------------------

BAD = [
    pytest.param("nothing at all", "1:1", "expected the subject", id="words"),
    pytest.param('"a" <http://ex.org/p> "x" .', "1:1", "expected the subject", id="literal subject"),
    pytest.param("<http://ex.org/a> _:p _:o .", "1:19", "expected the predicate", id="blank predicate"),
    pytest.param("<http://ex.org/a> <http://ex.org/p> .", "1:37", "expected the object", id="two terms"),
    pytest.param("<http://ex.org/a> <http://ex.org/p> 5 .", "1:37", "expected the object", id="bare number"),
    pytest.param("<http://ex.org/a> <http://ex.org/p> _:o", "1:40", "'.' at the end", id="no point"),
    pytest.param("<http://ex.org/a> <http://ex.org/p> _:o . _:b", "1:43", "end of the line", id="more after the point"),
    pytest.param("<http://ex.org/a b> <http://ex.org/p> _:o .", "1:17", "not well-formed", id="space in an IRI"),
    pytest.param('<http://ex.org/"a> <http://ex.org/p> _:o .', "1:16", "not well-formed", id="quote in an IRI"),
    pytest.param("<http://ex.org/a<b> <http://ex.org/p> _:o .", "1:17", "not well-formed", id="angle in an IRI"),
    pytest.param("<http://ex.org/a", "1:17", "not well-formed", id="unclosed IRI"),
    pytest.param("<a> <http://ex.org/p> _:o .", "1:1", "absolute IRI", id="relative IRI"),
    pytest.param('<http://ex.org/a> <http://ex.org/p> "x .', "1:41", "not well-formed", id="unclosed literal"),
    pytest.param('<http://ex.org/a> <http://ex.org/p> "x"^^y .', "1:42", "not well-formed", id="bare datatype"),
    pytest.param('<http://ex.org/a> <http://ex.org/p> "x"@ .', "1:41", "not well-formed", id="no language"),
    pytest.param(r'<http://ex.org/a> <http://ex.org/p> "\q" .', "1:37", "unknown escape", id="unknown escape"),
    pytest.param(r'<http://ex.org/a> <http://ex.org/p> "\uD800" .', "1:37", "not a character", id="surrogate"),
    pytest.param(r"<http://ex.org/\u0020> <http://ex.org/p> _:o .", "1:1", "not a term", id="escaped space"),
]


def test_a_term_that_is_not_well_formed_is_quoted_from_where_it_breaks(source: Source) -> None:
    read = source("s.nt", "<http://ex.org/a <http://ex.org/p> _:o .\n", time_predicate=TIME)
    assert "s.nt:1:17: this term is not well-formed here: '<http://ex.org/p> _:o .'" in str(read.error)


@pytest.mark.parametrize(("line", "place", "expected"), BAD)
def test_a_malformed_line_is_placed(source: Source, line: str, place: str, expected: str) -> None:
    read = source("s.nt", line + "\n", time_predicate=TIME)
    assert read.error is not None
    assert f"s.nt:{place}: " in str(read.error)
    assert expected in str(read.error)
    assert read.elements == []


@pytest.mark.parametrize("chunk_bytes", [1, 50, 1 << 20])
@pytest.mark.parametrize(("line", "place", "expected"), BAD)
def test_a_malformed_line_is_skipped_and_its_element_keeps_the_rest(
    source: Source, line: str, place: str, expected: str, chunk_bytes: int
) -> None:
    good = f"{iri('a')} <{TIME}> {instant(1)} .\n", f"{iri('a')} {iri('p')} {iri('b')} .\n"
    text = f"# é\n\n{good[0]}{line}\n{good[1]}{line}"
    options = {"time_predicate": TIME, "chunk_bytes": chunk_bytes}
    read = source("s.nt", text, on_error="skip", **options)
    assert read.error is None
    assert [len(triples) for triples in read.triples] == [2]
    column = place.split(":")[1]
    assert [report.partition("s.nt:")[2].partition(": ")[0] for report in read.reported] == [
        f"4:{column}",
        f"6:{column}",
    ]
    assert all(expected in report for report in read.reported)
    stopped = source("s.nt", text, **options)
    assert f"s.nt:4:{column}: " in str(stopped.error)


def test_elements_before_a_malformed_line_are_delivered(source: Source) -> None:
    lines = [f"{iri(str(i))} <{TIME}> {instant(i % 60)} .\n" for i in range(1000)]
    read = source("s.nt", "".join([*lines[:500], "oops\n", *lines[500:]]), time_predicate=TIME)
    assert "s.nt:501:1: " in str(read.error)
    # The last one could have had more triples.
    assert len(read.elements) == 499


def test_columns_count_characters(source: Source) -> None:
    read = source("s.nt", f'{iri("äöü")} {iri("p")} "é" oops\n', time_predicate=TIME)
    assert "s.nt:1:43: " in str(read.error)


def test_bytes_that_are_no_text(source: Source) -> None:
    good = [f"{iri(name)} <{TIME}> {instant(1)} .\n".encode() for name in "abc"]
    bad = b'<http://ex.org/\xc3\xa9> <http://ex.org/p> "\xff" .\n'
    text = good[0] + bad + good[1] + bad + bad + good[2] + bad[:-1]
    for size in (1, 40, 1 << 20):
        read = source("s.nt", text, time_predicate=TIME, on_error="skip", chunk_bytes=size)
        assert [triples[0][0] for triples in read.triples] == [iri("a"), iri("b"), iri("c")]
        places = [report.partition("s.nt:")[2] for report in read.reported]
        assert places == [f"{line}:38: the byte 0xff is not UTF-8" for line in (2, 4, 5, 7)]


def test_a_line_longer_than_the_limit(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cqels_py.formats.lines.LINE_LIMIT", 1 << 20)
    good = [f"{iri(name)} <{TIME}> {instant(1)} .\n" for name in "ab"]
    long = f'{iri("a")} {iri("p")} "{"x" * 3_000_000}" .\n'
    for size in (1 << 16, 1 << 23):
        read = source("s.nt", good[0] + long + good[1], time_predicate=TIME, on_error="skip", chunk_bytes=size)
        assert len(read.elements) == 2, size
        assert len(read.reported) == 1
        assert "s.nt:2: a line longer than 1 MiB" in read.reported[0]


def test_a_long_line_within_the_limit_is_like_any_other(source: Source) -> None:
    long = f'{iri("a")} {iri("p")} "{"x" * 3_000_000}" .\n{iri("a")} <{TIME}> {instant(1)} .\n'
    assert len(source("s.nt", long, time_predicate=TIME, chunk_bytes=1000).triples[0][0][2]) == 3_000_002


# --- times that are missing or wrong ----------------------------------------------------------------------------------


def test_a_missing_time_predicate_error_shows_how_to_give_one(source: Source) -> None:
    for on_error in ("stop", "skip"):
        read = source("s.nt", SUBJECT_TRIPLES, on_error=on_error)
        assert "s.nt:1: " in str(read.error)
        assert "--time-predicate" in str(read.error)
        assert "@ :predicate" in str(read.error)


def test_a_subject_without_a_time_is_named_with_its_line(source: Source) -> None:
    text = SUBJECT_TRIPLES + f"{iri('late')} {iri('p')} {iri('b')} .\n{iri('c')} <{TIME}> {instant(5)} .\n"
    read = source("s.nt", text, time_predicate=TIME)
    assert "s.nt:7: " in str(read.error)
    assert iri("late") in str(read.error)
    assert len(read.elements) == 4
    skipped = source("s.nt", text, time_predicate=TIME, on_error="skip")
    assert [time for time, _ in skipped.elements][-1] == 5_000_000
    assert len(skipped.reported) == 1


@pytest.mark.parametrize("time", ['"yesterday"', '"2013-13-01T00:00:00Z"', iri("noon"), '"2013-01-01T25:00:00Z"'])
def test_invalid_times_are_shown(source: Source, time: str) -> None:
    read = source("s.nt", f"\n{iri('a')} <{TIME}> {time} .\n", time_predicate=TIME)
    assert "s.nt:2: " in str(read.error)
    assert time in str(read.error)
    assert "2013-01-01T15:18:10Z" in str(read.error)


def test_two_different_times(source: Source) -> None:
    text = f"{iri('a')} <{TIME}> {instant(1)} .\n{iri('a')} <{TIME}> {instant(2)} .\n"
    assert "two different times" in str(source("s.nt", text, time_predicate=TIME).error)


def test_the_error_of_a_graph_without_time_names_the_missing_triple(source: Source) -> None:
    text = f"{iri('a')} {iri('p')} {iri('b')} {iri('g')} .\n" + ahead(iri("g"), 1)
    read = source("s.nq", text)
    assert "s.nq:1: " in str(read.error)
    assert GENERATED in str(read.error)


def test_other_triples_of_the_default_graph_are_refused(source: Source) -> None:
    text = ahead(iri("g"), 1) + f"{iri('h')} {iri('p')} {iri('b')} .\n{iri('a')} {iri('p')} {iri('b')} {iri('g')} .\n"
    read = source("s.nq", text)
    assert "s.nq:2:1: " in str(read.error)
    assert GENERATED in str(read.error)
    skipped = source("s.nq", text, on_error="skip")
    assert [time for time, _ in skipped.elements] == [1_000_000]
    assert len(skipped.reported) == 1
