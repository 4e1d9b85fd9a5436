"""Input that comes while it is read, from standard input or a pipe: how long to wait for it, and since when there is none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from cqels_py.interrupts import wait_to_read

PAUSE: Final = 0.02
"""Seconds after which a poll of a single live source that found nothing returns."""
_BRIEFLY = 0.01
"""Seconds for which an idle input is waited for: others have elements meanwhile."""


class InputWait:
    """The wait of one reader for more input.

    `flush_after`: seconds without input after which an element that has begun is complete, if the input stands at a line's end;
    None: never. `interval`: the reader says that there is nothing, by an empty chunk, after so many seconds at the latest; None: it
    waits. `idle_after`: seconds without input after which other inputs do not wait for this one.

    `at_rest`: where the input had nothing, was everything before complete? The reader says so; input that comes ends it.
    """

    def __init__(
        self, flush_after: float | None = None, idle_after: float | None = None, interval: float | None = None
    ) -> None:
        self._flush_after = flush_after
        self._idle_after = idle_after
        self._interval = interval
        self._since = time.monotonic()
        self._in_line = False
        self._flushed = True
        self.at_rest = False

    @property
    def pause(self) -> float:
        """Seconds after which a poll that found nothing returns an empty batch."""
        return PAUSE if self._interval is None else self._interval

    @property
    def quiet(self) -> float:
        """Seconds since the last input."""
        return time.monotonic() - self._since

    @property
    def flush_due(self) -> bool:
        """Is an element that has begun complete? True once after each input."""
        if self._flush_after is None or not self.flush_comes or self.quiet < self._flush_after:
            return False
        self._flushed = True
        return True

    @property
    def flush_comes(self) -> bool:
        """Will an element that has begun be complete soon, if nothing comes?"""
        return self._flush_after is not None and not (self._flushed or self._in_line)

    @property
    def idle(self) -> bool:
        """Has there been no input for so long that others do not wait for it?"""
        return self._idle_after is not None and self.quiet >= self._idle_after

    def came(self, chunk: bytes) -> None:
        """There is input."""
        self._since, self._flushed, self._in_line = time.monotonic(), False, not chunk.endswith(b"\n")
        self.at_rest = False

    def chunks(self, file: Any, chunk_bytes: int) -> Iterator[bytes]:
        """The bytes of a buffered file, as they come, at most `chunk_bytes` at a time; empty where nothing comes."""
        number = None
        # Not every input has a file.
        with suppress(AttributeError, OSError, ValueError):
            number = file.fileno()
        empty = True
        while True:
            if empty and number is not None and not wait_to_read(number, self._timeout()):
                yield b""
                continue
            chunk = file.read1(chunk_bytes)
            if not chunk:
                return
            self.came(chunk)
            yield chunk
            empty = len(chunk) < chunk_bytes

    def _timeout(self) -> float | None:
        """Seconds to wait; None: until there is input."""
        found = [] if self._interval is None else [_BRIEFLY if self.idle else self._interval]
        if self._flush_after is not None and self.flush_comes:
            found.append(max(0.0, self._flush_after - self.quiet))
        return min(found, default=None)
