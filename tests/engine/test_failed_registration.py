"""An unexpected error anywhere in a registration leaves nothing of the query, and the engine goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from cqels_py.engine import registering
from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Query
from tests.engine.test_engine import PREFIX, STREAM, VALUES, texts

OTHER = "http://ex.org/other"
NEW = PREFIX + "SELECT ?s ?w { STREAM :s [RANGE 9us] { ?s :v ?v } STREAM <http://ex.org/other> [COUNT 2] { ?s :v ?w } }"
PACKAGE = str(Path(registering.__file__).parents[1])


class Unexpected(Exception):
    """No error of this package."""


def raising_at(number: int) -> Callable[[FrameType, str, Any], None]:
    """A profile function that raises at a call of this number, from 1, in `register_with` before the check of chaining."""
    left, inside = number, False

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left, inside
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        if inside and code.co_name == "check_chaining":
            sys.setprofile(None)
            return
        inside = inside or code is registering.register_with.__code__
        left -= inside
        if inside and not left:
            sys.setprofile(None)
            raise Unexpected

    return profile


def answers(engine: Engine, new: Query) -> list[Any]:
    """Of all queries, after some more elements."""
    for time in range(2, 6):
        for stream in (STREAM, OTHER):
            engine.push(stream, [texts("ab"[time % 2], time)], time=time)
    return [[(r.time, r.sign, str(r.bindings)) for r in each.results()] for each in (engine.queries[0], new)]


def begun() -> Engine:
    engine = Engine()
    engine.register(VALUES, changelog=True)
    engine.push(STREAM, [texts("a", 1)], time=1)
    return engine


def test_an_error_at_any_call() -> None:
    engine = begun()
    expected = answers(engine, engine.register(NEW))
    number, failed = 1, 0
    while True:
        engine = begun()
        before, streams = engine.queries, engine._registry.all_streams
        sys.setprofile(raising_at(number))
        try:
            query = engine.register(NEW)
        except Unexpected:
            failed += 1
            assert (engine.queries, engine._registry.all_streams) == (before, streams), number
            query = engine.register(NEW)
        else:
            break
        finally:
            sys.setprofile(None)
        assert answers(engine, query) == expected, number
        number += 23
    assert failed > 20
