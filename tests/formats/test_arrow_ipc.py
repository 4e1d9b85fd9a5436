"""Arrow IPC files and streams as streams of elements, also through a map."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from cqels_py.engine.engine import Engine
from cqels_py.errors import DataError
from cqels_py.mappings.mapping import Mapping

STREAM = "http://example.org/readings"
QUERY = f"SELECT ?s ?v {{ STREAM <{STREAM}> [RANGE 10s] {{ ?s <http://example.org/v> ?v }} }}"
MAP = Mapping.of(
    "PREFIX : <http://example.org/> CONSTRUCT { ?s :v ?v } WHERE { BIND(IRI(CONCAT('http://example.org/', ?sensor)) AS ?s) }"
)
TRIPLES = pa.table(
    {
        "time": pa.array([1_000_000, 2_000_000, 3_000_000], pa.timestamp("us")),
        "subject": [f"<http://example.org/s{n}>" for n in (1, 2, 3)],
        "predicate": ["<http://example.org/v>"] * 3,
        "object": [f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in (1, 2, 3)],
    }
)
ROWS = pa.table({"time": TRIPLES["time"], "sensor": ["s1", "s2", "s3"], "v": [1, 2, 3]})
EXPECTED = [(f"http://example.org/s{n}", n) for n in (1, 2, 3)]


def written(path: Path, table: pa.Table) -> Path:
    """A file with an index by .arrow, a stream by .arrows; in two batches."""
    make = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
    with make(path, table.schema) as writer:
        writer.write_table(table.slice(0, 2))
        writer.write_table(table.slice(2))
    return path


def answers(path: Path, **how: object) -> list[tuple[str, int]]:
    engine = Engine()
    query = engine.register(QUERY)
    engine.run({STREAM: str(path)}, **how)  # type: ignore[arg-type]
    return [(str(each.bindings["s"]), int(each.bindings["v"])) for each in query.results()]


@pytest.mark.parametrize("ending", ["arrow", "arrows"])
def test_rows(tmp_path: Path, ending: str) -> None:
    assert answers(written(tmp_path / f"a.{ending}", TRIPLES)) == EXPECTED
    assert answers(written(tmp_path / f"b.{ending}", ROWS), maps={STREAM: MAP}) == EXPECTED


def test_a_stream_under_the_name_of_a_file(tmp_path: Path) -> None:
    assert answers(written(tmp_path / "a.arrows", TRIPLES).rename(tmp_path / "b.arrow")) == EXPECTED


@pytest.mark.parametrize("ending", ["arrow", "arrows"])
def test_damaged_files_are_data_errors(tmp_path: Path, ending: str) -> None:
    whole = written(tmp_path / f"a.{ending}", TRIPLES).read_bytes()
    path = tmp_path / f"b.{ending}"
    for cut in range(0, len(whole) - 20, 37):
        path.write_bytes(whole[:cut])
        try:
            assert EXPECTED[: len(found := answers(path))] == found
        except DataError as error:
            assert f"b.{ending}" in str(error)
    path.write_bytes(b"no table")
    with pytest.raises(DataError, match=f"b.{ending} is not a valid Arrow IPC stream"):
        answers(path)
    with pytest.raises(DataError, match="there is no column subject"):
        answers(written(tmp_path / f"c.{ending}", ROWS))
