"""`cqels run --checkpoint` over a file that had a malformed line, which has been mended since."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cqels
from tests.engine.test_files_again import written
from tests.engine.test_mended_files import S, spoiled

T = "http://ex.org/t"


def test_a_run_at_the_command_line(cqels: Cqels, tmp_path: Path) -> None:
    sources = written(tmp_path, "csv")
    path = Path(sources[S])
    wrong, mended = spoiled(path, 22)

    def run(name: str) -> str:
        query = f"SELECT ?v ?w {{ STREAM <{S}> [RANGE 9s] {{ ?s ?p ?v }} STREAM <{T}> [COUNT 2] {{ ?s ?p ?w }} }}"
        streams = [f"--stream={iri}={file}" for iri, file in sources.items()]
        where = ["-o", tmp_path / f"{name}.csv", "--checkpoint", tmp_path / name, "--batch", "5"]
        return cqels("run", "-q", query, *streams, *where).err

    def written_by(name: str) -> list[str]:
        return sorted((tmp_path / f"{name}.csv").read_text().splitlines())

    path.write_text(mended)
    assert run("whole") == ""
    path.write_text(wrong)
    assert "s.csv:23" in run("a")
    path.write_text(mended.replace("00:31", "00:30"))
    assert "size or modification time of" in run("a")
    path.write_text(mended)
    assert run("a") == ""
    assert len(written_by("whole")) > 100
    assert written_by("a") == written_by("whole")
