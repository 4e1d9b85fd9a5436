"""Workers that lack the package: `--archives` sends it along, by a driver here and by Spark Connect, and compiled kernels are kept
in the folder that CQELS_CACHE_DIR names on the executors, whatever folder the package was unpacked in.

It starts a cluster and a server, which takes a minute, so it runs with CQELS_TEST_SERVERS=1, as in continuous integration.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.suites.on_spark.standalone import Cluster, connect_server, standalone_cluster
from cqels_py.kernels.compiler import jit
from cqels_py.kernels.compiler.cache import FOLDER, folders_of
from tests.runners.spark.conftest import ROOT
from tests.support.needed_spark import needed_spark

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(
        os.environ.get("CQELS_TEST_SERVERS") != "1", reason="it starts servers: set CQELS_TEST_SERVERS=1"
    ),
    pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled"),
]

EX = "http://ex.org/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
QUERY = f"SELECT ?s (SUM(?v) AS ?n) WHERE {{ STREAM <{EX}s> [RANGE 60us] {{ ?s <{EX}v> ?v }} }} GROUP BY ?s"
ABSENT = "arrivals.elements_of_triples-"
"""The beginning of the names of a kernel's files, which every task needs that reads rows."""


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is started here finds no package but in its environment."""
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", FOLDER):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Two workers whose Python lacks the package."""
    needed_spark(connect=True)
    with standalone_cluster(tmp_path) as started:
        yield started


def environment(folder: Path) -> Path:
    """An environment with the package, without compiled kernels. Its libraries are those here, as they would take minutes."""
    venv.create(folder / "environment", symlinks=True)
    (packages,) = (folder / "environment").glob("lib/python*/site-packages")
    libraries = dict.fromkeys(path for path in sys.path if path.endswith("site-packages"))
    (packages / "libraries.pth").write_text("\n".join(libraries))
    for name in ("cqels_py", "datasets", "queries"):
        inside = packages / "cqels_py" if name == "cqels_py" else packages / "cqels_py" / name
        shutil.copytree(ROOT / name, inside, ignore=shutil.ignore_patterns("__pycache__"))
    with tarfile.open(folder / "environment.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(folder / "environment", ".")
    return folder / "environment.tar.gz"


def copy_kernels(into: Path) -> None:
    """The kernels that are compiled here, in a folder for others."""
    for module in (ROOT / "cqels_py" / "kernels").rglob("*.py"):
        stamp = jit._fingerprint(".".join(module.relative_to(ROOT).with_suffix("").parts))
        (place,) = folders_of(str(module), stamp, str(into))
        for file in (file for here in folders_of(str(module), stamp) for file in here.glob(f"{module.stem}.*.nbc")):
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, place)


def kept(cache: Path) -> dict[Path, int]:
    """The files of kernels, and when each was written."""
    return {file: file.stat().st_mtime_ns for file in cache.rglob("*.nbc")}


def test_the_package_and_its_kernels_come_to_workers_without_it(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers_own = os.path.realpath(sys.executable)
    lacking = subprocess.run([workers_own, "-I", "-c", "import cqels_py"], capture_output=True, text=True)
    assert "No module named 'cqels_py'" in lacking.stderr
    archive, cache = environment(tmp_path), tmp_path / "cache"
    copy_kernels(cache)
    here = kept(cache)
    absent = [file for file in here if file.name.startswith(ABSENT)]
    for file in absent:
        file.unlink()
    lines = [f'{n * 7},<{EX}s{n % 3}>,<{EX}v>,"""{n}""^^<{INTEGER}>"' for n in range(60)]
    (tmp_path / "s.csv").write_text("\n".join(["time,subject,predicate,object", *lines]) + "\n")
    settings = {"spark.executorEnv." + FOLDER: str(cache), "spark.pyspark.python": workers_own}

    def run(*options: str) -> str:
        asked = ["run", "-q", QUERY, "--stream", f"{EX}s={tmp_path / 's.csv'}", "--format", "csv", *options]
        ran = subprocess.run([sys.executable, "-m", "cqels_py", *asked], capture_output=True, text=True, timeout=400)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def on_spark(name: str, *options: str) -> str:
        there = ["--runner", "spark", "--state", str(tmp_path / name), "--partitions", "2", "--batch", "25", *options]
        return run(*there, "--archives", str(archive))

    wanted = run()
    assert len(wanted.splitlines()) > 60
    with connect_server(tmp_path, cluster.master, settings) as url:
        assert on_spark("connected", "--remote", url) == wanted
    after = kept(cache)
    compiled = [file for file in after if after[file] != here.get(file)]
    assert [file.name for file in absent] == [file.name for file in compiled] != [], (
        "the executors have compiled this one"
    )
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in settings.items())
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    assert on_spark("submitted", "--master", cluster.master) == wanted
    assert kept(cache) == after, "executors that come later compile nothing, though their package is in another folder"
