"""From a .cpp to a shared library: built once per machine, compiler and text, and kept in a folder of the user's."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from cqels_py.suites.machine import machine

COMPILER = "g++"
FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-shared",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wno-sign-conversion",
)
_SOURCES = Path(__file__).parent


def compiler() -> str | None:
    """The path of g++, or None where there is none: C++ is then left out."""
    return shutil.which(COMPILER)


@cache
def version() -> str:
    """What g++ says of itself, or why C++ is left out."""
    found = compiler()
    if found is None:
        return f"left out: there is no {COMPILER}"
    return subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


@cache
def library(name: str) -> ctypes.CDLL:
    """The library of NAME.cpp. CalledProcessError if it does not compile; what g++ says is shown."""
    path = _folder() / f"{name}-{_fingerprint(name)}.so"
    if not path.exists():
        _build(_SOURCES / f"{name}.cpp", path)
    return ctypes.CDLL(str(path))


def _build(source: Path, target: Path) -> None:
    found = compiler()
    assert found is not None, "library() was asked for without a compiler"
    target.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may build at once: each writes a file of its own, and the last name wins.
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        subprocess.run([found, *FLAGS, str(source), "-o", str(made)], check=True)
        made.replace(target)


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cqels_py" / "cpp"


def _fingerprint(name: str) -> str:
    """Of all that decides what the library is: texts, flags, compiler, processor."""
    texts = [path.read_bytes() for path in (_SOURCES / f"{name}.cpp", *sorted(_SOURCES.rglob("*.hpp")))]
    place = [" ".join(FLAGS), version(), str(machine()["cpu"]), platform.machine()]
    return hashlib.blake2b(b"\0".join([*texts, *(text.encode() for text in place)]), digest_size=8).hexdigest()
