"""Entries that take in one element: its terms become ids, it gets its ticks, and its triples are routed to patterns.

LINKS is the first array of every entry's record: the addresses of records and kernels, and numbers that stay the same.
"""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.native_call import (
    INT32S,
    INT64,
    INT64_PAIR,
    INT64_ROWS,
    INT64S,
    NONE,
    READONLY_UINT8S,
    UINT8S,
    NativeCall,
)
from cqels_py.kernels.primitives.state_record import int32s, int64_rows, int64s, matrix, uint8s
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.text.triples import encode_triples
from cqels_py.kernels.windows import clock, match

WORDS, TIME, STREAM, FIRST, COLUMNS, OF_TRIPLE, NUMBER, ELEMENT_TICK, MATCHES, TEXTS, BOUNDARIES = range(11)
"""The arrays of an element's record. COLUMNS: three of them, one after the other, without gaps. OF_TRIPLE: zeros, as all triples are
those of the one element. MATCHES: as `match` writes them. TEXTS: the terms, as `encode_triples` reads them. BOUNDARIES: instants at
whose ends there are ticks."""
LENGTH, TRIPLES, SCOPE, THROUGH, TICKS, DUE_THROUGH, DUE_BOUNDARIES, ENDED, STEP = range(9)
"""WORDS: bytes of the texts, number of triples, scope of blank nodes, the instant up to which all is known; the clock writes the
number of ticks, and the instant up to which promised ticks were due. DUE_BOUNDARIES: so many BOUNDARIES are due. STEP: the number of
the step; ENDED: that of the last one in which sessions have ended."""

LINKS = 0
ELEMENT, KERNEL, STATE = range(3)
"""The first of every entry's LINKS: the element's record, the kernel that is called, and the record of the state."""
TABLE, ARENA, META = range(1, 4)
"""The dictionary's arrays in the record of `encode`, whose STATE is the number of hash bits that are dropped."""

ENCODE = NativeCall(
    encode_triples, INT64_PAIR, READONLY_UINT8S, INT64, INT64S, INT64, INT64, INT64, INT64, INT64S, UINT8S, INT64S, INT64_ROWS
)  # fmt: skip
CLOCK = NativeCall(clock.step, INT64_PAIR, INT64S, INT32S, INT64S, INT64S, INT64, INT64, INT64S, INT32S)
MATCH = NativeCall(match.match, INT64, INT64S, INT64S, INT64S, NONE, INT64S, INT32S, INT64, INT64S)
_encode, _clock, _match = ENCODE.call, CLOCK.call, MATCH.call


@jit_flat
def encode(record):
    """Look up the element's terms. PYTHON_NEEDED: one is unusual, or wrong, or the dictionary needs room."""
    links = int64s(record, LINKS)
    element = links[ELEMENT]
    words = int64s(element, WORDS)
    misplaced, status = _encode(
        links[KERNEL],
        (
            uint8s(element, TEXTS)[: words[LENGTH]], 0, int64s(element, FIRST), words[SCOPE], 0, 0, links[STATE],
            int64s(record, TABLE), uint8s(record, ARENA), int64s(record, META), matrix(int64s(element, COLUMNS), 3, words[TRIPLES]),
        ),
    )  # fmt: skip
    return PYTHON_NEEDED if misplaced or status != DONE else DONE


@jit_flat
def _ended_instants(clock_record, words, boundaries):
    """The boundaries that are due, with the ends of instants at which windows change; returns how many there are."""
    opened, count = int64s(clock_record, clock.OPEN), words[DUE_BOUNDARIES]
    for w in range(len(opened)):
        if opened[w] > words[THROUGH]:
            continue
        at = count
        while at > 0 and boundaries[at - 1] > opened[w]:
            at -= 1
        if at > 0 and boundaries[at - 1] == opened[w]:
            continue
        for moved in range(count, at, -1):
            boundaries[moved] = boundaries[moved - 1]
        boundaries[at] = opened[w]
        count += 1
    return count


@jit_flat
def _open_instant(clock_record, stream, time):
    """Windows over the element's stream change at the end of its instant."""
    opened, by = int64s(clock_record, clock.OPEN), int64s(clock_record, clock.OPENED_BY)
    for w in range(len(opened)):
        if by[w] == stream:
            opened[w] = time


@jit_flat
def _session_ends(clock_record, time):
    """Has a session ended before this time?"""
    windows, last = int64_rows(clock_record, clock.SESSIONS), int64s(clock_record, clock.LAST_OF)
    for w in range(len(last)):
        if last[w] != clock.NEVER and time - last[w] > windows[w, 1]:
            return True
    return False


@jit_flat
def _continue_sessions(clock_record, stream, time):
    """Sessions over the element's stream go on, or begin."""
    windows, last = int64_rows(clock_record, clock.SESSIONS), int64s(clock_record, clock.LAST_OF)
    for w in range(len(last)):
        if windows[w, 0] == stream:
            last[w] = time


@jit_flat
def tell_time(record):
    """The element's number and its tick, with those of expiries before it. PYTHON_NEEDED: the clock needs room, or boundaries or
    ends of sessions pass or are to be noted."""
    links = int64s(record, LINKS)
    element = links[ELEMENT]
    words, stream = int64s(element, WORDS), int32s(element, STREAM)
    time, boundaries, opened = int64s(element, TIME)[0], int64s(element, BOUNDARIES), int64s(links[STATE], clock.OPEN)
    if time > int64s(links[STATE], clock.QUIET)[stream[0]] or words[DUE_BOUNDARIES] + len(opened) > len(boundaries):
        return PYTHON_NEEDED
    # After an end of the sources elements may still come at an instant that has been told.
    if len(opened) + len(int64s(links[STATE], clock.LAST_OF)) > 0 and time <= words[THROUGH]:
        return PYTHON_NEEDED
    if _session_ends(links[STATE], time):
        return PYTHON_NEEDED
    due = _ended_instants(links[STATE], words, boundaries)
    ticks, through = _clock(
        links[KERNEL],
        (
            int64s(element, TIME), stream, int64s(element, FIRST), boundaries[:due],
            words[THROUGH], links[STATE], int64s(element, NUMBER), int32s(element, ELEMENT_TICK),
        ),
    )  # fmt: skip
    words[TICKS], words[DUE_THROUGH] = ticks, through
    if ticks < 0:
        return PYTHON_NEEDED
    _open_instant(links[STATE], stream[0], time)
    _continue_sessions(links[STATE], stream[0], time)
    return DONE


@jit_flat
def route(record):
    """Match the triples with all patterns. PYTHON_NEEDED: there are more matches than there is room for."""
    links = int64s(record, LINKS)
    element = links[ELEMENT]
    columns = matrix(int64s(element, COLUMNS), 3, int64s(element, WORDS)[TRIPLES])
    matches = int64s(element, MATCHES)
    found = _match(
        links[KERNEL],
        (
            columns[0], columns[1], columns[2], None, int64s(element, OF_TRIPLE)[: columns.shape[1]],
            int32s(element, STREAM), links[STATE], matches,
        ),
    )  # fmt: skip
    return PYTHON_NEEDED if found > len(matches) else DONE
