"""Tables of databases as static data, through a map: `sqlite:PATH?map=FILE&refresh=10s#table`, `duckdb:`, `postgresql://`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cqels_py.batches.elements import Ids
from cqels_py.connections.location import Location
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError, UsageError
from cqels_py.mappings.mapping import Mapping

if TYPE_CHECKING:
    from cqels_py.sources.table_readers import TableReader

MOST_ROWS: Final = 10_000_000
"""The rows of the largest table that is read."""


@dataclass(frozen=True, slots=True)
class StaticTable:
    """A table and its map. `refresh`: microseconds after which it is read again; None: never."""

    shown: str
    reader: TableReader
    mapping: Mapping
    refresh: int | None

    @classmethod
    def of(cls, url: str) -> StaticTable:
        """The table of a URL, which is not read yet. UsageError for a wrong option, or a map that is none."""
        location = Location.of(url)
        options = location.options
        file = options.text("map")
        if file is None:
            raise UsageError(
                f"{location.shown}: map=FILE is missing, a CONSTRUCT that makes triples of the columns (docs/mappings.md)"
            )
        mapping = Mapping.read(file)
        refresh = None
        if options.text("refresh") is not None:
            refresh = round(options.seconds("refresh", "") * 1_000_000)
            if refresh <= 0:
                raise UsageError(f"{location.shown}: the option refresh is a time between two readings, such as 10s")
            if any(part.startswith("_:") for triple in mapping.template for part in triple):
                raise UsageError(
                    f"{location.shown}: blank nodes of a map are new at each reading; write IRIs, or leave refresh= out"
                )
        reader = _reader(location)
        options.done()
        return cls(location.shown, reader, mapping, refresh)

    def triples(self, dictionary: Dictionary) -> Ids:
        """The triples (3, n) that the map makes of the rows that the table has now. RunError if it cannot be read."""
        from cqels_py.mappings.rows import columns_of
        from cqels_py.mappings.static_rows import StaticRows, needed

        variables = needed(self.mapping)

        def choose(names: Sequence[str]) -> Sequence[str]:
            places = columns_of(variables, names, self.shown)
            return [names[places[variable]] for variable in variables]

        blocks = self._limited(self.reader.blocks(choose))
        return StaticRows(self.mapping, dictionary, self.shown).triples(variables, blocks)

    def _limited(self, blocks: Iterator[Sequence[Sequence[Any]]]) -> Iterator[Sequence[Sequence[Any]]]:
        rows = 0
        for block in blocks:
            rows += len(block)
            if rows > MOST_ROWS:
                raise RunError(
                    f"{self.shown}: the table has more than {MOST_ROWS:,} rows; name a view with those that count"
                )
            yield block


def _reader(location: Location) -> TableReader:
    from cqels_py.sources.table_readers import DuckdbTable, PostgresTable, SqliteTable

    kinds: dict[str, Callable[[Location], TableReader]] = {"sqlite": SqliteTable, "duckdb": DuckdbTable}
    return kinds.get(location.scheme, PostgresTable)(location)
