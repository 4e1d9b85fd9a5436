"""Arrays between tasks and in the log: compressed where that saves something, and read back as they were."""

from __future__ import annotations

import numpy as np
import pytest

from cqels_py.runners.spark.packing import packed, packed_list, unpacked, unpacked_list


@pytest.mark.parametrize("count", [0, 3, 5000])
def test_what_is_read_is_what_was_packed(count: int) -> None:
    arrays = {"ids": np.arange(count) * 7919, "texts": np.arange(count).astype(np.uint8), "none": None}
    found, plain = unpacked(packed(arrays, {"needed": count}))
    assert plain == {"needed": count}
    assert {name: each.tolist() for name, each in found.items()} == {
        name: each.tolist() for name, each in arrays.items() if each is not None
    }
    assert all(each.flags.writeable and each.flags.aligned for each in found.values())


FAR = np.iinfo(np.int64)
DRAWN = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("array", "bytes_each"),
    [
        (np.arange(3000) + FAR.min, 1.1),
        (np.arange(3000)[::-1] * 200 - 7, 2.1),
        (np.cumsum(DRAWN.integers(-128, 128, 3000)), 1.1),
        (np.full(3000, FAR.max), 1.1),
        (DRAWN.choice(DRAWN.integers(FAR.min, FAR.max, 200, endpoint=True), 3000), 1.7),
        (DRAWN.choice(DRAWN.integers(FAR.min, FAR.max, 256), 30_000), 2.3),
        (DRAWN.choice(DRAWN.integers(FAR.min, FAR.max, 10_000), 70_000), 3.5),
        (np.concatenate([np.zeros(20_000, np.int64), DRAWN.integers(FAR.min, FAR.max, 66_000)]), 8.1),
        (np.tile([FAR.min, FAR.max], 1500), 1.1),
        (DRAWN.integers(FAR.min, FAR.max, 3000), 8.1),
        (np.arange(6000).reshape(2, 3000)[:, ::2], 8.1),
        (np.arange(3000, dtype=np.int32), 4.1),
    ],
)
def test_forms_of_arrays(array: np.ndarray, bytes_each: float) -> None:
    """Steps, few different values, and neither."""
    data = packed({"a": array})
    assert len(data) <= bytes_each * array.size + 800
    found = unpacked(data)[0]["a"]
    assert found.dtype == array.dtype
    assert found.tolist() == array.reshape(-1).tolist()
    assert found.flags.writeable
    assert found.flags.aligned


def test_large_arrays_are_compressed() -> None:
    """Times and ids of elements that resemble each other."""
    ids = np.repeat(np.arange(1000) << 20, 20)
    data = packed({"ids": ids})
    assert len(data) < ids.nbytes / 4
    assert packed({"ids": ids}) == data, "names of objects are digests of it"
    pieces, plain = unpacked_list(packed_list([data, data], {"final": True}))
    assert (pieces, plain) == ([data, data], {"final": True})
