"""Pickles a state, for other workers of the same host, so that views still share memory with their arrays after it is read.

Kernels get flat views of tables that their owners see in two dimensions. Plain pickle would copy such a table twice, and the owner
would not see later writes to the view. Here a view is written as a reference into the array whose memory it shows.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def to_buffers(state: object) -> list[memoryview]:
    """The state without copies of its arrays: a pickle, and the buffers that `pickle.loads` takes as its second argument."""
    out, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
    _Pickler(out, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append).dump(state)
    return [out.getbuffer(), *(buffer.raw() for buffer in buffers)]


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not np.ndarray or obj.dtype.hasobject:
            return NotImplemented
        owner = _owner(obj)
        # An empty one shows no memory, and may begin behind that of its owner.
        if owner is obj or not obj.size or not (owner.flags.c_contiguous or owner.flags.f_contiguous):
            return NotImplemented
        offset = obj.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        return view, (owner, obj.dtype, obj.shape, offset, obj.strides)


def _owner(array: Array) -> Array:
    """The array whose memory this one shows; itself if that is its own."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def view(owner: Array, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Array:
    """A view of the owner's memory, bytes from its start."""
    memory = owner if owner.flags.c_contiguous else owner.T
    return np.ndarray(shape, dtype, memory, offset, strides)
