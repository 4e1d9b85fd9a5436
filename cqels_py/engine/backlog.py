"""A sink whose results wait while the other side is away, so that only its own query waits for it.

the engine: write, flush ─ bytes ─ Spool ─ a thread: write, flush of the sink, again and again while they fail
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.checkpoints.packed import pack_terms, unpack_terms
from cqels_py.connections.retry import FIRST, Backoff
from cqels_py.dictionary import Dictionary
from cqels_py.engine.spool import Spool
from cqels_py.errors import RefusedResult, RunError
from cqels_py.sinks.protocol import Sink, SinkOpening

MAX_BACKLOG = 1 << 30
"""Bytes of results that may wait, unless the user says otherwise."""
_FLUSH, _COMMIT = b"flush", b"commit"
_HEAD = struct.Struct("<QQQB")
_COLLECT_FROM = 100_000
_MOMENT, _A_MOMENT = 5.0, 0.25
"""Seconds in which a sink that is closed, or waited for, has to get on."""
_LOG = logging.getLogger("cqels_py")


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many bytes of results may wait. With more, `goes_over` is asked with their number: True, they are taken nevertheless, as
    the query's sources are paused. Otherwise `full` is called: True, the query has been stopped; False, its makers wait.

    `keep_refused` makes a result that the other side refuses one of the rejects, at once, in the sink's thread, and returns whether
    `tell_refused` is to be called for it, by the thread that makes results. `folder`: where a file of waiting results may lie; None:
    where temporary files are.
    """

    most: int
    goes_over: Callable[[int], bool]
    full: Callable[[], bool]
    keep_refused: Callable[[RefusedResult], bool]
    tell_refused: Callable[[RefusedResult], None]
    folder: Path | None = None


class BackloggedSink:
    """Gives results to a sink in a thread of its own; they wait for it in a `Spool`.

    `open_` opens the sink for the results of `opening`; its exceptions are raised here. If its `flush` fails later with RunError, as
    when the other side is away for longer than it has patience, it is called again, ever more slowly; other exceptions are raised
    by the next call.
    """

    def __init__(self, open_: Callable[[SinkOpening], Sink], opening: SinkOpening, backlog: Backlog) -> None:
        self._from, self._own = opening.dictionary, Dictionary()
        self._variables = opening.variables
        self._backlog = backlog
        self._spool = Spool(backlog.folder)
        self._refused: deque[RefusedResult] = deque()
        # Held where the spool is used and `_rows` is changed: both threads do so.
        self._changed = threading.Condition()
        # Calls that have been given, and those that have been done; the position that the last commit has returned.
        self._given = self._done = 0
        self._position: object = None
        self._failure: BaseException | None = None
        self._open = True
        # Has the thread taken its last call? The spool is closed then.
        self._takes_none = False
        self._stopped = False
        # With which it fails now.
        self._fails: RunError | None = None
        # How many attempts have begun, and which was the last that failed.
        self._attempts = self._failed = 0
        self._last_was_flush = True
        self._ended = threading.Event()
        # The calls that had been done when `settle` last waited in vain.
        self._stuck = -1
        self._told = False
        # Results that the other side does not have, and those of them that the sink has collected.
        self._rows = self._collected = 0
        ready = threading.Event()
        own = replace(opening, dictionary=self._own, report=self._refuse)
        self._thread = threading.Thread(target=self._run, args=(open_, own, ready), name="cqels sink", daemon=True)
        self._thread.start()
        ready.wait()
        self._check()

    def settle(self) -> bool:
        """Wait as long as the sink gets on; has it all results then? One that does not get on is waited for once."""
        with self._changed:
            done = self._stuck
            while self._done < self._given and not (self._has_ended or self._fails) and done != self._done:
                done = self._done
                self._changed.wait_for(lambda: self._done >= self._given or self._fails is not None, _A_MOMENT)
            self._stuck = done if self._done < self._given and done == self._done else -1
            return self._done >= self._given and not self._rows

    @property
    def is_full(self) -> bool:
        """Do as many results wait as may?"""
        return self._spool.nbytes > self._backlog.most and not self._stopped and not self._has_ended

    def begin(self) -> None:
        """Call the sink before there are results."""
        self._add(_FLUSH)

    def leave(self) -> None:
        """As `close`, but nobody waits for it."""
        with self._changed:
            self._open = False
            self._ended.set()
            self._changed.notify_all()

    def has_closed(self, within: float) -> bool:
        """Wait so many seconds at most: has the sink been closed?"""
        self._thread.join(within)
        return not self._thread.is_alive()

    # --- called by the engine -----------------------------------------------------------------------------------------

    def write(self, batch: ResultBatch) -> None:
        """Let the results wait for the sink."""
        if self._stopped or not (count := len(batch)):
            return
        self._last_was_flush = False
        with self._changed:
            self._rows += count
        self._add(_packed(batch, self._from))

    def flush(self) -> None:
        """The sink will make them visible."""
        if not self._last_was_flush:
            self._last_was_flush = True
            self._add(_FLUSH)

    def commit(self) -> object:
        """Return when the sink has all results, and has committed them. RunError if an attempt fails that begins meanwhile."""
        if self._stopped:
            return None
        with self._changed:
            before = self._attempts
        self._add(_COMMIT)
        with self._changed:
            wanted = self._given
            self._changed.wait_for(lambda: self._done >= wanted or self._has_ended or self._failed > before)
            if self._done < wanted and self._fails is not None:
                raise self._fails
        self._check()
        return self._position

    @property
    def _has_ended(self) -> bool:
        return self._failure is not None or not self._open

    def close(self) -> None:
        """Close the sink. It gets the results that wait, unless it fails: then they are dropped, and a warning tells how many."""
        close_together([self])

    def _tell_dropped(self) -> None:
        with self._changed:
            if self._rows and not self._stopped and not self._told:
                self._told = True
                _LOG.warning(
                    "a sink has not taken %d results, which are dropped: it is closed while it fails", self._rows
                )

    def _add(self, content: bytes) -> None:
        self._check()
        while self._spool.nbytes > self._backlog.most and self._open:
            if self._backlog.goes_over(self._spool.nbytes):
                break
            if self._backlog.full():
                self._stopped = True
                return
            with self._changed:
                self._changed.wait_for(lambda: self._spool.nbytes <= self._backlog.most or self._has_ended)
            self._check()
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if not self._takes_none:
                self._spool.add(content)
                self._given += 1
                self._changed.notify_all()

    def _check(self) -> None:
        while self._refused:
            self._backlog.tell_refused(self._refused.popleft())
        if self._failure is not None:
            raise self._failure

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self, open_: Callable[[SinkOpening], Sink], opening: SinkOpening, ready: threading.Event) -> None:
        sink: Sink | None = None
        try:
            sink = open_(opening)
            ready.set()
            while (content := self._next()) is not None:
                self._do(sink, content)
                with self._changed:
                    self._done += 1
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()
            ready.set()
        finally:
            with self._changed:
                self._takes_none = True
                self._spool.close()
            try:
                if callable(close := getattr(sink, "close", None)):
                    close()
            finally:
                self._tell_dropped()

    def _next(self) -> bytes | None:
        """The next call; None: no more come."""
        with self._changed:
            while (content := self._spool.take()) is None and self._open:
                self._changed.wait()
            return content

    def _do(self, sink: Sink, content: bytes) -> None:
        if content == _FLUSH:
            self._patiently(sink.flush)
            self._flushed()
            if len(self._own) > _COLLECT_FROM:
                # A sink decodes results when they are written.
                self._own.collect(())
        elif content == _COMMIT:
            # A commit that fails may lack results that have not been flushed.
            self._patiently(sink.flush)
            self._flushed()
            self._position = sink.commit()
        else:
            batch = _unpacked(content, self._variables, self._own)
            sink.write(batch)
            self._collected += len(batch)

    def _refuse(self, error: RefusedResult) -> None:
        # Before the sink commits it.
        if self._backlog.keep_refused(error):
            self._refused.append(error)

    def _flushed(self) -> None:
        with self._changed:
            self._rows -= self._collected
        self._collected = 0

    def _patiently(self, call: Callable[[], object]) -> None:
        backoff = Backoff(sleep=self._ended.wait, _pause=FIRST)
        while True:
            with self._changed:
                self._attempts += 1
            try:
                call()
                break
            except RunError as error:
                if self._fails is None:
                    _LOG.warning("%s; results wait, and it is tried again", error.message)
                self._tell_failing(error)
                if not self._open:
                    raise
                backoff.wait()
        if self._fails is not None:
            self._tell_failing(None)
            _LOG.warning("a sink takes results again, which have waited for it")

    def _tell_failing(self, error: RunError | None) -> None:
        if error is not self._fails:
            with self._changed:
                self._fails = error
                if error is not None:
                    self._failed = self._attempts
                self._changed.notify_all()


def close_together(sinks: Sequence[BackloggedSink]) -> None:
    """Close sinks, and wait for them as long as any of them gets on."""
    for sink in sinks:
        sink.leave()
    done = -1
    while (open_ := [sink for sink in sinks if not sink.has_closed(0)]) and done != (
        now := sum(s._done for s in sinks)
    ):
        done = now
        until = time.monotonic() + _MOMENT
        for sink in open_:
            sink.has_closed(max(0.0, until - time.monotonic()))
    for sink in sinks:
        sink._tell_dropped()


def _packed(batch: ResultBatch, dictionary: Dictionary) -> bytes:
    ids = np.concatenate([np.zeros(0, np.int64), *batch.columns])
    ticks = b"" if batch.tick is None else np.ascontiguousarray(batch.tick, np.int32).tobytes()
    head = _HEAD.pack(len(batch), len(batch.columns), batch.number, batch.tick is not None)
    return b"".join(
        (
            head,
            np.ascontiguousarray(batch.time, np.int64).tobytes(),
            np.ascontiguousarray(batch.sign, np.int8).tobytes(),
            ticks,
            *pack_terms(ids, dictionary),
        )
    )


def _unpacked(content: bytes, variables: tuple[str, ...], dictionary: Dictionary) -> ResultBatch:
    count, width, number, has_ticks = _HEAD.unpack_from(content)
    # Copies, as kernels are compiled for arrays that can be written.
    at = _HEAD.size
    time = np.frombuffer(content, np.int64, count, at).copy()
    at += time.nbytes
    sign = np.frombuffer(content, np.int8, count, at).copy()
    at += sign.nbytes
    tick = None
    if has_ticks:
        tick = np.frombuffer(content, np.int32, count, at).copy()
        at += tick.nbytes
    ids = unpack_terms(memoryview(content)[at:], dictionary).reshape(width, count)
    return ResultBatch(variables, time, sign, tuple(ids), tick, number)
