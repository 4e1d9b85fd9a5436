"""`cqels run --checkpoint` over a file that grows, into tables of files: killed and started again, a table has each result once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_checkpoint import LIVE, quads
from tests.sinks.test_file_databases import execute
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


@pytest.mark.parametrize(("scheme", "mode"), [("sqlite", "append"), ("duckdb", "upsert")])
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
