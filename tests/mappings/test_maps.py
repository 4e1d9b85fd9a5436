"""Maps through every layer: what they make, what they refuse, and what happens to rows of which they make nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from cqels_py import DataError, Engine, Mapping, QueryError, UsageError
from cqels_py.formats.times import time_of_text
from cqels_py.runners import local
from cqels_py.sources import mapped
from cqels_py.terms.layout import XSD
from tests.mappings.test_mappings_against_oracle import Mapped

S = "http://ex.org/readings"
QUERY = f"PREFIX : <http://ex.org/> SELECT ?s ?t {{ STREAM <{S}> [RANGE 5m] {{ ?s :temperature ?t }} }}"
MAPPING = """
PREFIX : <http://ex.org/>
CONSTRUCT { ?s :temperature ?temperature } WHERE { BIND(IRI(CONCAT("http://ex.org/", ?sensor)) AS ?s) }
"""
TIME = "2024-05-01T12:00:00Z"
ROWS = [
    {"time": TIME, "sensor": "s1", "temperature": 21.5},
    {"time": "2024-05-01T12:00:01Z", "sensor": "s2", "temperature": 35},
]
ANSWER = [("http://ex.org/s1", 21.5), ("http://ex.org/s2", 35)]


def ndjson(path: Path, rows: Any, name: str = "rows.ndjson") -> str:
    (path / name).write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return str(path / name)


def answers(engine: Engine, query: Any) -> list[tuple[str, float]]:
    return [(str(result.bindings["s"]), result.bindings["t"].toPython()) for result in query.results()]


# --- sources ----------------------------------------------------------------------------------------------------------


def test_a_file_through_a_map(tmp_path: Path) -> None:
    (tmp_path / "m.rq").write_text(MAPPING)
    engine = Engine()
    query = engine.register(QUERY)
    engine.run({S: ndjson(tmp_path, ROWS)}, maps={S: tmp_path / "m.rq"})
    assert answers(engine, query) == ANSWER


def test_a_frame_through_a_map() -> None:
    engine = Engine()
    query = engine.register(QUERY)
    frame = pd.DataFrame(ROWS)
    frame["time"] = pd.to_datetime(frame["time"])
    engine.push_batch(S, frame, map=Mapping.of(MAPPING))
    assert answers(engine, query) == ANSWER


def test_rows_of_a_frame_are_sorted_by_their_times() -> None:
    engine = Engine()
    query = engine.register(QUERY)
    with pytest.raises(DataError, match="sort=True"):
        engine.push_batch(S, pd.DataFrame(ROWS[::-1]), map=Mapping.of(MAPPING))
    engine.push_batch(S, pd.DataFrame(ROWS[::-1]), map=Mapping.of(MAPPING), sort=True)
    assert answers(engine, query) == ANSWER


def test_blocks_of_any_size_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"time": 1_700_000_000_000_000 + i, "sensor": f"s{i}", "temperature": 1.5 if i % 3 else i} for i in range(40)
    ]
    path = ndjson(tmp_path, rows)
    whole = Mapped(MAPPING, path).elements
    assert len(whole) == len(rows)
    monkeypatch.setattr(mapped, "CHUNK_BYTES", 100)
    assert Mapped(MAPPING, path).elements == whole


def test_a_context_makes_json_ld_of_json(tmp_path: Path) -> None:
    context = {
        "@vocab": "http://ex.org/",
        "@base": "http://ex.org/",
        "sensor": "@id",
        "time": {
            "@id": "http://www.w3.org/ns/prov#generatedAtTime",
            "@type": "http://www.w3.org/2001/XMLSchema#dateTime",
        },
    }
    (tmp_path / "context.jsonld").write_text(json.dumps({"@context": context}))
    engine = Engine(on_error="skip")
    query = engine.register(QUERY)
    rows = [*ROWS, {**ROWS[0], "@context": {}}, "no JSON", "[1]"]
    engine.run({S: ndjson(tmp_path, rows)}, maps={S: tmp_path / "context.jsonld"})
    assert answers(engine, query) == ANSWER
    assert engine.statistics.malformed == 3


def test_blank_nodes_are_new_for_each_element(tmp_path: Path) -> None:
    found = Mapped("CONSTRUCT { _:o <p:t> ?temperature . _:o <p:u> 'C' } WHERE { }", ndjson(tmp_path, ROWS)).elements
    nodes = [{triple.split()[0] for triple in triples} for _, triples in found]
    assert [len(each) for each in nodes] == [1, 1]
    assert nodes[0] != nodes[1]


def test_terms_are_released_while_expressions_remember_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """IRIs that are made of ever-new values leave the dictionary with their elements."""
    rows = [{"time": 1_700_000_000_000_000 + i * 1_000_000, "sensor": f"s{i}", "temperature": i} for i in range(9000)]
    monkeypatch.setattr(local, "_COLLECT_FROM", 1000)
    monkeypatch.setattr(mapped, "CHUNK_BYTES", 10_000)
    engine = Engine(batch=100)
    query = engine.register(QUERY.replace("?s ?t {", "(COUNT(?s) AS ?n) {", 1).replace("5m", "5s"))
    engine.run({S: ndjson(tmp_path, rows)}, maps={S: Mapping.of(MAPPING)})
    assert [result.bindings["n"].toPython() for result in query.results()][-1] == 5
    assert len(engine.dictionary) < 3000


# --- members and columns ----------------------------------------------------------------------------------------------


def test_members_of_members_and_other_characters(tmp_path: Path) -> None:
    row = {"time": TIME, "room": {"name": {"de": "Küche"}}, "Temp (C)": 3, "a_b": 4}
    mapping = "CONSTRUCT { <s:s> <p:r> ?room_name_de ; <p:t> ?Temp__C_ ; <p:a> ?a_b ; <p:x> ?room_size } WHERE { }"
    ((_, triples),) = Mapped(mapping, ndjson(tmp_path, [row])).elements
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    assert triples == {'<s:s> <p:r> "Küche"', f'<s:s> <p:t> "3"{integer}', f'<s:s> <p:a> "4"{integer}'}


def test_members_of_structs() -> None:
    table = pa.table({"time": [1_700_000_000_000_000], "room": [{"name": "cellar", "at": {"x": 1}}]})
    ((_, triples),) = Mapped("CONSTRUCT { <s:s> <p:r> ?room_name ; <p:x> ?room_at_x } WHERE { }", table).elements
    assert triples == {'<s:s> <p:r> "cellar"', '<s:s> <p:x> "1"^^<http://www.w3.org/2001/XMLSchema#integer>'}


def test_integers_beyond_64_bits_are_exact(tmp_path: Path) -> None:
    row = {**ROWS[0], "temperature": 10**30 + 1}
    ((_, triples),) = Mapped(
        MAPPING,
        ndjson(
            tmp_path,
            [
                row,
            ],
        ),
    ).elements
    assert str(10**30 + 1) in next(iter(triples))


WRONG_ROWS = {
    "[1]": "expected one JSON object a line",
    '{"a": 1} {"b": 2}': "expected one JSON object a line",
    '{"a": NaN}': "NaN is no JSON value",
    '{"a": }': "this is no JSON",
    "{" * 100_000: "nested more than 100 deep",
    '{"a":' * 100_000: "nested more than 100 deep",
    json.dumps({**ROWS[0], "time": None}): r"\?time is unbound; expected a time like",
    json.dumps({**ROWS[0], "time": "noon"}): '\\?time is "noon"; expected a time like',
    json.dumps(
        {**ROWS[0], "temperature": None}
    ): r"no triple of it: .*FILTER\(BOUND\(\?temperature\)\) leaves such rows out",
    json.dumps({**ROWS[0], "sensor": [1]}): r"the value of \?sensor is a list",
    json.dumps({**ROWS[0], "sensor": {"a": 1}}): r"the value of \?sensor is an object",
    json.dumps({**ROWS[0], "sensor": "\ud800"}): "surrogate",
    json.dumps({**ROWS[0], "sensor": "no iri"}): r"no triple of it: \?s is unbound",
}


@pytest.mark.parametrize("row", WRONG_ROWS, ids=lambda row: row[:40])
def test_a_row_that_makes_no_element_is_malformed(row: str, tmp_path: Path) -> None:
    path = ndjson(tmp_path, [ROWS[0], row, ROWS[1]])
    found = Mapped(MAPPING, path)
    assert len(found.elements) == 2
    assert len(found.wrong) == 1
    engine = Engine()
    engine.register(QUERY)
    with pytest.raises(DataError, match=WRONG_ROWS[row]) as caught:
        engine.run({S: path}, maps={S: Mapping.of(MAPPING)})
    assert caught.value.place is not None
    assert caught.value.place.line == 2


def test_two_members_that_are_one_variable(tmp_path: Path) -> None:
    row = {**ROWS[0], "room_name": "a", "room": {"name": "b"}}
    found = Mapped(
        "CONSTRUCT { <s:s> <p:r> ?room_name } WHERE { }", ndjson(tmp_path, [row, {**ROWS[1], "room": {"name": "b"}}])
    )
    assert len(found.elements) == 1
    assert "two members are ?room_name" in found.wrong[0]


def test_a_row_that_a_filter_leaves_out_is_no_error(tmp_path: Path) -> None:
    mapping = MAPPING.replace("WHERE {", "WHERE { FILTER(?temperature > 30)")
    found = Mapped(mapping, ndjson(tmp_path, [*ROWS, {**ROWS[0], "temperature": None}]))
    assert len(found.elements) == 1
    assert not found.wrong


def test_rejects_hold_the_row(tmp_path: Path) -> None:
    engine = Engine(on_error="skip", rejects=tmp_path / "rejects")
    engine.register(QUERY)
    row = json.dumps({**ROWS[0], "time": "noon"})
    engine.run({S: ndjson(tmp_path, [row, *ROWS])}, maps={S: Mapping.of(MAPPING)})
    (reject,) = map(json.loads, (tmp_path / "rejects").read_text().splitlines())
    assert (reject["reason"], reject["element"]) == ("malformed", row)
    assert reject["position"].endswith("rows.ndjson:1")


def test_times_that_seem_to_be_in_another_unit_are_asked_about(tmp_path: Path) -> None:
    said: list[str] = []
    engine = Engine(report=lambda error: said.append(str(error)))
    engine.register(QUERY)
    engine.run({S: ndjson(tmp_path, [{**ROWS[0], "time": 1_714_564_800}])}, maps={S: Mapping.of(MAPPING)})
    assert any("seconds?" in each for each in said)
    said.clear()
    scaled = MAPPING.replace("WHERE {", "WHERE { BIND(?time * 1000000 AS ?time)")
    engine = Engine(report=lambda error: said.append(str(error)))
    query = engine.register(QUERY)
    engine.run({S: ndjson(tmp_path, [{**ROWS[0], "time": 1_714_564_800}])}, maps={S: Mapping.of(scaled)})
    assert [result.time for result in query.results()] == [1_714_564_800_000_000]
    assert not said


# --- refusals ---------------------------------------------------------------------------------------------------------

REFUSED = {
    "SELECT ?s WHERE { BIND(1 AS ?s) }": "1:1: a mapping is a CONSTRUCT",
    "CONSTRUCT { } WHERE { }": "no template",
    "CONSTRUCT { ?s <p:p> 1 } WHERE { ?s ?p ?o }": "1:34: the WHERE of a mapping holds BIND and FILTER alone",
    "CONSTRUCT { ?s <p:p> 1 } WHERE { OPTIONAL { BIND(1 AS ?s) } }": "1:34: the WHERE of a mapping",
    "CONSTRUCT { ?s <p:p> 1 } WHERE { STREAM <s:s> [NOW] { ?s ?p ?o } }": "a mapping reads columns, not streams",
    "CONSTRUCT { ?s <p:p> 1 } WHERE { MATCH WITHIN 1m { EVENT ON <s:s> { ?s ?p ?o } } }": "columns, not streams",
    "CONSTRUCT { ?s <p:p> 1 } WHERE { EVENT ON <s:s> { ?s ?p ?o } }": "columns, not streams",
    "CONSTRUCT { ?s <p:p> 1 } WHERE { BIND(NOW() AS ?s) }": "NOW",
    "CONSTRUCT { ?s <p:p> 1 } WHERE { BIND(RAND() AS ?s) }": "RAND",
    "CONSTRUCT { ?s <p:p> 1 } WHERE { FILTER EXISTS { ?s ?p ?o } }": "EXISTS has nothing to look into",
    "CONSTRUCT { ?s <p:p> 1 } WHERE { BIND(1 AS ?s) } LIMIT 3": "1:50: the WHERE of a mapping",
    "CONSTRUCT { ?s <p:p> 1 } WHERE { BIND(1 AS ?s) BIND(2 AS ?s) }": "already has a value",
    "CONSTRUCT { ?s :p 1 } WHERE { }": "prefix",
    "": "there is no query here",
}


@pytest.mark.parametrize("text", REFUSED)
def test_texts_that_are_no_mapping(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        Mapping.of(text, "m.rq")
    assert REFUSED[text] in str(caught.value)
    assert str(caught.value).startswith("m.rq:1:")


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("when,sensor,temperature\n")
    with pytest.raises(UsageError, match=r"\?time, .* columns are \?when, \?sensor, \?temperature, or BIND it"):
        Mapped(MAPPING, str(tmp_path / "rows.csv"))
    table = pa.table({"time": [1], "sen.sor": ["a"], "sen_sor": ["b"]})
    with pytest.raises(UsageError, match=r"\?sen_sor stands for the columns 'sen.sor' and 'sen_sor'"):
        Mapped("CONSTRUCT { <s:s> <p:p> ?sen_sor } WHERE { }", table)
    with pytest.raises(DataError, match="the column n of type list"):
        Mapped("CONSTRUCT { <s:s> <p:p> ?n } WHERE { }", pa.table({"time": [1], "n": [[1]]}))


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_lines_that_end_with_a_carriage_return(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"rows.{kind}"

    def write(text: str) -> None:
        path.write_bytes(text.replace(",", "," if kind == "csv" else "\t").encode())

    write(f"time,sensor,temperature\r{TIME},s1,1\r")
    with pytest.raises(DataError, match=r"rows.[ct]sv:1: there is a carriage return within this line.* tr "):
        Mapped(MAPPING, str(path))
    write(f"time,sensor,temperature\r\n{TIME},s1,1\r\n{TIME},s\r2,2\n{TIME},s3,3\r")
    found = Mapped(MAPPING, str(path))
    assert len(found.elements) == 2
    assert [wrong.partition(":")[2][:29] for wrong in found.wrong] == ["3: there is a carriage return"]


def test_names_of_columns_that_are_no_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('time,sensor,"the\ntemperature"\n')
    with pytest.raises(
        DataError, match=r"rows.csv:1: a quoted value does not end on this line, .* as Parquet or NDJSON"
    ):
        Mapped(MAPPING, str(path))
    path.write_text("time,sensor," + 200_000 * "x" + "\n")
    with pytest.raises(DataError, match=r"rows.csv:1: the names of the columns cannot be read: field larger"):
        Mapped(MAPPING, str(path))


def test_values_with_line_breaks_are_malformed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f'time,sensor,temperature\n{TIME},s1,"cold\nand wet"\n{TIME},s2,2\n')
    found = Mapped(MAPPING, str(path))
    assert [line for _, triples in found.elements for line in triples] == [
        f'<http://ex.org/s2> <http://ex.org/temperature> "2"^^<{XSD}integer>'
    ]
    assert "rows.csv:2: a quoted value does not end on this line" in found.wrong[0]


def test_times_as_databases_write_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = (
        "2024-05-01 12:00:00+00,s1,1",
        "2024-05-01 14:00:01.5+02,s1,2",
        "20240501T120002Z,s1,3",
        "2024-05-01t12:00:03z,s1,4",
    )
    path.write_text("time,sensor,temperature\n" + "".join(f"{row}\n" for row in rows))
    times = [time for time, _ in Mapped(MAPPING, str(path)).elements]
    assert [time - times[0] for time in times] == [0, 1_500_000, 2_000_000, 3_000_000]
    assert times[0] == time_of_text(TIME)


def test_formats_that_are_rdf(tmp_path: Path) -> None:
    (tmp_path / "rows.nq").write_text("")
    engine = Engine()
    engine.register(QUERY)
    with pytest.raises(UsageError, match=r"reads tables .* and JSON, not nq"):
        engine.run({S: tmp_path / "rows.nq"}, maps={S: Mapping.of(MAPPING)})
    with pytest.raises(UsageError, match="no source"):
        engine.run({S: tmp_path / "rows.nq"}, maps={"http://ex.org/other": Mapping.of(MAPPING)})
    with pytest.raises(UsageError, match=r"cannot be read"):
        engine.run({S: tmp_path / "rows.nq"}, maps={S: tmp_path / "none.rq"})
