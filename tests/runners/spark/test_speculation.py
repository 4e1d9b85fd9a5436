"""A standalone cluster of two workers, on which Spark starts a second attempt beside one that hangs.

It takes a minute, so it runs with CQELS_TEST_SERVERS=1, as in continuous integration.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from rdflib import XSD

from bench.suites.on_spark.standalone import standalone_cluster
from cqels_py.errors import MissingExtra
from tests.runners.spark.conftest import ROOT

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(
        os.environ.get("CQELS_TEST_SERVERS") != "1", reason="it takes a minute: set CQELS_TEST_SERVERS=1"
    ),
]

EX = "http://ex.org/"


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """That of two workers."""
    if find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed")
    from cqels_py.runners.spark.session import use_java

    try:
        use_java()
    except MissingExtra as error:
        pytest.skip(str(error))
    with standalone_cluster(tmp_path) as cluster:
        yield cluster.master


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
