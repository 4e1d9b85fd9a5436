"""What no plan can be made for, by name."""

from __future__ import annotations

from cqels_py.algebra.nodes import (
    Graph,
    OrderBy,
    Pattern,
    Service,
    Slice,
    Window,
)

_NAMES: dict[type, str] = {
    Service: "SERVICE is not supported yet: load the data with --static",
    OrderBy: "ORDER BY without LIMIT is not supported yet: a stream of changes has no order; add a LIMIT",
    Slice: "LIMIT and OFFSET without ORDER BY are not supported: which rows they keep would be arbitrary; add ORDER BY",
}


def refusal(pattern: Pattern) -> str:
    inner = pattern.pattern if isinstance(pattern, Window | Graph) else pattern
    found = _NAMES.get(type(inner))
    return found or f"{type(inner).__name__} is not supported here"
