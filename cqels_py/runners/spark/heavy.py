"""The heavy values of a query, as they are given, and as they are noted beside its state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cqels_py.dictionary import Dictionary
from cqels_py.distribution.heavy_values import HeavyValue
from cqels_py.errors import DataError, UsageError

HeavyValues: TypeAlias = "Mapping[str, str | Iterable[str]]"
"""N-Triples texts of values that are in very many triples, by the name of their variable."""


@dataclass(frozen=True, slots=True)
class Noted:
    """The heavy values of a state with so many partitions, by variable and text: into how many parts each was divided, and
    these again, each time that the state was split."""

    partitions: int | None = None
    divisions: Mapping[tuple[str, str], tuple[int, ...]] | None = None

    @staticmethod
    def read(text: str) -> Noted:
        if not text:
            return Noted()
        partitions, values = json.loads(text)
        return Noted(partitions, {(name, value): tuple(parts) for name, value, parts in values})

    @staticmethod
    def text(partitions: int, values: Sequence[HeavyValue]) -> str:
        """The text that `read` reads; empty without heavy values."""
        return json.dumps([partitions, [(each.variable, each.text, each.parts) for each in values]]) if values else ""

    def split(self, partitions: int) -> Noted:
        """Those of a state that is split into a multiple of the partitions."""
        factor = partitions // (self.partitions or partitions)
        more = (factor,) if factor > 1 else ()
        return Noted(partitions, {key: (*parts, *more) for key, parts in (self.divisions or {}).items()})

    def values(self, heavy: HeavyValues | None, partitions: int, dictionary: Dictionary) -> tuple[HeavyValue, ...]:
        """The values that are given (None: those that are noted), with their ids. UsageError for texts that are no terms."""
        known = self.divisions or {}
        found: dict[tuple[str, str], HeavyValue] = {}
        for name, text in known if heavy is None else _pairs(heavy):
            try:
                id_ = dictionary.encode_one(text)
            except DataError as error:
                raise UsageError(f"heavy has values as N-Triples texts, as '<http://ex.org/s1>': {error}") from None
            found[name, text] = HeavyValue(name, text, id_, known.get((name, text), (partitions,)))
        return tuple(found.values())


def _pairs(heavy: HeavyValues) -> list[tuple[str, str]]:
    if not isinstance(heavy, Mapping):
        raise UsageError("heavy has values by variable, as {'sensor': ['<http://ex.org/s1>']}")
    return [
        (name.removeprefix("?"), text)
        for name, values in heavy.items()
        for text in ([values] if isinstance(values, str) else values)
    ]
