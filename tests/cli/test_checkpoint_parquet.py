"""`cqels run --checkpoint` into Parquet files: wherever the run is killed, they have each result once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from tests.cli.test_checkpoint import LIVE, quads

STREAM = "http://ex.org/s"


def command(source: Path, folder: Path) -> list[str]:
    options = ["--every", "0.1s", "--checkpoint", str(folder / "checkpoint"), "--changelog", "--batch", "10"]
    stream = f"--stream={STREAM}={source}"
    return [
        sys.executable,
        "-m",
        "cqels_py",
        "run",
        "-q",
        LIVE,
        stream,
        "-o",
        f"parquet:{folder}/out?size=2KB",
        *options,
    ]


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("out-*.parquet"))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [row for file in files(folder) for row in pq.read_table(file).to_pylist()]


def test_each_result_once_wherever_the_run_is_killed(tmp_path: Path) -> None:
    """Another run was never killed."""
    random = Random(11)
    source, whole, killed = tmp_path / "s.nq", tmp_path / "whole", tmp_path / "killed"
    source.write_bytes(quads(0, 1500))
    for folder in (whole, killed):
        folder.mkdir()
    subprocess.run(command(source, whole), check=True, capture_output=True)
    kills = 0
    while kills < 2:
        before = len(files(killed))
        process = subprocess.Popen(command(source, killed), stderr=subprocess.PIPE)
        while process.poll() is None and len(files(killed)) <= before:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.2) * kills)
        process.kill()
        _, said = process.communicate()
        assert process.returncode in (0, -9), said
        if process.returncode == 0:
            break
        kills += 1
    assert kills
    last = subprocess.run(command(source, killed), check=True, capture_output=True)
    assert b"sent again" not in last.stderr
    assert len(rows(whole)) > 500
    assert rows(killed) == rows(whole)
