"""Rows at the front of an array that has room for more: the record of state/kept_rows.py."""

from __future__ import annotations

ROWS, COUNT = range(2)
"""The arrays of the record: the rows (room, width), and how many there are (1)."""
