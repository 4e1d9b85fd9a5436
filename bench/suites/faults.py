"""Does `cqels serve` survive kill -9 and a failing disk under load?

    python -m bench.suites.faults [--kills N] [--disk N] [--seed N]

A server is killed at random moments, while bodies are sent and results are read, and is started again, until it has been killed N
times (default 100); every other time a body has been answered before. Before `--disk` more kills (default 50) its disk fails: from
an operation that is drawn on, some end with EIO or ENOSPC, and a write may leave half of its bytes (failing_disk.c, which cc
compiles and the server preloads). The sender repeats a body, with its key, until it is
answered; the reader goes on behind the number of its last result. In the end each element has to have exactly one result, in
order, and numbers have neither gaps nor doubles: otherwise the exit status is 1. Writes bench/results/faults.json.
"""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from bench.suites.outcome import folder_of, parser_of, taken_now

KILLS, DISK, SEED = 100, 50, 1
EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}> "
EACH = f"{PREFIX}SELECT ?n {{ STREAM :s [COUNT 20] {{ ?x :n ?n }} }}"
EQUAL = ("each", "same", "alike")
"""Equal queries, whose results are in the same files."""
QUERIES = {
    **dict.fromkeys(EQUAL, EACH),
    "groups": f"{PREFIX}SELECT ?g (COUNT(*) AS ?c) {{ STREAM :s [RANGE 1h] {{ ?x :g ?g }} }} GROUP BY ?g",
    "steps": f"{PREFIX}SELECT (COUNT(*) AS ?c) {{ STREAM :s [RANGE 2s STEP 1s] {{ ?x :n ?n }} }}",
}
_SHIM = Path(__file__).with_name("failing_disk.c")
_MOST_IN_A_BODY, _SENDERS = 30, 2
_PATIENCE = 300.0
_BEGINNING = 20.0
_BETWEEN = 0.1
"""Seconds between two attempts to reach a server that is away."""


@dataclass(slots=True)
class Reader:
    """The results of a query by number, over all connections. `wrong`: what should not be."""

    name: str
    lines: dict[int, str] = field(default_factory=dict)
    last: int = 0
    wrong: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        """A line of results."""
        number = json.loads(line).get("number")
        if number is None:
            return
        if number in self.lines and self.lines[number] != line:
            self.wrong.append(f"{self.name}: number {number} was {self.lines[number]} and is {line}")
        elif number != self.last + 1:
            self.wrong.append(f"{self.name}: number {number} follows {self.last}")
        self.lines[number], self.last = line, number

    def read(self, base: str, until: threading.Event) -> None:
        """Follow the query, whatever becomes of its server."""
        # A client for all connections, as making one costs more than a request.
        client = httpx.Client(base_url=base, timeout=2)
        path, accept = f"/queries/{self.name}/results", {"Accept": "application/x-ndjson"}
        while not until.is_set():
            try:
                with client.stream("GET", path, params={"from": self.last + 1}, headers=accept) as response:
                    if response.status_code == 200:
                        for line in response.iter_lines():
                            if line:
                                self.take(line)
                            if until.is_set():
                                return
            except httpx.HTTPError:
                time.sleep(_BETWEEN)


class Load:
    """Sends elements with numbers that rise, each body until it is answered."""

    def __init__(self, base: str, sender: int) -> None:
        self._client = httpx.Client(base_url=base, timeout=10)
        self._sender = sender
        self.sent = 0
        self.acknowledged = 0
        self.given_up = threading.Event()

    def send(self, until: threading.Event) -> None:
        """Send until then."""
        drawn = random.Random(self._sender)
        while not until.is_set():
            count = drawn.randint(1, _MOST_IN_A_BODY)
            body = "".join(self._element(self.sent + at) for at in range(count))
            self._post(body, f"{self._sender}-{self.sent}")
            self.sent += count

    def _element(self, number: int) -> str:
        name = f"{self._sender}.{number}"
        return f'<{EX}{name}> <{EX}n> "{name}" .\n<{EX}{name}> <{EX}g> "{number % 7}" .\n'

    def _post(self, body: str, key: str) -> None:
        self.acknowledged += post_until_answered(
            self._client, body.encode(), "application/n-triples", key, self.given_up
        )


def post_until_answered(client: httpx.Client, body: bytes, kind: str, key: str, given_up: threading.Event) -> int:
    """Send a body of stream s, with its key, until a server has taken it in; the number of its elements, 0 if it is given up."""
    headers = {"Content-Type": kind, "Idempotency-Key": key}
    while not given_up.is_set():
        try:
            answer = client.post("/streams/s", content=body, headers=headers)
        except httpx.HTTPError:
            time.sleep(_BETWEEN)
            continue
        if answer.status_code == 200:
            return int(answer.json()["elements"])
        if answer.status_code not in (429, 503, 507):
            raise AssertionError(f"{answer.status_code}: {answer.text}")
        time.sleep(_BETWEEN)
    return 0


def start(data: Path, port: int, variables: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A server of the folder, at the port. `variables`: of its environment, beside those of this process."""
    command = [sys.executable, "-m", "cqels_py", "serve", "--data", str(data), "--port", str(port)]
    environment = os.environ | dict(variables or {})
    messages = (data.parent / "messages").open("ab")
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=messages, env=environment)


def wait_until_ready(base: str) -> None:
    """Return when all is back. AssertionError if it does not come back."""
    until = time.monotonic() + _PATIENCE
    with httpx.Client(timeout=5) as client:
        while time.monotonic() < until:
            with suppress(httpx.HTTPError):
                if client.get(f"{base}/healthz").status_code == 200:
                    return
            time.sleep(_BETWEEN)
    raise AssertionError("the server does not become ready")


def failing_disk(folder: Path, data: Path, drawn: random.Random) -> dict[str, str]:
    """The variables with which a server's operations on the folder `data` fail."""
    library = folder / "failing_disk.so"
    if not library.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, _SHIM, "-ldl"], check=True)
    return {
        "LD_PRELOAD": str(library),
        "FAULT_FOLDER": str(data.resolve()),
        "FAULT_AT": str(drawn.randrange(1, 120)),
        "FAULT_COUNT": str(drawn.choice((1, 1, 3, 30))),
        "FAULT_ERRNO": str(drawn.choice((errno.EIO, errno.ENOSPC))),
    }


def survives(folder: Path, kills: int, seed: int, longest: float = 1.5, *, disk: int = 0) -> dict[str, Any]:
    """Kill a server so many times, each within so many seconds after it was ready; the figures, with all that was wrong.

    `disk`: before so many more kills its disk fails; it may be ready or not then.
    """
    drawn, data = random.Random(seed), folder / "data"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    process = start(data, port)
    wait_until_ready(base)
    httpx.put(f"{base}/streams/s", json={"iri": f"{EX}s"}).raise_for_status()
    for name, text in QUERIES.items():
        kind = {"Content-Type": "application/sparql-query"}
        httpx.put(f"{base}/queries/{name}", content=text, headers=kind, timeout=300).raise_for_status()
    sent, read = threading.Event(), threading.Event()
    loads, readers = [Load(base, sender) for sender in range(_SENDERS)], [Reader(name) for name in QUERIES]
    senders = [threading.Thread(target=load.send, args=(sent,), daemon=True) for load in loads]
    others = [threading.Thread(target=reader.read, args=(base, read), daemon=True) for reader in readers]
    for thread in (*senders, *others):
        thread.start()
    back = []
    try:
        for _ in range(kills):
            if drawn.random() < 0.5:
                # Otherwise no body might ever be answered, where a server has less time than its first body takes.
                before = sum(load.acknowledged for load in loads)
                _wait_for(lambda before=before: sum(load.acknowledged for load in loads) > before)
            time.sleep(drawn.random() * longest)
            process.send_signal(signal.SIGKILL)
            process.wait()
            begun = time.monotonic()
            process = start(data, port)
            wait_until_ready(base)
            back.append(time.monotonic() - begun)
            acknowledged = sum(load.acknowledged for load in loads)
            print(f"{len(back)} kills, {acknowledged:,} elements are acknowledged", file=sys.stderr, flush=True)
        for number in range(disk):
            process.send_signal(signal.SIGKILL)
            process.wait()
            process = start(data, port, failing_disk(folder, data, drawn))
            # It may end at once, or take nothing in.
            before = sum(load.acknowledged for load in loads)
            _wait_for(lambda before=before: sum(load.acknowledged for load in loads) > before, _BEGINNING)
            time.sleep(drawn.random() * longest)
            acknowledged = sum(load.acknowledged for load in loads)
            print(
                f"{number + 1} failing disks, {acknowledged:,} elements are acknowledged", file=sys.stderr, flush=True
            )
        if disk:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process = start(data, port)
            wait_until_ready(base)
        sent.set()
        for thread in senders:
            thread.join(_PATIENCE)
        for load in loads:
            load.given_up.set()
        elements = sum(load.sent for load in loads)
        _wait_for(lambda: all(reader.last >= elements for reader in readers[: len(EQUAL)]))
        read.set()
        process.send_signal(signal.SIGTERM)
        status = process.wait(60)
    finally:
        sent.set()
        read.set()
        process.kill()
        process.wait()
    wrong = [each for reader in readers for each in reader.wrong]
    for reader in readers[: len(EQUAL)]:
        wrong += _compared(loads, reader)
    if status != 0:
        wrong.append(f"SIGTERM: status {status}")
    return {
        "kills": kills,
        "failing_disks": disk,
        "elements": elements,
        "results": sum(reader.last for reader in readers),
        "back_seconds": sorted(round(each, 2) for each in back)[len(back) // 2] if back else None,
        "wrong": wrong,
    }


def _compared(loads: Sequence[Load], reader: Reader) -> list[str]:
    """Each element has one result, and those of a sender are in order."""
    found = [json.loads(line)["bindings"]["n"]["value"] for _, line in sorted(reader.lines.items())]
    wrong = []
    for sender, load in enumerate(loads):
        own = [int(each.partition(".")[2]) for each in found if each.startswith(f"{sender}.")]
        if own != list(range(load.sent)):
            wrong.append(
                f"sender {sender}: {load.sent} elements were sent, and {len(own)} results are {own[:5]} … {own[-5:]}"
            )
        if load.acknowledged != load.sent:
            wrong.append(f"sender {sender}: {load.acknowledged} of {load.sent} elements were acknowledged")
    return wrong


def _wait_for(condition: Any, seconds: float = _PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit status."""
    parser = parser_of("faults", __doc__)
    parser.add_argument("--kills", type=int, metavar="N", help=f"default {KILLS}")
    parser.add_argument("--disk", type=int, metavar="N", help=f"default {DISK}")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"default {SEED}")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="cqels-service-") as folder:
        kills, disk = (2, 1) if given.quick else (KILLS, DISK)
        kills, disk = kills if given.kills is None else given.kills, disk if given.disk is None else given.disk
        figures = survives(Path(folder), kills, given.seed, disk=disk)
    path = taken_now("faults", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick).write(folder_of(given))
    done = f"{figures['kills']} kills, {figures['failing_disks']} failing disks"
    print(f"{done}, {figures['elements']:,} elements, {figures['results']:,} results; wrong:")
    print("\n".join(figures["wrong"]) or "nothing")
    print(f"written to {path}", file=sys.stderr)
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
