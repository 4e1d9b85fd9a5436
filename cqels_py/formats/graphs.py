"""Results of CONSTRUCT as timestamped graphs: one graph a tick, N-Quads and TriG in the form that `.nq` and `.trig` sources read.

The triple `<graph> prov:generatedAtTime "…"` of the default graph stands before each graph. Turtle has no graphs: there a
comment says number and time, and the triples are plain ones. Withdrawn results are not written.
"""

from __future__ import annotations

from typing import IO

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.construction import Construction, Template
from cqels_py.formats.rendering import LineBuffer
from cqels_py.formats.times import GENERATED_AT
from cqels_py.kernels.text.result_lines import N_QUADS, TRIG, TURTLE, write_graphs
from cqels_py.terms.layout import XSD

_NAME = "<urn:cqels:result:"
_STAMP = f'> {GENERATED_AT} "', f'"^^<{XSD}dateTime> .\n'
_TEXTS = {
    "nquads": (N_QUADS, (_NAME, *_STAMP, "", "", " ", ">", " .\n", "")),
    "trig": (TRIG, (_NAME, *_STAMP, "> {\n", "  ", "", "", " .\n", "}\n")),
    "turtle": (TURTLE, ("# result ", " at ", "\n", "", "", "", "", " .\n", "")),
}
"""Of each format, the kernel's form and fixed texts."""


class GraphSink:
    """N-Quads: a line a triple; TriG: a block a graph; Turtle: a comment a graph. Terms in full, graphs numbered through."""

    def __init__(self, file: IO[str], dictionary: Dictionary, format: str, template: Template) -> None:
        self._file = file
        self._construction = Construction(template, dictionary)
        self._written = 0
        self._form, texts = _TEXTS[format]
        self._buffer = LineBuffer(file, dictionary, texts)

    def write(self, batch: ResultBatch) -> None:
        """Write a graph for each tick, and flush."""
        graphs, _ = self._construction.graphs(batch)
        if not len(graphs):
            return
        triples = np.stack((graphs.subject, graphs.predicate, graphs.object))
        row, graph = 0, 0
        while row < triples.shape[1]:
            row, graph, end, known = write_graphs(
                self._form, row, graph, self._written, graphs.time, graphs.first, triples, *self._buffer.arrays()
            )
            self._buffer.take(end, known)
        self._written += len(graphs)
        self._file.flush()

    def close(self) -> None:
        pass
