"""A standalone cluster of two workers, on which Spark starts a second attempt beside one that hangs.

It takes a minute, so it runs with CQELS_TEST_SERVERS=1, as in continuous integration.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from rdflib import XSD

from cqels_py.errors import MissingExtra
from tests.runners.spark.conftest import ROOT

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(
        os.environ.get("CQELS_TEST_SERVERS") != "1", reason="it takes a minute: set CQELS_TEST_SERVERS=1"
    ),
]

_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_WAIT = 60
EX = "http://ex.org/"


@contextmanager
def process(folder: Path, name: str, *arguments: str, memory: str = "256m") -> Iterator[Path]:
    """A process of Spark's, ended afterwards with all that it has started; gives the file of its log."""
    import pyspark

    log = folder / f"{name}.log"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": memory}
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *arguments]
    with log.open("w") as out:
        started = subprocess.Popen(command, stdout=out, stderr=out, env=environment, cwd=folder, start_new_session=True)
    try:
        yield log
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


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Two workers of one core under two hosts: where a host has an attempt, Spark starts no copy of it."""
    if find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed")
    from cqels_py.runners.spark.session import use_java

    try:
        use_java()
    except MissingExtra as error:
        pytest.skip(str(error))
    with ExitStack() as stack:
        log = stack.enter_context(
            process(tmp_path, "master", _MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        )
        address = found_in(log, r"Starting Spark master at (spark://\S+)")
        for host in ("127.0.0.1", "127.0.0.2"):
            options = ["--host", host, "--webui-port", "0", "-c", "1", "-m", "2g", "-d", str(tmp_path / host)]
            log = stack.enter_context(process(tmp_path, host, _WORKER, address, *options))
            found_in(log, r"Successfully (registered) with master")
        yield address


def test_the_command_line_runs_a_query_on_a_cluster(master: str, tmp_path: Path) -> None:
    """It prints what a local run prints, and leaves a folder that is in use alone."""
    (tmp_path / "s.nq").write_text(
        "".join(
            f'<{EX}s{n % 5}> <{EX}v> "{n}" <{EX}g{n}> .\n<{EX}g{n}> <{EX}at> "{n}"^^<{XSD.integer}> <{EX}g{n}> .\n'
            for n in range(200)
        )
    )
    text = f"SELECT ?s (COUNT(*) AS ?n) WHERE {{ STREAM <{EX}s> [RANGE 60us] {{ ?s <{EX}v> ?v }} }} GROUP BY ?s"
    asked = ["run", "-q", text, "--stream", f"{EX}s={tmp_path / 's.nq'}", "--time-predicate", EX + "at", "--changelog"]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cqels_py", *asked, "--format", "csv", *options]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)

    cluster = ["--runner", "spark", "--master", master, "--state", str(tmp_path / "state"), "--batch", "60"]
    found = run(*cluster, "--partitions", "2")
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) > 100
    assert found.stdout == run().stdout
    again = run(*cluster)
    assert (again.returncode, "is not empty: give the run a new folder" in again.stderr) == (2, True)


def test_a_second_attempt_beside_one_that_hangs_changes_no_result(master: str, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    script = Path(__file__).with_name("speculating.py")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(
        [sys.executable, script, master, folder], env=environment, capture_output=True, text=True, timeout=400
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    numbers = Counter(line.partition(": ")[0] for line in said["attempts"])
    assert max(numbers.values()) > 1, "Spark has started a second attempt"
    assert said["right"]
