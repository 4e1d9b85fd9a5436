"""CONSTRUCT: columns of results to event graphs, one graph per tick.

The positive results of a tick form one graph with the tick's time. Each triple is in it once; the template's blank
nodes are new for each result. A triple with an unbound value or a misplaced term (a literal as subject) is left out,
and so is an empty graph. Retracted results are ignored. The order of a tick's results depends on batches. The order of
a graph's triples does not, because windows that count triples depend on it: results are processed in the order of their
ids, which are derived from the terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import empty_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.terms.layout import TAG_BLANK, TAG_IRI, TAG_OVERFLOW, TAG_SHIFT, UNBOUND

Template = Sequence[tuple[str, str, str]]
"""Triples of variables ("?name"), N-Triples texts and blank nodes ("_:label", new for each result)."""

_MOST_RESULTS = 1 << 40


class Filling:
    """A template, whose triples are filled with rows of terms; its constants stay in the dictionary."""

    def __init__(self, template: Template, dictionary: Dictionary) -> None:
        self._template = tuple(template)
        self._dictionary = dictionary
        constants = [part for triple in template for part in triple if part[0] not in "?_"]
        self._constants = dict(zip(constants, dictionary.encode(constants).tolist(), strict=True))
        dictionary.pin(np.array(list(self._constants.values()), np.int64))

    def __len__(self) -> int:
        return len(self._template)

    def triples(self, columns: Mapping[str, Ids], scopes: Ids) -> Ids:
        """(3, n * len(self)): all triples of the first row, then all of the second, and so on.

        `columns`: n terms by variable; `scopes` (n): blank nodes are new for each.
        """
        filled = np.stack([[self._term(part, columns, scopes) for part in triple] for triple in self._template])
        return filled.transpose(1, 2, 0).reshape(3, -1)

    def valid(self, triples: Ids) -> npt.NDArray[np.bool_]:
        """Which of them are RDF: nothing is unbound, and no literal is a subject or predicate."""
        subject, predicate, object_ = triples
        iri = self._is_iri(predicate)
        node = self._is_iri(subject) | (_tag(subject) == TAG_BLANK)
        valid: npt.NDArray[np.bool_] = iri & node & (object_ != UNBOUND)
        return valid

    def _term(self, part: str, columns: Mapping[str, Ids], scopes: Ids) -> Ids:
        """The ids of one position of one template triple, one for each row."""
        if part.startswith("?"):
            return columns.get(part[1:], np.full(len(scopes), UNBOUND, np.int64))
        if not part.startswith("_:"):
            return np.full(len(scopes), self._constants[part], np.int64)
        label = np.frombuffer(part.encode(), np.uint8)
        offsets = np.arange(len(scopes) + 1, dtype=np.int64) * len(label)
        return self._dictionary.encode_bytes(np.tile(label, len(scopes)), offsets, scopes)

    def _is_iri(self, ids: Ids) -> npt.NDArray[np.bool_]:
        tag = _tag(ids)
        found: npt.NDArray[np.bool_] = tag == TAG_IRI
        other = np.flatnonzero(tag == TAG_OVERFLOW)
        if len(other):
            distinct, place = np.unique(ids[other], return_inverse=True)
            known = [text is not None and text.startswith("<") for text in self._dictionary.decode(distinct)]
            found[other] = np.array(known)[place.reshape(-1)]
        return found


class Construction:
    """A query's template, filled with results. Blank nodes differ between results, also across batches.

    `scope`: the number of their scopes, None: one that no other construction in the dictionary has.
    """

    STATE = ("_scope", "_results")

    def __init__(self, template: Template, dictionary: Dictionary, scope: int | None = None) -> None:
        self._filling = Filling(template, dictionary)
        self._scope = dictionary.next_document() * _MOST_RESULTS if scope is None else scope
        self._results = 0

    def go_on_after(self, results: int) -> None:
        """So many results were there before the next one: equal numbers have equal blank nodes."""
        self._results = results

    def graphs(self, batch: ResultBatch) -> tuple[ElementBatch, npt.NDArray[np.int64]]:
        """The graphs (n) as elements of stream 0, and for each graph the position of its first result in the batch."""
        rows = np.flatnonzero(batch.sign > 0)
        size = len(self._filling)
        if not len(rows) or not size:
            return empty_elements(), np.empty(0, np.int64)
        graph_of = _numbers(batch.time[rows], None if batch.tick is None else batch.tick[rows])
        if graph_of[-1] + 1 < len(rows):
            rows = rows[np.lexsort((*(column[rows] for column in batch.columns), graph_of))]
        columns = {name: column[rows] for name, column in zip(batch.variables, batch.columns, strict=True)}
        scopes = -(self._scope + self._results + np.arange(len(rows), dtype=np.int64))
        self._results += len(rows)
        triples = self._filling.triples(columns, scopes)
        graph = np.repeat(graph_of, size)
        kept = _each_once(graph, triples, np.flatnonzero(self._filling.valid(triples)))
        numbers, first = np.unique(graph[kept], return_index=True)
        opening = rows[np.searchsorted(graph, numbers) // size]
        bounds = np.append(first, len(kept)).astype(np.int64)
        stream = np.zeros(len(numbers), np.int32)
        return ElementBatch(batch.time[opening], stream, bounds, *triples[:, kept]), opening


def _tag(ids: Ids) -> Ids:
    tags: Ids = (ids >> TAG_SHIFT) & 15
    return tags


def _numbers(time: Ids, tick: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int64]:
    """The number of each result's graph. Results are ordered by tick."""
    changes = np.diff(time) != 0
    if tick is not None:
        changes |= np.diff(tick) != 0
    return np.concatenate([[0], np.cumsum(changes)])


def _each_once(graph: Ids, triples: Ids, kept: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The triples at `kept` without repetitions within a graph, in order."""
    subject, predicate, object_ = triples[:, kept]
    graph = graph[kept]
    order = np.lexsort((object_, predicate, subject, graph))
    repeated = np.zeros(len(kept), np.bool_)
    same = [column[order][1:] == column[order][:-1] for column in (object_, predicate, subject, graph)]
    repeated[order[1:]] = np.all(same, axis=0)
    return kept[~repeated]
