"""Compiled kernels that come with the package, for processors of a common kind: `cqels compile --target x86-64-v3 --into DIR`.

They lie in the package, a folder for each of its folders of kernels, with the names and the contents of a machine's own
cache, but for another machine: the target. They are used by processors that have all that the target needs, with the
version of numba that compiled them; elsewhere kernels are compiled, and `why_not` says why.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

import llvmlite  # type: ignore[import-untyped]
import llvmlite.binding  # type: ignore[import-untyped]
import numba

FOLDER: Final = Path(__file__).parent.parent / "shipped"
"""Where a wheel has them. The repository has none."""

_ABOUT: Final = "about.json"

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
TARGETS: Final[Mapping[str, tuple[str, ...]]] = {
    "x86-64-v2": _V2,
    "x86-64-v3": (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
    "generic": (),
}
"""Processors to compile for, with the features that they need; "generic": any of this machine's family (aarch64: untried)."""


@dataclass(frozen=True, slots=True)
class Shipment:
    """The versions with which kernels were compiled, and their processors."""

    target: str
    triple: str
    numba: str
    llvmlite: str
    python: str

    @staticmethod
    def made_here(target: str) -> Shipment:
        return Shipment(target, _triple(), numba.__version__, llvmlite.__version__, _python())

    @property
    def machine(self) -> tuple[str, str, str]:
        """The target, as numba's cache names machines: without features beyond those of the target."""
        return self.triple, self.target, ""

    def variables(self) -> dict[str, str]:
        """Environment variables by which numba compiles for the target."""
        return {"NUMBA_CPU_NAME": self.target, "NUMBA_CPU_FEATURES": ""}

    def obstacle(self) -> str | None:
        """Why the kernels cannot be used here; None if they can."""
        here = Shipment.made_here(self.target)
        for name, theirs, ours in zip(asdict(here), asdict(self).values(), asdict(here).values(), strict=True):
            if theirs != ours:
                return f"they were compiled for {name} {theirs}, and this is {ours}"
        features = llvmlite.binding.get_host_cpu_features()
        lacking = [feature for feature in TARGETS.get(self.target, ()) if not features.get(feature)]
        return f"they need a processor with {', '.join(lacking)}" if lacking else None

    def write(self, folder: Path) -> None:
        (folder / _ABOUT).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")


def folder_of(module: Path, shipment: Path = FOLDER) -> Path:
    """The folder for the kernels of a module, by its file."""
    return shipment / module.parent.relative_to(FOLDER.parent)


@cache
def usable() -> Shipment | None:
    """The kernels that came with the package, if this machine can use them."""
    found = _found()
    return None if found is None or found.obstacle() is not None else found


@cache
def why_not() -> str | None:
    """Why the kernels that came with the package are not used; None if they are, or if none came."""
    found = _found()
    return None if found is None else found.obstacle()


def _found() -> Shipment | None:
    try:
        return Shipment(**json.loads((FOLDER / _ABOUT).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _triple() -> str:
    triple: str = llvmlite.binding.get_process_triple()
    return triple


def _python() -> str:
    return f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}"
