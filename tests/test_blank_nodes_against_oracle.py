"""Blank nodes against the oracle: drawn elements that share labels, read, pushed and given as tables, at any batch size."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import BNode, Literal, URIRef

from cqels_py import Engine
from cqels_py.algebra.nodes import Output
from tests.oracle import naive_documents
from tests.oracle.naive import Element
from tests.oracle.naive_documents import Document, as_one, by_element, by_stream
from tests.support import harness
from tests.support.generators import FEW
from tests.support.traces import EX, STREAMS

S, T = STREAMS + "s", STREAMS + "t"
P, Q = URIRef(EX + "p"), URIRef(EX + "q")
NODES = [BNode("n"), BNode("nn"), BNode("m"), URIRef(EX + "a")]
TRIPLES = [(node, p, Literal(k)) for node in NODES for p, k in ((P, 1), (P, 2), (Q, 3))]
TRIPLES += [(one, Q, other) for one in NODES[:2] for other in NODES[:3]]
# Blank nodes have other labels in results: the queries compare them without naming them.
QUERIES = [
    f"SELECT ?v ?w {{ STREAM <{S}> [RANGE 3s] {{ ?n <{P}> ?v }} STREAM <{S}> [COUNT 3] {{ ?n <{Q}> ?w FILTER(!ISBLANK(?w)) }} }}",
    f"SELECT ?v ?w {{ STREAM <{S}> [ALL] {{ ?n <{P}> ?v }} STREAM <{T}> [RANGE 2s] {{ ?n <{P}> ?w }} }}",
    f"SELECT (COUNT(DISTINCT ?n) AS ?c) (COUNT(?n) AS ?d) {{ STREAM <{S}> [RANGE 4s] {{ ?n ?p ?v }} }}",
    f"SELECT ?v {{ STREAM <{S}> [TRIPLES 5] {{ ?n <{P}> ?v FILTER NOT EXISTS {{ ?n <{Q}> ?n }} }} }}",
    f"SELECT ?v {{ STREAM <{S}> [ALL] {{ ?m <{Q}> ?n }} STREAM <{S}> [RANGE 2s] {{ ?n <{P}> ?v }} }}",
]


@st.composite
def arriving(draw: st.DrawFn) -> list[Element]:
    one = st.tuples(
        st.integers(0, 2), st.sampled_from([S, S, T]), st.lists(st.sampled_from(TRIPLES), min_size=1, max_size=3)
    )
    drawn = draw(st.lists(one, max_size=10))
    times = accumulate(seconds for seconds, _, _ in drawn)
    # No two at one instant: which of two streams comes first then depends on the way in.
    return [
        Element(time * 1_000_000 + number, URIRef(stream), tuple(triples))
        for number, (time, (_, stream, triples)) in enumerate(zip(times, drawn, strict=True))
    ]


def rows(elements: Sequence[Element]) -> pa.Table:
    found = [
        {"time": e.time, **{k: t.n3() for k, t in zip(("subject", "predicate", "object"), triple, strict=True)}}
        for e in elements
        for triple in e.triples
    ]
    kinds = [("time", pa.int64()), *((name, pa.string()) for name in ("subject", "predicate", "object"))]
    return pa.Table.from_pylist(found, pa.schema(kinds))


def quads(elements: Sequence[Element]) -> str:
    lines = []
    for e in elements:
        graph = f"<urn:g:{e.time}>"
        lines.append(f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{e.time}" .')
        lines += [" ".join([*(t.n3() for t in triple), graph, "."]) for triple in e.triples]
    return "\n".join(lines)


def run(engine: Engine, elements: Sequence[Element], streams: Sequence[str], form: str) -> None:
    """Each stream from a file (or a table) of its own."""
    with tempfile.TemporaryDirectory() as folder:
        sources: dict[str, Any] = {}
        for stream in streams:
            mine, path = [e for e in elements if str(e.stream) == stream], Path(folder) / f"{stream[-1]}.{form}"
            sources[stream] = rows(mine) if form == "table" else str(path)
            if form == "nq":
                path.write_text(quads(mine))
            elif form == "parquet":
                pq.write_table(rows(mine), path)
        engine.run(sources)


def push_tables(engine: Engine, elements: Sequence[Element], cuts: Sequence[int], document: str | None) -> None:
    """Consecutive elements of one stream as tables, cut once more at `cuts`."""
    changes = [i for i, (a, b) in enumerate(pairwise(elements), 1) if a.stream != b.stream]
    bounds = sorted({0, len(elements), *changes, *(cut % (len(elements) + 1) for cut in cuts)})
    for start, end in pairwise(bounds):
        engine.push_batch(str(elements[start].stream), rows(elements[start:end]), document=document)
    engine.finish()


WAYS: dict[str, tuple[str, Document]] = {
    "a file": ("source", by_stream),
    "a file, by element": ("element", by_element),
    "pushed": ("source", by_element),
    "tables": ("source", by_element),
    "tables of a document": ("source", as_one),
}


@pytest.mark.parametrize("way", WAYS)
def test_blank_nodes_are_those_of_the_oracle(way: str) -> None:
    @FEW
    @given(
        st.sampled_from(QUERIES),
        arriving(),
        st.lists(st.integers(0, 9), max_size=3),
        st.sampled_from([None, 1, 2, 5]),
        st.sampled_from(["nq", "parquet", "table"]),
    )
    def check(text: str, elements: list[Element], cuts: list[int], batch: int | None, form: str) -> None:
        blank_nodes, document = WAYS[way]
        query = harness.parse(text)
        elements = [e for e in elements if str(e.stream) in {str(w.stream) for w in query.windows}]
        expected = harness.expected_changes(query, naive_documents.scoped(elements, document), output=Output.CHANGELOG)
        engine = Engine(blank_nodes=blank_nodes, batch=batch)
        registered = engine.register(text, changelog=True)
        delivered: list[harness.Result] = []
        registered.subscribe(lambda result: delivered.append(harness._result(result)))
        if way.startswith("a file"):
            run(engine, elements, registered.streams, form)
        elif way == "pushed":
            for e in elements:
                engine.push(str(e.stream), list(e.triples), time=e.time)
            engine.finish()
        else:
            push_tables(engine, elements, cuts, "sensors" if document is as_one else None)
        harness.check_equal(expected, delivered, f"{way}, batch {batch}")

    check()
