"""The state of objects as named arrays and plain values, and back into objects that were made alike.

A class lists in `STATE` the attributes that hold its state: arrays, plain values, lists of plain values, and objects (also in lists
or dicts) whose classes do the same. All other attributes follow from the constructor's arguments, or are derived from the state: by
the optional method `after_restore`, or by the setter of a property that is listed in `STATE`.

>>> class Counter:
...     STATE = ("_counts", "last")
...     def __init__(self):
...         self._counts, self.last = np.zeros(2, np.int64), None
>>> class Both:
...     STATE = ("counters",)
...     def __init__(self):
...         self.counters = [Counter(), Counter()]
>>> both, other = Both(), Both()
>>> both.counters[1]._counts[0], both.counters[1].last = 7, 3
>>> values = values_of(both)
>>> list(values)
['counters.0.counts', 'counters.0.last', 'counters.1.counts', 'counters.1.last']
>>> restore(other, values)
>>> other.counters[1]._counts.tolist(), other.counters[1].last
([7, 0], 3)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cqels_py.errors import UsageError

Array: TypeAlias = npt.NDArray[Any]
Plain: TypeAlias = "bool | int | float | str | list[Plain] | None"
NamedValues: TypeAlias = "dict[str, Array | Plain]"
"""Arrays, and values that JSON has too, by dotted names."""

_LINE = 64
"""Bytes of a cache line: restored arrays are aligned like those that have grown (state/arrays.py)."""


def values_of(owner: object) -> NamedValues:
    """The state of an object. Arrays are those that the object works on, not copies: write them before it changes.

    UsageError for an object whose class has no `STATE`.
    """
    values: NamedValues = {}
    for name, attribute, _ in _attributes(owner):
        _collect(name, attribute, values)
    return values


def shrink(owner: object) -> None:
    """Give back the room that an object's state needs no more, between two steps: its own `shrink`, or those of its parts.

    The method of a class is responsible for its parts too, as these may number what others keep.
    """
    if hasattr(owner, "shrink"):
        owner.shrink()
        return
    for _, attribute, _ in _attributes(owner):
        for _, part in _parts(attribute) or [("", attribute)]:
            if hasattr(type(part), "STATE"):
                shrink(part)


def restore(owner: object, values: Mapping[str, Array | Plain]) -> None:
    """Give this state to a new object that was made with the same arguments as the one that had it.

    UsageError if values are missing, of another type, or left over; the object cannot be used then.
    """
    left = dict(values)
    _restore(owner, "", left)
    if left:
        raise UsageError(f"the state has values that are not used here: {', '.join(sorted(left))}")


def _attributes(owner: object) -> Iterator[tuple[str, Any, str]]:
    """The entries of an object's state: their names, their values, and the attributes' own names."""
    names = getattr(type(owner), "STATE", None)
    if names is None:
        raise UsageError(f"the state of {type(owner).__name__} cannot be taken out")
    for name in names:
        yield name.lstrip("_"), getattr(owner, name), name


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    """The objects in a list or a dict, by position or key; None for other values."""
    if isinstance(value, dict):
        return [(str(key), each) for key, each in value.items()]
    if isinstance(value, list) and not _is_plain(value):
        return [(str(place), each) for place, each in enumerate(value)]
    return None


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _collect(name: str, value: Any, values: NamedValues) -> None:
    if _is_plain(value) or (isinstance(value, np.ndarray) and not value.dtype.hasobject):
        values[name] = value
    elif (parts := _parts(value)) is not None:
        for part, each in parts:
            _collect(f"{name}.{part}", each, values)
    else:
        for part, attribute, _ in _attributes(value):
            _collect(f"{name}.{part}", attribute, values)


def _restore(owner: object, prefix: str, left: NamedValues) -> None:
    for part, current, attribute in _attributes(owner):
        name = prefix + part
        if (parts := _parts(current)) is not None:
            for place, each in parts:
                _restore(each, f"{name}.{place}.", left)
        elif hasattr(type(current), "STATE"):
            _restore(current, f"{name}.", left)
        elif name not in left:
            raise UsageError(f"the state has no {name}: it was taken from another plan, or by another version")
        else:
            _put(owner, attribute, current, name, left.pop(name))
    if hasattr(owner, "after_restore"):
        owner.after_restore()


def _put(owner: object, attribute: str, current: Any, name: str, value: Array | Plain) -> None:
    if not isinstance(current, np.ndarray):
        if isinstance(value, np.ndarray):
            raise UsageError(f"the state has an array as {name}, where a plain value is expected")
        setattr(owner, attribute, value)
        return
    if not isinstance(value, np.ndarray) or value.dtype != current.dtype or value.ndim != current.ndim:
        raise UsageError(f"the state has no array of {current.ndim} dimensions of {current.dtype} as {name}")
    if value.shape == current.shape and not isinstance(getattr(type(owner), attribute, None), property):
        # Views of it, and kernels' tables of addresses, stay valid.
        current[...] = value
    else:
        setattr(owner, attribute, _aligned_copy(value))


def _aligned_copy(array: Array) -> Array:
    memory = np.empty(array.nbytes + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
