"""Columns of terms in N-Triples syntax."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyoxigraph

from cqels_py.datasets.tables import SCHEMA, Statement, date_times, decimals, iris, ntriples, rows, strings, typed


def test_rows_puts_each_rows_triples_together_and_leaves_out_nulls() -> None:
    graph = pa.array(["<g:0>", "<g:1>"])
    batch = rows(
        np.array([5, 7]),
        graph,
        [Statement(graph, "<p:a>", pa.array(['"a0"', None])), Statement(graph, "<p:b>", pa.array(['"b0"', '"b1"']))],
    )
    assert batch.schema == SCHEMA
    assert batch.to_pydict() == {
        "time": [5, 5, 7],
        "graph": ["<g:0>", "<g:0>", "<g:1>"],
        "subject": ["<g:0>", "<g:0>", "<g:1>"],
        "predicate": ["<p:a>", "<p:b>", "<p:b>"],
        "object": ['"a0"', '"b0"', '"b1"'],
    }


def test_no_rows_make_an_empty_batch() -> None:
    nothing = pa.array([], pa.string())
    assert rows(np.array([], np.int64), nothing, [Statement(nothing, "<p:a>", nothing)]).num_rows == 0


def test_terms() -> None:
    assert iris("http://x/", pa.array(["a", None]), "#z").to_pylist() == ["<http://x/a#z>", None]
    assert typed(pa.array([3, None]), "integer").to_pylist() == [
        '"3"^^<http://www.w3.org/2001/XMLSchema#integer>',
        None,
    ]
    assert date_times(np.array([1_357_035_420_000_000])).to_pylist() == [
        '"2013-01-01T10:17:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    ]


def test_decimals_are_exact_where_floats_are_not() -> None:
    found = decimals(np.array([10.357019999999999, -0.05, np.nan, 0.0]), 5).to_pylist()
    lexical = [text and text.split('"')[1] for text in found]
    assert lexical == ["10.35702", "-0.05000", None, "0.00000"]


def test_every_text_survives_the_way_through_ntriples() -> None:
    texts = ["plain", 'a "quote"', "back\\slash", "two\nlines", "\r", "Zürich ☂"]
    subject = iris("http://x/", pa.array([str(number) for number in range(len(texts))]))
    written = ntriples([Statement(subject, "<http://x/p>", strings(pa.array(texts)))])
    parsed = [triple.object.value for triple in pyoxigraph.parse(written, pyoxigraph.RdfFormat.N_TRIPLES)]
    assert parsed == texts
