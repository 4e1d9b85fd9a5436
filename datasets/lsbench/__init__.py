"""LSBench (Le-Phuoc et al., ISWC 2012): activities of the users of a social network, and the connections between them.

The schema is that of the generator of the Social Intelligence Benchmark, on which LSBench builds. The data is invented:
a network of users (`network.py`), their activities (`events.py`, turned into streams by `stream_rows.py`), and static
data about them (`knowledge.py`). `official` and `official_static` read the output of LSBench's own generator instead.

The streams, by IRI: positions of users (GPS_STREAM), posts and comments (POSTS), likes of posts (POST_LIKES), albums
and photos (PHOTOS), likes of photos (PHOTO_LIKES). A like is one triple; only its element's time says when it happened.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from cqels_py.errors import UsageError

from ..tables import SCHEMA
from . import knowledge
from .events import events
from .network import network
from .official import official, official_static
from .stream_rows import STREAMS
from .vocabulary import GPS_STREAM, PHOTO_LIKES, PHOTOS, POST_LIKES, POSTS

USERS = 1_000


def streams(triples: int, *, seed: int = 1, users: int = USERS, pace: float = 1.0) -> dict[str, pa.RecordBatchReader]:
    """The five streams with about `triples` triples in all, up to the end of the element that holds the last of them.

    `pace`: how often a user does something; at 1.0, a thousand users make about 70 triples per second. Equal arguments
    give equal streams, and a shorter stream is the beginning of a longer one. UsageError for invalid sizes.
    """
    if triples < 1:
        raise UsageError(f"{triples} triples make no stream; ask for 1 or more")
    if not 0 < pace <= 1e6:
        raise UsageError(f"a pace of {pace} makes no stream; ask for one above 0, such as 1")
    network(users, seed)
    return {
        iri: pa.RecordBatchReader.from_batches(SCHEMA, _batches(iri, triples, seed, users, pace)) for iri in STREAMS
    }


def static(*, seed: int = 1, users: int = USERS) -> bytes:
    """Persons, friendships, groups and forums as N-Triples, for the streams of the same seed and number of users."""
    return knowledge.static(network(users, seed))


def _batches(iri: str, triples: int, seed: int, users: int, pace: float) -> Iterator[pa.RecordBatch]:
    """Every stream generates all events again, which is cheap compared with writing its own."""
    kinds, written = STREAMS[iri]
    there = network(users, seed)
    for block in events(there, pace):
        summed = np.cumsum(block.triples())
        own = np.isin(block.kind, kinds)
        own[np.searchsorted(summed, triples) + 1 :] = False
        yield written(there, block.where(own))
        triples -= int(summed[-1])
        if triples <= 0:
            return


__all__ = [
    "GPS_STREAM",
    "PHOTOS",
    "PHOTO_LIKES",
    "POSTS",
    "POST_LIKES",
    "official",
    "official_static",
    "static",
    "streams",
]
