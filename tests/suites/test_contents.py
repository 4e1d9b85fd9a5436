"""Windows' contents that the check works out: the oracle's, at the ends of instants."""

from __future__ import annotations

from collections import Counter

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import URIRef

from cqels_py.algebra import nodes
from cqels_py.suites import contents
from cqels_py.suites.contents import Contents, Element
from tests.oracle import naive
from tests.support.harness import parse

STREAMS = ("http://ex.org/s", "http://ex.org/t")
WINDOWS = (
    "[RANGE 4s]", "[RANGE 5s STEP 2s]", "[RANGE 3s TUMBLING]", "[FROM NOW-6s TO NOW-2s]", "[NOW]", "[ALL]", "[COUNT 3]",
    "[COUNT 4 STEP 3]", "[TRIPLES 4]", "[SESSION 2s]", "[SESSION 2s STEP 3s]",
    "[TRIPLES 5 STEP 3]", "[RANGE 4s STEP 3s START 1970-01-01T00:00:01Z]",
)  # fmt: skip
SECOND = 1_000_000

Drawn = list[tuple[int, int, int]]
"""Seconds since the element before, stream, triples."""


def elements(drawn: Drawn) -> list[tuple[int, str, list[int]]]:
    time, made = 0, []
    for number, (wait, stream, size) in enumerate(drawn):
        time += wait
        made.append((time * SECOND, STREAMS[stream], [number // 3 * 10 + k for k in range(size)]))
    return made


def iri(number: int | str) -> str:
    return f"http://ex.org/{number}"


def quad(number: int) -> ox.Quad:
    return ox.Quad(ox.NamedNode(iri(number)), ox.NamedNode(iri("p")), ox.NamedNode(iri(number)), ox.NamedNode(iri("g")))


def held(store: ox.Store, graph: str) -> set[str]:
    return {quad.subject.value for quad in store.quads_for_pattern(None, None, None, ox.NamedNode(graph))}


@pytest.mark.parametrize("window", WINDOWS)
def test_windows_agree_with_the_oracle(
    window: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    static = tmp_path_factory.mktemp("static") / "static.nq"
    static.touch()
    monkeypatch.setattr(contents, "_RELEASED_AT_ONCE", 1)
    monkeypatch.setattr(contents, "_TAKEN_BETWEEN_RELEASES", 1)
    text = f"SELECT ?a ?b {{ STREAM <{STREAMS[0]}> {window} {{ ?a ?p ?b }} STREAM <{STREAMS[1]}> [COUNT 2] {{ ?b ?p ?a }} }}"
    query = parse(text)

    @given(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=25), st.data()
    )
    def check(drawn: Drawn, data: st.DataObject) -> None:
        made = elements(drawn)
        arrived = [
            naive.Element(
                time, URIRef(stream), tuple((URIRef(iri(s)), URIRef(iri("p")), URIRef(iri(s))) for s in subjects)
            )
            for time, stream, subjects in made
        ]
        there = Contents(query.windows, str(static))

        def compare(moment: naive.Moment) -> None:
            repeated = False
            for definition in query.windows:
                expected = Counter(str(s) for s, _, _ in naive.content(query, definition, arrived, moment).triples)
                assert held(there.store, str(definition.name)) == set(expected)
                repeated |= max(expected.values(), default=1) > 1
            assert there.repeated == repeated

        taken = 0
        for instant in sorted(data.draw(st.sets(st.integers(made[0][0] // SECOND, made[-1][0] // SECOND), max_size=6))):
            while taken < len(made) and made[taken][0] <= instant * SECOND:
                time, stream, subjects = made[taken]
                there.take(Element(time, stream, [quad(s) for s in subjects]))
                taken += 1
                if data.draw(st.integers(0, 3)) == 0:
                    there.move(time, over=False)
                    compare(naive.Moment(time, naive.Phase.ARRIVAL, taken))
            there.move(instant * SECOND)
            compare(naive.Moment(instant * SECOND, naive.Phase.BOUNDARY, taken))

    check()


def test_static_data_is_the_default_graph(tmp_path_factory: pytest.TempPathFactory) -> None:
    static = tmp_path_factory.mktemp("static") / "static.nq"
    static.write_text("<http://ex.org/a> <http://ex.org/b> <http://ex.org/c> .\n")
    definition = nodes.WindowDefinition(URIRef(iri("w")), URIRef(STREAMS[0]), nodes.Everything())
    store = Contents([definition], str(static)).store
    assert [quad.graph_name for quad in store] == [ox.DefaultGraph()]
