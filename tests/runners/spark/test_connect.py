"""Spark Connect: the driver is a server, and the client does not reach the folder of the state.

It starts a server, so it runs with CQELS_TEST_SERVERS=1, as in continuous integration.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import pytest

from bench.suites.on_spark.standalone import connect_server
from cqels_py.checkpoints.locations import Location
from cqels_py.errors import MissingExtra, RunError, UsageError
from cqels_py.runners.spark import reaching
from cqels_py.runners.spark.session import Session, connected_session
from tests.runners.spark.conftest import ROOT
from tests.support.needed_spark import needed_spark

EX = "http://ex.org/"
QUERY = f"SELECT ?s (SUM(?v) AS ?n) WHERE {{ STREAM <{EX}s> [RANGE 60us] {{ ?s <{EX}v> ?v }} }} GROUP BY ?s"
UNREACHABLE = """
import sys
from cqels_py.checkpoints.locations import Location
def refuse(self):
    raise AssertionError("the client does not reach the state")
Location.open = refuse
"""
"""What a client begins with."""
COMMAND = UNREACHABLE + "from cqels_py.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
JOB = """
import json
from pathlib import Path
import cqels_py.spark
from cqels_py.runners.spark.session import connected_session
url, folder, query = sys.argv[1:]
with connected_session(url) as session:
    frame = session.readStream.schema("time long, subject string, predicate string, object string")
    frame = frame.option("maxFilesPerTrigger", 1).json(folder + "/in")
    answers = cqels_py.spark.continuous({"http://ex.org/s": frame}, query, state=folder + "/state", partitions=2)
    writer = answers.writeStream.option("checkpointLocation", folder + "/checkpoint").format("parquet")
    running = writer.trigger(availableNow=True).start(folder + "/out")
    running.awaitTermination()
    counts = [cqels_py.spark.counts_in(each) for each in running.recentProgress]
    rows = session.read.parquet(folder + "/out").toArrow().to_pylist()
    found = cqels_py.spark.statistics(folder + "/state", session=session)
    loads = cqels_py.spark.loads(folder + "/state", session=session)
    print(json.dumps({
        "rows": sorted([each["s"], each["n"], each["sign"]] for each in rows),
        "counted": sum(each.elements for each in counts if each is not None),
        "elements": found.elements, "results": found.results, "parts": len(loads[0]),
    }))
"""
SPLIT = """
import json
import os
import cqels_py.spark
from cqels_py.runners.spark.session import connected_session
url, folder, query = sys.argv[1:]
with connected_session(url) as session:
    def run(state, partitions):
        frame = session.readStream.schema("time long, subject string, predicate string, object string").json(folder + "/in")
        answers = cqels_py.spark.continuous({"http://ex.org/s": frame}, query, state=state, partitions=partitions)
        writer = answers.writeStream.option("checkpointLocation", folder + "/checkpoint").format("parquet")
        writer.trigger(availableNow=True).start(folder + "/out").awaitTermination()
    run(folder + "/state", 2)
    cqels_py.spark.migrate(folder + "/state", query, to=folder + "/more", partitions=4, session=session)
    os.rename(folder + "/1.json", folder + "/in/1.json")
    run(folder + "/more", 4)
    rows = session.read.parquet(folder + "/out").toArrow().to_pylist()
    print(json.dumps({
        "rows": sorted([each["s"], each["n"], each["sign"]] for each in rows),
        "elements": cqels_py.spark.statistics(folder + "/more", session=session).elements,
        "parts": len(cqels_py.spark.loads(folder + "/more", session=session)[0]),
    }))
"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
COUNTED = [[f"<{EX}s{n % 2}>", f'"{n // 2 + 1}"^^<{INTEGER}>', 1] for n in range(20)]
"""The number of elements of each subject so far, over those of `write_files`."""
needs_server = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(
        os.environ.get("CQELS_TEST_SERVERS") != "1", reason="it starts a server: set CQELS_TEST_SERVERS=1"
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Spark Connect server on this machine."""
    needed_spark(connect=True)
    settings = {"spark.python.daemon.module": "cqels_py.runners.spark.daemon"}
    with connect_server(tmp_path_factory.mktemp("server"), "local[2]", settings) as url:
        yield url


def client(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    """The server's workers import the package, and run in this Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        yield


class TestWithAServer:
    pytestmark = needs_server

    def test_the_command_line(self, server: str, tmp_path: Path) -> None:
        lines = [f'{n * 7},<{EX}s{n % 3}>,<{EX}v>,"""{n}""^^<{INTEGER}>"' for n in range(60)]
        (tmp_path / "s.csv").write_text("\n".join(["time,subject,predicate,object", *lines]) + "\n")
        asked = ["run", "-q", QUERY, "--stream", f"{EX}s={tmp_path / 's.csv'}", "--format", "csv", "--stats"]
        state = tmp_path / "state"
        there = ["--runner", "spark", "--remote", server, "--state", str(state), "--partitions", "2", "--batch", "25"]
        found = client(COMMAND, *asked, *there)
        assert found.returncode == 0, found.stderr
        wanted = client("import sys; from cqels_py.cli.main import main; sys.exit(main(sys.argv[1:]))", *asked)
        assert len(found.stdout.splitlines()) > 60
        assert found.stdout == wanted.stdout
        assert "60 rows to 2 partitions" in found.stderr
        again = client(COMMAND, *asked, *there)
        assert (again.returncode, "is not empty: give the run a new folder" in again.stderr) == (2, True)

    def test_a_job(self, server: str, tmp_path: Path) -> None:
        write_files(tmp_path / "in")
        found = client(UNREACHABLE + JOB, server, str(tmp_path), QUERY.replace("SUM", "COUNT"))
        assert found.returncode == 0, found.stderr
        said = json.loads(found.stdout.splitlines()[-1])
        assert (said["elements"], said["counted"], said["parts"]) == (20, 20, 2)
        assert said["rows"] == sorted(COUNTED)
        assert said["results"] == 20

    def test_a_state_that_is_split(self, server: str, tmp_path: Path) -> None:
        """By a task of the cluster, between two runs on one checkpoint."""
        write_files(tmp_path / "in")
        (tmp_path / "in" / "1.json").rename(tmp_path / "1.json")
        found = client(UNREACHABLE + SPLIT, server, str(tmp_path), QUERY.replace("SUM", "COUNT"))
        assert found.returncode == 0, found.stderr
        said = json.loads(found.stdout.splitlines()[-1])
        assert (said["elements"], said["parts"]) == (20, 4)
        assert said["rows"] == sorted(COUNTED)


def write_files(folder: Path) -> None:
    """Twenty elements in two files, the older one first."""
    folder.mkdir()
    for batch in range(2):
        rows = [
            {"time": n, "subject": f"<{EX}s{n % 2}>", "predicate": f"<{EX}v>", "object": f'"{n}"'}
            for n in range(10 * batch, 10 * batch + 10)
        ]
        file = folder / f"{batch}.json"
        file.write_text("\n".join(map(json.dumps, rows)))
        # Spark takes files by age.
        os.utime(file, (1_700_000_000 + batch,) * 2)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("pyspark") is None or find_spec("grpc") is None:
        pytest.skip("Spark Connect is not installed: pip install 'cqels_py[spark-connect]'")
    monkeypatch.setattr("cqels_py.runners.spark.session.CONNECT_SECONDS", 1)
    with (
        pytest.raises(RunError, match=r"answers at sc://127.0.0.1:9 within 1 s"),
        connected_session("sc://127.0.0.1:9"),
    ):
        pass
    with pytest.raises(UsageError, match="no address of a Spark Connect server"), connected_session("sc://host:x/y"):
        pass


def test_without_the_packages_of_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cqels_py.runners.spark.session.find_spec", lambda name: None if "grpc" in name else object())
    with pytest.raises(MissingExtra, match="needs grpcio and others: pip install"), connected_session("sc://host"):
        pass


class Bare:
    """A session of Spark Connect whose workers lack the package."""

    __module__ = "pyspark.sql.connect.session"

    def range(self, *_: int) -> Bare:
        return self

    def mapInArrow(self, task: object, _: str) -> Bare:
        return self

    def toArrow(self) -> None:
        from pyspark.errors import PySparkException

        raise PySparkException(
            "An exception was thrown from the Python worker. Please see the stack trace below.\n"
            "Traceback (most recent call last):\n  in loads\nModuleNotFoundError: No module named 'cqels_py'\n\n\tat org.apache.x"
        )


def test_workers_without_the_package() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(RunError) as found:
        reaching.StateFolder(Location("/nowhere"), cast("Session", Bare())).noted()
    assert "cannot run a task of cqels_py: ModuleNotFoundError: No module named 'cqels_py'. The workers" in str(
        found.value
    )
    assert "--archives" in str(found.value)


def test_errors_of_a_task_are_those_of_a_call(tmp_path: Path) -> None:
    """The functions that tasks run, called here."""
    (tmp_path / "other").touch()
    here = reaching.StateFolder(Location(str(tmp_path)))
    with pytest.raises(UsageError, match="is not empty") as direct:
        here.check_empty()
    (told,) = reaching._answer(here.check_empty, [])
    assert json.loads(told.column("answer")[0].as_py()) == {"error": str(direct.value), "is usage": True}

    def fail() -> None:
        raise RunError("it fails")

    (told,) = reaching._answer(fail, [])
    assert json.loads(told.column("answer")[0].as_py()) == {"error": "it fails", "is usage": False}
