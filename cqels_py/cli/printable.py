"""Texts of others on a terminal, which takes some characters for commands."""

from __future__ import annotations

_CONTROLS = {code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_BUT_LINES = {code: text for code, text in _CONTROLS.items() if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """A text of one line with escapes in the place of control characters, as N-Triples writes them.

    >>> printable("\\x1b[2J\\x9b2J and\\n")
    '\\\\u001b[2J\\\\u009b2J and\\\\u000a'
    """
    return text if text.isprintable() else text.translate(_CONTROLS)


def printable_lines(text: str) -> str:
    """A text of several lines, whose ends and tabs stay, with escapes in the place of other control characters."""
    return text.translate(_BUT_LINES)
