"""Results of CONSTRUCT as timestamped graphs, one per tick, in the N-Quads and TriG form that sources read.

Before each graph stands the triple `<graph> prov:generatedAtTime "…"` of the default graph. Turtle has no graphs: a
comment gives number and time, and the triples follow. Retracted results are not written.
"""

from __future__ import annotations

from typing import IO

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.construction import Construction, Template
from cqels_py.formats.rendering import LineBuffer, TextOutput
from cqels_py.formats.times import GENERATED_AT
from cqels_py.kernels.text.result_lines import N_QUADS, TRIG, TURTLE, write_graphs
from cqels_py.terms.layout import XSD

_NAME = "<urn:cqels:result:"
_STAMP = f'> {GENERATED_AT} "', f'"^^<{XSD}dateTime> .\n'
_TEXTS = {
    "nquads": (N_QUADS, (_NAME, *_STAMP, "", "", " ", ">", " .\n", "")),
    "trig": (TRIG, (_NAME, *_STAMP, "> {\n", "  ", "", "", " .\n", "}\n")),
    "ldes": (TRIG, ("<#", *_STAMP, "> {\n", "  ", "", "", " .\n", "}\n")),
    "turtle": (TURTLE, ("# result ", " at ", "\n", "", "", "", "", " .\n", "")),
}
"""For each format, the kernel's form and its fixed texts. In "ldes", TriG, graphs have names within their document."""


class GraphWriter:
    """Writes elements as graphs with their times, numbered from 1 on."""

    STATE = ("_written",)

    def __init__(self, file: IO[str], dictionary: Dictionary, format: str) -> None:
        self._written = 0
        self._form, texts = _TEXTS[format]
        self._buffer = LineBuffer(file, dictionary, texts)

    def number_from(self, number: int) -> None:
        """The next graph gets this number."""
        self._written = number

    def write(self, graphs: ElementBatch) -> None:
        """A graph for each element."""
        triples = np.stack((graphs.subject, graphs.predicate, graphs.object))
        cursor = np.zeros(2, np.int64)
        while cursor[0] < triples.shape[1]:
            end, known = write_graphs(
                self._form, cursor, self._written, graphs.time, graphs.first, triples, *self._buffer.arrays()
            )
            self._buffer.take(end, known)
        self._written += len(graphs)


class GraphSink(TextOutput):
    """N-Quads: one triple per line. TriG: one block per graph. Turtle: one comment per graph. Terms are complete;
    graphs are numbered.
    """

    STATE = ("_construction", "_graphs")

    def __init__(self, file: IO[str], dictionary: Dictionary, format: str, template: Template) -> None:
        super().__init__(file)
        self._construction = Construction(template, dictionary)
        self._graphs = GraphWriter(file, dictionary, format)

    def write(self, batch: ResultBatch) -> None:
        """Write a graph for each tick."""
        graphs, _ = self._construction.graphs(batch)
        self._graphs.write(graphs)
