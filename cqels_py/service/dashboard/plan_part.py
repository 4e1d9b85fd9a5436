"""A plan as a graph: that of a running query with the current rates of its operators."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nicegui import ui

from cqels_py.dataflow.plan_drawing import Box, svg
from cqels_py.dataflow.profile import Profile
from cqels_py.engine.explained import with_prefixes
from cqels_py.engine.query import Query
from cqels_py.service.dashboard.rates import Rates
from cqels_py.service.definitions import QueryDefinition
from cqels_py.service.service import Service


class PlanPart:
    """A graph, which is as large as it has to be, and scrolls."""

    def __init__(self) -> None:
        self._rates = Rates()
        # The drawing escapes all texts.
        self._graph = ui.html("", sanitize=False).classes("w-full overflow-x-auto").props('tabindex="0"')

    def show(self, picture: str) -> None:
        """Show a drawing."""
        self._graph.content = picture

    def live(self, query: Query) -> str:
        """The drawing of a query with its counters, and the rows a second at its edges."""
        profile, now = query.profile(), time.monotonic()
        rates = [self._rates.of(str(each.number), each.rows_out, now) for each in profile.operators]
        return _drawn(profile, profile.boxes([f"{rate:,.0f}/s" for rate in rates]), query)


@dataclass(frozen=True, slots=True)
class Explained:
    """How a query would run: its plan as a picture and as text, its verdict about memory, and warnings."""

    picture: str
    text: str
    memory: str
    warnings: Sequence[str]


def explained(service: Service, definition: QueryDefinition) -> Explained:
    """The plan of a query that is not registered. Errors as of `Service.put_query`."""
    with service.engine_apart() as engine:
        query = service.register_in(engine, definition)
        profile = query.profile()
        boxes = [replace(box, figures=(), told="", hot=False) for box in profile.boxes()]
        text = with_prefixes(query.explain(), definition.text)
        return Explained(_drawn(profile, boxes, query), text, str(query.memory), query.warnings)


def _drawn(profile: Profile, boxes: Sequence[Box], query: Query) -> str:
    text = query.compiled.text
    return svg([replace(box, text=with_prefixes(box.text, text)) for box in boxes], profile.title)
