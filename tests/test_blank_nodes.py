"""The scope of blank node labels: in files, in pushed elements, and in constructed graphs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rdflib import BNode, Literal, URIRef

from cqels_py import Engine, UsageError
from cqels_py.runners import local
from cqels_py.sources import opened
from cqels_py.sources.files import open_source
from cqels_py.terms.layout import TAG_BLANK, TAG_SHIFT
from tests.formats.reading import ahead, instant, iri

A, B = "http://ex.org/a", "http://ex.org/b"
JOINED = f"""SELECT ?v ?w {{
    STREAM <{A}> [ALL] {{ ?n <http://ex.org/v> ?v }}
    STREAM <{A}> [ALL] {{ ?n <http://ex.org/w> ?w }}
}}"""
ACROSS = f"""SELECT ?v ?w {{
    STREAM <{A}> [ALL] {{ ?n <http://ex.org/v> ?v }}
    STREAM <{B}> [ALL] {{ ?n <http://ex.org/w> ?w }}
}}"""
V, W = iri("v"), iri("w")

Row = tuple[int, str, str, str]
ROWS: list[Row] = [(1, "_:n", V, '"1"'), (2, "_:n", W, '"2"'), (3, "_:m", W, '"3"'), (4, "_:n", W, '"4"')]


def table(rows: list[Row]) -> pa.Table:
    return pa.table(
        {name: [row[k] for row in rows] for k, name in enumerate(("time", "subject", "predicate", "object"))}
    )


def values(query: Any) -> list[tuple[str, str]]:
    return [(str(r.bindings["v"]), str(r.bindings["w"])) for r in query.results()]


FOUND = [("1", "2"), ("1", "4")]


def quads(rows: list[Row]) -> str:
    return "".join(ahead(iri(f"g{t}"), t) + f"{s} {p} {o} {iri(f'g{t}')} .\n" for t, s, p, o in rows)


def blocks(rows: list[Row]) -> str:
    return "".join(ahead(iri(f"g{t}"), t) + f"{iri(f'g{t}')} {{ {s} {p} {o} }}\n" for t, s, p, o in rows)


def of_subjects(rows: list[Row]) -> str:
    """N-Triples: IRIs between them keep the blank nodes apart."""
    return "".join(
        f"{iri(f'x{t}')} {iri('at')} {instant(t)} .\n{s} {iri('at')} {instant(t)} .\n{s} {p} {o} .\n"
        for t, s, p, o in rows
    )


def lines_of_table(rows: list[Row]) -> str:
    quoted = ('"' + o.replace('"', '""') + '"' for *_, o in rows)
    return "time,subject,predicate,object\n" + "".join(
        f"{t},{s},{p},{o}\n" for (t, s, p, _), o in zip(rows, quoted, strict=True)
    )


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.nq", quads(ROWS)),
        ("d.trig", blocks(ROWS)),
        ("d.nt", of_subjects(ROWS)),
        ("d.ttl", of_subjects(ROWS)),
        ("d.csv", lines_of_table(ROWS)),
    ],
)
def test_a_label_is_one_node_in_all_of_a_file(name: str, text: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, text)
    predicates = {A: "http://ex.org/at"} if name in ("d.nt", "d.ttl") else None
    for blank_nodes, expected in (("source", FOUND), ("element", [])):
        engine = Engine(blank_nodes=blank_nodes)
        query = engine.register(JOINED)
        engine.run({A: path}, time_predicates=predicates)
        assert values(query) == expected


def test_labels_of_two_files_never_meet(tmp_path: Path) -> None:
    first, second = write(tmp_path, "a.nq", quads(ROWS)), write(tmp_path, "b.nq", quads(ROWS))
    engine = Engine()
    query = engine.register(ACROSS)
    engine.run({A: first, B: second})
    assert values(query) == []


def test_a_line_of_json_is_a_document(tmp_path: Path) -> None:
    line = (
        '{{"@context": {{"@vocab": "http://ex.org/"}}, "@graph": [{{"@id": "_:n", "{}": "{}"}}, {{"@id": "_:n", "w": "5"}}], '
        '"@id": "http://ex.org/g{}", "http://www.w3.org/ns/prov#generatedAtTime": {}}}\n'
    )
    path = write(tmp_path, "d.ndjson", line.format("v", 1, 1, 1) + line.format("w", 2, 2, 2))
    engine = Engine()
    query = engine.register(JOINED)
    engine.run({A: path})
    assert values(query) == [("1", "5")]


def test_a_table_of_a_run_is_a_source() -> None:
    for blank_nodes, expected in (("source", FOUND), ("element", [])):
        engine = Engine(blank_nodes=blank_nodes)
        query = engine.register(JOINED)
        engine.run({A: table(ROWS)})
        assert values(query) == expected


def test_a_push_is_a_document() -> None:
    """Also of rdflib's nodes."""
    engine = Engine()
    query = engine.register(JOINED)
    node = BNode()
    for time, predicate, value in ((1, "v", "1"), (2, "w", "2")):
        engine.push(A, [(node, URIRef(f"http://ex.org/{predicate}"), Literal(value))], time=time)
        engine.push(A, [(f"_:{node}", iri(predicate), f'"{value}"')], time=time)
    assert values(query) == []
    engine.push(A, [(node, URIRef("http://ex.org/v"), Literal("5")), (f"_:{node}", W, '"6"')], time=3)
    assert values(query) == [("5", "6")]


@pytest.mark.parametrize("size", [1, 3, 4])
def test_a_table_names_its_document(size: int) -> None:
    """How rows are cut does not matter, with a document or without."""
    for document, expected in ((None, []), ("sensors", FOUND)):
        engine = Engine()
        query = engine.register(JOINED)
        for start in range(0, len(ROWS), size):
            engine.push_batch(A, table(ROWS[start : start + size]), document=document)
        assert values(query) == expected


def test_a_document_is_one_in_all_streams_and_engines() -> None:
    engine = Engine()
    query = engine.register(ACROSS)
    engine.push_batch(A, table(ROWS[:1]), document="sensors")
    engine.push_batch(B, table(ROWS[1:2]), document="sensors")
    engine.push_batch(B, table([(5, *ROWS[3][1:])]), document="others")
    assert values(query) == [("1", "2")]
    nodes = [Engine() for _ in range(2)]
    found = []
    for number, other in enumerate(nodes):
        asked = other.register(f"SELECT ?n {{ STREAM <{A}> [ALL] {{ ?n <http://ex.org/v> ?v }} }}")
        for k in range(number + 1):
            other.push_batch(A, table([(k, *ROWS[0][1:])]), document="sensors")
        found.append({r.bindings["n"] for r in asked.results()})
    assert found[0] == found[1] and len(found[0]) == 1


def test_nodes_that_a_query_constructs_are_the_same_where_they_are_read(tmp_path: Path) -> None:
    engine = Engine()
    template = "{ ?n <http://ex.org/w> ?w . _:t <http://ex.org/of> ?n }"
    feeding = engine.register(f"CONSTRUCT {template} {{ STREAM <{A}> [NOW] {{ ?n <http://ex.org/w> ?w }} }}")
    engine.connect(feeding, B)
    query = engine.register(ACROSS)
    made = engine.register(f"SELECT (COUNT(DISTINCT ?t) AS ?c) {{ STREAM <{B}> [ALL] {{ ?t <http://ex.org/of> ?n }} }}")
    engine.run({A: write(tmp_path, "d.nq", quads(ROWS))})
    assert values(query) == FOUND
    assert [int(r.bindings["c"]) for r in made.results()][-1] == 3


def test_a_stream_of_labels_is_not_remembered() -> None:
    """Ids of blank nodes come from document and label alone: nothing is kept of those that have left the windows."""
    engine = Engine()
    query = engine.register(f"SELECT ?v {{ STREAM <{A}> [COUNT 10] {{ ?n <http://ex.org/v> ?v }} }}")
    query.subscribe_batches(lambda batch: None, ids=True)
    rows = [(t, f"_:n{t}", V, "<http://ex.org/x>") for t in range(20_000)]
    engine.push_batch(A, table(rows[:10_000]), document="d")
    terms = len(engine.dictionary)
    engine.push_batch(A, table(rows[10_000:]), document="d")
    assert len(engine.dictionary) == terms
    identifier = engine.dictionary.encode(["_:n1"], scope=5)[0]
    assert identifier >> TAG_SHIFT == TAG_BLANK


def test_the_rule_is_explained() -> None:
    for blank_nodes, words in (("source", "one node within its source"), ("element", "one node within its element")):
        assert words in Engine(blank_nodes=blank_nodes).register(JOINED).explain()


def test_impossible_scopes_are_refused() -> None:
    with pytest.raises(UsageError, match="blank_nodes is 'source' or 'element', not 'file'"):
        Engine(blank_nodes="file")
    engine = Engine(blank_nodes="element")
    engine.register(JOINED)
    with pytest.raises(UsageError, match="leave document= out"):
        engine.push_batch(A, table(ROWS), document="d")
    for wrong in ("", 5):
        with pytest.raises(UsageError, match="document must be a text"):
            engine.push_batch(A, table(ROWS), document=wrong)  # type: ignore[arg-type]


def test_nested_nodes_are_kept_while_they_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms are released again and again while runs of triples wait for their continuation, with one thread and with two."""
    monkeypatch.setattr(local, "_COLLECT_FROM", 10)
    lines = []
    for n in range(300):
        lines += [f'_:r{n} {V} "value {n}" .', f"{iri(f'o{n}')} {iri('at')} {instant(n % 60)} ."]
        lines += [f'_:s{n} {iri("more")} "of {n}" .'] if n % 3 else []
        lines += [f"{iri(f'o{n}')} {iri('result')} _:r{n} .", f"{iri(f'o{n}')} {iri('of')} _:s{n} ."]
    path = write(tmp_path, "d.nt", "\n".join(lines))
    found = []
    for chunk, threads in ((700, 1), (700, 2), (1 << 20, 1)):
        monkeypatch.setattr(opened, "open_source", partial(open_source, chunk_bytes=chunk))
        engine = Engine(lateness=60_000_000)
        query = engine.register(
            f"SELECT ?o ?v {{ STREAM <{A}> [RANGE 2s] {{ ?o <http://ex.org/result> ?r . ?r <http://ex.org/v> ?v }} }}"
        )
        engine.run({A: path}, time_predicates={A: "http://ex.org/at"}, threads=threads)
        found.append([(r.time, str(r.bindings["o"]), str(r.bindings["v"])) for r in query.results()])
    assert found[0] == found[1] == found[2]
    assert {(o.removeprefix("http://ex.org/o"), v.removeprefix("value ")) for _, o, v in found[0]} >= {
        (str(n), str(n)) for n in range(60)
    }
