"""Many small documents of N-Triples or N-Quads, read in one go: a reader for each would cost more than its reading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements
from cqels_py.dictionary import Dictionary
from cqels_py.formats.lines import Malformed
from cqels_py.formats.nesting import are_blank
from cqels_py.formats.ntriples import ELEMENT_BITS, ElementReader, Reading
from cqels_py.kernels.text import tokenizer as kernel

Blocks = Iterable[tuple[bytes, int]]


class Joined(NamedTuple):
    """The elements of documents, one after another. `ends`: how many elements there are up to the end of each document."""

    batch: ElementBatch
    ends: Sequence[int]


class JoinedDocuments(ElementReader):
    """Reads documents as if each had a reader of its own: an element ends with its document, to which its blank nodes belong."""

    def __init__(self, dictionary: Dictionary, reading: Reading, malformed: Malformed) -> None:
        super().__init__(dictionary, reading, malformed)
        self._nesting = None

    def read_documents(self, documents: Iterable[Blocks]) -> Joined | None:
        """The elements of documents, each given as blocks of whole lines with the number of the first one.

        None where blank nodes have triples of their own outside of graphs: whether these nest in other elements is found by reading
        each document alone.
        """
        tokenizer, batches, ends = self._tokenizer, list[ElementBatch](), list[int]()
        taken = 0
        with self._dictionary.holding(self._held):
            for blocks in documents:
                tokenizer.state[kernel.DOCUMENT] = self._dictionary.next_document() << ELEMENT_BITS
                for text, line in blocks:
                    for _ in tokenizer.feed(text, line):
                        full = list(self._take(last=False, room=True))
                        taken += sum(map(len, full))
                        batches += full
                self._end_document()
                ends.append(taken + int(tokenizer.state[kernel.ELEMENTS]))
            batches += self._take(last=True)
        batch = concatenate_elements(batches)
        if self._reading.form == kernel.BY_SUBJECT and are_blank(batch.subject[batch.first[:-1]]).any():
            return None
        return Joined(batch, ends)
