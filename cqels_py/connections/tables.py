"""The URLs of tables that are static data."""

from __future__ import annotations

import re
from typing import TypeGuard

_TABLE = re.compile(r"(sqlite|duckdb|postgres|postgresql):", re.IGNORECASE)


def is_table(given: object) -> TypeGuard[str]:
    """Is it the URL of a table? Other texts are paths.

    >>> is_table("sqlite:weather.db?map=rooms.rq#rooms"), is_table("rooms.ttl")
    (True, False)
    """
    return isinstance(given, str) and _TABLE.match(given) is not None
