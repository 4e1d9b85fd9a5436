"""Real servers for tests of connectors, on free ports of 127.0.0.1: a test that needs one is skipped where it is not installed.

With CQELS_TEST_SERVERS=1, as in continuous integration, a missing server is a failure instead.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def missing(what: str, how: str) -> Any:
    """Skip the test with a line that says what to install; fail where all servers have to be there."""
    message = f"{what} is not installed: {how}"
    if os.environ.get("CQELS_TEST_SERVERS") == "1":
        pytest.fail(message)
    pytest.skip(message)


def needed_module(name: str, extra: str) -> Any:
    """An optional package of a connector."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        missing(name, f"pip install 'cqels_py[{extra}]'")


def program(name: str, package: str, *folders: str) -> str:
    """The path of a program; Debian keeps some of them outside of PATH."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))
    if found is None:
        missing(name, f"apt-get install {package}")
    assert found is not None
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Fail if the condition does not become true; exceptions of the operating system count as false."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.02)
    pytest.fail(f"{what} within {seconds} s: it did not happen")


def answers(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


class PostgresServer:
    """A cluster of its own in a folder. PostgreSQL does not run as root: there it runs as the user postgres."""

    def __init__(self, folder: Path) -> None:
        installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        self._initdb = program("initdb", "postgresql", *map(str, reversed(installed)))
        self._server = program("postgres", "postgresql", *map(str, reversed(installed)))
        self._data = folder / "data"
        self._log = folder / "log"
        self.port = free_port()
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            os.chown(folder, account.pw_uid, account.pw_gid)
            # The folders of pytest are for their owner only.
            for parent in [folder, *folder.parents][:-2]:
                parent.chmod(parent.stat().st_mode | 0o711)
        subprocess.run(
            [self._initdb, "-N", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", str(self._data)],
            check=True, stdout=subprocess.DEVNULL, user=self._user, cwd="/",
        )  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = ["-D", str(self._data), "-p", str(self.port), "-h", "127.0.0.1", "-k", "", "-c", "fsync=off"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([self._server, *options], user=self._user, cwd="/", stdout=log, stderr=log)
        wait_until(self._accepts, f"PostgreSQL starts (see {self._log})")

    def _accepts(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """As in a crash: sessions end in the middle of what they do."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(30)
