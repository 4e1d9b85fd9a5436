"""The elements of wide tables: columns of terms, built column by column; no code of Python runs for a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.tabular import Rows as TableRows
from cqels_py.formats.tabular import row_text, times_of_column
from cqels_py.formats.times import EXPECTED, questionable
from cqels_py.iris import is_iri
from cqels_py.mappings.elements import MappedElements
from cqels_py.mappings.frame_map import SUBJECT, FrameMap, IriTemplate
from cqels_py.mappings.mapping import TIME
from cqels_py.mappings.rows import Rows
from cqels_py.mappings.terms import buffers, ids_of_column, texts_of_column

_ROWS = 1 << 16
_NOT_IN_A_SEGMENT = r"[\x00-,/:-@\[-^`{-\x7f]"
"""ASCII characters that have a meaning in an IRI, or none; R2RML's templates encode them too."""
_OTHER = [(0x80, 0x9F), (0xE000, 0xF8FF), (0xFDD0, 0xFDEF), (0xFFF0, 0xFFFF), (0xE0000, 0xE0FFF), (0xF0000, 0x10FFFF)]
_OTHER += [(plane << 16 | 0xFFFE, plane << 16 | 0xFFFF) for plane in range(1, 15)]
_NOT_IN_IRIS = "".join(["[", *(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in _OTHER), "]"])
"""Characters beyond ASCII that stand in no IRI's path: RFC 3987."""
_ENCODED = [(chr(code), f"%{code:02X}") for code in range(128) if not (chr(code).isalnum() or chr(code) in "-._~")]


class FrameElements(MappedElements):
    """Makes an element of each row of a wide table. Of its columns, the times are in microseconds."""

    def _times(self, columns: dict[str, Ids]) -> npt.NDArray[np.int64]:
        return columns[TIME]

    def ask(self, column: pa.Array, times: npt.NDArray[np.int64]) -> None:
        """Ask once about times that may be in another unit, where the column's type does not say."""
        if self._on_questionable_time is None or pa.types.is_temporal(column.type):
            return
        if len(found := questionable(times)):
            self._on_questionable_time(times.item(found[0]))
            self._on_questionable_time = None

    def _no_time(self, columns: dict[str, Ids], row: int) -> str:
        return f"the row has no time; {EXPECTED}, or a timestamp"

    def _no_triple(self, columns: dict[str, Ids], row: int) -> str:
        if not columns[SUBJECT][row]:
            return "the row has no subject: a value in it is missing, or no part of an IRI; drop such rows before"
        return "none of the columns has a value in this row; drop such rows before"


def frame_rows(
    batches: Iterable[pa.RecordBatch], how: FrameMap, elements: FrameElements, dictionary: Dictionary
) -> Iterator[Rows]:
    """The rows of consecutive parts of a table, for `elements`. UsageError for a column that is not there."""
    first = 1
    for batch in batches:
        _check_columns(batch.schema.names, how)
        chosen = batch.select(how.names)
        for start in range(0, len(chosen), _ROWS):
            part = chosen.slice(start, _ROWS)
            yield _rows(part, first + start, how, elements, dictionary)
        first += len(batch)


def _rows(part: pa.RecordBatch, first: int, how: FrameMap, elements: FrameElements, dictionary: Dictionary) -> Rows:
    columns = dict(zip(part.schema.names, part.columns, strict=True))
    # Not a view of the table: kernels are compiled for one kind of array.
    times = np.array(times_of_column(columns[how.time]))
    elements.ask(columns[how.time], times)
    found = {SUBJECT: _iris(how.subject, columns, len(part), dictionary), TIME: times}
    for at, (name, _, template) in enumerate(how.columns):
        found[str(at)] = (
            ids_of_column(columns[name], name, dictionary)
            if template is None
            else _iris(template, columns, len(part), dictionary)
        )
    rows = TableRows(part, np.arange(first, first + len(part)))
    return Rows(found, rows.lines, lambda line: row_text(rows, line) or "")


def _check_columns(names: list[str], how: FrameMap) -> None:
    for name in how.names:
        if name not in names:
            raise UsageError(
                f"the frame has no column {name!r}; its columns are {', '.join(map(repr, names)) or 'none'}"
            )
        if names.count(name) > 1:
            raise UsageError(f"the frame has {names.count(name)} columns {name!r}: rename all but one")


def _iris(template: IriTemplate, columns: Mapping[str, pa.Array], rows: int, dictionary: Dictionary) -> Ids:
    """The IRI of each row (n); 0 where a column has no value, or the text is no IRI."""
    if not template.names:
        return np.full(rows, dictionary.encode_one(f"<{template.text}>"), np.int64)
    values = [texts_of_column(columns[name], name) for name in template.names]
    if template.texts != ("", ""):
        values = [_within_an_iri(each) for each in values]
    joined = _alternating(template.texts, values).dictionary_encode()
    texts = _alternating(("<", ">"), [joined.dictionary])
    wrong: dict[int, DataError] = {}
    ids = dictionary.encode_bytes(*buffers(texts), np.zeros(len(texts), np.int64), wrong)
    places = joined.indices.fill_null(len(ids)).to_numpy(zero_copy_only=False)
    found: Ids = np.append(ids, 0)[places]
    return found


def _within_an_iri(texts: pa.Array) -> pa.Array:
    """The texts with all characters that have a meaning in an IRI, or none, as percent and two digits."""
    if pc.any(pc.match_substring_regex(texts, _NOT_IN_A_SEGMENT)).as_py():
        # The percent sign first.
        for character, code in sorted(_ENCODED, key=lambda pair: pair[0] != "%"):
            texts = pc.replace_substring(texts, character, code)
    other = pc.match_substring_regex(texts, _NOT_IN_IRIS).fill_null(False)
    if pc.any(other).as_py():
        characters = set("".join(texts.filter(other).to_pylist()))
        for character in sorted(each for each in characters if not is_iri(f"a:{each}") and each != "%"):
            texts = pc.replace_substring(texts, character, quote(character))
    return texts


def _alternating(texts: tuple[str, ...], values: list[pa.Array]) -> pa.Array:
    """Text and value in turns, beginning and ending with a text; null where a value is."""
    scalars = [pa.scalar(text, pa.large_string()) for text in texts]
    parts = [part for pair in zip(scalars, values, strict=False) for part in pair]
    return pc.binary_join_element_wise(*parts, scalars[-1], pa.scalar("", pa.large_string()))
