"""The inputs of an engine, by its options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cqels_py.engine.durable.companion import Companion
from cqels_py.engine.durable.inputs import Inputs
from cqels_py.engine.durable.logged import LoggedInputs
from cqels_py.errors import UsageError

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine


def opened(engine: Engine, folder: object, durable: str, options: Mapping[str, object]) -> Inputs:
    """The inputs of an engine: logged in the folder, if there is one."""
    if folder is None:
        return Inputs()
    if isinstance(folder, Companion):
        return LoggedInputs(engine, folder.folder, durable, options, folder)
    if not isinstance(folder, str | Path):
        raise UsageError(f"checkpoint is a folder, not {folder!r}")
    return LoggedInputs(engine, Path(folder), durable, options, None)
