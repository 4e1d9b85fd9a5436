"""A part of a checkpoint that belongs to the program around the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cqels_py.engine.durable.left_out import LeftOut
from cqels_py.state.named_values import NamedValues

OF_FILE = "size or modification time of "
"""Before the absolute path of a file, its name in an identity: it may differ once malformed input has been mended."""


@dataclass(slots=True)
class Companion:
    """The folder of a checkpoint, for a program that keeps something of its own in step with the engine's state, such as an output.

    `identity`: whatever else has to be the same after a restart, by the names under which a difference is told. `state`: gives
    plain values for each snapshot. `restored`: those of the snapshot that the engine goes on from; None: the folder is new.
    `left_out`: queries that do not come back. `sync`: called before a snapshot is saved, in the thread that saves it: makes durable
    whatever the engine will not make again.
    """

    folder: Path
    identity: Mapping[str, str]
    state: Callable[[], NamedValues]
    restored: NamedValues | None = None
    sync: Callable[[], None] | None = None
    left_out: LeftOut = field(default_factory=LeftOut)
