"""Columns of ids, times and signs to columns of texts, without a loop over rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import Ids
from cqels_py.dictionary.dictionary import Dictionary

Render = Callable[[str], str | None]
"""An N-Triples text to what stands for it; None: nothing does."""


def render_terms(ids: Ids, dictionary: Dictionary, render: Render) -> pa.Array:
    """A text for each id (n), null for unbound; each distinct id is rendered once."""
    distinct, place = np.unique(ids, return_inverse=True)
    texts = [None if text is None else render(text) for text in dictionary.decode(distinct)]
    return pa.array(texts, pa.large_string()).take(pa.array(place.reshape(-1)))


def render_times(times: npt.NDArray[np.int64]) -> pa.Array:
    """ISO 8601 in UTC for microseconds (n), with a fraction only where there is one.

    >>> render_times(np.array([1_500_000, 2_000_000])).to_pylist()
    ['1970-01-01T00:00:01.5Z', '1970-01-01T00:00:02Z']
    """
    distinct, place = np.unique(times, return_inverse=True)
    texts = np.datetime_as_string(distinct.astype("datetime64[us]")).tolist()
    texts = [text.rstrip("0").rstrip(".") + "Z" for text in texts]
    return pa.array(texts, pa.large_string()).take(pa.array(place.reshape(-1)))


def render_signs(signs: npt.NDArray[np.int8]) -> pa.Array:
    return pa.array(["-", "+"], pa.large_string()).take(pa.array((signs > 0).astype(np.int64)))


def constant(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def join(*parts: pa.Array | str, separator: str = "") -> pa.Array:
    """Row by row, the parts one after another; null where one of them is."""
    columns = [constant(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*columns, constant(separator))


def join_present(*parts: pa.Array, separator: str = "") -> pa.Array:
    """Row by row, those of the parts that are not null; an empty text where all are."""
    first, *others = parts
    # Arrow leaves rows out in which everything is null.
    nothing = pc.is_null(pc.coalesce(*parts))
    first = pc.if_else(nothing, constant(""), first)
    return pc.binary_join_element_wise(first, *others, constant(separator), null_handling="skip")


def write_rows(file: IO[str], rows: pa.Array) -> None:
    """Write the texts (none null) one after another."""
    if not len(rows):
        return
    _, offsets, data = rows.buffers()
    bounds = np.frombuffer(offsets, np.int64)[rows.offset : rows.offset + len(rows) + 1]
    file.write(str(memoryview(data)[int(bounds[0]) : int(bounds[-1])], "utf-8"))


def split_literal(text: str) -> tuple[str, str]:
    """The quoted part of a literal without its quotes, escapes as they are; and what follows it."""
    end = text.rindex('"')
    return text[1:end], text[end + 1 :]
