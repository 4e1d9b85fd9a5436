"""A queue of points that never fall, delta-encoded as varints: points of a window are mostly close to each other.

`varints`  the differences of successive points, a circular buffer of bytes: seven bits per byte, the lowest first; the
        eighth bit says that more follow. One byte is always free.
`ends`  END: the position of the next byte to be written; NEWEST: the last point. Then for each of the queue's readers,
        EXPIRING and ENTERING: AT, the position of the next varint to be read; PASSED, the last point read; NEXT, the
        point after that, if there was one at the last read.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline

END, NEWEST, EXPIRING, ENTERING = 0, 1, 2, 5
AT, PASSED, NEXT = range(3)
FIELDS = 8
MOST_BYTES = 10
"""The longest varint."""
_BITS = np.uint64(7)
_LOW, _MORE = np.uint64(127), np.uint64(128)
_ONE = np.uint64(1)
_TOGETHER = np.uint64(8)
"""Varints of one byte that are read at once."""
_FEW = np.uint64(16)
"""Varints read one by one before the fast path is tried again."""


@jit_inline
def _after(place, varints):
    return place + _ONE if place + _ONE < np.uint64(len(varints)) else np.uint64(0)


@jit_inline
def put(delta, place, varints):
    """Write an unsigned varint at a position. Returns the position after it."""
    while delta > _LOW:
        varints[place] = np.uint8(delta & _LOW | _MORE)
        delta >>= _BITS
        place = _after(place, varints)
    varints[place] = np.uint8(delta)
    return _after(place, varints)


@jit_flat
def append(points, varints, ends):
    """Append points; there is room for them."""
    place, newest = np.uint64(ends[END]), ends[NEWEST]
    for i in range(np.uint64(len(points))):
        # The difference to the first point of all may exceed the signed range.
        place = put(np.uint64(points[i] - newest), place, varints)
        newest = points[i]
    ends[END], ends[NEWEST] = np.int64(place), newest


@jit_inline
def _take(place, varints):
    """The varint at a position, and the position after it."""
    byte = np.uint64(varints[place])
    delta, shift = byte & _LOW, _BITS
    place = _after(place, varints)
    while byte > _LOW:
        byte = np.uint64(varints[place])
        delta |= (byte & _LOW) << shift
        shift += _BITS
        place = _after(place, varints)
    return np.int64(delta), place


@jit_inline
def _read_short(limit, place, last, passed, varints, points, read):
    """Fast path: varints of one byte each, several at once, as long as none of them reaches `last` or a point past the
    limit.

    Returns the next position, the last point and the number of points read.
    """
    while place + _TOGETHER < last and read + _TOGETHER <= np.uint64(len(points)):
        together, following = np.uint8(0), passed
        for k in range(_TOGETHER):
            together |= varints[place + k]
            following += np.int64(varints[place + k])
        if together > _LOW or following > limit:
            break
        for k in range(_TOGETHER):
            passed += np.int64(varints[place + k])
            points[read + k] = passed
        place += _TOGETHER
        read += _TOGETHER
    return place, passed, read


@jit_flat
def read_through(limit, reader, varints, ends, points):
    """Read the next points at or before the limit into `points`. Returns how many they are.

    If there are more than fit into `points`, none of them is consumed.
    """
    place, passed, following, read = np.uint64(ends[reader + AT]), ends[reader + PASSED], np.int64(0), np.uint64(0)
    end, room = np.uint64(ends[END]), np.uint64(len(points))
    more = place != end
    while more:
        straight = end if place < end else np.uint64(len(varints))
        place, passed, read = _read_short(limit, place, straight, passed, varints, points, read)
        few = read + _FEW
        more = place != end
        while more and read < few:
            delta, behind = _take(place, varints)
            following = passed + delta
            more = following <= limit
            if more:
                if read < room:
                    points[read] = following
                passed, place = following, behind
                read += _ONE
                more = place != end
    if read <= room:
        ends[reader + AT], ends[reader + PASSED], ends[reader + NEXT] = np.int64(place), passed, following
    return np.int64(read)
