"""The first page: all queries and streams with their figures."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from cqels_py.dataflow.explain import size_text
from cqels_py.service.dashboard.layout import elements_of, heading, linked, table
from cqels_py.service.dashboard.rates import Rates
from cqels_py.service.service import Service

_QUERIES = ("name", "state", "results", "rate", "memory", "streams")
_STREAMS = ("name", "elements", "rate", "source", "late", "rejected", "queries", "iri")
_WIDE = ("memory", "streams", "late", "queries", "iri")
"""Columns that a phone has no room for; the pages of queries and streams have them too."""


def source_state(read: dict[str, Any] | None) -> str:
    """How the source of a stream is; nothing for a stream without one.

    >>> source_state({"failure": None, "paused": True}), source_state({"failure": "away", "paused": False})
    ('paused', 'fails')
    """
    if read is None:
        return ""
    return "fails" if read["failure"] else "paused" if read["paused"] else "is read"


def query_state(found: dict[str, Any]) -> str:
    """How a query is. One that goes on may have a sink that does not.

    >>> query_state({"state": "running", "failure": "away"}), query_state({"state": "failed", "failure": "too large"})
    ('running, a sink fails', 'failed')
    """
    state: str = found["state"]
    return f"{state}, a sink fails" if "failure" in found and state != "failed" else state


class Overview:
    """The tables of the page."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._rates = Rates()
        self._queries = table(_QUERIES, "name", "No query yet. Write one: New query.", wide=_WIDE)
        linked(self._queries, "/ui/queries")
        heading("Streams", 2)
        self._streams = table(_STREAMS, "name", "No stream yet. Declare one: New stream.", wide=_WIDE)
        linked(self._streams, "/ui/streams")

    async def refresh(self) -> None:
        """Show the figures as they are now."""
        now = time.monotonic()
        self._queries.rows = await asyncio.to_thread(self._query_rows, now)
        self._streams.rows = await asyncio.to_thread(self._stream_rows, now)

    def _query_rows(self, now: float) -> list[dict[str, str]]:
        rows = []
        for each in list(self._service.queries.values()):
            found = self._service.query_figures(each)
            rows.append(
                {
                    "name": each.name,
                    "state": query_state(found),
                    "results": f"{found['results']:,}",
                    "rate": f"{self._rates.of(f'query {each.name}', found['results'], now):,.0f}/s",
                    "memory": size_text(found.get("state_bytes", 0)),
                    "streams": ", ".join(found.get("streams", [])),
                }
            )
        return rows

    def _stream_rows(self, now: float) -> list[dict[str, str]]:
        rows = []
        for name in list(self._service.streams):
            found = self._service.stream_figures(name)
            rejected, elements = found["rejected"], elements_of(found)
            rows.append(
                {
                    "name": name,
                    "iri": found["iri"],
                    "elements": f"{elements:,}",
                    "source": source_state(found.get("read")),
                    "rate": f"{self._rates.of(f'stream {name}', elements, now):,.0f}/s",
                    "late": f"{rejected.get('late', 0):,}",
                    "rejected": f"{sum(rejected.values()) + found['refused']:,}",
                    "queries": ", ".join(found["queries"]),
                }
            )
        return rows
