"""What no plan can be made for, by name."""

from __future__ import annotations

from cqels_py.algebra.nodes import (
    Graph,
    Pattern,
    Service,
    Window,
)

_NAMES: dict[type, str] = {
    Service: "SERVICE is not supported yet: load the data with --static",
}


def refusal(pattern: Pattern) -> str:
    inner = pattern.pattern if isinstance(pattern, Window | Graph) else pattern
    found = _NAMES.get(type(inner))
    return found or f"{type(inner).__name__} is not supported here"
