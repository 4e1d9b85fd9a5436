"""A queue of points that never fall, as the gaps between them: a window's points are mostly close to each other.

`gaps`  circular bytes: seven bits each, a gap's lowest first; the eighth bit says that more follow. One byte is always free.
`ends`  END: the place of the next byte to be written; NEWEST: the last point. Then for each of the queue's readers, LEAVING and
        ENTERING: AT, the place of the gap that it reads next; PASSED, the last point that it has read; NEXT, the one after that, if
        there was one when it last read.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline

END, NEWEST, LEAVING, ENTERING = 0, 1, 2, 5
AT, PASSED, NEXT = range(3)
FIELDS = 8
MOST_BYTES = 10
"""A gap has no more bytes."""
_BITS = np.uint64(7)
_LOW, _MORE = np.uint64(127), np.uint64(128)
_ONE = np.uint64(1)
_TOGETHER = np.uint64(8)
"""So many gaps of one byte are read at once."""
_FEW = np.uint64(16)
"""So many are read one by one before it is seen again whether they could be read at once."""


@jit_inline
def _after(place, gaps):
    return place + _ONE if place + _ONE < np.uint64(len(gaps)) else np.uint64(0)


@jit_inline
def put(gap, place, gaps):
    """Write an unsigned gap at a place, and return the place behind it."""
    while gap > _LOW:
        gaps[place] = np.uint8(gap & _LOW | _MORE)
        gap >>= _BITS
        place = _after(place, gaps)
    gaps[place] = np.uint8(gap)
    return _after(place, gaps)


@jit_flat
def append(points, gaps, ends):
    """Add points; there is room for them."""
    place, newest = np.uint64(ends[END]), ends[NEWEST]
    for i in range(np.uint64(len(points))):
        # The first one of all may be before 0, and further from it than a signed number says.
        place = put(np.uint64(points[i] - newest), place, gaps)
        newest = points[i]
    ends[END], ends[NEWEST] = np.int64(place), newest


@jit_inline
def _take(place, gaps):
    """The gap at a place, and the place of the one behind it."""
    byte = np.uint64(gaps[place])
    gap, shift = byte & _LOW, _BITS
    place = _after(place, gaps)
    while byte > _LOW:
        byte = np.uint64(gaps[place])
        gap |= (byte & _LOW) << shift
        shift += _BITS
        place = _after(place, gaps)
    return np.int64(gap), place


@jit_inline
def _read_short(limit, place, last, passed, gaps, points, read):
    """Gaps of one byte each, several at once: from a place on, as long as those behind them begin before `last`.

    None of the points is past the limit. Returns what comes next: the place, and what has been passed and read.
    """
    while place + _TOGETHER < last and read + _TOGETHER <= np.uint64(len(points)):
        together, following = np.uint8(0), passed
        for k in range(_TOGETHER):
            together |= gaps[place + k]
            following += np.int64(gaps[place + k])
        if together > _LOW or following > limit:
            break
        for k in range(_TOGETHER):
            passed += np.int64(gaps[place + k])
            points[read + k] = passed
        place += _TOGETHER
        read += _TOGETHER
    return place, passed, read


@jit_flat
def read_through(limit, reader, gaps, ends, points):
    """The next points at or before the limit go to `points`; returns how many they are.

    If there are more than `points` has room for, none of them is read.
    """
    place, passed, following, read = np.uint64(ends[reader + AT]), ends[reader + PASSED], np.int64(0), np.uint64(0)
    end, room = np.uint64(ends[END]), np.uint64(len(points))
    more = place != end
    while more:
        straight = end if place < end else np.uint64(len(gaps))
        place, passed, read = _read_short(limit, place, straight, passed, gaps, points, read)
        few = read + _FEW
        more = place != end
        while more and read < few:
            gap, behind = _take(place, gaps)
            following = passed + gap
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
