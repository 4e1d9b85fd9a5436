"""SRBench (Zhang et al., ISWC 2012): observations of weather stations, and static data about the places around them.

The schema is that of LinkedSensorData and LinkedObservationData, GeoNames and DBpedia. The data is generated: plausible
weather (`weather.py`) over invented stations and towns (`world.py`), reported in `observations.py`, and static data
that links to it (`knowledge.py`). `official` reads the dumps of the real observations instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from cqels_py.errors import UsageError

from ..tables import SCHEMA
from . import knowledge
from .observations import INSTANT_MINUTES, batches
from .official import official
from .vocabulary import OBSERVATIONS
from .world import world

STATIONS = 100
MINUTES = 20


def streams(
    triples: int, *, seed: int = 1, stations: int = STATIONS, minutes: int = MINUTES, pace: float = 1.0
) -> dict[str, pa.RecordBatchReader]:
    """The stream of observations with about `triples` triples, up to the end of the element that holds the last of
    them.

    Each station reports every `minutes`. The weather runs `pace` times as fast as the clock, so that short streams have
    storms too. Equal arguments give equal streams, and a shorter stream is the beginning of a longer one.
    """
    if triples < 1:
        raise UsageError(f"{triples} triples make no stream; ask for 1 or more")
    if minutes < INSTANT_MINUTES or minutes % INSTANT_MINUTES:
        raise UsageError(f"stations report every {INSTANT_MINUTES} minutes or a multiple of that, not every {minutes}")
    made = batches(world(stations, seed), minutes, pace)
    return {OBSERVATIONS: pa.RecordBatchReader.from_batches(SCHEMA, _first(made, triples))}


def static(*, seed: int = 1, stations: int = STATIONS) -> bytes:
    """Stations, places and hurricanes as N-Triples, for the streams of the same seed and number of stations."""
    return knowledge.static(world(stations, seed))


def _first(made: Iterable[pa.RecordBatch], triples: int) -> Iterator[pa.RecordBatch]:
    """Whole elements, up to the one that holds the last triple."""
    for batch in made:
        if batch.num_rows >= triples:
            yield batch.slice(0, _end_of_element(batch, triples))
            return
        triples -= batch.num_rows
        yield batch


def _end_of_element(batch: pa.RecordBatch, row: int) -> int:
    """The number of rows up to the end of the element of the row before `row`."""
    graph = batch["graph"].slice(row - 1)
    others = np.flatnonzero(pa.compute.not_equal(graph, graph[0]).to_numpy(zero_copy_only=False))
    return row - 1 + int(others[0]) if len(others) else batch.num_rows


__all__ = ["OBSERVATIONS", "official", "static", "streams"]
