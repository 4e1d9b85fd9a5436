"""The records of an engine's log: their kinds and contents."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from cqels_py.checkpoints.durable_files import Block
from cqels_py.checkpoints.packed import pack_terms, unpack_terms
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary

HEAD = struct.Struct("<QQq")
"""At each record, the numbers of the last pushed element and the last document, and the time of the clock that decides."""
_NUMBER = struct.Struct("<Q")


class Kind(IntEnum):
    """The kinds of records. Numbers are never used again for another kind."""

    ELEMENTS = 1
    WAITING = 2
    ADVANCE = 3
    FINISH = 4
    REGISTER = 5
    UNREGISTER = 6
    CONNECT = 7
    STATIC = 8
    FOLLOW = 9
    RUN = 10
    READ = 11
    HOLD = 12
    RAN = 13
    JOIN = 14
    BACKFILL = 15
    JOINED = 16
    PLACES = 17
    LEFT_OUT = 18
    JOINING = 19
    GIVEN_UP = 20
    REFUSED = 24
    UNLOGGED = 25
    PASSED = 26
    STOPPED = 27
    ONCE = 32
    DECLARE = 33
    FED = 34
    FED_PASSED = 35
    FAILED = 36


STEPS = (
    Kind.ELEMENTS,
    Kind.ONCE,
    Kind.FED,
    Kind.WAITING,
    Kind.ADVANCE,
    Kind.FINISH,
    Kind.STATIC,
    Kind.FOLLOW,
    Kind.READ,
    Kind.HOLD,
    Kind.JOIN,
    Kind.JOINING,
    Kind.BACKFILL,
    Kind.JOINED,
)
"""Those behind which queries share no scans with earlier ones: steps of the runner, and a query that joins."""


BEFORE_RUN = (
    Kind.RUN,
    Kind.PLACES,
    Kind.PASSED,
    Kind.WAITING,
    Kind.REGISTER,
    Kind.UNREGISTER,
    Kind.FAILED,
    Kind.CONNECT,
    Kind.DECLARE,
    Kind.JOIN,
    Kind.JOINING,
    Kind.BACKFILL,
    Kind.JOINED,
    Kind.GIVEN_UP,
    Kind.LEFT_OUT,
    Kind.REFUSED,
)
"""Those that make no results of queries which are there already, or the same as without them."""


def with_terms(given: Mapping[str, Any], data: StaticData, dictionary: Dictionary) -> list[Block]:
    """The blocks of a record's content: plain data and static data."""
    ids = np.concatenate([data.quads.reshape(-1), data.names])
    return [*with_plain({"given": given, "quads": data.quads.shape[1]}), *pack_terms(ids, dictionary)]


def read_with_terms(content: memoryview, dictionary: Dictionary) -> tuple[dict[str, Any], StaticData]:
    """The data that `with_terms` has written."""
    head = head_of(content)
    ids = unpack_terms(elements_behind(content), dictionary)
    quads = 4 * head["quads"]
    return head["given"], StaticData([ids[:quads].reshape(4, -1)], ids[quads:].tolist())


def with_plain(given: Mapping[str, Any]) -> list[Block]:
    """The blocks with plain data at the beginning of a record's content, before others."""
    head = json.dumps(given).encode()
    return [_NUMBER.pack(len(head)), head]


def elements_behind(content: memoryview) -> memoryview:
    """The bytes behind the plain data."""
    return content[_NUMBER.size + _NUMBER.unpack_from(content)[0] :]


def head_of(content: memoryview) -> dict[str, Any]:
    """The plain data alone."""
    found: dict[str, Any] = json.loads(bytes(content[_NUMBER.size :][: _NUMBER.unpack_from(content)[0]]))
    return found
