"""The console script `cqels`, and `python -m cqels_py`."""

from __future__ import annotations

from importlib import import_module

# The module behind `signal`, whose own import takes longer than everything else here.
_signal = import_module("_signal")


def run() -> None:
    """Run this process's command line, and end the process.

    While modules are imported, Ctrl-C ends the process silently by the signal, with status 130 in a shell. Python's own handler
    would print a traceback. A handler that is not Python's own stays.
    """
    own = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
    if own:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from cqels_py.cli.main import run as run_command

    if own:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    run_command()


if __name__ == "__main__":
    run()
