"""Results of CONSTRUCT as timestamped graphs: one graph a tick, in the form that `.nq` and `.trig` sources read.

The triple `<graph> prov:generatedAtTime "…"` of the default graph stands before each graph. Withdrawn results are not written.
"""

from __future__ import annotations

from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.results import ResultBatch
from cqels_py.connectors.construction import Construction, Template
from cqels_py.connectors.rendering import constant, join, render_terms, render_times, write_rows
from cqels_py.connectors.times import GENERATED_AT
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.dictionary.layout import XSD


class _GraphSink:
    """What both formats share. Graphs are numbered through."""

    def __init__(self, file: IO[str], dictionary: Dictionary, template: Template) -> None:
        self._file = file
        self._dictionary = dictionary
        self._construction = Construction(template, dictionary)
        self._written = 0

    def write(self, batch: ResultBatch) -> None:
        graphs, _ = self._construction.graphs(batch)
        if not len(graphs):
            return
        numbers = pa.array(np.arange(self._written, self._written + len(graphs))).cast(pa.large_string())
        self._written += len(graphs)
        name = join("<urn:cqels:result:", numbers, ">")
        time = join(name, f' {GENERATED_AT} "', render_times(graphs.time), f'"^^<{XSD}dateTime> .\n')
        graph = np.repeat(np.arange(len(graphs)), np.diff(graphs.first))
        starts, ends = np.zeros(len(graph), np.bool_), np.zeros(len(graph), np.bool_)
        starts[graphs.first[:-1]] = ends[graphs.first[1:] - 1] = True
        terms = [render_terms(ids, self._dictionary) for ids in (graphs.subject, graphs.predicate, graphs.object)]
        place = pa.array(graph)
        lines = self._lines(time.take(place), name.take(place), join(*terms, separator=" "), starts, ends)
        write_rows(self._file, lines)
        self._file.flush()

    def close(self) -> None:
        pass

    def _lines(self, time: pa.Array, name: pa.Array, triple: pa.Array, starts: object, ends: object) -> pa.Array:
        """Each triple's text, with what stands before and behind it where it is the first or last of its graph."""
        raise NotImplementedError


def _where(chosen: object, text: pa.Array | pa.Scalar) -> pa.Array:
    return pc.if_else(pa.array(chosen), text, constant(""))


class NQuadsSink(_GraphSink):
    """N-Quads: a line a triple."""

    def _lines(self, time: pa.Array, name: pa.Array, triple: pa.Array, starts: object, ends: object) -> pa.Array:
        return join(_where(starts, time), triple, " ", name, " .\n")


class TrigSink(_GraphSink):
    """TriG: a block a graph, terms in full."""

    def _lines(self, time: pa.Array, name: pa.Array, triple: pa.Array, starts: object, ends: object) -> pa.Array:
        head = join(time, name, " {\n")
        return join(_where(starts, head), "  ", triple, " .\n", _where(ends, constant("}\n")))
