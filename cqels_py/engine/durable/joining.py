"""A query that gets elements of before, until it is registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cqels_py.dataflow.static_data import StaticData
    from cqels_py.engine.durable.registration import Registration
    from cqels_py.engine.query import Query


@dataclass(frozen=True, slots=True)
class Joining:
    """The query, how it is registered, and its static data."""

    query: Query
    registration: Registration
    static: StaticData
