"""Rows of instants that have not ended: the record of state/open_instant.py."""

from __future__ import annotations

ROWS, COUNT = range(2)
"""The arrays of the record: the times and the values of the rows, (1 + width, room), and how many rows there are (1)."""
