"""Elements as plain values, and random statements, for the tests of sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyoxigraph
from hypothesis import strategies as st

from cqels_py.batches.elements import ElementBatch
from cqels_py.connectors.sources import open_source
from cqels_py.dictionary.canonical import escape
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.errors import DataError

XSD = "http://www.w3.org/2001/XMLSchema#"
PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
TIME = "<http://ex.org/time>"

Element = tuple[int, list[tuple[str, ...]]]
"""Time and triples."""


def moment(seconds: float) -> str:
    """A dateTime literal so many seconds after the epoch."""
    text = str(np.datetime64(round(seconds * 1_000_000), "us")).rstrip("0").rstrip(".")
    return f'"{text}Z"^^<{XSD}dateTime>'


def elements_of(batches: Iterable[ElementBatch], dictionary: Dictionary) -> list[Element]:
    """What the batches hold; checks their shapes."""
    found: list[Element] = []
    for batch in batches:
        assert len(batch.first) == len(batch.time) + 1 == len(batch.stream) + 1
        assert batch.first[0] == 0
        assert batch.first[-1] == len(batch.subject) == len(batch.predicate) == len(batch.object)
        columns = [dictionary.decode(column) for column in (batch.subject, batch.predicate, batch.object)]
        triples = [tuple(str(term) for term in triple) for triple in zip(*columns, strict=True)]
        for e, time in enumerate(batch.time.tolist()):
            found.append((time, triples[batch.first[e] : batch.first[e + 1]]))
    return found


def read(path: Path, **options: object) -> list[Element]:
    """All elements of a file, with a dictionary of their own."""
    dictionary = Dictionary()
    return elements_of(open_source(str(path), dictionary=dictionary, stream=0, **options), dictionary)  # type: ignore[arg-type]


def read_until_error(path: Path, **options: object) -> tuple[list[Element], DataError]:
    """What is delivered before the error that stops the reading, and the error."""
    dictionary = Dictionary()
    batches: list[ElementBatch] = []
    try:
        for batch in open_source(str(path), dictionary=dictionary, stream=0, **options):  # type: ignore[arg-type]
            batches.append(batch)  # noqa: PERF402  (those before the error count)
    except DataError as error:
        return elements_of(batches, dictionary), error
    raise AssertionError("no error")


def unlabelled(elements: Sequence[Element]) -> list[Element]:
    """With blank nodes numbered by their order in the element, so that labels do not matter."""
    renamed: list[Element] = []
    for time, triples in elements:
        numbers: dict[str, str] = {}
        renamed.append((time, [tuple(_name(term, numbers) for term in triple) for triple in triples]))
    return renamed


def _name(term: str, numbers: dict[str, str]) -> str:
    return numbers.setdefault(term, f"_:{len(numbers)}") if term.startswith("_:") else term


def reference(text: str, form: pyoxigraph.RdfFormat = pyoxigraph.RdfFormat.N_QUADS) -> list[tuple[str, ...]]:
    """Statements as another parser reads them, in canonical texts."""
    quads = pyoxigraph.parse(text.encode(), format=form)
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
_PATH = st.text(st.sampled_from("abcßé/#?=&%.-_~0189"), max_size=12)
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
