"""Faults in the middle of a micro-batch, where Spark's workers are. They import this module."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from cqels_py.runners.spark.stage import Job


class Faulty:
    """A job in whose micro-batch number `batch` something happens, as long as there are files in the folder `faults`.

    It happens once for each file, after the state of a part of the stage was loaded and before anything is saved.
    """

    def __init__(self, job: Job, batch: int, faults: Path, stage: int = 0) -> None:
        self.job = job
        self.batch = batch
        self.faults = faults
        self.stage = stage

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["job"], name)

    @property
    def in_order(self) -> bool:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            # Called by the driver, where nothing happens.
            return self.job.in_order
        evaluated = sys._getframe(1).f_locals.get("stage")
        if context.getLocalProperty("streaming.sql.batchId") == str(self.batch) and evaluated == self.stage:
            note_attempt(self.faults.parent / "attempts", context.partitionId(), context.attemptNumber())
            for fault in sorted(self.faults.iterdir()):
                try:
                    fault.unlink()
                except FileNotFoundError:
                    # It has happened in another partition.
                    continue
                happen(fault.name)
        return self.job.in_order


def note_attempt(path: Path, part: int, attempt: int) -> None:
    """Lines of so few bytes are appended as a whole."""
    with path.open("a") as file:
        file.write(f"{part}: {attempt}\n")


def happen(name: str) -> None:
    if name == "hang":
        # Until Spark ends the worker, as another attempt has been faster.
        time.sleep(120)
    if name.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    raise OSError(f"{name} in the middle of a micro-batch")
