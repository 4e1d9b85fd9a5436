"""Results of CONSTRUCT as timestamped graphs: one graph a tick, in the form that `.nq` and `.trig` sources read.

The triple `<graph> prov:generatedAtTime "…"` of the default graph stands before each graph. Withdrawn results are not written.
"""

from __future__ import annotations

from typing import IO

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.connectors.construction import Construction, Template
from cqels_py.connectors.rendering import LineBuffer
from cqels_py.connectors.times import GENERATED_AT
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.dictionary.layout import XSD
from cqels_py.kernels.result_lines import write_graphs


class GraphSink:
    """N-Quads: a line a triple; or TriG (`blocks`): a block a graph, terms in full. Graphs are numbered through."""

    def __init__(self, file: IO[str], dictionary: Dictionary, template: Template, *, blocks: bool) -> None:
        self._file = file
        self._construction = Construction(template, dictionary)
        self._blocks = blocks
        self._written = 0
        stamp = f'> {GENERATED_AT} "', f'"^^<{XSD}dateTime> .\n'
        around = ("> {\n", "  ", "", "", " .\n", "}\n") if blocks else ("", "", " ", ">", " .\n", "")
        self._buffer = LineBuffer(file, dictionary, ("<urn:cqels:result:", *stamp, *around))

    def write(self, batch: ResultBatch) -> None:
        """Write a graph for each tick, and flush."""
        graphs, _ = self._construction.graphs(batch)
        if not len(graphs):
            return
        triples = np.stack((graphs.subject, graphs.predicate, graphs.object))
        row, graph = 0, 0
        while row < triples.shape[1]:
            row, graph, end, known = write_graphs(
                self._blocks, row, graph, self._written, graphs.time, graphs.first, triples, *self._buffer.arrays()
            )
            self._buffer.take(end, known)
        self._written += len(graphs)
        self._file.flush()

    def close(self) -> None:
        pass
