"""Rows that a mapping reads: columns of terms by variable, with the rows' numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.mappings.mapping import TIME

_NOT_IN_A_NAME = re.compile(r"\W")
_NAMES_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Rows:
    """n rows. `columns`: terms (n) by variable. `lines` (n): numbers of lines or rows, from 1. `text`: a row as it was written."""

    columns: Mapping[str, Ids]
    lines: npt.NDArray[np.int64]
    text: Callable[[int], str]


def variable_of(name: str) -> str:
    """The variable that stands for a column or member: characters that a variable cannot have are `_`.

    >>> variable_of("Temp (C)"), variable_of("room.name")
    ('Temp__C_', 'room_name')
    """
    return _NOT_IN_A_NAME.sub("_", name)


def columns_of(variables: Sequence[str], names: Sequence[str], source: str) -> dict[str, int]:
    """The place of the column of each variable. UsageError for one that is not there, or that two columns have."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(variable_of(name), []).append(place)
    for variable in variables:
        found = places.get(variable, [])
        if not found:
            way_out = f", or BIND it: BIND(?… AS ?{TIME})" if variable == TIME else ""
            raise UsageError(
                f"{source}: the mapping reads ?{variable}, and there is no such column; the columns are {_shown(names)}{way_out}"
            )
        if len(found) > 1:
            both = " and ".join(repr(names[place]) for place in found)
            raise UsageError(f"{source}: ?{variable} stands for the columns {both}: rename one of them")
    return {variable: places[variable][0] for variable in variables}


def with_time(rows: Iterable[Rows | None], arrival: int, dictionary: Dictionary) -> Iterator[Rows | None]:
    """The rows, with this time in microseconds where ?time is unbound."""
    for each in rows:
        if each is not None and not each.columns[TIME].all():
            times = each.columns[TIME].copy()
            times[times == 0] = dictionary.encode_one(f'"{arrival}"^^<http://www.w3.org/2001/XMLSchema#integer>')
            each = replace(each, columns={**each.columns, TIME: times})
        yield each


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(f"?{variable_of(name)}" for name in names)
    return (shown if len(shown) <= _NAMES_SHOWN else f"{shown[:_NAMES_SHOWN]}…") or "none"
