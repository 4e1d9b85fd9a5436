"""Input that becomes no statement without being malformed, told and counted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

_LOG = logging.getLogger("cqels_py")
NO_IRI, EMPTY = "no IRI", "empty"
"""What is counted: values of JSON-LD whose statements would have a term that is none, and elements without triples."""
MOST_SHOWN = 100
"""The number of different messages of a source that are shown."""


class Omissions:
    """The omissions of one source. `show` gets each message once, MOST_SHOWN of them; `count` gets NO_IRI or EMPTY, each time.

    Threads may use it at the same time.
    """

    def __init__(self, show: Callable[[str], object], count: Callable[[str], object] = lambda reason: None) -> None:
        self._show = show
        self._count = count
        self._shown: set[str] = set()
        self._lock = Lock()

    def left_out(self, message: str) -> None:
        """A value of JSON-LD that has no place in RDF. The message has the name that makes no IRI, and not the value."""
        with self._lock:
            self._count(NO_IRI)
            if message in self._shown or len(self._shown) > MOST_SHOWN:
                return
            self._shown.add(message)
            if len(self._shown) > MOST_SHOWN:
                message = f"{MOST_SHOWN} names that make no IRI have been shown; values of others are counted"
            self._show(message)

    def empty(self) -> None:
        """An element without triples."""
        with self._lock:
            self._count(EMPTY)


def logged_omissions() -> Omissions:
    """For readers without statistics: messages go to the logger."""
    return Omissions(_LOG.warning)
