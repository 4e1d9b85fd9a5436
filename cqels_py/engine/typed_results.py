"""Results as tables of typed columns: Arrow, Polars and pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

Schema: TypeAlias = Mapping[str, "str | pa.DataType"]
TIME, SIGN = "time", "sign"


class TypedResults:
    """Makes tables of the results of one query, and counts the values for which a type of a `schema` has no place."""

    def __init__(self, variables: tuple[str, ...], dictionary: Dictionary) -> None:
        self._variables = variables
        self._dictionary = dictionary
        self.misfits: dict[str, int] = {}

    def shape(self, schema: Schema | None, time_column: str, sign_column: str) -> Any:
        """UsageError for names that the query's variables have, and for types that there are not."""
        from cqels_py.formats.typed_columns import TypedShape

        return TypedShape.of(self._variables, time_column, sign_column, schema)

    def table(self, batches: Sequence[ResultBatch], shape: Any) -> pa.Table:
        """The results of batches, one row each."""
        from cqels_py.formats.typed_columns import typed_table

        table, misfits = typed_table(self._variables, batches, self._dictionary, shape)
        for name, count in misfits.items():
            self.misfits[name] = self.misfits.get(name, 0) + count
        return table


def as_polars(table: pa.Table) -> Any:
    """A data frame of Polars. MissingExtra without it."""
    return _library("polars").from_arrow(table)


def as_pandas(table: pa.Table) -> Any:
    """A data frame of pandas: integers and truth values of which some are missing are of types that can be missing."""
    import pyarrow as pa

    pandas = _library("pandas")
    frame = table.to_pandas()
    missing = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
    for name in table.schema.names:
        column = table.column(name)
        if column.null_count and column.type in missing:
            frame[name] = column.to_pandas(types_mapper=missing.get)
    return frame


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra(f"a data frame of {name} needs the package {name}: pip install 'cqels_py[{name}]'") from None
