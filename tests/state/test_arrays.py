"""How arrays lie in memory, and what the process keeps of it."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import pytest

from cqels_py.state.arrays import aligned

STEPS = """
import resource
import numpy as np
from cqels_py.state.arrays import keep_freed_memory
if {keep}:
    keep_freed_memory()
def faults_of_steps(steps):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(steps):
        arrays = [np.ones(100_000, np.int8) for _ in range(20)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults_of_steps(3)
print(faults_of_steps(100))
"""


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("places", [0, 1, 1000])
def test_aligned_arrays_begin_with_a_line(places: int, dtype: type[np.int32] | type[np.int64]) -> None:
    array = aligned(places, dtype)
    assert len(array) == places
    assert array.dtype == dtype
    assert not array.any()
    assert places == 0 or array.ctypes.data % 64 == 0


def pages_cleared(keep: bool) -> int:
    """In a hundred steps, each of which leaves two megabytes in small arrays."""
    run = subprocess.run(
        [sys.executable, "-c", STEPS.format(keep=keep)], capture_output=True, text=True, check=True, timeout=60
    )
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other ways")
def test_steps_keep_the_memory_that_their_arrays_leave() -> None:
    assert pages_cleared(keep=True) < 1_000 < 10_000 < pages_cleared(keep=False)
