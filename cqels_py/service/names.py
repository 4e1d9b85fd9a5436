"""Names of streams and queries, which are segments of paths, and texts that stand in headers."""

from __future__ import annotations

import re

from cqels_py.errors import UsageError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")

VISIBLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
"""The values that a header can have everywhere: ASCII without control characters, and without spaces around it."""


def checked_name(name: str) -> str:
    """The name of a stream or a query. UsageError for one that is none."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name: it has 1 to 100 letters, digits, '_', '-' and '.', and begins with a letter or a digit"
        )
    return name
