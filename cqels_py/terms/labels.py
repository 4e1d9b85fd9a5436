"""The characters of blank nodes' labels, as RDF 1.2 has them, for kernels and Python."""

from __future__ import annotations

from typing import Final

LABEL_RANGES: Final = (
    *((0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040)),
    *((0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2FF), (0x370, 0x37D), (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F)),
    *((0x2C00, 0x2FEF), (0x3001, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFFD), (0x10000, 0xEFFFF)),
)
"""Code points beyond ASCII, each range from its first to its last one."""
INSIDE_LABELS: Final = 3
"""So many of the ranges have characters with which no label begins."""


def _class(ranges: tuple[tuple[int, int], ...]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_FIRST: Final = f"A-Za-z0-9_{_class(LABEL_RANGES[INSIDE_LABELS:])}"
_LATER: Final = f"{_FIRST}{_class(LABEL_RANGES[:INSIDE_LABELS])}-"
LABEL: Final = f"_:[{_FIRST}](?:[{_LATER}.]*[{_LATER}])?"
"""A pattern for a label with its mark."""
