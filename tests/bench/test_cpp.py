"""The yardsticks in C++ (that they agree with all others is test_agreement.py's)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.arrivals import MANY, Setting
from bench.contest import IN_CPP, SAME_RETRACTING, SAME_WORK
from bench.kernels.cpp import library
from bench.kernels.cpp.yardsticks import InCpp, in_cpp

needs_compiler = pytest.mark.skipif(library.compiler() is None, reason=f"there is no {library.COMPILER}")


@needs_compiler
@pytest.mark.parametrize("name", ["ring", "star", "chain", "average", "minimum", "distinct", "negation", "sums"])
def test_each_yardstick_competes(name: str) -> None:
    withdrawing = [SAME_RETRACTING] if name in ("star", "chain") else []
    assert [entry.name for entry in in_cpp(name)] == [IN_CPP, SAME_WORK, *withdrawing]


@needs_compiler
def test_a_key_beyond_its_room_is_an_error() -> None:
    """The room follows from even draws; here all arrivals have one key of many."""
    setting = Setting("uneven", 1000, 1000, (MANY,) * 3, batch=3000)
    batch = setting.arrivals(seed=1).batch()
    batch.columns[0] = batch.columns[0, 0]
    with pytest.raises(RuntimeError, match="room"):
        list(InCpp("star", setting, 4).take(batch))


def test_without_a_compiler_it_is_left_out_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "COMPILER", "no-such-compiler")
    library.version.cache_clear()
    assert in_cpp("star") == []
    assert library.version() == "left out: there is no no-such-compiler"
    library.version.cache_clear()


@needs_compiler
def test_a_library_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library.library.cache_clear()
    library.library("negation")
    (built,) = (tmp_path / "cqels_py" / "cpp").glob("*.so")
    written = built.stat().st_mtime_ns
    library.library.cache_clear()
    library.library("negation")
    assert built.stat().st_mtime_ns == written
    library.library.cache_clear()
