"""Results over their time: a line for each group, of a column with numbers."""

from __future__ import annotations

import json
import math
from collections import OrderedDict, deque
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from cqels_py.service.dashboard.result_rows import Names

_MOST_LINES, _MOST_POINTS = 10, 120
_NUMBERS = frozenset(
    f"http://www.w3.org/2001/XMLSchema#{name}"
    for name in ("integer", "decimal", "double", "float", "int", "long", "short")
)


class ResultChart:
    """Keeps the last points of lines; those that have not changed for long give way.

    >>> chart = ResultChart(["s", "t"], Names(""))
    >>> number = '{"type": "literal", "value": "35", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}'
    >>> start = '{"time": "1970-01-01T00:00:02Z", "sign": "+", "bindings": {"s": {"type": "literal", "value": "a"}, "t": '
    >>> chart.add([f"{start}{number}}}}}".encode()])
    >>> chart.columns, chart.lines_of("t")
    (['t'], [('a', [(2000.0, 35.0)])])
    """

    def __init__(self, variables: Iterable[str], names: Names) -> None:
        self._variables = list(variables)
        self._names = names
        self._lines: dict[str, OrderedDict[str, deque[tuple[float, float]]]] = {}

    @property
    def columns(self) -> list[str]:
        """The variables that have had numbers."""
        return [name for name in self._variables if name in self._lines]

    def lines_of(self, column: str) -> list[tuple[str, list[tuple[float, float]]]]:
        """The lines of a column, each with its group and its points: milliseconds since the epoch, and a value."""
        return [(group, list(points)) for group, points in sorted(self._lines[column].items())]

    def add(self, lines: Iterable[bytes]) -> None:
        """More results, as the service keeps them; retractions have no points."""
        for line in lines:
            found = json.loads(line)
            if found.get("sign") == "+" and "bindings" in found:
                self._add(found)

    def _add(self, found: dict[str, Any]) -> None:
        values, group = {}, []
        for name in self._variables:
            term = found["bindings"].get(name)
            if term is None:
                continue
            number = _number(term)
            if number is not None:
                values[name] = number
            else:
                group.append(self._names.shortest(term["value"]) if term["type"] == "uri" else str(term["value"])[:40])
        at = _milliseconds(found["time"])
        if at is not None:
            for name, value in values.items():
                self._point(name, ", ".join(group), (at, value))

    def _point(self, column: str, group: str, point: tuple[float, float]) -> None:
        lines = self._lines.setdefault(column, OrderedDict())
        points = lines.setdefault(group, deque(maxlen=_MOST_POINTS))
        lines.move_to_end(group)
        if points and points[-1][0] == point[0]:
            points.pop()
        points.append(point)
        if len(lines) > _MOST_LINES:
            lines.popitem(last=False)


def _number(term: dict[str, Any]) -> float | None:
    """The value of a literal that is a number, and finite."""
    if term.get("datatype") not in _NUMBERS:
        return None
    try:
        found = float(term["value"])
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _milliseconds(time: str) -> float | None:
    """None for times that Python's calendar does not have."""
    try:
        return datetime.fromisoformat(time).timestamp() * 1000
    except ValueError:
        return None
