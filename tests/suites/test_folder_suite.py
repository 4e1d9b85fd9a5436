"""Suites of one's own: `cqels bench --suite-dir`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cqels_py.errors import UsageError
from cqels_py.suites.data import prepared
from cqels_py.suites.folder_suite import FolderSuite
from tests.suites.test_data import read

TRIG = """@prefix : <http://ex.org/> . @prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:g1 prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime . :g1 { :a :p 1 ; :q 2 }
:g2 prov:generatedAtTime "1970-01-01T00:00:02Z"^^xsd:dateTime . :g2 { :b :p 1 ; :q "a\\nb" }
:g3 prov:generatedAtTime "1970-01-01T00:00:02Z"^^xsd:dateTime . :g3 { :c :p 1 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "mine"
    place.mkdir()
    (place / "a.rq").write_text("# First\nSELECT * { STREAM <urn:s> [NOW] { ?s ?p ?o } }")
    (place / "s.trig").write_text(TRIG)
    (place / "streams.json").write_text(json.dumps({"urn:s": "s.trig"}))
    return place


@pytest.mark.parametrize(("most", "kept"), [(100, 3), (5, 3), (4, 2), (3, 1)])
def test_its_streams_are_those_of_the_files_in_whole_elements(
    folder: Path, tmp_path: Path, most: int, kept: int
) -> None:
    suite = FolderSuite.of(folder)
    assert list(suite.chosen(())) == ["a"]
    made = prepared(suite, most, 1, tmp_path)
    assert list(read(made.streams["urn:s"])) == [
        (1_000_000, ["a", "a"]), (2_000_000, ["b", "b"]), (2_000_000, ["c"]),
    ][:kept]  # fmt: skip
    assert made.elements == kept
    assert made.static.read_bytes() == b""


def test_data_that_has_changed_is_read_again(folder: Path, tmp_path: Path) -> None:
    suite = FolderSuite.of(folder)
    assert prepared(suite, 100, 1, tmp_path).triples == 5
    (folder / "s.trig").write_text(TRIG.partition(":g2")[0])
    (folder / "static.nt").write_text("<urn:a> <urn:b> <urn:c> .\n")
    again = prepared(suite, 100, 1, tmp_path)
    assert (again.triples, again.static.read_bytes()) == (2, b"<urn:a> <urn:b> <urn:c> .\n")


@pytest.mark.parametrize(
    ("streams", "said"),
    [(None, "streams.json is not there"), ("[", "is no JSON"), ("{}", "expected an object"), ('{"urn:s": "x.nq"}', "is not there")],
)  # fmt: skip
def test_a_folder_that_is_no_suite(folder: Path, streams: str | None, said: str) -> None:
    (folder / "streams.json").unlink()
    if streams is not None:
        (folder / "streams.json").write_text(streams)
    with pytest.raises(UsageError, match=said):
        FolderSuite.of(folder)
    with pytest.raises(UsageError, match="is not a folder"):
        FolderSuite.of(folder / "a.rq")
