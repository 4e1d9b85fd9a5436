"""Indices of kernels are unsigned: none counts from the end, and none is checked for that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import cqels_py.kernels
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.unsigned_indices import UnsignedIndices

_KERNELS = sorted(Path(cqels_py.kernels.__path__[0]).glob("*.py"))


def _move(places, values, table, out):  # type: ignore[no-untyped-def]
    for i in range(len(places)):
        out[places[i]] = values[places[i]] + table[places[i] >> 1, places[i] & 1]
    return out[1:3].sum()


def _arguments() -> tuple[Any, ...]:
    places, table = np.array([3, 0, 2, 1], np.int32), np.arange(8).reshape(4, 2)
    return places, np.array([10, 20, 30, 40]), table, np.zeros(4, np.int64)


def test_compiled_indices_mean_what_they_do_in_python() -> None:
    found, wanted = _arguments(), _arguments()
    assert jit_flat(_move)(*found) == _move(*wanted)
    assert found[-1].tolist() == wanted[-1].tolist() == [10, 21, 32, 43]


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="there is no compiled code")  # type: ignore[attr-defined]
def test_no_compiled_index_is_checked() -> None:
    assert _choices(pipeline_class=UnsignedIndices) < _choices()


def _choices(**options: Any) -> int:
    """How often a value is chosen in the compiled code; what is loaded from files cannot be asked."""
    kernel: Any = numba.njit(error_model="numpy", **options)(_move)
    kernel(*_arguments())
    (text,) = kernel.inspect_llvm().values()
    return int(text.count(" select "))


@pytest.mark.parametrize("path", _KERNELS, ids=lambda path: str(path.stem))
def test_no_kernel_has_a_constant_index_from_the_end(path: Path) -> None:
    assert [ast.unparse(each) for each in _from_the_end(ast.parse(path.read_text()))] == []


def _from_the_end(tree: ast.AST) -> Iterator[ast.Subscript]:
    """Subscripts with a constant that is negative, in functions that are compiled."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(
            "jit" in ast.unparse(each) for each in function.decorator_list
        ):
            for node in ast.walk(function):
                if isinstance(node, ast.Subscript) and any(map(_is_negative, _indices(node.slice))):
                    yield node


def _indices(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _is_negative(index: ast.expr) -> bool:
    return isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
