"""`cqels run --checkpoint` with `--rejects` and `--on-error skip`: the file of rejects goes on as the output does."""

from __future__ import annotations

import gc
import json
import os
import threading
from pathlib import Path
from random import Random

import pytest

from cqels_py.cli.main import main
from tests.cli.conftest import HEADER, row
from tests.support.amount import step
from tests.support.faults import Crash, Faults, crash
from tests.support.http_server import Request, served
from tests.support.servers import needed_module

QUERY = """PREFIX : <http://ex.org/> SELECT ?s (COUNT(*) AS ?n)
{ STREAM :s [RANGE 10s] { ?s :v ?v } STREAM :t [RANGE 9s] { ?s :v ?w } } GROUP BY ?s"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two streams with malformed lines, late elements, and some that are far ahead."""
    random = Random(3)
    for name in ("s", "t"):
        lines = [row(max(1, second - random.choice([0, 0, 0, 9])), random.choice("ab"), "1") for second in range(1, 30)]
        for place in (25, 14, 6, 2):
            lines.insert(place, f"nonsense {name} {place}\n")
        lines.insert(random.randrange(9, 20), row(3000, "a", "7"))
        (tmp_path / f"{name}.csv").write_text(HEADER + "".join(lines))
    return [tmp_path / "s.csv", tmp_path / "t.csv"]


class Runs:
    """Runs of the same command, each with files and a checkpoint of its own name. `idle`: also a pipe that nothing comes from."""

    def __init__(self, folder: Path, files: list[Path], every: str, idle: Path | None = None) -> None:
        self._folder, self._files, self._every, self._idle = folder, files, every, idle

    def run(self, name: str) -> int:
        query, streams = QUERY, [f"--stream=http://ex.org/{path.stem}={path}" for path in self._files]
        if self._idle is not None:
            query = query.replace(
                "STREAM :t [RANGE 9s] { ?s :v ?w }",
                "STREAM :t [RANGE 9s] { ?s :v ?w } MINUS { STREAM :u [RANGE 5s] { ?s :z 1 } }",
            )
            streams.append(f"--stream=http://ex.org/u={self._idle}")
            threading.Thread(target=self._idle.write_bytes, args=(b"",), daemon=True).start()
        files = ["-o", str(self._file(name, "csv")), "--rejects", str(self._file(name, "rejects"))]
        files += ["--checkpoint", str(self._folder / name), "--every", self._every, "--batch", "5"]
        options = ["--changelog", "--on-error", "skip", "--lateness", "2s", "--ahead", "100s", "--stats"]
        return main(["run", "-q", query, *streams, *files, *options])

    def _file(self, name: str, ending: str) -> Path:
        return self._folder / f"{name}.{ending}"

    def written(self, name: str) -> tuple[bytes, bytes]:
        return self._file(name, "csv").read_bytes(), self._file(name, "rejects").read_bytes()


def counts(told: str) -> list[list[str]]:
    return [line.split() for line in told.splitlines() if " in <" in line]


@pytest.mark.parametrize(("kind", "every"), [("files", "0s"), ("beside a pipe", "0s"), ("beside a pipe", "1h")])
def test_a_run_that_is_cut_off_anywhere_has_the_same_rejects(
    kind: str,
    every: str,
    files: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    idle = None
    if kind != "files":
        idle = tmp_path / "u.nq"
        os.mkfifo(idle)
    runs = Runs(tmp_path, files, every, idle)
    faults = Faults(monkeypatch, crash)
    assert runs.run("whole") == 0
    operations, told = faults.count, counts(capsys.readouterr().err)
    whole = runs.written("whole")
    reasons = [json.loads(line)["reason"] for line in whole[1].splitlines()]
    assert reasons.count("malformed") == 8
    assert reasons.count("ahead") == 2
    assert reasons.count("late") > 3
    assert len(told) == 6
    for at in range(2, operations + 1, step(23 if every == "0s" else 2)):
        faults.count, faults.at = 0, at
        with pytest.raises(Crash):
            runs.run(str(at))
        # The lock of a process ends with it.
        gc.collect()
        # Once more, in the middle of what is left.
        faults.count, faults.at = 0, 9
        try:
            assert runs.run(str(at)) == 0
        except Crash:
            gc.collect()
            capsys.readouterr()
            faults.at = -1
            assert runs.run(str(at)) == 0
            said = capsys.readouterr().err
            assert counts(said) == told or "has ended" in said
        assert runs.written(str(at)) == whole, at


def test_rejects_that_were_removed_are_refused(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Runs(tmp_path, files, "0s")
    with monkeypatch.context() as patch:
        Faults(patch, crash).at = 60
        with pytest.raises(Crash):
            runs.run("a")
    (tmp_path / "a.rejects").write_bytes(b"")
    assert runs.run("a") == 1
    assert "a.rejects has 0 bytes, where the checkpoint has written" in capsys.readouterr().err


def test_malformed_events_of_a_url_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Events with ids, of which each process reads those behind its position."""
    needed_module("httpx", "http")
    bodies = ["nonsense" if n % 4 == 1 else json.dumps(event(n)) for n in range(24)]

    def answer(request: Request) -> None:
        last = int(request.headers.get("last-event-id") or 0)
        if last >= len(bodies):
            request.send(204)
            return
        # Some events have no id of their own.
        lines = [
            f"data: {body}\n" + (f"id: {n}\n" if n % 3 == 0 else "") + "\n"
            for n, body in enumerate(bodies, 1)
            if n > last
        ]
        request.send(kind="text/event-stream", body=("retry: 1\n" + "".join(lines)).encode())

    def run(name: str, url: str) -> int:
        query = "SELECT (SUM(?v) AS ?n) { STREAM <http://ex.org/s> [RANGE 5s] { ?s <http://ex.org/v> ?v } }"
        files = ["-o", str(tmp_path / f"{name}.csv"), "--rejects", str(tmp_path / f"{name}.rejects")]
        options = ["--checkpoint", str(tmp_path / name), "--every", "0s", "--on-error", "skip", "--clock", "events"]
        return main(["run", "-q", query, "--stream", f"http://ex.org/s={url}", *files, *options])

    def written(name: str) -> tuple[bytes, list[str]]:
        rejects = [json.loads(line)["element"] for line in (tmp_path / f"{name}.rejects").read_text().splitlines()]
        return (tmp_path / f"{name}.csv").read_bytes(), rejects

    faults = Faults(monkeypatch, crash)
    with served(answer) as url:
        assert run("whole", url) == 0
        operations, whole = faults.count, written("whole")
        assert len(whole[1]) == 6
        for at in range(2, operations + 1, step(7)):
            faults.count, faults.at = 0, at
            with pytest.raises(Crash):
                run(str(at), url)
            gc.collect()
            faults.at = -1
            assert run(str(at), url) == 0
            assert written(str(at)) == whole, at


def event(n: int) -> dict[str, object]:
    """As JSON-LD, of this second."""
    return {
        "@context": {"@vocab": "http://ex.org/", "at": {"@id": "http://www.w3.org/ns/prov#generatedAtTime"}},
        "@id": f"http://ex.org/e{n}",
        "@graph": [{"@id": "http://ex.org/a", "v": n}],
        "at": {
            "@value": f"2024-05-01T12:00:{n:02}Z",
            "@type": "http://www.w3.org/2001/XMLSchema#dateTime",
        },
    }
