"""Places in a text from which another reader can go on with its elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Mark:
    """The beginning of a line, the number `line` (from 1), at byte `at`.

    `key`: that of the last element before it, whose rows may go on; 0: none. `scopes`: how many elements before it have had scopes
    of their own; `malformed`: how many pieces of the text before it were left out; `elements`: how many were read before it, the
    last one included.
    """

    at: int = 0
    line: int = 1
    key: int = 0
    scopes: int = 0
    malformed: int = 0
    elements: int = 0


class Marks:
    """The marks of a text while it is read from `begin` on. `last`: the last one that is known to be good.

    A mark is good once the element that had begun before it has been delivered, or left out.
    """

    def __init__(self, begin: Mark) -> None:
        self.begin = self.last = begin
        self._next: Mark | None = None
        self.now: Callable[[], tuple[int, bool, int] | None] = lambda: None
        """The reader's state between two blocks; see `ElementReader`."""

    def line_begins(self, at: int, line: int, malformed: int, elements: int) -> None:
        """All before this byte has been read."""
        found = self.now()
        self._next = None
        if found is None:
            return
        key, begun, scopes = found
        mark = Mark(at, line, key, scopes, malformed, elements)
        if begun:
            self._next = mark
        else:
            self.last = mark

    def delivered(self, *, timed: bool, scoped: bool) -> None:
        """The element that had begun is complete; one that is not `timed` is left out. `scoped`: it has a scope of its own."""
        if self._next is not None:
            self._next.elements += timed
            self._next.malformed += not timed
            self._next.scopes += scoped
            self.last, self._next = self._next, None
