"""A document whose named graphs have times of their own is an element for each of them, at every entrance."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pyoxigraph
import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, Place
from cqels_py.sources.documents import FORMATS, document_elements, joined_elements
from cqels_py.sources.files import open_source
from cqels_py.sources.live import Message, MessageColumns
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening
from tests.formats.reading import GENERATED, TIME, ahead, iri

ARRIVED = 50_000_000
Element = tuple[int, frozenset[tuple[str, ...]]]

FORMS = {
    "nq": pyoxigraph.RdfFormat.N_QUADS,
    "trig": pyoxigraph.RdfFormat.TRIG,
    "jsonld": pyoxigraph.RdfFormat.JSON_LD,
}
MEDIA = {form: kind for kind, form in FORMATS.items()}


def line(graph: str, *triple: str) -> str:
    return f"{' '.join(triple)} {graph} .\n"


P = iri("p")
TIMES = ahead(iri("g1"), 1) + ahead(iri("g2"), 2) + ahead("_:g3", 1)
INSIDE = (
    line(iri("g1"), iri("a"), P, "_:x") + line(iri("g2"), "_:x", P, iri("b")) + line("_:g3", iri("c"), P, '"<d> ."@en')
)
ABOUT = f"{iri('g2')} {iri('room')} {iri('r')} .\n"
OWN = TIMES + ABOUT + INSIDE
"""Three graphs, two of which have a blank node in common, and one a triple about it."""
EXPECTED = [
    (1_000_000, {(iri("a"), P, "_:0", iri("g1"))}),
    (2_000_000, {("_:0", P, iri("b"), iri("g2")), (iri("g2"), iri("room"), iri("r"), "")}),
    (1_000_000, {(iri("c"), P, '"<d> ."@en', "_:1")}),
]


def elements(batches: Iterable[ElementBatch], dictionary: Dictionary) -> list[Element]:
    """Times and quads, with blank nodes numbered in the order of their graphs' names and elements."""
    numbers: dict[str, str] = {}
    found = list[Element]()
    for batch in batches:
        assert batch.graph is not None
        columns = [batch.subject, batch.predicate, batch.object, batch.graph]
        terms = [[name or "" for name in dictionary.decode(column)] for column in columns]
        quads = [
            tuple(numbers.setdefault(t, f"_:{len(numbers)}") if t.startswith("_:") else t for t in quad)
            for quad in zip(*terms, strict=True)
        ]
        bounds = pairwise(batch.first.tolist())
        found += [
            (time, frozenset(q for q in quads[i:j] if q[1] not in (GENERATED, f"<{TIME}>")))
            for time, (i, j) in zip(batch.time.tolist(), bounds, strict=True)
        ]
    return found


def opening(**options: object) -> Opening:
    return Opening(stream="http://ex.org/s", number=0, dictionary=Dictionary(), graphs=True, **options)  # type: ignore[arg-type]


def document(nquads: str, form: str) -> bytes:
    quads = list(pyoxigraph.parse(nquads, format=pyoxigraph.RdfFormat.N_QUADS))
    return pyoxigraph.serialize(quads, format=FORMS[form]) or b""


def read(entrance: str, form: str, nquads: str, folder: Path, how: Opening, arrival: bool = False) -> list[Element]:
    body = document(nquads, form)
    if entrance == "message":
        decoder = MessageDecoder(how, "mqtt://b/t", MessageFormat(form, arrival))
        batches = [decoder.elements(MessageColumns.of([Message(body, "t", None, ARRIVED)]))]
    elif entrance == "body":
        batches = [document_elements(body, form, how, source="<body>", arrival=ARRIVED)]
    else:
        if form == "jsonld" and entrance == "lines":
            body = json.dumps(json.loads(body)).encode() + b"\n"
        path = folder / f"s.{'ndjson' if entrance == 'lines' else form}"
        path.write_bytes(body)
        batches = list(open_source(str(path), how))
    return elements(batches, how.dictionary)


ENTRANCES = [
    *(("message", form) for form in FORMS),
    *(("body", form) for form in FORMS),
    *(("file", form) for form in FORMS),
    ("lines", "jsonld"),
]


@pytest.mark.parametrize(("entrance", "form"), ENTRANCES)
def test_each_graph_with_its_time_is_an_element(entrance: str, form: str, tmp_path: Path) -> None:
    found = read(entrance, form, OWN, tmp_path, opening())
    assert len(found) == 3
    # The order of graphs in a document means nothing, and neither do labels of blank nodes.
    for time, quads in EXPECTED:
        shapes = [(t, {tuple("_" if x.startswith("_:") else x for x in q) for q in each}) for t, each in found]
        assert (time, {tuple("_" if x.startswith("_:") else x for x in q) for q in quads}) in shapes
    nodes = {q[k] for _, each in found for q in each for k in (0, 2, 3) if q[k].startswith("_:")}
    assert len(nodes) == 2


@pytest.mark.parametrize(("entrance", "form"), ENTRANCES)
def test_times_of_a_property_beside_and_inside_of_graphs(entrance: str, form: str, tmp_path: Path) -> None:
    beside = OWN.replace(GENERATED, f"<{TIME}>")
    stated = [(iri("g1"), iri("a"), "3"), (iri("g2"), iri("a"), "4"), ("_:g3", iri("c"), "5")]
    integers = [
        line(graph, subject, f"<{TIME}>", f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>')
        for graph, subject, value in stated
    ]
    # In a file, the statements of a graph stand together.
    inside = "".join(a + b + "\n" for a, b in zip(INSIDE.splitlines(keepends=True), integers, strict=True))
    for text, times in ((beside, [1_000_000, 1_000_000, 2_000_000]), (inside, [3, 4, 5])):
        found = read(entrance, form, text, tmp_path, opening(time_predicate=TIME))
        assert sorted(time for time, _ in found) == times
        assert sorted(len(quads) for _, quads in found) == ([1, 1, 2] if text == beside else [1, 1, 1])


@pytest.mark.parametrize("form", FORMS)
def test_a_graph_without_a_time_beside_such_with_times(form: str, tmp_path: Path) -> None:
    text = OWN.replace(ahead("_:g3", 1), "")
    for entrance in ("message", "file"):
        wrong = list[DataError]()
        how = opening(on_error="skip", report=wrong.append)
        assert sorted(time for time, _ in read(entrance, form, text, tmp_path, how)) == [1_000_000, 2_000_000]
        assert [("has no time" in str(error)) for error in wrong] == [True]
        with pytest.raises(DataError, match="has no time"):
            read(entrance, form, text, tmp_path, opening())
    for found in (
        read("message", form, text, tmp_path, opening(), arrival=True),
        read("body", form, text, tmp_path, opening()),
    ):
        assert sorted(time for time, _ in found) == [1_000_000, 2_000_000, ARRIVED]


@pytest.mark.parametrize("form", FORMS)
def test_a_message_with_one_time_is_one_element(form: str, tmp_path: Path) -> None:
    one = ahead(iri("g1"), 1) + INSIDE
    assert [(time, len(quads)) for time, quads in read("message", form, one, tmp_path, opening())] == [(1_000_000, 3)]
    unsaid = read("message", form, INSIDE, tmp_path, opening(), arrival=True)
    assert [(time, len(quads)) for time, quads in unsaid] == [(ARRIVED, 3)]


def test_what_belongs_to_no_element_is_told(tmp_path: Path) -> None:
    wrong = list[DataError]()
    stray = OWN + f"{iri('other')} {P} {iri('x')} .\n"
    found = read("message", "nq", stray, tmp_path, opening(on_error="skip", report=wrong.append))
    assert sorted(len(quads) for _, quads in found) == [1, 1, 2]
    assert [error.place for error in wrong] == [Place(1, None, "mqtt://b/t")]
    assert "<http://ex.org/other> belong to no element" in str(wrong[0])
    twice = OWN + ahead(iri("g1"), 9)
    with pytest.raises(DataError, match="two different times"):
        read("message", "nq", twice, tmp_path, opening())


def test_documents_that_are_read_together_keep_their_elements() -> None:
    how = opening()
    bodies = [document(OWN, "jsonld"), document(ahead(iri("g9"), 9) + line(iri("g9"), "_:x", P, "_:x"), "jsonld")] * 2
    joined = joined_elements(bodies, "jsonld", how, source="<body>", arrival=ARRIVED)
    assert joined is not None and list(joined.ends) == [3, 4, 7, 8]
    found = elements([joined.batch], how.dictionary)
    assert [time for time, _ in found][3::4] == [9_000_000] * 2
    # Blank nodes are those of their document.
    assert len({q[0] for _, quads in found for q in quads if q[0].startswith("_:")}) == 4


def test_the_time_of_a_graph_may_stand_behind_it(tmp_path: Path) -> None:
    behind = INSIDE + ABOUT + TIMES
    assert [time for time, _ in read("message", "nq", behind, tmp_path, opening())] == [1_000_000, 2_000_000, 1_000_000]
    assert sorted(time for time, _ in read("file", "jsonld", behind, tmp_path, opening())) == [1_000_000] * 2 + [
        2_000_000
    ]


def test_many_graphs_of_a_message(tmp_path: Path) -> None:
    graphs = range(400)
    said = "".join(f'{iri(f"g{n}")} {GENERATED} "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n' for n in graphs)
    inside = "".join(line(iri(f"g{n}"), iri("a"), P, f'"{k}"') for k in range(25) for n in graphs)
    found = read("message", "nq", said + inside, tmp_path, opening())
    assert [time for time, _ in found] == list(graphs)
    assert {len(quads) for _, quads in found} == {25}
