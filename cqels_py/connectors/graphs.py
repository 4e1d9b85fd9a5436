"""Results of CONSTRUCT as timestamped graphs: one graph a result, in the form that `.nq` and `.trig` sources read.

The triple `<graph> prov:generatedAtTime "…"` of the default graph stands before each graph. Withdrawn results are not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.connectors.rendering import constant, join, join_present, render_terms, render_times, write_rows
from cqels_py.connectors.times import GENERATED_AT
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.dictionary.layout import XSD

Template = Sequence[tuple[str, str, str]]
"""Triples of variables ("?name"), N-Triples texts and blank nodes ("_:label", fresh in every result)."""


class _GraphSink:
    """What both formats share. Graphs are numbered through."""

    def __init__(self, file: IO[str], dictionary: Dictionary, template: Template) -> None:
        self._file = file
        self._dictionary = dictionary
        self._template = template
        self._alike = [
            (i, j) for (i, a), (j, b) in combinations(enumerate(template), 2) if all(map(_may_be_equal, a, b))
        ]
        self._written = 0

    def write(self, batch: ResultBatch) -> None:
        positive = batch.sign > 0
        columns = {name: column[positive] for name, column in zip(batch.variables, batch.columns, strict=True)}
        times = batch.time[positive]
        if not len(times) or not self._template:
            return
        numbers = np.arange(self._written, self._written + len(times))
        self._written += len(times)
        number = pa.array(numbers).cast(pa.large_string())
        triples = self._once([self._triple(triple, columns, number) for triple in self._template])
        any_triple = np.any([triple.is_valid().to_numpy(zero_copy_only=False) for triple in triples], axis=0)
        time = join(f'{GENERATED_AT} "', render_times(times), f'"^^<{XSD}dateTime> .\n')
        graphs = self._graphs(join("<urn:cqels:result:", number, ">"), time, triples)
        write_rows(self._file, graphs.filter(pa.array(any_triple)))
        self._file.flush()

    def close(self) -> None:
        pass

    def _graphs(self, name: pa.Array, time: pa.Array, triples: list[pa.Array]) -> pa.Array:
        """Each result's text. A triple that is null is not in its graph."""
        raise NotImplementedError

    def _once(self, triples: list[pa.Array]) -> list[pa.Array]:
        """A graph is a set: what an earlier triple of the result says too becomes null."""
        for i, j in self._alike:
            repeated = pc.equal(triples[i], triples[j]).fill_null(False)
            triples[j] = pc.if_else(repeated, pa.scalar(None, pa.large_string()), triples[j])
        return triples

    def _triple(self, triple: tuple[str, str, str], columns: dict[str, Ids], number: pa.Array) -> pa.Array:
        parts = [self._term(part, place, columns, number) for place, part in enumerate(triple)]
        return join(*parts, separator=" ")

    def _term(self, part: str, place: int, columns: dict[str, Ids], number: pa.Array) -> pa.Array:
        """One position of one template triple, a text a row; null where no triple can have it."""
        if part.startswith("_:"):
            # Labels of the dictionary start with "b".
            return join("_:r", number, f"_{part[2:]}")
        if not part.startswith("?"):
            return pa.repeat(constant(part), len(number))
        name = part[1:]
        if name not in columns:
            return pa.nulls(len(number), pa.large_string())
        return render_terms(columns[name], self._dictionary, lambda text: text if text[0] in _ALLOWED[place] else None)


def _may_be_equal(a: str, b: str) -> bool:
    """Can one position of two template triples be the same term? A fresh blank node is nothing that a variable has."""
    return a == b or (a[0] == "?" and not b.startswith("_:")) or (b[0] == "?" and not a.startswith("_:"))


_ALLOWED = ("<_", "<", '<_"')
"""How subjects, predicates and objects start."""


class NQuadsSink(_GraphSink):
    """N-Quads: a line a triple."""

    def _graphs(self, name: pa.Array, time: pa.Array, triples: list[pa.Array]) -> pa.Array:
        return join_present(join(name, " ", time), *(join(triple, " ", name, " .\n") for triple in triples))


class TrigSink(_GraphSink):
    """TriG: a block a graph, terms in full."""

    def _graphs(self, name: pa.Array, time: pa.Array, triples: list[pa.Array]) -> pa.Array:
        head = join(name, " ", time, name, " {\n")
        return join_present(
            head, *(join("  ", triple, " .\n") for triple in triples), pa.repeat(constant("}\n"), len(name))
        )
