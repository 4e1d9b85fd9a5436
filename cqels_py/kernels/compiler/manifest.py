"""The manifest: every kernel that Python code of the package calls, with the types of the call and the calling module.

It is recorded, not written by hand: `scripts/record_kernels` runs queries with kernels as plain Python and notes their
calls. One line of `cqels_py/kernels/manifest.txt` is one call, and the lines are sorted, so that a merge is settled by
recording again. Kernels that are called by kernels only are compiled with their callers and are not in it.

>>> call = KernelCall("cqels_py.state.key_table", "structures.hash_table.rebuild", ("int64[:]", "readonly uint8[:]"))
>>> str(call)
'cqels_py.state.key_table structures.hash_table.rebuild(int64[:]; readonly uint8[:])'
>>> parse(str(call)) == call
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent.parent / "manifest.txt"

RECORD_AGAIN = "record the manifest of kernels again: scripts/record_kernels"
"""The remedy when kernels have changed."""

_KERNELS = "cqels_py.kernels."
_BETWEEN = "; "
_LINE = re.compile(r"(\S+) ([\w.]+)\((.*)\)")
_ARRAY = re.compile(r"(readonly )?array\((\w+), ([12])d, C\)")
_TEXT = re.compile(r"(readonly )?(\w+)(\[:\]|\[:, :\])?")
_SHAPES = {"1": "[:]", "2": "[:, :]"}
_SCALARS = ("int64", "float64", "bool", "none")


@dataclass(frozen=True, slots=True, order=True)
class KernelCall:
    """A kernel with the types of its arguments. `caller`: the module that calls it; `kernel`: its name, without
    `cqels_py.kernels`; `types`: as numba's, in short: `int64`, `int64[:]` and `int64[:, :]` for contiguous arrays."""

    caller: str
    kernel: str
    types: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.caller} {self.kernel}({_BETWEEN.join(self.types)})"

    @property
    def dispatcher(self) -> Any:
        """numba's object for the kernel. LookupError if there is no such kernel."""
        module, _, name = self.kernel.rpartition(".")
        try:
            return getattr(import_module(_KERNELS + module), name)
        except (ImportError, AttributeError) as error:
            raise LookupError("there is no such kernel") from error

    @property
    def numba_types(self) -> tuple[Any, ...]:
        return tuple(map(_numba_type, self.types))


def recorded_call(caller: str, module: str, name: str, types: Iterable[Any]) -> KernelCall:
    """A call as it was observed. ValueError where a kernel is called with a kind of argument that kernels do not take."""
    return KernelCall(caller, f"{module.removeprefix(_KERNELS)}.{name}", tuple(map(_text, types)))


def parse(line: str) -> KernelCall:
    """A line of the manifest. ValueError if it is none."""
    found = _LINE.fullmatch(line.strip())
    if found is None:
        raise ValueError(f"{PATH.name}: {line.strip()!r} is no kernel call; {RECORD_AGAIN}")
    caller, kernel, types = found.groups()
    return KernelCall(caller, kernel, tuple(types.split(_BETWEEN)) if types else ())


@cache
def manifest() -> tuple[KernelCall, ...]:
    """All calls."""
    if not PATH.exists():
        return ()
    return tuple(map(parse, PATH.read_text(encoding="utf-8").splitlines()))


def write(calls: Iterable[KernelCall]) -> None:
    """Replace the manifest."""
    PATH.write_text("".join(f"{call}\n" for call in sorted(set(calls))), encoding="utf-8")
    manifest.cache_clear()


def _text(kind: Any) -> str:
    """
    >>> from numba import types
    >>> _text(types.Array(types.uint8, 1, "C", readonly=True)), _text(types.none)
    ('readonly uint8[:]', 'none')
    """
    name = str(kind)
    if array := _ARRAY.fullmatch(name):
        return f"{array[1] or ''}{array[2]}{_SHAPES[array[3]]}"
    if name not in _SCALARS:
        raise ValueError(f"a kernel takes contiguous arrays and numbers, not {name}")
    return name


@cache
def _numba_type(text: str) -> Any:
    """
    >>> _numba_type("readonly uint8[:]"), _numba_type("int64[:, :]"), _numba_type("bool")
    (Array(uint8, 1, 'C', True, aligned=True), Array(int64, 2, 'C', False, aligned=True), bool)
    """
    from numba import types

    found = _TEXT.fullmatch(text)
    assert found is not None, text
    readonly, name, shape = found.groups()
    kind = types.boolean if name == "bool" else getattr(types, name)
    return kind if shape is None else types.Array(kind, shape.count(":"), "C", readonly=readonly is not None)
