"""Standard streams that were closed before the process began, as a shell does for `>&-`."""

from __future__ import annotations

import os
import sys


def open_missing() -> None:
    """Open each standard stream that is closed: Python has none then, and another file would get its number.

    Standard input cannot be read and standard output not written, so a command that uses them fails with a message. Messages
    that nobody can read are dropped.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
