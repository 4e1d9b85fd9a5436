"""An engine for one `run` after which the process ends, as of the command line."""

from __future__ import annotations

from cqels_py.engine.engine import Engine


def expect_run(engine: Engine) -> None:
    """Until `run` is called, time does not follow the clock."""
    engine._inputs.expects_run = True


def end_of_input(engine: Engine) -> None:
    """Deliver the results that `finish` would; the state can still be saved."""
    engine._end_input()
