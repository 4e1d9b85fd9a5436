"""A rehearsal foretells the kernels of a command, and leaves nothing behind."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from cqels_py.cli import rehearsal
from cqels_py.cli.job import Job
from cqels_py.kernels.compiler import parallel_build as ahead
from cqels_py.script import MOST_BYTES
from tests.cli.conftest import QUERY, STREAM, Cqels

FILTERED = "PREFIX : <http://ex.org/> SELECT ?s ?v WHERE { STREAM :s [TRIPLES 40] { ?s :v ?v } FILTER(?v > 25) }"
JOINED = (
    "PREFIX : <http://ex.org/> SELECT ?room (AVG(?v) AS ?mean) (COUNT(*) AS ?n) WHERE "
    "{ STREAM :s [RANGE 1m] { ?s :v ?v ; :in ?room ; :at ?t } FILTER(?v > 20) } GROUP BY ?room"
)


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    """Elements of four triples, more than a rehearsal looks at."""
    path = tmp_path / "readings.nq"
    lines = []
    for i in range(400):
        graph = f"<http://ex.org/e{i}>"
        time = f'"2026-01-01T00:{i // 60:02d}:{i % 60:02d}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        lines.append(f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n")
        decimal = f'"{20 + i % 17}.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
        for predicate, value in (("v", decimal), ("in", f"<http://ex.org/r{i % 7}>"), ("at", f'"{i}"')):
            lines.append(f"<http://ex.org/s{i % 20}> <http://ex.org/{predicate}> {value} {graph} .\n")
    path.write_text("".join(lines))
    assert path.stat().st_size > 2 * MOST_BYTES
    return path


def beyond_the_rehearsal(*arguments: str) -> list[str]:
    """Run a command after all that its rehearsal calls has been compiled or loaded: what it still had to load."""
    import json

    from cqels_py.cli.main import main
    from cqels_py.kernels.compiler import build_worker as worker
    from cqels_py.sources.stdin import standard_input
    from tests.test_compilation import _kernels

    calls: list[dict[str, Any]] = []
    _listen_only(ahead, calls)
    ahead.compile_all([rehearsal.__name__, "-", *arguments], 1, standard_input().first() or b"")
    for call in calls:
        worker.compile_call(json.dumps(call))
    before = {name: set(kernel.signatures) for name, kernel in _kernels()}  # type: ignore[attr-defined]
    assert len(calls) > 5
    assert main(arguments) == 0
    return [
        f"{name}{signature}"
        for name, kernel in _kernels()
        for signature in set(kernel.signatures) - before[name]  # type: ignore[attr-defined]
    ]


def _listen_only(ahead: Any, calls: list[dict[str, Any]]) -> None:
    heard = ahead._reported_calls

    def listen(*arguments: Any) -> list[Any]:
        calls.extend(heard(*arguments))
        return []

    ahead._reported_calls = listen


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
@pytest.mark.parametrize(("text", "piped"), [(FILTERED, True), (JOINED, False)])
def test_a_rehearsal_foretells_all_kernels(text: str, piped: bool, readings: Path, tmp_path: Path) -> None:
    # In a process of its own, where nothing has been loaded.
    program = (
        "import sys; from tests.cli import test_rehearsal as here; print(here.beyond_the_rehearsal(*sys.argv[1:]))"
    )
    output = tmp_path / "results.json"
    arguments = ["run", "-q", text, "--stream", f"{STREAM}={'-' if piped else readings}", "-o", str(output)]
    finished = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=readings.read_text() if piped else "", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.stdout.strip() == "[]", finished.stdout + finished.stderr
    assert output.stat().st_size > 0


def test_the_job_of_a_rehearsal_is_short_and_leaves_nothing_behind(readings: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.ttl").write_text("<http://ex.org/a> <http://ex.org/b> 1 .\n")
    job = Job(
        text=QUERY, streams={STREAM: str(readings), "http://ex.org/t": "-"}, static=[b"<a> <b> <c> .\n" * 10_000],
        static_graphs={"http://ex.org/g": str(tmp_path / "terms.ttl")}, output=tmp_path / "results", limit=3, stats=True,
        speed=1.0, announce=True,
    )  # fmt: skip
    token = rehearsal._FORMAT.set("table")
    try:
        with rehearsal.shortened(job) as short:
            first = Path(short.streams[STREAM]).read_bytes()
            assert readings.read_bytes().startswith(first)
            assert 0 < len(first) <= MOST_BYTES
            assert first.endswith(b" .\n")
            assert Path(short.streams["http://ex.org/t"]).read_bytes() == b""
            assert 0 < len(short.static[0]) <= MOST_BYTES  # type: ignore[arg-type]
            assert (short.format, short.output, short.limit, short.speed) == ("table", None, None, None)
            assert not short.stats
            assert not short.announce
    finally:
        rehearsal._FORMAT.reset(token)
    assert not Path(short.streams[STREAM]).exists()


@pytest.mark.parametrize(
    ("given", "asked", "shown"), [("-", None, "csv"), ("-", "tsv", "tsv"), ("table", None, "table")]
)
def test_a_rehearsal_writes_in_the_format_of_the_command(given: str, asked: str | None, shown: str) -> None:
    token = rehearsal._FORMAT.set(given)
    try:
        with rehearsal.shortened(Job(text=QUERY, format=asked, output=Path("results.csv"))) as short:
            assert (short.format, short.output) == (shown, None)
    finally:
        rehearsal._FORMAT.reset(token)


def test_the_first_of_standard_input_is_rehearsed_with(
    cqels: Cqels, readings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ahead.INPUT).write_bytes(readings.read_bytes()[:MOST_BYTES])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    token = rehearsal._FORMAT.set("-")
    try:
        with rehearsal.shortened(Job(text=QUERY, streams={STREAM: "-"})) as short:
            first = Path(short.streams[STREAM]).read_bytes()
    finally:
        rehearsal._FORMAT.reset(token)
    assert readings.read_bytes().startswith(first)
    assert len(first) > MOST_BYTES - 500
    assert first.endswith(b" .\n")


def test_standard_input_is_looked_at_only_where_it_is_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as reader, os.fdopen(write, "wb", buffering=0) as writer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(reader))
        assert rehearsal.first_input(Job(text=QUERY, streams={STREAM: "-"})) is None
        writer.write(b"<a> <b> <c> .\n")
        assert rehearsal.first_input(Job(text=QUERY, streams={STREAM: "readings.nq"})) == b""
        assert rehearsal.first_input(Job(text=QUERY, streams={STREAM: "-"})) == b"<a> <b> <c> .\n"


def test_static_data_about_what_streams_name_comes_first(readings: Path, tmp_path: Path) -> None:
    others = "".join(f"<http://ex.org/other{i}> <http://ex.org/in> <http://ex.org/r1> .\n" for i in range(2_000))
    wanted = "<http://ex.org/s3> <http://ex.org/made> <http://ex.org/maker> .\n"
    file = tmp_path / "static.nt"
    file.write_text(others + wanted)
    job = Job(text=QUERY, streams={STREAM: str(readings)}, static=[file, (others + wanted).encode(), others.encode()])
    token = rehearsal._FORMAT.set("-")
    try:
        with rehearsal.shortened(job) as short:
            path, data, unknown = short.static
            assert Path(path).read_text() == wanted  # type: ignore[arg-type]
            assert data == wanted.encode()
            assert others.encode().startswith(unknown)  # type: ignore[arg-type]
            assert 0 < len(unknown) <= MOST_BYTES  # type: ignore[arg-type]
    finally:
        rehearsal._FORMAT.reset(token)


def test_only_what_may_run_twice_is_rehearsed() -> None:
    job = Job(text=QUERY)
    assert rehearsal.command(job) is None
    with rehearsal.of(["run", "-q", QUERY]):
        assert rehearsal.command(job) == ["cqels_py.cli.rehearsal", "-", "run", "-q", QUERY]
        assert rehearsal.command(Job(text=QUERY, runner="spark")) is None
        assert rehearsal.command(Job(text="SELECT * { SERVICE <http://ex.org/sparql> { ?a ?b ?c } }")) is None


def test_outside_of_a_rehearsal_the_job_stays_as_it_is() -> None:
    job = Job(text=QUERY)
    with rehearsal.shortened(job) as same:
        assert same is job


def test_a_command_is_rehearsed_with_its_own_arguments(
    cqels: Cqels, stream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(ahead._EXPECTED, "rehearsal", None)
    rehearsing = ahead.rehearsing
    monkeypatch.setattr(ahead, "rehearsing", lambda command, _: asked.append(command) or rehearsing(()))
    arguments = ["run", "-q", QUERY, "--stream", f"{STREAM}={stream}"]
    assert cqels(*arguments).status == 0
    assert asked == [["cqels_py.cli.rehearsal", "-", *arguments]]


def test_a_rehearsal_ends_with_the_process_that_started_it(readings: Path, tmp_path: Path) -> None:
    """Whatever ended that one, and however long a kernel would take: a product of all that the pieces hold."""
    folder = tmp_path / f"{ahead.FOLDER}x"
    folder.mkdir()
    patterns = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(8))
    product = f"SELECT * WHERE {{ STREAM <{STREAM}> [RANGE 1h] {{ {patterns} }} }}"
    read, write = os.pipe()
    command = [sys.executable, "-m", rehearsal.__name__, "-", "run", "-q", product, "--stream", f"{STREAM}={readings}"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        pass_fds=(write,),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", ahead.REHEARSAL: str(write), "TMPDIR": str(folder)},
    )
    os.close(write)
    with os.fdopen(read) as told:
        assert any("join" in line for line in told)
        assert list(folder.iterdir())
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == 1
    assert not folder.exists()
