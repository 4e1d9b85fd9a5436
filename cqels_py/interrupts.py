"""Signals that end a program wait until a step of the engine is complete.

Python runs the handler of a signal between any two operations of the main thread, so the KeyboardInterrupt of Ctrl-C could
leave an engine in the middle of a step, with an inconsistent state. Here the handler checks whether the main thread is in a step:
then the exception is kept, and raised when the step is complete. A second signal is raised at once, wherever the program is, so
that a step or a subscriber that hangs can be ended; if it was a step of the engine, the engine has failed.

To block signals, or to exchange the handler, for each step costs two system calls, about a microsecond a push. Instead the
handler stays while an engine is open, and finds steps by the frames of the interrupted thread: a step only checks that the
handler is in place and that nothing was kept, which costs a tenth of that. The handler replaces only Python's own handler of
SIGINT: a program that has set another one keeps it (a handler that raises in the middle of a step makes the engine fail; one that
sets a flag is the way to end a loop of pushes). An event loop that is started while an engine is open finds a handler in place
and leaves it there, so Ctrl-C there raises KeyboardInterrupt instead of cancelling its main task.

A signal that comes just before a read that waits would be handled only when something can be read: the system interrupts calls
that have begun, and Python looks for signals only after them. `wait_to_read` waits for either.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from importlib import import_module
from types import CodeType, FrameType, FunctionType
from typing import ParamSpec, TypeVar, cast

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Handler = Callable[[int, FrameType | None], object]

# `_signal.getsignal` instead of `signal.getsignal`, which looks the handler up in an enumeration: that takes 7 microseconds.
_handler_of: Callable[[int], object] = import_module("_signal").getsignal
_SIGINT, _DEFAULT = int(signal.SIGINT), signal.default_int_handler
_STEPS: set[CodeType] = set()
_users: weakref.WeakSet[object] = weakref.WeakSet()
_kept: list[Callable[[], object]] = []
"""The call that raises an exception at the end of the main thread's step: at most one."""
_announcements: list[int] = []
"""The pipe that gets a byte for each signal, if there is one: at most one file descriptor."""
_SIGNALS_AT_ONCE = 64


class Signalled(KeyboardInterrupt):
    """The program is to end by a signal other than SIGINT."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


def undisturbed(method: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """The method as a step, or a part of one: exceptions of signals are raised at the end of the outermost one."""

    @wraps(method)
    def step(*arguments: Given.args, **named: Given.kwargs) -> Answer:
        if _handler_of(_SIGINT) is _DEFAULT:
            _install()
        try:
            return method(*arguments, **named)
        finally:
            # Nothing is called between this check and the end of the step, so no signal is kept too late to be raised.
            if _kept:
                _raise_kept()

    # All steps share it.
    _STEPS.add(cast(FunctionType, step).__code__)
    return step


def use(user: object) -> None:
    """`user` is going to run steps; the handler stays until `user` is deleted, or passed to `done`."""
    # In this order: of several weak references to one object, the callback of the newest is called first.
    weakref.finalize(user, _restore).atexit = False
    _users.add(user)


def done(user: object) -> None:
    """`user` runs no more steps."""
    _users.discard(user)
    _restore()


@contextmanager
def raised(*signals: signal.Signals) -> Iterator[None]:
    """Inside, these signals raise Signalled, between steps, where they would end the process; in the main thread only."""
    mine = [each for each in signals if _is_main() and signal.getsignal(each) == signal.SIG_DFL]
    for each in mine:
        signal.signal(each, _when_possible(_raise_signalled))
    try:
        with _announced():
            yield
    finally:
        for each in mine:
            signal.signal(each, signal.SIG_DFL)


def wait_to_read(file: int, timeout: float | None = None) -> bool:
    """Wait until a pipe or a terminal can be read, or has ended. The exception of a signal in `raised` is raised here.

    `timeout`: wait no longer than so many seconds; False if nothing can be read then.
    """
    announcements = _announcements if _is_main() else []
    if not hasattr(select, "poll") or (timeout is None and not announcements):
        return True
    poll = select.poll()
    for each in (file, *announcements):
        poll.register(each, select.POLLIN)
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = None if end is None else max(0.0, end - time.monotonic())
        if file in dict(poll.poll(None if left is None else math.ceil(left * 1_000))):
            return True
        if end is not None and time.monotonic() >= end:
            return False
        for each in announcements:
            # The handlers have been called before the next iteration.
            with suppress(BlockingIOError):
                os.read(each, _SIGNALS_AT_ONCE)


@contextmanager
def _announced() -> Iterator[None]:
    """Inside, each signal writes a byte to a pipe, unless an event loop already uses its own pipe; in the main thread only."""
    if not _is_main() or not hasattr(select, "poll"):
        yield
        return
    told, teller = os.pipe()
    try:
        os.set_blocking(told, False)
        os.set_blocking(teller, False)
        earlier = signal.set_wakeup_fd(teller, warn_on_full_buffer=False)
        if earlier == -1:
            _announcements.append(told)
        else:
            signal.set_wakeup_fd(earlier)
        try:
            yield
        finally:
            if earlier == -1:
                _announcements.remove(told)
                signal.set_wakeup_fd(-1)
    finally:
        os.close(told)
        os.close(teller)


def _raise_signalled(signum: int, frame: FrameType | None) -> None:
    raise Signalled(signum)


def _when_possible(handler: Handler) -> Handler:
    """A handler that calls this one: at once, or at the end of the step that the main thread is in."""

    def handle(signum: int, frame: FrameType | None) -> object:
        if _kept or not _in_step(frame):
            _kept.clear()
            return handler(signum, frame)
        _kept.append(lambda: handler(signum, None))
        return None

    return handle


_interrupt = _when_possible(signal.default_int_handler)


def _install() -> None:
    if _is_main():
        signal.signal(signal.SIGINT, _interrupt)


def _restore() -> None:
    if not _users and _is_main() and _handler_of(_SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _raise_kept() -> None:
    """Unless this is another thread's step, or one within another."""
    if _is_main() and not _in_step(sys._getframe(2)):
        _kept.pop()()


def _in_step(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code in _STEPS:
            return True
        frame = frame.f_back
    return False


def _is_main() -> bool:
    return threading.get_ident() == threading.main_thread().ident
