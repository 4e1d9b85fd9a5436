"""The fixtures of all connectors' tests."""

from __future__ import annotations

from tests.formats.reading import source

__all__ = ["source"]
