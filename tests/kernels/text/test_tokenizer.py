"""The tokenizer kernel, driven by the reader of N-Triples and N-Quads, against another parser."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.formats import ntriples
from cqels_py.formats.lines import line_blocks
from cqels_py.formats.ntriples import read_statements
from cqels_py.kernels.text import tokenizer as kernel
from cqels_py.terms.canonical import escape

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

XSD = "http://www.w3.org/2001/XMLSchema#"

Statement = tuple[str, ...]


def reference(text: str) -> list[tuple[str, ...]]:
    """Statements as another parser reads them, in canonical texts."""
    quads = pyoxigraph.parse(text.encode(), format=pyoxigraph.RdfFormat.N_QUADS)
    return [
        (_text(q.subject), _text(q.predicate), _text(q.object), *([_text(q.graph_name)] if _is_named(q) else []))
        for q in quads
    ]


def _is_named(quad: pyoxigraph.Quad) -> bool:
    return not isinstance(quad.graph_name, pyoxigraph.DefaultGraph)


def _text(term: object) -> str:
    if isinstance(term, pyoxigraph.Literal):
        body = f'"{escape(term.value)}"'
        if term.language:
            return f"{body}@{term.language.lower()}"
        return body if term.datatype.value == XSD + "string" else f"{body}^^<{term.datatype.value}>"
    return str(term)


# --- random statements ------------------------------------------------------------------------------------------------

_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters='\\"\n\r')
_PIECE = st.one_of(
    st.text(_CHARACTERS, max_size=6),
    st.sampled_from([r"\n", r"\"", r"\\", r"\t", r"\u00E9", r"\U0001F600", r"\b", r"\'", r"\r"]),
)
_PATH = st.text(st.sampled_from("abcßé/?=&.-_~0189"), max_size=12)
IRIS = st.one_of(
    _PATH.map(lambda path: f"<http://ex.org/{path}>"),
    _PATH.map(lambda path: f"<urn:x:{path}>"),
    st.just(r"<http://ex.org/\u00E9>"),
)
BLANKS = st.from_regex(r"_:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,3}[a-zA-Z0-9_]", fullmatch=True)
_BODIES = st.lists(_PIECE, max_size=4).map(lambda pieces: '"' + "".join(pieces) + '"')
LITERALS = st.one_of(
    _BODIES,
    st.builds("{}@{}".format, _BODIES, st.sampled_from(["en", "EN-gb", "de-1996"])),
    st.builds("{}^^{}".format, _BODIES, IRIS),
    st.integers(-(10**20), 10**20).map(lambda n: f'"{n}"^^<{XSD}integer>'),
    st.decimals(-1000, 1000, places=2).map(lambda n: f'"{n}"^^<{XSD}decimal>'),
    st.booleans().map(lambda b: f'"{str(b).lower()}"^^<{XSD}boolean>'),
    st.just(f'"\\u0035"^^<{XSD}integer>'),
    _BODIES.map(lambda body: f"{body}^^<{XSD}string>"),
)
SUBJECTS = st.one_of(IRIS, BLANKS)
OBJECTS = st.one_of(IRIS, BLANKS, LITERALS)
_GAP = st.sampled_from([" ", "  ", "\t", " \t "])


def statements(graphs: bool) -> st.SearchStrategy[str]:
    """A statement without its line's end; with `graphs`, some in a graph."""
    graph = st.one_of(st.just(""), SUBJECTS) if graphs else st.just("")
    end = st.sampled_from([" .", "\t.", " . # a comment", " .  "])
    return st.builds(
        lambda s, p, o, g, gap, end: gap.join([s, p, o, g] if g else [s, p, o]) + end,
        SUBJECTS, IRIS, OBJECTS, graph, _GAP, end,
    )  # fmt: skip


def documents(graphs: bool) -> st.SearchStrategy[str]:
    """Lines of statements, comments and nothing, with mixed line ends; the last one may lack its own."""
    lines = st.lists(st.one_of(statements(graphs), st.sampled_from(["", "# a comment", "  "])), max_size=12)
    return st.builds(
        lambda lines, end, last: end.join(lines) + (end if last else ""),
        lines,
        st.sampled_from(["\n", "\r\n"]),
        st.booleans(),
    )


# --- statements ---------------------------------------------------------------------------------------------------------


def scanned(text: str, dictionary: Dictionary, size: int | None = None) -> tuple[list[Statement], list[DataError]]:
    """Statements in canonical texts, and errors; `size`: bytes of a chunk."""
    raw = text.encode()
    size = size or max(1, len(raw))
    chunks = [raw[i : i + size] for i in range(0, len(raw), size)]
    errors: list[DataError] = []
    found: list[Statement] = []
    for rows in read_statements(line_blocks(chunks, "x.nq", errors.append), dictionary, 5, "x.nq", errors.append):
        columns = [dictionary.decode(column) for column in rows]
        found += [tuple(term for term in row if term is not None) for row in zip(*columns, strict=True)]
    return found, errors


def without_labels(statements: list[Statement]) -> list[Statement]:
    """Blank nodes by their order of appearance."""
    numbers: dict[str, str] = {}
    return [
        tuple(numbers.setdefault(t, f"_:{len(numbers)}") if t.startswith("_:") else t for t in statement)
        for statement in statements
    ]


@given(documents(graphs=True), st.sampled_from([None, 1, 7, 100]))
def test_statements_are_those_of_another_parser(text: str, size: int | None) -> None:
    found, errors = scanned(text, Dictionary(), size)
    assert errors == []
    assert without_labels(found) == without_labels(reference(text))


@given(documents(graphs=True))
def test_ids_are_those_of_the_dictionary(text: str) -> None:
    dictionary = Dictionary()
    blocks = line_blocks([text.encode()], "x.nq", _raise)
    for rows in read_statements(blocks, dictionary, 5, "x.nq", _raise):
        ids = rows.reshape(-1)
        named = ids[(ids >> 60 & 15) != 3]
        assert dictionary.encode(dictionary.decode(named)).tolist() == named.tolist()
    blank = [t for statement in reference(text) for t in statement if t.startswith("_:")]
    scoped = dictionary.encode(blank, scope=5)
    assert dictionary.encode(blank, scope=5).tolist() == scoped.tolist()


@given(documents(graphs=True))
def test_colliding_hashes_change_no_statement(text: str) -> None:
    found, errors = scanned(text, Dictionary(hash_bits=2))
    assert errors == []
    assert without_labels(found) == without_labels(reference(text))


def test_all_arrays_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ntriples, "_ROWS", 64)
    lines = [f'<http://ex.org/{i}> <http://ex.org/p{i % 40}> "{"long" * (i % 50)} {i}" .' for i in range(1500)]
    found, errors = scanned("\n".join(lines), Dictionary())
    assert errors == []
    assert [" ".join(statement) + " ." for statement in found] == lines


GOOD = "<http://ex.org/a> <http://ex.org/b> <http://ex.org/c> .\n"


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("bare words .", 1, "expected the subject"),
        ('"a" <http://ex.org/b> <http://ex.org/c> .', 1, "expected the subject"),
        ("<http://ex.org/a> _:b <http://ex.org/c> .", 19, "expected the predicate"),
        ("<http://ex.org/a> <http://ex.org/b> 5 .", 37, "expected the object"),
        ("<http://ex.org/a> <http://ex.org/b> .", 37, "expected the object"),
        ("<http://ex.org/a> <http://ex.org/b>", 36, "expected the object: .*but the line ends"),
        ("<http://ex.org/a> <http://ex.org/b> <http://ex.org/c>", 54, "expected the graph, or '.'"),
        ('<http://ex.org/a> <http://ex.org/b> "c" "d" .', 41, "expected the graph, or '.'"),
        ('<http://ex.org/a> <http://ex.org/b> "c" _:g _:h .', 45, "expected '.'"),
        ("<http://ex.org/a> <http://ex.org/b> <http://ex.org/c> . more", 57, "expected the end of the line"),
        ("<http://ex.org/a b> <http://ex.org/b> <http://ex.org/c> .", 17, "not well-formed"),
        ("<http://ex.org/é> <http://ex.org/b> <http://ex.org/{}> .", 52, "not well-formed"),
        ('<http://ex.org/a> <http://ex.org/b> "open .', 44, "not well-formed"),
        ('<http://ex.org/a> <http://ex.org/b> "c"@ .', 41, "not well-formed"),
        ('<http://ex.org/a> <http://ex.org/b> "c"^^c .', 42, "not well-formed"),
        ("_: <http://ex.org/b> <http://ex.org/c> .", 3, "not well-formed"),
        ("<a> <http://ex.org/b> <http://ex.org/c> .", 1, "absolute IRI"),
        ('<http://ex.org/a> <http://ex.org/b> "\\q" .', 37, r"unknown escape \\q"),
        ('<http://ex.org/a> <http://ex.org/b> "\\uD800" .', 37, "not a character"),
        ("<http://ex.org/\\u0020> <http://ex.org/b> <http://ex.org/c> .", 1, "not a term"),
    ],
)
@pytest.mark.parametrize("size", [None, 1])
def test_a_malformed_line_is_reported_and_the_rest_is_read(
    line: str, column: int, message: str, size: int | None
) -> None:
    found, errors = scanned(GOOD + "\n" + line + "\n" + GOOD, Dictionary(), size)
    assert len(found) == 2
    [error] = errors
    assert error.place is not None
    assert (error.place.line, error.place.column, error.place.source) == (3, column, "x.nq")
    with pytest.raises(DataError, match=message):
        raise error


# --- times that stand ahead of their graphs ----------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(-1, 9)), max_size=60))
def test_declared_times_are_a_map(steps: list[tuple[int, int]]) -> None:
    declared = np.zeros(kernel.DECLARED_CELLS * 128, np.int64)
    expected: dict[int, int] = {}
    for key, time in steps:
        # Few slots, so that entries are displaced.
        key = key * 64
        if time < 0:
            assert kernel.take_declared(declared, key) == expected.pop(key, 0)
        else:
            assert kernel.declare(declared, key, time + 1) == (key not in expected)
            expected[key] = time + 1
    assert dict(_entries(declared)) == expected
    for key in list(expected):
        assert kernel.take_declared(declared, key) == expected[key]
    assert not declared[:: kernel.DECLARED_CELLS].any()


def _entries(declared: np.ndarray) -> Iterator[tuple[int, int]]:
    return ((key, time) for key, time, *_ in declared.reshape(-1, kernel.DECLARED_CELLS).tolist() if key)


def _raise(error: DataError) -> None:
    raise error
