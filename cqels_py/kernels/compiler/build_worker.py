"""A process that compiles kernels on request: `python -m cqels_py.kernels.compiler.build_worker`.

Each line of standard input is a kernel with the types of a call, as `recording` writes it. The answer is a line of
standard output: the kernels that had to be compiled, names with types, as a JSON list. The compiled kernels are left in
the cache that all processes share.
"""

from __future__ import annotations

import base64
import gc
import json
import os
import pickle
import sys
from contextlib import suppress
from importlib import import_module

from numba.core import event


class _Compiled(event.Listener):
    def __init__(self) -> None:
        self.kernels: list[str] = []

    def on_start(self, event: event.Event) -> None:
        """Only finished compilations count."""

    def on_end(self, event: event.Event) -> None:
        function = event.data["dispatcher"].py_func
        self.kernels.append(f"{function.__module__}.{function.__name__}{event.data['args']}")


def main() -> None:
    """Serve requests until standard input ends, at the latest when the process ends that started this one."""
    # A compiler allocates many objects and few cycles: collecting garbage would take an eighth of the time.
    gc.disable()
    with (
        os.fdopen(os.dup(1), "w", encoding="utf-8") as answers,
        event.install_listener("numba:compile", _Compiled()) as done,
    ):
        os.dup2(2, 1)
        for line in sys.stdin:
            # A kernel that fails to compile raises where it is called.
            with suppress(Exception):
                compile_call(line)
            answers.write(json.dumps(done.kernels) + "\n")
            answers.flush()
            done.kernels.clear()


def compile_call(line: str) -> None:
    """Compile one kernel for the types of one call, or load it from the cache."""
    call = json.loads(line)
    getattr(import_module(call["module"]), call["name"]).compile(pickle.loads(base64.b64decode(call["types"])))


if __name__ == "__main__":
    main()
