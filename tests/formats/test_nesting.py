"""Nested blank nodes: which runs of triples are one element, against a slow grouping of the whole list."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cqels_py.formats.nesting import Nesting
from cqels_py.kernels.text.tokenizer import CONFLICT
from cqels_py.terms.layout import TAG_BLANK, TAG_IRI, TAG_SHIFT
from tests.formats.reading import TIME, XSD, Source, iri, source
from tests.oracle.naive_nesting import Triple, elements_of

__all__ = ["source"]

_NODES = st.sampled_from(["a", "b", "_:1", "_:2", "_:3", "_:4", "_:5"])
TRIPLES = st.lists(st.tuples(_NODES, st.just("p"), _NODES), max_size=14)
MANY_BLANKS = st.lists(
    st.tuples(
        st.sampled_from(["a", *(f"_:{n}" for n in range(9))]),
        st.just("p"),
        st.sampled_from([f"_:{n}" for n in range(9)]),
    ),
    max_size=40,
)


def encoded(term: str) -> int:
    if term.startswith("_:"):
        return TAG_BLANK << TAG_SHIFT | int(term[2:]) + 1
    return TAG_IRI << TAG_SHIFT | ord(term[0])


def nested(triples: list[Triple], cuts: list[int], lookahead: int = 1 << 17) -> list[list[Triple]]:
    """The elements, where the runs come in pieces: `cuts`, places between them."""
    runs = [list(run) for _, run in groupby(triples, key=lambda triple: triple[0])]
    nesting = Nesting(lookahead)
    found: list[list[Triple]] = []
    texts = {encoded(term): term for triple in triples for term in triple}
    bounds = sorted({0, len(runs), *(cut % (len(runs) + 1) for cut in cuts)})
    for start, end in pairwise(bounds if len(bounds) > 1 else [0, 0]):
        piece = [triple for run in runs[start:end] for triple in run]
        rows = np.array([[encoded(t) for t in triple] for triple in piece], np.int64).reshape(-1, 3).T
        rows = np.ascontiguousarray(np.concatenate([rows, np.zeros((1, rows.shape[1]), np.int64)]))
        first = np.cumsum([0, *(len(run) for run in runs[start:end])])[:-1]
        about = np.stack([first, np.zeros_like(first), np.zeros_like(first)])
        following = 0 if end == len(runs) else encoded(runs[end][0][0])
        elements, taken, subjects = nesting.put_together(about, rows, following, end == len(runs))
        for a, b in pairwise([*elements[0].tolist(), taken.shape[1]]):
            found.append([(texts[s], "p", texts[o]) for s, _, o in taken[:3, a:b].T.tolist()])
        assert len(subjects) == elements.shape[1]
    assert [ids.size for ids in nesting.live_ids()] == [0, 0]
    return found


@settings(max_examples=400)
@given(TRIPLES, st.lists(st.integers(0, 20), max_size=4))
def test_elements_are_those_of_the_oracle(triples: list[Triple], cuts: list[int]) -> None:
    assert nested(triples, cuts) == elements_of(triples)


@given(TRIPLES)
def test_every_cut_gives_the_same(triples: list[Triple]) -> None:
    assert nested(triples, list(range(20))) == nested(triples, [])


@settings(max_examples=300)
@given(MANY_BLANKS, st.lists(st.integers(0, 40), max_size=6), st.integers(2, 8))
def test_where_few_may_wait_cuts_do_not_matter_either(triples: list[Triple], cuts: list[int], lookahead: int) -> None:
    found = nested(triples, cuts, lookahead)
    assert found == nested(triples, [], lookahead)
    assert sorted(triple for element in found for triple in element) == sorted(triples)


def test_blank_nodes_alone_do_not_wait_for_the_end() -> None:
    """A file without an IRI subject: elements come out, and none of them in two."""
    triples = [t for n in range(0, 300, 3) for t in ((f"_:{n + 1}", "p", "b"), (f"_:{n}", "p", f"_:{n + 1}"))]
    nesting, most, sizes = Nesting(20), 0, []
    for number, (subject, _, object_) in enumerate(triples):
        rows = np.array([[encoded(subject)], [0], [encoded(object_)], [0]])
        ended = number + 1 == len(triples)
        following = 0 if ended else encoded(triples[number + 1][0])
        elements, taken, _ = nesting.put_together(np.zeros((3, 1), np.int64), rows, following, ended)
        sizes += np.diff([*elements[0].tolist(), taken.shape[1]]).tolist()
        most = max(most, next(nesting.live_ids()).shape[1])
    assert sizes == [2] * 100
    assert most <= 20


# --- through the readers ----------------------------------------------------------------------------------------------


def at(seconds: int) -> str:
    return f'<{TIME}> "{seconds}000000"^^<{XSD}integer> .\n'


def line(subject: str, object_: str) -> str:
    return f"{subject} {iri('p')} {object_} .\n"


A, B = iri("a"), iri("b")
OWN_TIME = f"_:n {at(9)}"
FILES = {
    "before": (OWN_TIME + line("_:n", '"5"') + f"{A} {at(1)}" + line(A, "_:n"), [(1, 4)]),
    "among": (f"{A} {at(1)}" + OWN_TIME + line("_:n", '"5"') + line(A, "_:n"), [(1, 4)]),
    "after": (f"{A} {at(1)}" + line(A, "_:n") + OWN_TIME + line("_:n", '"5"'), [(1, 4)]),
    "nested twice": (f"{A} {at(1)}" + line(A, "_:n") + line("_:m", '"5"') + line("_:n", "_:m"), [(1, 4)]),
    "elsewhere": (f"{A} {at(1)}" + line(A, "_:n") + f"{B} {at(2)}" + OWN_TIME + line("_:n", '"5"'), [(1, 2), (2, 1), (9, 2)]),
    "of two": (f"{A} {at(1)}" + line(A, "_:n") + OWN_TIME + f"{B} {at(2)}" + line(B, "_:n"), [(1, 3), (2, 2)]),
    "ahead of two": (OWN_TIME + f"{A} {at(1)}" + line(A, "_:n") + f"{B} {at(2)}" + line(B, "_:n"), [(1, 3), (2, 2)]),
    "in a blank node": (f"_:o {at(1)}" + line("_:n", '"5"') + line("_:o", "_:n") + f"_:q {at(2)}", [(1, 3), (2, 1)]),
    "nobody's": (f"{A} {at(1)}" + OWN_TIME + f"{A} {at(2)}", [(1, 1), (9, 1), (2, 1)]),
    "with the time": (line(A, "_:n") + OWN_TIME, [(9, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("chunk_bytes", [1, 100, 1 << 20])
@pytest.mark.parametrize("name", FILES)
def test_a_nested_node_belongs_to_who_names_it(name: str, chunk_bytes: int, source: Source) -> None:
    text, expected = FILES[name]
    read = source("data.nt", text, time_predicate=TIME, chunk_bytes=chunk_bytes)
    assert (read.error, read.reported) == (None, [])
    assert [(time // 1_000_000, len(triples)) for time, triples in read.elements] == expected


TURTLE = """@prefix : <http://ex.org/> .
:o1 :time 1 ; :result [ :value 5 ; :unit [ :code "C" ] ] ; :parts (1 2) .
[] :time 2 ; :result [ :value 6 ; :time 7 ] .
:o2 :result [ :value 8 ] , [ :value 9 ] ; :time 3 .
"""
XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://ex.org/">
<O rdf:about="http://ex.org/o1"><time>1</time><result rdf:parseType="Resource"><value>5</value></result>
<parts rdf:parseType="Collection"><P><value>1</value></P><rdf:Description rdf:about="http://ex.org/x"/></parts></O>
<O><result><R><value>6</value></R></result><time>2</time></O></rdf:RDF>
"""
JSON = """{"@context": {"@vocab": "http://ex.org/"}, "@graph": [
{"@id": "http://ex.org/o1", "result": {"value": 5, "unit": {"code": "C"}}, "parts": {"@list": [1, 2]}, "time": 1},
{"result": {"value": 6}, "time": 2}]}
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("d.ttl", TURTLE, [(1, 10), (2, 4), (3, 5)]),
        ("d.rdf", XML, [(1, 11), (2, 5)]),
        ("d.jsonld", JSON, [(1, 10), (2, 3)]),
    ],
)
def test_nested_nodes_as_each_format_writes_them(
    name: str, text: str, expected: list[tuple[int, int]], source: Source
) -> None:
    for chunk_bytes in (1, 1 << 20):
        read = source(name, text, time_predicate=TIME, chunk_bytes=chunk_bytes)
        assert (read.error, read.reported) == (None, [])
        assert [(micros, len(triples)) for micros, triples in read.elements] == expected


def test_two_times_of_the_subject_itself_are_none(source: Source) -> None:
    text = f"{A} {at(1)}" + line(A, "_:n") + line("_:n", '"5"') + f"{A} {at(2)}"
    read = source("data.nt", text, time_predicate=TIME)
    assert "the element of <http://ex.org/a> has two different times" in str(read.error)
    assert CONFLICT == -1


def test_nested_nodes_meet_others_by_their_labels_unless_scoped_to_elements(source: Source) -> None:
    text, _ = FILES["elsewhere"]
    [first, _, last] = source("data.nt", text, time_predicate=TIME).triples
    assert first[1][2] == last[0][0]
    [first, _, last] = source("data.nt", text, time_predicate=TIME, blank_nodes="element").triples
    assert first[1][2] != last[0][0]
    [[_, named, nested, _]] = source("data.nt", FILES["after"][0], time_predicate=TIME, blank_nodes="element").triples
    assert named[2] == nested[0]
