"""Spark on this machine: a standalone cluster, a master and workers under addresses of their own; and a server of Spark Connect."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_HOSTS = ("127.0.0.1", "127.0.0.2")
_WAIT = 60


@dataclass(frozen=True, slots=True)
class Started:
    """A process of Spark's, which leads a session with all that it has started. `log`: the file of its output."""

    pid: int
    log: Path


@dataclass(frozen=True, slots=True)
class Cluster:
    """`master`: its URL."""

    master: str
    workers: tuple[Started, ...]

    def executors(self) -> list[int]:
        """The processes of executors, which the workers have started."""
        leaders = {worker.pid for worker in self.workers}
        return sorted(pid for pid in _processes() if _session(pid) in leaders and _EXECUTOR in _command(pid))


@contextmanager
def process(
    folder: Path, name: str, *arguments: str, memory: str = "256m", temporary: Path | None = None
) -> Iterator[Started]:
    """A process of Spark's, ended afterwards with all that it has started. `temporary`: its folder for temporary files."""
    import pyspark

    log = folder / f"{name}.log"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": memory}
    if temporary is not None:
        temporary.mkdir()
        environment["TMPDIR"] = str(temporary)
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *arguments]
    with log.open("w") as out:
        started = subprocess.Popen(command, stdout=out, stderr=out, env=environment, cwd=folder, start_new_session=True)
    try:
        yield Started(started.pid, log)
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def found_in(log: Path, pattern: str) -> str:
    """The first group of a pattern that is in a log, or will soon be."""
    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline:
        if match := re.search(pattern, log.read_text()):
            return match[1]
        time.sleep(0.1)
    raise AssertionError(f"no {pattern} in {log.read_text()}")


@contextmanager
def standalone_cluster(folder: Path, *, apart: bool = False) -> Iterator[Cluster]:
    """Two workers of one core under two hosts: where a host has an attempt at a task, Spark starts no copy of it.

    `apart`: their executors have no folder for temporary files in common, as on two machines.
    """
    with ExitStack() as stack:
        options = ["--host", _HOSTS[0], "--port", "0", "--webui-port", "0"]
        log = stack.enter_context(process(folder, "master", _MASTER, *options)).log
        address = found_in(log, r"Starting Spark master at (spark://\S+)")
        workers = []
        for host in _HOSTS:
            options = ["--host", host, "--webui-port", "0", "-c", "1", "-m", "2g", "-d", str(folder / host)]
            temporary = folder / f"tmp-{host}" if apart else None
            worker = stack.enter_context(process(folder, host, _WORKER, address, *options, temporary=temporary))
            found_in(worker.log, r"Successfully (registered) with master")
            workers.append(worker)
        yield Cluster(address, tuple(workers))


@contextmanager
def connect_server(folder: Path, master: str, settings: Mapping[str, str]) -> Iterator[str]:
    """The URL of a Spark Connect server, whose driver runs tasks at `master`, with more settings."""
    settings = {
        "spark.master": master,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        **settings,
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    main = ["--class", _SERVER, *options, "spark-internal"]
    with process(folder, "server", "org.apache.spark.deploy.SparkSubmit", *main, memory="1g") as started:
        port = found_in(started.log, r"Spark Connect server started at: \S*:(\d+)")
        yield f"sc://127.0.0.1:{port}"


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _command(pid: int) -> bytes:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes()
    except OSError:
        return b""
