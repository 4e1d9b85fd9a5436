"""The fixtures of all connectors' tests."""

from __future__ import annotations

from tests.connectors.reading import source

__all__ = ["source"]
