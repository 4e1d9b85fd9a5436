"""Compile kernels before they are called: those of a query when it is registered, or all of the manifest.

Kernels that are in no file are compiled by worker processes, one per core, so that this process goes on with its work.
"""

from __future__ import annotations

import base64
import logging
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Protocol

import numba

from cqels_py.kernels.compiler import cache, shipped
from cqels_py.kernels.compiler import parallel_build as build
from cqels_py.kernels.compiler.manifest import RECORD_AGAIN, KernelCall
from cqels_py.kernels.compiler.shipped import Shipment

_LOG = logging.getLogger("cqels_py")
_ONE_AT_A_TIME = Lock()
"""Two threads do not compile the same kernels at once."""


def announcement() -> str:
    """For users, before kernels are compiled."""
    obstacle = shipped.why_not()
    reason = f" (those that came with the package are not used: {obstacle})" if obstacle else ""
    return f"compiling kernels for this machine{reason}; this happens once and takes up to a minute"


_ready: set[KernelCall] = set()
"""Known to be in a file or in this process, or to be out of date."""
_loaded: set[KernelCall] = set()
"""Known to be in this process, or to be out of date."""


class Reporter(Protocol):
    """Told of compilation before it begins, after each kernel, and at its end: kernels and seconds.

    `kernels`: how many there are to compile. Several threads may call `done`.
    """

    def begin(self, kernels: int) -> None: ...

    def done(self) -> None: ...

    def add(self, kernels: int, seconds: float) -> None: ...


class _Log:
    """Somebody waits for the first results of a program."""

    def begin(self, kernels: int) -> None:
        _LOG.warning(announcement())

    def done(self) -> None:
        pass

    def add(self, kernels: int, seconds: float) -> None:
        _LOG.info("compiled %d kernels in %.1f s", kernels, seconds)


_reporter: Reporter = _Log()


@contextmanager
def reporting(reporter: Reporter) -> Iterator[None]:
    """While this lasts, compilation is reported to `reporter` instead of the log."""
    global _reporter
    before, _reporter = _reporter, reporter
    try:
        yield
    finally:
        _reporter = before


_LATER: ContextVar[bool] = ContextVar("later", default=False)


@contextmanager
def only_when_called() -> Iterator[None]:
    """While this lasts `prepare` does nothing: for queries that are registered and do not run."""
    token = _LATER.set(True)
    try:
        yield
    finally:
        _LATER.reset(token)


def prepare(calls: Iterable[KernelCall]) -> int:
    """Compile those kernels that are not in the cache; returns how many there were."""
    if _LATER.get():
        return 0
    with _ONE_AT_A_TIME:
        absent = missing(calls)
        if absent:
            _reporter.begin(len(absent))
            started = time.perf_counter()
            compiled = compile_kernels(absent, _reporter.done)
            _reporter.add(len(compiled), time.perf_counter() - started)
        return len(absent)


def load(calls: Iterable[KernelCall]) -> None:
    """Load those kernels that are in the cache into this process, rather than when they are first called."""
    if _LATER.get() or numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return
    for call in calls:
        if _is_there(call) and call not in _loaded:
            _loaded.add(call)
            _compile_here(call)


def missing(calls: Iterable[KernelCall]) -> list[KernelCall]:
    """Those calls that would compile their kernel now, each kernel and combination of types once."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return []
    by_types = {(call.kernel, call.types): call for call in calls if call not in _ready}
    absent = [call for call in by_types.values() if not _is_there(call)]
    _ready.update(set(by_types.values()).difference(absent))
    return absent


def compile_for(
    shipment: Shipment, calls: Sequence[KernelCall], folder: Path, on_done: Callable[[], None]
) -> list[KernelCall]:
    """Compile kernels for other machines into a folder, which takes the place of `shipped.FOLDER` there. Returns those
    that could not be compiled. `on_done`: as for `compile_kernels`."""
    with TemporaryDirectory(dir=folder) as temporary:
        variables = {**shipment.variables(), cache.FOLDER: temporary}
        build.compile_calls(list(map(_request, calls)), build.workers(), on_done, variables)
        # A kernel contains those that it calls: they need no files.
        absent = [call for call in calls if not _ship(call, shipment, temporary, folder)]
    shipment.write(folder)
    return absent


def compile_kernels(calls: Iterable[KernelCall], on_done: Callable[[], None] = lambda: None) -> set[str]:
    """Compile kernels with all cores for which there is memory; names and types of all that was compiled, helpers too.

    Where no process can be started or files cannot be kept, this process compiles. `on_done` is called after each call,
    by several threads. A manifest that is out of date is a warning in the log: a kernel that it lacks, or has with other
    types, is compiled when it is called.
    """
    calls = list(calls)
    compiled: set[str] = set()
    workers = min(build.workers(), len(calls))
    if workers and calls[0].dispatcher._cache.can_be_written:
        compiled = build.compile_calls(list(map(_request, calls)), workers, on_done)
    for call in missing(calls):
        if _compile_here(call):
            compiled.add(f"{call.kernel}{call.numba_types}")
        on_done()
    return compiled


def _compile_here(call: KernelCall) -> bool:
    try:
        call.dispatcher.compile(call.numba_types)
    except (numba.core.errors.NumbaError, TypeError) as error:
        _warn(call, error)
        return False
    return True


def _warn(call: KernelCall, error: Exception) -> None:
    """Once for each call."""
    if call not in _ready:
        _ready.add(call)
        _LOG.warning("%s: %s\n%s", call, str(error).partition("\n")[0], RECORD_AGAIN)


def _is_there(call: KernelCall) -> bool:
    try:
        kernel = call.dispatcher
    except LookupError as error:
        _warn(call, error)
        return True
    types = call.numba_types
    return types in kernel.overloads or kernel._cache.has(types, kernel.targetctx)


def _ship(call: KernelCall, shipment: Shipment, compiled: str, folder: Path) -> bool:
    kernel = call.dispatcher
    return bool(kernel._cache.ship(call.numba_types, kernel.targetctx, shipment, compiled, folder))


def _request(call: KernelCall) -> dict[str, Any]:
    """The call as a worker reads it, with the bytes of bytecode of all functions that are compiled with it."""
    function = call.dispatcher.py_func
    return {
        "module": function.__module__,
        "name": function.__name__,
        "types": base64.b64encode(pickle.dumps(call.numba_types)).decode(),
        "parts": _parts(function),
    }


def _parts(function: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    waiting = [function]
    while waiting:
        kernel = waiting.pop()
        name = f"{kernel.__module__}.{kernel.__name__}"
        if name not in found:
            found[name] = len(kernel.__code__.co_code)
            called = (kernel.__globals__.get(each) for each in kernel.__code__.co_names)
            waiting += [each.py_func for each in called if hasattr(each, "py_func")]
    return found
