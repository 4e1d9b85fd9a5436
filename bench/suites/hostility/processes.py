"""Interruptions, signals, and damaged files in the cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

from bench.suites.hostility.limits import limit
from bench.suites.hostility.running import EX, folder, iri
from cqels_py.engine.engine import Engine

_QUERY = f"SELECT * WHERE {{ STREAM <{EX}s> [NOW] {{ ?s ?p ?o }} }}"
_MIX = "from cqels_py.kernels.structures.hashing import mix; print(mix(7), sum(mix.stats.cache_hits.values()))"


def _mix(cache: str) -> tuple[list[str], str]:
    """One kernel in a process of its own: its result, whether it was loaded from the cache, and the messages."""
    done = subprocess.run(
        [sys.executable, "-c", _MIX],
        env=os.environ | {"CQELS_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split(), done.stderr


@limit(megabytes=300, seconds=60)
def damaged_cache() -> str:
    """compiled kernels that were cut, flipped or emptied on the disk."""
    cache = folder() / "cache"
    (sound, _), _ = _mix(str(cache))
    for damage in (lambda b: b[: len(b) // 2], lambda b: b[:-9] + bytes(9), lambda b: b""):
        for file in cache.rglob("*.nbc"):
            file.write_bytes(damage(file.read_bytes()))
        assert _mix(str(cache)) == ([sound, "0"], "")
        assert _mix(str(cache)) == ([sound, "1"], "")
    return "compiled anew and replaced"


@limit(megabytes=300, seconds=20)
def cache_that_cannot_be_written() -> str:
    """a folder for compiled kernels that is a file."""
    place = folder() / "file"
    place.touch()
    found, said = _mix(str(place))
    assert found[1] == "0" and said.count("\n") == 1 and "cannot be kept" in said, said
    return "one warning"


def _interrupting(**options: Any) -> tuple[Engine, list[int]]:
    """An engine whose subscriber is interrupted at its first result, and the results that the subscriber gets."""
    engine = Engine(report=lambda error: None)
    got: list[int] = []

    def take(result: Any) -> None:
        got.append(result.time)
        if len(got) == 1:
            raise KeyboardInterrupt if not options else ValueError("a fault of the subscriber")

    engine.register(_QUERY).subscribe(take, **options)
    return engine, got


@limit(megabytes=300, seconds=5)
def interrupted_subscriber() -> str:
    """KeyboardInterrupt in a subscriber."""
    engine, got = _interrupting()
    interrupted = False
    for time in range(1, 4):
        try:
            engine.push(f"{EX}s", [(iri("a"), iri("p"), iri(f"b{time}"))], time=time)
        except KeyboardInterrupt:
            interrupted = True
    assert interrupted and got == [1, 2, 3], got
    return "raised, and the engine lives on"


@limit(megabytes=300, seconds=5)
def failing_subscriber() -> str:
    """a subscriber that fails, with on_error="report"."""
    engine, got = _interrupting(on_error="report")
    for time in range(1, 4):
        engine.push(f"{EX}s", [(iri("a"), iri("p"), iri(f"b{time}"))], time=time)
    assert got == [1, 2, 3], got
    return "reported, and the query goes on"


def _ended_by(number: signal.Signals, status: int) -> str:
    """`cqels run` over standard input, which stays open, and a signal after its first result."""
    command = [sys.executable, "-m", "cqels_py", "run", "-q", _QUERY, f"--stream={EX}s=-", "--format=json"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    for second in range(3):
        at = f'"2024-05-01T12:00:0{second}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        process.stdin.write(f"{iri(f'g{second}')} <http://www.w3.org/ns/prov#generatedAtTime> {at} .\n")
        process.stdin.write(f"{iri('a')} {iri('p')} {iri(f'b{second}')} {iri(f'g{second}')} .\n")
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(number)
    rest, said = process.stdout.read(), process.stderr.read()
    process.wait()
    assert process.returncode == status and said.strip() and "Traceback" not in said, (process.returncode, said)
    return f"{1 + rest.count(chr(10))} results, status {process.returncode}"


@limit(megabytes=300, seconds=10)
def terminated() -> str:
    """SIGTERM for cqels run."""
    return _ended_by(signal.SIGTERM, 143)


@limit(megabytes=300, seconds=10)
def hung_up() -> str:
    """SIGHUP for cqels run."""
    return _ended_by(signal.SIGHUP, 129)
