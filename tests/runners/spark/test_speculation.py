"""A standalone cluster of two workers: `cqels run`, and a second attempt that Spark starts beside one that hangs.

It takes a minute, so it runs with CQELS_TEST_SERVERS=1, as in continuous integration.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from rdflib import XSD

from bench.suites.on_spark.standalone import standalone_cluster
from tests.runners.spark.conftest import ROOT
from tests.runners.spark.test_example import EXAMPLE, answers, arrive
from tests.support.needed_spark import needed_spark
from tests.support.servers import needed_module

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(
        os.environ.get("CQELS_TEST_SERVERS") != "1", reason="it takes a minute: set CQELS_TEST_SERVERS=1"
    ),
]

EX = "http://ex.org/"
HOSTS = {"127.0.0.1", "127.0.0.2"}


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """That of two workers."""
    needed_spark()
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

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cqels_py", *asked, "--format", "csv", *options]
        return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=400)

    cluster = ["--runner", "spark", "--master", master, "--state", str(tmp_path / "state"), "--batch", "60"]
    found = run(*cluster, "--partitions", "2")
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) > 100
    assert found.stdout == run().stdout
    again = run(*cluster)
    assert (again.returncode, "is not empty: give the run a new folder" in again.stderr) == (2, True)


def test_the_example_is_submitted(master: str, tmp_path: Path) -> None:
    """It runs on the workers of the cluster that spark-submit names, with the settings that this has."""
    import pyspark

    (tmp_path / "readings").mkdir()
    arrive(tmp_path, "one.json", ("s1", 24.5, 0), ("s2", 12.0, 1), ("s1", 26.5, 2), ("s1", 30.5, 20))
    submit, log = Path(pyspark.__file__).parent / "bin" / "spark-submit", tmp_path / "log"
    log.mkdir()
    settings = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": log.as_uri(),
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [str(submit), "--master", master, *options, str(EXAMPLE), str(tmp_path)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    assert answers(tmp_path) == [("12:02", "kitchen", "25.5"), ("12:10", "kitchen", "26.5")]
    files = [path for path in log.rglob("*") if path.is_file() and not path.name.startswith(".")]
    events = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    hosts = {each["Executor Info"]["Host"] for each in events if each["Event"] == "SparkListenerExecutorAdded"}
    assert hosts and hosts <= HOSTS
    (told,) = (each["Spark Properties"] for each in events if each["Event"] == "SparkListenerEnvironmentUpdate")
    assert told["spark.master"] == master
    assert {name: told[name] for name in settings} == settings
    assert told["spark.python.daemon.module"] == "cqels_py.runners.spark.daemon"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a bucket of moto's S3, which all processes find by their environment."""
    server = needed_module("moto.server", "dev").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    settings = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.get_host_and_port()[1]}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    store_at(settings["AWS_ENDPOINT_URL"], allow_bucket_creation=True).create_dir("box")
    yield "s3a://box"
    server.stop()


def store_at(url: str, **options: bool) -> fs.S3FileSystem:
    return fs.S3FileSystem(endpoint_override=url.removeprefix("http://"), scheme="http", **options)


def test_the_command_line_reads_a_folder_of_a_store_that_has_the_state(
    bucket: str, master: str, tmp_path: Path
) -> None:
    store = store_at(os.environ["AWS_ENDPOINT_URL"])
    names = ["time", "graph", "subject", "predicate", "object"]
    rows = [(n * 1_000_000, f"{EX}g{n}", f"<{EX}s{n % 5}>", f"<{EX}v>", f'"{n}"^^<{XSD.integer}>') for n in range(200)]
    whole = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    for number in range(4):
        with store.open_output_stream(f"box/in/{number}.parquet") as file:
            pq.write_table(whole.slice(50 * number, 50), file)
    pq.write_table(whole, tmp_path / "whole.parquet")
    text = f"SELECT ?s (SUM(?v) AS ?n) WHERE {{ STREAM <{EX}s> [RANGE 61s] {{ ?s <{EX}v> ?v }} }} GROUP BY ?s"
    cluster = ["--runner", "spark", "--master", master, "--state", f"{bucket}/state", "--partitions", "4"]

    def run(source: str, *options: str) -> subprocess.CompletedProcess[str]:
        asked = ["run", "-q", text, "--stream", f"{EX}s={source}", "--changelog", "--format", "csv", *options]
        return subprocess.run(
            [sys.executable, "-m", "cqels_py", *asked],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=400,
        )

    found, wanted = run(f"{bucket}/in/", *cluster), run(str(tmp_path / "whole.parquet"))
    assert found.returncode == 0, found.stderr
    assert len(wanted.stdout.splitlines()) > 200
    # The order of results of one instant is free.
    assert sorted(found.stdout.splitlines()) == sorted(wanted.stdout.splitlines())
    parts = store.get_file_info(fs.FileSelector("box/state"))
    assert {each.base_name for each in parts} >= {"query.json", "beginning", "0", "1", "2", "3"}


def environment() -> dict[str, str]:
    """That of a driver, whose workers import these tests."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def test_a_second_attempt_beside_one_that_hangs_changes_no_result(master: str, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    script = Path(__file__).with_name("speculating.py")
    ran = subprocess.run(
        [sys.executable, script, master, folder], env=environment(), capture_output=True, text=True, timeout=400
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    numbers = Counter(line.partition(": ")[0] for line in said["attempts"])
    assert max(numbers.values()) > 1, "Spark has started a second attempt"
    assert said["right"]
