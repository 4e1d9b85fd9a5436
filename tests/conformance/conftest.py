"""Every way to run a test has the same query, and most of the time goes into reading it: each text is read once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pytest

import cqels_py.engine.compile
import cqels_py.parser
from cqels_py.algebra import nodes

_read = cqels_py.parser.parse


@lru_cache(maxsize=1000)
def _read_once(text: str) -> nodes.ContinuousQuery:
    return _read(text)


@pytest.fixture(autouse=True, scope="module")
def reading_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cqels_py.parser, "parse", lambda text: _read_once(text))
        patch.setattr(cqels_py.engine.compile, "parse", lambda text, source, rules: _read_once(text))
        yield
