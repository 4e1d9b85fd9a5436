"""Rows to elements: BIND and FILTER over columns, then the template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import empty_elements
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, Place
from cqels_py.formats.lines import Malformed
from cqels_py.formats.ntriples import ELEMENT_BITS, Reading
from cqels_py.formats.times import EXPECTED, FAR, NO_TIME, questionable
from cqels_py.mappings.filled_rows import FilledRows
from cqels_py.mappings.mapping import TIME, Mapping
from cqels_py.mappings.rows import Rows
from cqels_py.mappings.terms import times_of_terms


class MappedElements(FilledRows):
    """Makes the elements of a stream, one of each row that the mapping's filters keep."""

    def __init__(self, mapping: Mapping, dictionary: Dictionary, reading: Reading, malformed: Malformed) -> None:
        super().__init__(mapping, dictionary)
        self._reading = reading
        self._malformed = malformed
        self._on_questionable_time = reading.on_questionable_time
        self._scope = dictionary.next_document() << ELEMENT_BITS
        self._made = 0
        self.lines = np.empty(0, np.int64)
        """Of the rows that became the elements of the last batch."""

    def read(self, parts: Iterable[Rows | None]) -> Iterator[ElementBatch]:
        """The elements of consecutive parts; an empty batch where there is none for now."""
        with self._dictionary.holding(self.live):
            for rows in parts:
                batch = None if rows is None else self._elements(rows)
                if batch is None:
                    if self._reading.wait is not None:
                        self._reading.wait.at_rest = True
                    yield empty_elements()
                elif len(batch):
                    yield batch

    def _elements(self, rows: Rows) -> ElementBatch:
        columns, kept = self.evaluated(rows)
        lines = rows.lines[kept]
        times = self._times(columns)
        triples, valid = self.filled(columns, self._scopes(len(lines)))
        counts = valid.sum(axis=1)
        no_time = (times == NO_TIME) | (np.abs(times) >= FAR)
        wrong = np.flatnonzero(no_time | (counts == 0))
        for row in wrong.tolist():
            line = int(lines[row])
            message = (self._no_time if no_time[row] else self._no_triple)(columns, row)
            self._malformed(DataError(message, Place(line, None, self._reading.source)).about(rows.text(line)))
        if len(wrong):
            valid[wrong] = False
            times, counts, lines = (np.delete(each, wrong) for each in (times, counts, lines))
        self.lines = lines
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        stream = np.full(len(times), self._reading.stream, np.int32)
        # Kernels take each column as contiguous.
        subject, predicate, object_ = np.ascontiguousarray(triples[:, valid.reshape(-1)])
        return ElementBatch(times, stream, first, subject, predicate, object_)

    def _scopes(self, rows: int) -> Ids:
        first = self._scope + self._made
        self._made += rows
        return np.arange(first, first + rows, dtype=np.int64)

    def _times(self, columns: dict[str, Ids]) -> npt.NDArray[np.int64]:
        """Microseconds (n); NO_TIME where ?time is none."""
        times = times_of_terms(columns[TIME], self._dictionary)
        if self._on_questionable_time is not None and len(found := questionable(times)):
            self._on_questionable_time(times.item(found[0]))
            self._on_questionable_time = None
        return times

    def _no_time(self, columns: dict[str, Ids], row: int) -> str:
        (found,) = self._dictionary.decode(columns[TIME][row : row + 1])
        return f"the element has no time: ?time is {'unbound' if found is None else found}; {EXPECTED}"

    def _no_triple(self, columns: dict[str, Ids], row: int) -> str:
        parts = dict.fromkeys(part for triple in self._mapping.template for part in triple if part.startswith("?"))
        found = self._dictionary.decode(np.array([columns[part[1:]][row] for part in parts], np.int64))
        shown = ", ".join(f"{part} is {text or 'unbound'}" for part, text in zip(parts, found, strict=True))
        unbound = next((part for part, text in zip(parts, found, strict=True) if text is None), None)
        way_out = "" if unbound is None else f"; FILTER(BOUND({unbound})) leaves such rows out"
        return f"the mapping makes no triple of it: {shown}{way_out}"
