"""Compiles a .cpp file to a shared library, once for each machine, compiler and text, and caches it in a folder of the user."""

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
    """The path of g++; None if it is not installed. The C++ competitors are then left out."""
    return shutil.which(COMPILER)


@cache
def version() -> str:
    """The version of g++, or why C++ is left out."""
    found = compiler()
    if found is None:
        return f"left out: there is no {COMPILER}"
    return subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


@cache
def library(name: str) -> ctypes.CDLL:
    """The library of NAME.cpp. CalledProcessError if it does not compile; the output of g++ is shown."""
    path = _folder() / f"{name}-{_fingerprint(name)}.so"
    if not path.exists():
        _build(_SOURCES / f"{name}.cpp", path)
    return ctypes.CDLL(str(path))


def _build(source: Path, target: Path) -> None:
    found = compiler()
    assert found is not None, "library() was asked for without a compiler"
    target.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may build at once: each writes a file of its own, and the last rename wins.
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        subprocess.run([found, *FLAGS, str(source), "-o", str(made)], check=True)
        made.replace(target)


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cqels_py" / "cpp"


def _fingerprint(name: str) -> str:
    """A fingerprint of everything that determines the library: texts, flags, compiler, processor."""
    texts = [path.read_bytes() for path in (_SOURCES / f"{name}.cpp", *sorted(_SOURCES.rglob("*.hpp")))]
    place = [" ".join(FLAGS), version(), str(machine()["cpu"]), platform.machine()]
    return hashlib.blake2b(b"\0".join([*texts, *(text.encode() for text in place)]), digest_size=8).hexdigest()
