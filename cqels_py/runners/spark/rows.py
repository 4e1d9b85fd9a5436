"""Results as rows of a data frame: one for each solution or, for CONSTRUCT, one for each triple."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

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
BYTES = 1 << 26
"""Of text in a batch of rows: as many as Spark itself gives to a batch."""


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
) -> Iterator[pa.RecordBatch]:
    """A row for each solution; `names` of the columns. `step`: the number of the results' step, among those whose rows
    are together."""
    ticks = None
    if step is not None:
        within = np.zeros(len(batch), np.int64) if batch.tick is None else batch.tick.astype(np.int64)
        ticks = pa.array((step << _STEP_SHIFT) + within)
    texts = [render_terms(column, dictionary) for column in batch.columns]
    yield from _rows(batch.time, batch.sign, texts, names, ticks)


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
    yield from _rows(batch.time[result], batch.sign[result], [text.combine_chunks() for text in texts], _TRIPLE)


def graph_rows(
    graphs: ElementBatch, numbers: npt.NDArray[np.int64], dictionary: Dictionary
) -> Iterator[pa.RecordBatch]:
    """A row for each triple of graphs (n), which are elements with these numbers (n)."""
    sizes = np.diff(graphs.first)
    texts = [render_terms(ids, dictionary) for ids in graphs.positions[: len(_TRIPLE)]]
    texts.append(pa.array(np.repeat(numbers, sizes)).cast(pa.large_string()))
    yield from _rows(np.repeat(graphs.time, sizes), np.ones(graphs.triples, np.int8), texts, GRAPH_COLUMNS)


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
    time: npt.NDArray[np.int64],
    sign: npt.NDArray[np.int8],
    texts: list[pa.Array],
    names: tuple[str, ...],
    ticks: pa.Array | None = None,
) -> Iterator[pa.RecordBatch]:
    """Rows with these columns (n each), in batches of about BYTES of text. `texts` are large strings, as they may be longer than
    the strings of a batch, which have room for 2 GB.

    Spark has each batch in memory that it does not share with others, and an executor ends that lacks it.
    """
    schema = row_schema(names, ticks=ticks is not None)
    columns = [pa.array(time, pa.timestamp("us", tz="UTC")), pa.array(sign, pa.int8()), *texts]
    if ticks is not None:
        columns.append(ticks)
    for first, last in pairwise([0, *_cuts_of_texts(texts), len(time)]):
        # Concatenated, as offsets that begin at 0 are small enough for the shorter form.
        some = columns if last - first == len(time) else [pa.concat_arrays([each[first:last]]) for each in columns]
        yield pa.record_batch([each.cast(kind.type) for each, kind in zip(some, schema, strict=True)], schema=schema)


def _cuts_of_texts(texts: list[pa.Array]) -> list[int]:
    """As `cuts`, by all columns of texts (n each)."""
    if sum(each.nbytes for each in texts) < BYTES:
        return []
    return cuts(sum(pc.binary_length(each).fill_null(0).to_numpy(zero_copy_only=False) for each in texts))


def cuts(sizes: npt.NDArray[np.int64]) -> list[int]:
    """The numbers of rows, by the bytes of each (n), before which another batch begins: each has less than BYTES, or one row."""
    until = np.cumsum(sizes)
    found, start, before = [], 0, 0
    while (end := max(start + 1, int(np.searchsorted(until, before + BYTES)))) < len(until):
        found.append(end)
        start, before = end, int(until[end - 1])
    return found
