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


def test_large_arrays_are_compressed() -> None:
    """Times and ids of elements that resemble each other."""
    ids = np.repeat(np.arange(1000) << 20, 20)
    data = packed({"ids": ids})
    assert len(data) < ids.nbytes / 4
    assert packed({"ids": ids}) == data, "names of objects are digests of it"
    pieces, plain = unpacked_list(packed_list([data, data], {"final": True}))
    assert (pieces, plain) == ([data, data], {"final": True})
