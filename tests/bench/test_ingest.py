"""The benchmark of reading runs, and everybody reads the same triples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.suites import ingest


def test_every_form_is_read_and_run_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ingest.main(["--quick", "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "ingest.json").read_text())
    cases = found["figures"]["cases"]
    assert found["quick"]
    assert [case["what"].split()[0] for case in cases if case["how"] == "engine"] == [
        ".nt", ".nt.gz", ".nt.zst", ".ttl", ".tsv", ".parquet",
    ]  # fmt: skip
    assert [case["how"] for case in cases if "JSON" in case["what"]] == ["engine, 1 thread", "engine, 2 threads"]
    assert {case["triples"] for case in cases if case["how"] != ingest.RDFLIB} == {5 * ingest.QUICK_OBSERVATIONS}
    assert [case["to_parser"] for case in cases if case["how"] == ingest.PARSER] == [1.0]
    assert all(len(case["rates"]) == 1 for case in cases)
    assert "pyoxigraph" in capsys.readouterr().out


def test_a_reader_that_leaves_triples_out_is_noticed(tmp_path: Path) -> None:
    files = ingest.write_files(tmp_path, 40)
    for ending, path in files.items():
        ingest.read(path, 200)
        with pytest.raises(AssertionError):
            ingest.read(path, 199)
        assert path.name == f"observations.{ending}"
    ingest.parse(files["nt"], 200)
    ingest.parse_with_rdflib(files["nt"], 200)
    with pytest.raises(AssertionError):
        ingest.run(files["nt"], 199, threads=1)
