"""An output by URL that is away: the command reads on, and a restart gives it all results."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.cli.conftest import QUERY, STREAM, Cqels
from tests.support.http_server import Request, served
from tests.support.servers import needed_module

COUNT, PATIENCE = 40, 120


def quads(first: int, last: int) -> str:
    lines = []
    for number in range(first, last):
        graph = f"<http://ex.org/g{number}>"
        lines += [
            f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{number}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
            f'<http://ex.org/s{number}> <http://ex.org/v> "{number}" {graph} .\n',
        ]
    return "".join(lines)


def test_a_command_reads_on_while_its_output_is_away(tmp_path: Path, cqels: Cqels) -> None:
    needed_module("httpx", "http")
    back, tried, found = threading.Event(), threading.Event(), dict[int, str]()

    def answer(request: Request) -> None:
        tried.set()
        if back.is_set():
            lines = request.body.decode().split("\n")
            found.update({json.loads(line)["bindings"]["v"]["value"]: line for line in lines})
        request.send(200 if back.is_set() else 503)

    with served(answer) as url:
        state = tmp_path / "state"
        command = [sys.executable, "-m", "cqels_py", "run", "-q", QUERY, "--stream", f"{STREAM}=-"]
        command += ["-o", f"{url}/results#retry=20ms&batch=7", "--checkpoint", str(state), "--every", "0.1s"]

        def started() -> subprocess.Popen[str]:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        first = started()
        assert first.stdin is not None
        first.stdin.write(quads(0, 2))
        first.stdin.flush()
        assert tried.wait(PATIENCE)
        first.stdin.write(quads(2, COUNT))
        first.stdin.flush()
        until = time.monotonic() + PATIENCE
        while f"{COUNT} elements have been taken in" not in cqels("checkpoint", "show", state).out:
            assert time.monotonic() < until
            time.sleep(0.1)
        first.kill()
        first.communicate()
        assert not found
        back.set()
        second = started()
        _, err = second.communicate("", timeout=PATIENCE)
        assert second.returncode == 0, err
    assert sorted(map(int, found)) == [*range(COUNT)]


def test_results_that_are_refused_are_told_once_however_it_ends(tmp_path: Path, cqels: Cqels) -> None:
    """The other side refuses every third result, also when it comes again, and the process is killed between them."""
    needed_module("httpx", "http")
    found, refused = set[int](), list[int]()

    def answer(request: Request) -> None:
        value = int(json.loads(request.body)["bindings"]["v"]["value"])
        if value % 3 == 0:
            refused.append(value)
        else:
            found.add(value)
        request.send(422 if value % 3 == 0 else 200)

    rejects = tmp_path / "rejects"
    with served(answer) as url:
        command = [sys.executable, "-m", "cqels_py", "run", "-q", QUERY, "--stream", f"{STREAM}=-"]
        command += ["-o", f"{url}/results", "--checkpoint", str(tmp_path / "state"), "--every", "1h"]
        command += ["--rejects", str(rejects)]

        def ended(first: int, last: int, *, killed: bool) -> None:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert process.stdin is not None
            process.stdin.write(quads(first, last))
            process.stdin.flush()
            until = time.monotonic() + PATIENCE
            while killed and (not rejects.exists() or rejects.read_text().count("\n") < 2):
                assert time.monotonic() < until
                time.sleep(0.02)
            if killed:
                process.kill()
            _, err = process.communicate()
            assert process.returncode == (-9 if killed else 0), err

        ended(0, 10, killed=True)
        taken = int(cqels("checkpoint", "show", tmp_path / "state").out.partition("inputs: ")[2].split()[0])
        ended(taken, 20, killed=False)
    assert found == {value for value in range(20) if value % 3}
    assert refused.count(0) > 1
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [json.loads(line["result"])["bindings"]["v"]["value"] for line in told] == [
        "0",
        "3",
        "6",
        "9",
        "12",
        "15",
        "18",
    ]
    assert [line["number"] for line in told] == [1, 4, 7, 10, 13, 16, 19]


def test_it_is_for_outputs_by_url(cqels: Cqels, tmp_path: Path) -> None:
    given = ("run", "-q", QUERY, "--stream", f"{STREAM}=x.nq", "-o", tmp_path / "out.csv")
    finished = cqels(*given, "--max-backlog", "1MB")
    assert finished.status == 2
    assert "--max-backlog is for an output by URL" in finished.err
