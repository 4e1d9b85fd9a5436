"""Results as rows of a data frame: one for each solution or, for CONSTRUCT, one for each triple."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.formats.rendering import render_terms
from cqels_py.plan.nodes import TemplateTriple, is_variable

_TRIPLE = ("subject", "predicate", "object")
_ALLOWED = ("<_", "<", '<_"')
"""The first characters of subjects, predicates and objects."""
_BLANK = "_:"
_RESERVED = ("time", "sign")
TICK = "tick"
ELEMENT = "element"
"""A column that differs between elements which follow each other, where the names of graphs do not matter."""
GRAPH_COLUMNS = (*_TRIPLE, ELEMENT)
_STEP_SHIFT = 32


def check_names(variables: tuple[str, ...]) -> None:
    """UsageError for a variable whose column would clash with another one (names of columns are not case-sensitive in
    Spark)."""
    seen = dict.fromkeys(_RESERVED, "a column of every result")
    for name in variables:
        if name.lower() in seen:
            raise UsageError(
                f"?{name} cannot be a column of a data frame beside {seen[name.lower()]}: give it another name"
            )
        seen[name.lower()] = f"?{name}"


def row_schema(columns: tuple[str, ...], *, ticks: bool = False) -> pa.Schema:
    """time, sign, and text columns; and with `ticks`, at the end, numbers that order ticks of equal time."""
    fields = [("time", pa.timestamp("us", tz="UTC")), ("sign", pa.int8()), *((name, pa.string()) for name in columns)]
    return pa.schema([*fields, (TICK, pa.int64())] if ticks else fields)


def columns_of(variables: tuple[str, ...], template: tuple[TemplateTriple, ...]) -> tuple[str, ...]:
    """The text columns of a query's rows."""
    return _TRIPLE if template else variables


def solution_rows(
    batch: ResultBatch, dictionary: Dictionary, names: tuple[str, ...], step: int | None = None
) -> pa.RecordBatch:
    """A row for each solution; `names` of the columns. `step`: the number of the results' step, among those whose rows
    are together."""
    texts = [render_terms(column, dictionary).cast(pa.string()) for column in batch.columns]
    rows = _rows(batch, None, texts, names)
    if step is None:
        return rows
    within = np.zeros(len(batch), np.int64) if batch.tick is None else batch.tick.astype(np.int64)
    return rows.append_column(TICK, pa.array((step << _STEP_SHIFT) + within))


def triple_rows(
    batch: ResultBatch, dictionary: Dictionary, template: tuple[TemplateTriple, ...], numbers: pa.Array
) -> Iterator[pa.RecordBatch]:
    """A row for each triple of each result's graph. `numbers`: a text for each, which no other result has, for blank
    nodes."""
    triples = [
        [_term(batch, dictionary, part, place, numbers) for place, part in enumerate(_parts(t))] for t in template
    ]
    wanted = [pc.and_(pc.and_(s.is_valid(), p.is_valid()), o.is_valid()) for s, p, o in triples]
    for i, j in combinations(range(len(template)), 2):
        # A graph is a set: repeated triples are left out.
        same = [pc.equal(one, other).fill_null(False) for one, other in zip(triples[i], triples[j], strict=True)]
        repeated = pc.and_(pc.and_(pc.and_(same[0], same[1]), same[2]), wanted[i])
        wanted[j] = pc.and_(wanted[j], pc.invert(repeated))
    keep = np.stack([mask.to_numpy(zero_copy_only=False) for mask in wanted])
    result, triple = np.nonzero(keep.T)
    texts = [
        pa.chunked_array([terms[place] for terms in triples]).take(pa.array(triple * len(batch) + result))
        for place in range(len(_TRIPLE))
    ]
    yield _rows(batch, result, [text.combine_chunks().cast(pa.string()) for text in texts], _TRIPLE)


def graph_rows(graphs: ElementBatch, numbers: npt.NDArray[np.int64], dictionary: Dictionary) -> pa.RecordBatch:
    """A row for each triple of graphs (n), which are elements with these numbers (n)."""
    sizes = np.diff(graphs.first)
    texts = [render_terms(ids, dictionary).cast(pa.string()) for ids in graphs.positions[: len(_TRIPLE)]]
    times = pa.array(np.repeat(graphs.time, sizes), pa.timestamp("us", tz="UTC"))
    signs = pa.array(np.ones(graphs.triples, np.int8))
    elements = pa.array(np.repeat(numbers, sizes)).cast(pa.string())
    return pa.record_batch([times, signs, *texts, elements], schema=row_schema(GRAPH_COLUMNS))


def _parts(triple: TemplateTriple) -> tuple[str, str, str]:
    return triple.subject, triple.predicate, triple.object


def _term(batch: ResultBatch, dictionary: Dictionary, part: str, place: int, numbers: pa.Array) -> pa.Array:
    if part.startswith(_BLANK):
        # Labels of the dictionary start with "b".
        around = [pa.scalar(text, pa.large_string()) for text in ("_:r", f"_{part[len(_BLANK) :]}", "")]
        return pc.binary_join_element_wise(around[0], numbers, *around[1:])
    if not is_variable(part):
        return pa.array([part] * len(batch), pa.large_string())
    if part[1:] not in batch.variables:
        return pa.nulls(len(batch), pa.large_string())
    column = batch.columns[batch.variables.index(part[1:])]
    texts = render_terms(column, dictionary)
    allowed = pc.is_in(pc.utf8_slice_codeunits(texts, 0, 1), pa.array(list(_ALLOWED[place]), pa.large_string()))
    return pc.if_else(allowed, texts, None)


def _rows(
    batch: ResultBatch, chosen: np.ndarray | None, texts: list[pa.Array], names: tuple[str, ...]
) -> pa.RecordBatch:
    time, sign = (batch.time, batch.sign) if chosen is None else (batch.time[chosen], batch.sign[chosen])
    columns = [pa.array(time, pa.timestamp("us", tz="UTC")), pa.array(sign, pa.int8()), *texts]
    return pa.record_batch(columns, schema=row_schema(names))
