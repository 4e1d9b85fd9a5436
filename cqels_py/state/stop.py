"""Evaluations that end before they are complete: a step may take very long, and others can end it."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Stopped(Exception):
    """Nobody wants the results of an evaluation any more."""


class Wanting(Protocol):
    """Knows who wants which results."""

    def wants(self, source: object) -> bool:
        """Does somebody want the results of this source?"""
        ...


class Stop:
    """How another thread asks an evaluation to stop.

    `word` (1): not 0 from when somebody asks until the evaluation looks. A kernel whose work has no bound looks at it in its outer
    loop, and returns where it can go on.
    """

    __slots__ = ("_source", "_wanting", "word")

    def __init__(self) -> None:
        self.word = np.zeros(1, np.int64)
        self._wanting: Wanting | None = None
        self._source: object = None

    def ask(self, wanting: Wanting, source: object) -> None:
        """Stop, unless somebody wants the results of the source, as the evaluation itself finds out. For any thread."""
        self._wanting, self._source = wanting, source
        self.word[0] = 1

    def look(self) -> None:
        """Called between two parts of the work: raises Stopped if somebody has asked, and nobody wants the results."""
        if self.word[0]:
            # First: who asks meanwhile is heard the next time.
            self.word[0] = 0
            if self._wanting is not None and not self._wanting.wants(self._source):
                raise Stopped("it was asked for")
