"""Runs over sources that never end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cqels_py.engine.engine import Engine, Statistics


class _Enough(Exception):
    pass


def run_until(engine: Engine, sources: Mapping[str, Any], is_enough: Callable[[Statistics], bool], **how: Any) -> None:
    """Run the sources until that is so, after a batch or where nothing comes. `how`: further arguments of `run`."""

    def progress(statistics: Statistics) -> None:
        if is_enough(statistics):
            raise _Enough

    with pytest.raises(_Enough):
        engine.run(sources, progress=progress, **how)


def run_committed(engine: Engine, sources: Mapping[str, Any], elements: int) -> None:
    """Run the sources, committing after each batch, until so many elements have been taken in."""

    def is_enough(statistics: Statistics) -> bool:
        engine.commit()
        return statistics.elements >= elements

    run_until(engine, sources, is_enough)
