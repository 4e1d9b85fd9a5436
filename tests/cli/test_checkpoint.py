"""`cqels run --checkpoint`: wherever a run is cut off, the same command completes it, byte for byte.

Each operation on the files of a checkpoint is a moment at which a run is cut off, before it or in the middle of it.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cqels_py.checkpoints import log
from cqels_py.checkpoints.objects import LocalStore
from cqels_py.checkpoints.snapshots import Snapshots
from cqels_py.cli.main import main
from cqels_py.engine.durable import registration
from cqels_py.engine.durable.records import Kind
from tests.cli.conftest import HEADER, QUERY, STREAM, Cqels, row
from tests.support.amount import long, step
from tests.support.faults import Crash, Faults, crash
from tests.support.servers import needed_module

PREFIX = "PREFIX : <http://ex.org/> SELECT"
ONE, TWO = "STREAM :s", "STREAM :t"
QUERIES = {
    "join": f"{PREFIX} * {{ {ONE} [RANGE 6s] {{ ?s :v ?v }} {TWO} [COUNT 4] {{ ?s :v ?w }} }}",
    "aggregate": f"{PREFIX} ?s (SUM(?v) AS ?n) (AVG(?v) AS ?a) (MIN(?v) AS ?m) {{ {ONE} [RANGE 7s] {{ ?s :v ?v }} "
    f"{TWO} [RANGE 4s] {{ ?s :v ?w }} }} GROUP BY ?s",
    "step": f"{PREFIX} ?s (COUNT(*) AS ?n) {{ {ONE} [RANGE 10s STEP 5s] {{ ?s :v ?v }} {TWO} [RANGE 10s STEP 5s] {{ ?s :v ?w }} }} "
    "GROUP BY ?s",
    "path": f"{PREFIX} ?a ?b {{ {ONE} [COUNT 6] {{ ?a :v+ ?b }} {TWO} [COUNT 2] {{ ?a :v ?c }} }}",
    "top": f"{PREFIX} ?s ?v {{ {ONE} [COUNT 6] {{ ?s :v ?v }} {TWO} [COUNT 3] {{ ?s :v ?w }} }} ORDER BY DESC(?v) ?s LIMIT 2",
    "negation": f"{PREFIX} * {{ {ONE} [COUNT 5] {{ ?s :v ?v }} MINUS {{ {TWO} [COUNT 3] {{ ?s :v ?w }} }} }}",
    "distinct": f"{PREFIX} DISTINCT ?s {{ {ONE} [COUNT 5 PARTITION BY ?s] {{ ?s :v ?v }} {TWO} [COUNT 3] {{ ?s :v ?w }} }}",
}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two streams with the same times now and then, literals, IRIs and blank nodes."""
    random = Random(5)
    found = []
    for name in ("s", "t"):
        path = tmp_path / f"{name}.csv"
        values = ["1", "2", "3", "<http://ex.org/a>", "<http://ex.org/b>", "_:n"]
        lines = [row(second // 2, random.choice("abc"), random.choice(values)) for second in range(1, 25)]
        path.write_text(HEADER + "".join(lines))
        found.append(path)
    return found


def command(query: str, files: list[Path], output: Path, checkpoint: Path, *more: str) -> list[str]:
    streams = [f"--stream=http://ex.org/{path.stem}={path}" for path in files]
    options = ["--changelog", "--every", "0s", "--batch", "5", "-o", str(output), "--checkpoint", str(checkpoint)]
    return ["run", "-q", query, *streams, *options, *more]


@pytest.mark.parametrize("name", QUERIES)
def test_a_run_that_is_cut_off_anywhere_is_completed(
    name: str, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults(monkeypatch, crash)
    whole = tmp_path / "whole.json"
    assert main(command(QUERIES[name], files, whole, tmp_path / "whole")) == 0
    operations = faults.count
    assert operations > 20
    assert whole.read_text().count("\n") > 5
    for at in range(1, operations + 1, step(5 if name == "join" else 17)):
        output, checkpoint = tmp_path / f"{at}.json", tmp_path / f"{at}"
        faults.count, faults.at = 0, at
        with pytest.raises(Crash):
            main(command(QUERIES[name], files, output, checkpoint))
        # The lock of a process ends with it.
        gc.collect()
        # Once more, in the middle of what is left.
        faults.count, faults.at = 0, 9
        try:
            status = main(command(QUERIES[name], files, output, checkpoint))
        except Crash:
            gc.collect()
            faults.at = -1
            status = main(command(QUERIES[name], files, output, checkpoint))
        assert status == 0, at
        assert output.read_bytes() == whole.read_bytes(), at


NODES = (
    "PREFIX : <http://ex.org/> CONSTRUCT { ?s :has [ :value ?v ; :beside ?w ] } "
    f"{{ {ONE} [RANGE 6s] {{ ?s :v ?v }} {TWO} [COUNT 4] {{ ?s :v ?w }} }}"
)


@pytest.mark.parametrize("format_", ["nquads", "trig", "turtle", "jelly"])
def test_graphs_go_on_with_their_numbers_and_blank_nodes(
    format_: str, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if format_ == "jelly":
        needed_module("pyjelly", "jelly")

    def arguments(name: str) -> list[str]:
        given = command(NODES, files, tmp_path / f"{name}.{format_}", tmp_path / name)
        return [each for each in given if each != "--changelog"]

    faults = Faults(monkeypatch, crash)
    assert main(arguments("whole")) == 0
    operations, whole = faults.count, (tmp_path / f"whole.{format_}").read_bytes()
    assert whole.count(b"result") > 5
    for at in range(2, operations + 1, step(7 if format_ == "nquads" else 29)):
        faults.count, faults.at = 0, at
        with pytest.raises(Crash):
            main(arguments(str(at)))
        faults.at = -1
        assert main(arguments(str(at))) == 0
        assert (tmp_path / f"{at}.{format_}").read_bytes() == whole, at


@pytest.mark.parametrize("logged", [False, True])
def test_a_limit_counts_the_results_of_all_processes(
    logged: bool, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = QUERIES["join"]
    if logged:
        # A pipe that nothing comes from.
        files.append(tmp_path / "u.nq")
        os.mkfifo(files[-1])
        query = query.removesuffix("}") + "MINUS { STREAM :u [RANGE 5s] { ?s :z 1 } } }"

    def run(name: str, *more: str) -> int:
        if logged:
            threading.Thread(target=files[-1].write_bytes, args=(b"",), daemon=True).start()
        return main(command(query, files, tmp_path / f"{name}.json", tmp_path / name, *more))

    assert run("all") == 0
    faults = Faults(monkeypatch, crash)
    assert run("whole", "--limit", "9") == 0
    operations, whole = faults.count, (tmp_path / "whole.json").read_bytes()
    assert whole.count(b"\n") == 9
    assert (tmp_path / "all.json").read_bytes().startswith(whole)
    for at in range(2, operations + 1, step(5)):
        faults.count, faults.at = 0, at
        with pytest.raises(Crash):
            run(str(at), "--limit", "9")
        gc.collect()
        faults.at = -1
        assert run(str(at), "--limit", "9") == 0
        assert (tmp_path / f"{at}.json").read_bytes() == whole, at


def cut_off(
    files: list[Path], output: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, at: int = 60
) -> list[str]:
    """The command of a run that was cut off."""
    arguments = command(QUERIES["join"], files, output, checkpoint)
    with monkeypatch.context() as patch:
        Faults(patch, crash).at = at
        with pytest.raises(Crash):
            main(arguments)
    return arguments


def test_a_damaged_snapshot_is_replaced_by_the_one_before(
    cqels: Cqels, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, output, checkpoint = tmp_path / "whole.json", tmp_path / "out.json", tmp_path / "checkpoint"
    cqels(*command(QUERIES["join"], files, whole, tmp_path / "whole"))
    arguments = cut_off(files, output, checkpoint, monkeypatch)
    *_, last = sorted(checkpoint.glob("*.snapshot"))
    data = bytearray(last.read_bytes())
    data[len(data) // 2] ^= 1
    last.write_bytes(data)
    finished = cqels(*arguments)
    assert "is damaged: its digest does not fit" in finished.err
    assert finished.status == 0
    assert output.read_bytes() == whole.read_bytes()


def test_without_an_intact_snapshot_nothing_runs(
    cqels: Cqels, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = cut_off(files, tmp_path / "out.json", tmp_path / "checkpoint", monkeypatch)
    for path in (tmp_path / "checkpoint").glob("*.snapshot"):
        path.write_bytes(path.read_bytes()[:-1])
    finished = cqels(*arguments)
    assert finished.status == 1
    assert "no snapshot can be read" in finished.err


def test_a_full_disk_ends_the_run_and_it_can_go_on_later(
    cqels: Cqels, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(name: str, arguments: tuple[Any, ...]) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    whole, output = tmp_path / "whole.json", tmp_path / "out.json"
    cqels(*command(QUERIES["join"], files, whole, tmp_path / "whole"))
    arguments = command(QUERIES["join"], files, output, tmp_path / "checkpoint")
    with monkeypatch.context() as patch:
        Faults(patch, full).at = 17
        finished = cqels(*arguments)
    assert finished.status == 1
    assert "No space left on device" in finished.err
    assert cqels(*arguments).status == 0
    assert output.read_bytes() == whole.read_bytes()


def test_a_run_that_has_ended_says_so_and_touches_nothing(cqels: Cqels, files: list[Path], tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    arguments = command(QUERIES["join"], files, output, tmp_path / "checkpoint")
    cqels(*arguments)
    before = output.stat().st_mtime_ns, output.read_bytes()
    finished = cqels(*arguments)
    assert finished.status == 0
    assert "has ended" in finished.err
    assert (output.stat().st_mtime_ns, output.read_bytes()) == before
    output.unlink()
    missing = cqels(*arguments)
    assert missing.status == 1
    assert f"the output {output} is missing" in missing.err
    assert "has ended" not in missing.err


def test_a_checkpoint_of_an_earlier_version_is_refused(cqels: Cqels, files: list[Path], tmp_path: Path) -> None:
    """It has the number of elements that were read, but not where."""
    folder, output = tmp_path / "checkpoint", tmp_path / "out.json"
    folder.mkdir()
    output.write_text("kept")
    Snapshots(LocalStore(folder)).save({"run": {"elements": 3, "finished": False, "identity": "{}", "output": 4}}, 0)
    for arguments in (command(QUERIES["join"], files, output, folder), ["checkpoint", "show", str(folder)]):
        finished = cqels(*arguments)
        assert finished.status == 2
        assert "is the checkpoint of a run over files by an earlier version" in finished.err
        assert "or remove the folder" in finished.err
    assert output.read_text() == "kept"


def test_another_command_is_refused_with_what_differs(
    cqels: Cqels, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = cut_off(files, tmp_path / "out.json", tmp_path / "checkpoint", monkeypatch)
    changed = [*arguments, "--lateness", "2s"]
    changed[2] = QUERIES["step"]
    finished = cqels(*changed)
    assert finished.status == 2
    assert "differs in: the query, --lateness. " in finished.err
    with files[0].open("a") as file:
        file.write(row(100, "a", "1"))
    finished = cqels(*arguments)
    assert finished.status == 2
    assert f"size or modification time of {files[0]}" in finished.err


def test_an_output_that_was_removed_is_refused(
    cqels: Cqels, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.csv"
    arguments = cut_off(files, output, tmp_path / "checkpoint", monkeypatch)
    output.unlink()
    finished = cqels(*arguments)
    assert finished.status == 1
    assert "is missing" in finished.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "needs --output, a file or a URL"),
        (("-o", "/dev/null", "--format", "json"), "is no regular file"),
        (("-o", "x.json", "--rejects", "/dev/null"), "/dev/null is no regular file"),
        (("-o", "x.json", "--threads", "2"), "--threads"),
    ],
)
def test_what_could_not_go_on_exactly_is_refused(
    cqels: Cqels, stream: Path, tmp_path: Path, options: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--checkpoint", tmp_path / "c", *options)
    assert finished.status == 2
    assert reason in finished.err
    assert not (tmp_path / "c").exists()


RANDOM = (
    "PREFIX : <http://ex.org/> REGISTER RSTREAM :o AS SELECT ?s (RAND() AS ?r) (UUID() AS ?u) (BNODE(?s) AS ?b) "
    "FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT1S] WHERE { WINDOW :w { ?s ?p ?o } }"
)


def test_random_values_are_the_same_when_results_are_made_again(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arguments(name: str) -> list[str]:
        given = command(RANDOM, files[:1], tmp_path / f"{name}.json", tmp_path / name)
        return [each for each in given if each != "--changelog"]

    with monkeypatch.context() as patch:
        patch.setattr(registration, "new_seed", lambda: "07" * 16)
        faults = Faults(patch, crash)
        assert main(arguments("whole")) == 0
        operations = faults.count
    # The eighteenth logs the query, with its seed.
    for at in range(19, operations, operations // 4):
        with monkeypatch.context() as patch:
            # The seed is that of the first process.
            patch.setattr(registration, "new_seed", lambda: "07" * 16)
            Faults(patch, crash).at = at
            with pytest.raises(Crash):
                main(arguments(str(at)))
        assert main(arguments(str(at))) == 0
        assert (tmp_path / f"{at}.json").read_bytes() == (tmp_path / "whole.json").read_bytes(), at
    assert main(arguments("other")) == 0
    assert (tmp_path / "other.json").read_bytes() != (tmp_path / "whole.json").read_bytes()


def test_one_process_uses_a_checkpoint(cqels: Cqels, files: list[Path], tmp_path: Path) -> None:
    from cqels_py.checkpoints.snapshots import locked

    with locked(tmp_path / "checkpoint"):
        finished = cqels(*command(QUERIES["join"], files, tmp_path / "x.json", tmp_path / "checkpoint"))
    assert finished.status == 2
    assert "another process or engine uses" in finished.err


@pytest.mark.parametrize(("signum", "ending"), [(signal.SIGKILL, "nq"), (signal.SIGTERM, "csv")])
def test_a_process_that_is_killed_is_followed_by_one_that_completes_it(
    signum: signal.Signals, ending: str, tmp_path: Path
) -> None:
    lines = [row(second / 10, "abc"[second % 3] * 80, str(second % 17)) for second in range(1, 600)]
    files = [tmp_path / f"{name}.{ending}" for name in "st"]
    for path in files:
        path.write_bytes(quads(0, 450) if ending == "nq" else (HEADER + "".join(lines)).encode())
    query = QUERIES["join" if ending == "nq" else "aggregate"]
    whole, output, checkpoint = tmp_path / "whole.json", tmp_path / "out.json", tmp_path / "checkpoint"
    assert main(command(query, files, whole, tmp_path / "whole")) == 0
    arguments = [sys.executable, "-m", "cqels_py", *command(query, files, output, checkpoint)]
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list(checkpoint.glob("*2?.snapshot"))) < 1:
        time.sleep(0.005)
    process.send_signal(signum)
    assert process.wait() == (-9 if signum == signal.SIGKILL else 143)
    kinds = {record.kind for number in log.numbers(checkpoint) for record in log.look(checkpoint, number)}
    assert Kind.READ not in kinds
    assert output.stat().st_size < whole.stat().st_size
    assert subprocess.run(arguments, check=False, capture_output=True).returncode == 0
    assert output.read_bytes() == whole.read_bytes()


def quads(first: int, last: int) -> bytes:
    """Elements of N-Quads, with nodes and numbers."""
    known = "http://www.w3.org/ns/prov#generatedAtTime"
    when = '"2024-03-01T12:{:02}:{:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    lines = []
    for number in range(first, last):
        lines.append(f"<urn:g{number}> <{known}> {when.format(number // 60, number % 60)} .")
        lines.append(f'<http://ex.org/{number % 4}> <http://ex.org/v> "{number % 7}" <urn:g{number}> .')
    return "".join(f"{line}\n" for line in lines).encode()


LIVE = f"{PREFIX} ?s (COUNT(*) AS ?n) (MAX(?v) AS ?m) {{ {ONE} [RANGE 20s] {{ ?s :v ?v }} }} GROUP BY ?s"

LIVE_NODES = f"PREFIX : <http://ex.org/> CONSTRUCT {{ [] :of ?s ; :value ?v }} {{ {ONE} [RANGE 20s] {{ ?s :v ?v }} }}"


def live_command(source: object, output: Path, checkpoint: Path, *more: str) -> list[str]:
    query, signs = (LIVE_NODES, []) if output.suffix == ".nq" else (LIVE, ["--changelog"])
    options = [*signs, "--every", "0.2s", "-o", str(output), "--checkpoint", str(checkpoint), *more]
    return [sys.executable, "-m", "cqels_py", "run", "-q", query, f"--stream=http://ex.org/s={source}", *options]


def taken_in(checkpoint: Path) -> int:
    """The elements that a checkpoint in use has."""
    from cqels_py.engine.durable.summary import summary

    return summary(checkpoint).elements if any(checkpoint.glob("*.snapshot")) else 0


@pytest.mark.parametrize(
    ("kind", "ending"),
    [pytest.param("standard input", "csv", marks=long), ("pipe", "csv"), ("standard input", "nq")],
)
def test_a_live_input_whose_reader_is_killed_goes_on_in_the_next_one(kind: str, ending: str, tmp_path: Path) -> None:
    source: object = "-"
    if kind == "pipe":
        source = tmp_path / "pipe.nq"
        os.mkfifo(source)
    whole, output, checkpoint = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}", tmp_path / "checkpoint"
    command = live_command("-", whole, tmp_path / "whole")
    subprocess.run(command, input=quads(0, 300), check=True, stderr=subprocess.DEVNULL)
    command = live_command(source, output, checkpoint)
    sent = 0
    for until in (70, 190):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdin is not None
        feed = process.stdin if kind == "standard input" else open(source, "wb")  # noqa: SIM115
        # The last one is complete when nothing has followed it for some time.
        feed.write(quads(sent, until))
        feed.flush()
        while process.poll() is None and taken_in(checkpoint) < until:
            time.sleep(0.05)
        process.kill()
        assert process.wait() == -9
        feed.close()
        sent = taken_in(checkpoint)
        assert sent == until
    feeding = {"input": quads(sent, 300)} if kind == "standard input" else {"stdin": subprocess.DEVNULL}
    if kind == "pipe":
        writer = threading.Thread(target=lambda: Path(str(source)).write_bytes(quads(sent, 300)))
        writer.start()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, **feeding)
    assert output.read_bytes() == whole.read_bytes()


def test_a_live_run_that_has_ended_says_so(tmp_path: Path) -> None:
    command = live_command("-", tmp_path / "out.csv", tmp_path / "checkpoint")
    assert subprocess.run(command, input=quads(0, 30), check=False, capture_output=True).returncode == 0
    before = (tmp_path / "out.csv").read_bytes()
    again = subprocess.run(command, input=quads(30, 60), check=False, capture_output=True)
    assert again.returncode == 0
    assert b"has ended" in again.stderr
    assert (tmp_path / "out.csv").read_bytes() == before
    other = subprocess.run([*command, "--lateness", "3s"], input=b"", check=False, capture_output=True)
    assert other.returncode == 2
    assert b"which differs in: --lateness. " in other.stderr


def test_a_checkpoint_is_shown_and_copied(cqels: Cqels, files: list[Path], tmp_path: Path) -> None:
    live = live_command("-", tmp_path / "out.csv", tmp_path / "checkpoint")
    subprocess.run(live, input=quads(0, 30), check=True, capture_output=True)
    shown = cqels("checkpoint", "show", tmp_path / "checkpoint")
    assert "30 elements have been taken in" in shown.out
    assert "SELECT ?s (COUNT(*)" in shown.out
    assert cqels("checkpoint", "copy", tmp_path / "checkpoint", tmp_path / "copy").status == 0
    assert "30 elements have been taken in" in cqels("checkpoint", "show", tmp_path / "copy").out
    again = cqels("checkpoint", "copy", tmp_path / "checkpoint", tmp_path / "copy")
    assert again.status == 2
    assert "is there already" in again.err
    assert "has no snapshot" in cqels("checkpoint", "show", tmp_path / "nowhere").err
    cqels(*command(QUERIES["join"], files, tmp_path / "files.json", tmp_path / "files"))
    assert "26 elements have been taken in" in cqels("checkpoint", "show", tmp_path / "files").out
    *_, last = sorted((tmp_path / "copy").glob("*.snapshot"))
    last.write_bytes(last.read_bytes()[:-1])
    damaged = cqels("checkpoint", "show", tmp_path / "copy")
    assert damaged.status == 1
    assert "is intact" in damaged.err
