"""`cqels run --checkpoint` into tables of files: killed and started again, a table has each result once."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cqels_py.checkpoints import log
from cqels_py.cli.main import main
from cqels_py.engine.durable import logged
from cqels_py.sources import marked_file
from tests.cli.test_checkpoint import LIVE, quads
from tests.sinks.test_file_databases import execute
from tests.support.amount import long
from tests.support.faults import Crash, Faults, crash
from tests.support.servers import needed_module, wait_until

STREAM = "http://ex.org/s"
PIECES = (quads(0, 60), quads(60, 120), quads(120, 180))


class Running:
    """A run over a file of its own, into a table."""

    def __init__(self, folder: Path, scheme: str, mode: str) -> None:
        folder.mkdir()
        self.source, self._position = folder / "s.nq", folder / "position"
        self.source.write_bytes(b"")
        self._database, self._scheme = folder / "results.db", scheme
        options = ["--every", "0.1s", "--changelog", "--checkpoint", str(folder / "checkpoint")]
        self._command = [
            *(sys.executable, "-m", "cqels_py", "run", "-q", LIVE),
            f"--stream={STREAM}=tail:{self.source}?position={self._position}",
            *("-o", f"{scheme}:{self._database}#t?mode={mode}", *options),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def take(self, piece: bytes) -> None:
        """Write elements to the file, and wait until they are committed."""
        if self._process is None:
            self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE)
        with self.source.open("ab") as file:
            file.write(piece)
        size = os.path.getsize(self.source)
        wait_until(lambda: self._committed() == size, "all is committed", 60)

    def _committed(self) -> int:
        assert self._process is not None
        if self._process.poll() is not None:
            pytest.fail(str(self._process.communicate()))
        if not self._position.exists():
            return 0
        _, at, behind, *_ = json.loads(self._position.read_text())["position"]
        return int(at) if not behind else 0

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate()
        self._process = None

    def table(self) -> list[Any]:
        columns = "_number, _sign, s, n, m" if self._numbered() else "*"
        return sorted(execute(self._scheme, self._database, f"SELECT {columns} FROM t"), key=str)

    def _numbered(self) -> bool:
        return any("append" in each for each in self._command)


@pytest.mark.parametrize(("scheme", "mode"), [("sqlite", "append"), pytest.param("duckdb", "upsert", marks=long)])
def test_a_table_has_each_result_once(scheme: str, mode: str, tmp_path: Path) -> None:
    """The table of a run that was killed between its pieces is that of one that was not."""
    needed_module("duckdb", "duckdb")
    whole, killed = Running(tmp_path / "whole", scheme, mode), Running(tmp_path / "killed", scheme, mode)
    for piece in PIECES:
        whole.take(piece)
        killed.take(piece)
        killed.kill()
    whole.kill()
    assert len(killed.table()) > 1
    assert killed.table() == whole.table()


def test_a_file_that_is_read_again_is_not_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logged, "pays", lambda files, state: True)
    monkeypatch.setattr(marked_file, "CHUNK_BYTES", 3000)
    source = tmp_path / "s.nq"
    source.write_bytes(quads(0, 120))

    def run(name: str) -> int:
        options = ["--changelog", "--every", "0s", "--batch", "20", "--checkpoint", str(tmp_path / name)]
        return main(
            ["run", "-q", LIVE, f"--stream={STREAM}={source}", "-o", f"sqlite:{tmp_path / name}.db#t", *options]
        )

    def table(name: str) -> list[Any]:
        return execute("sqlite", tmp_path / f"{name}.db", "SELECT * FROM t ORDER BY _number")

    faults = Faults(monkeypatch, crash)
    assert run("whole") == 0
    operations = faults.count
    assert len(table("whole")) > 90
    for at in range(5, operations + 1, operations // 4):
        for place in (at, 11):
            faults.count, faults.at = 0, place
            with contextlib.suppress(Crash):
                run(str(at))
        faults.at = -1
        assert run(str(at)) == 0
        assert table(str(at)) == table("whole"), at
        folder = tmp_path / str(at)
        assert logged.Kind.READ not in {
            each.kind for number in log.numbers(folder) for each in log.look(folder, number)
        }
    assert run("whole") == 0
    assert "nothing is left to do" in capsys.readouterr().err


def test_a_folder_that_would_be_read_from_its_beginning_is_refused(tmp_path: Path) -> None:
    url = f"dir:{tmp_path}"
    command = ["run", "-q", LIVE, f"--stream={STREAM}={url}", "-o", f"sqlite:{tmp_path / 'r.db'}#t"]
    refused = subprocess.run(
        [sys.executable, "-m", "cqels_py", *command, "--checkpoint", str(tmp_path / "c")],
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 2
    assert f"would read {url} from its beginning after a restart; add position=FILE to it" in refused.stderr
