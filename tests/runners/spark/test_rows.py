"""Results as rows of a data frame, without Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.plan.nodes import TemplateTriple
from cqels_py.runners.spark import parts, rows
from cqels_py.runners.spark.rows import solution_rows, triple_rows

COLUMNS: dict[str, list[str | None]] = {
    "s": ["<a:s>", '"text"', "<a:s>", None, "<a:s>"],
    "p": ["<a:p>", "<a:p>", "<a:p>", "<a:p>", "_:x"],
    "o": ['"é\t"@fr', "<a:o>", None, "<a:o>", "<a:o>"],
}


def batch_in(dictionary: Dictionary) -> ResultBatch:
    ids = tuple(dictionary.encode(column) for column in COLUMNS.values())
    return ResultBatch(tuple(COLUMNS), np.arange(5), np.array([1, -1, 1, 1, 1], np.int8), ids)


def test_solutions() -> None:
    dictionary = Dictionary()
    (found,) = solution_rows(batch_in(dictionary), dictionary, ("s", "p", "o"))
    told = found.to_pydict()
    assert told["s"] == COLUMNS["s"]
    assert told["o"] == COLUMNS["o"]
    assert told["sign"] == [1, -1, 1, 1, 1]


@pytest.mark.parametrize("size", [1, 7, 12, 20, 40])
def test_long_results_come_in_several_batches(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dictionary = Dictionary()
    (whole,) = solution_rows(batch_in(dictionary), dictionary, ("s", "p", "o"), 3)
    monkeypatch.setattr(rows, "BYTES", size)
    found = list(solution_rows(batch_in(dictionary), dictionary, ("s", "p", "o"), 3))
    assert pa.Table.from_batches(found).to_pylist() == whole.to_pylist()
    for each in found:
        text = sum(len(row[name] or "") for row in each.to_pylist() for name in COLUMNS)
        assert each.num_rows == 1 or 0 < text < size
    # Batches are as long as they may be.
    assert len(found) <= (5 if size == 1 else 1 + 2 * 50 // size)


def test_there_is_room_for_more_text_than_a_string_column_has() -> None:
    """Pages of zeros that are never written take no memory."""
    length, count = 96 << 20, 24
    texts = pa.LargeStringArray.from_buffers(
        count,
        pa.py_buffer(np.arange(count + 1, dtype=np.int64) * length),
        pa.py_buffer(np.zeros(length * count, np.uint8)),
    )
    assert texts.nbytes > 1 << 31
    with pytest.raises(pa.ArrowInvalid):
        texts.cast(pa.string())
    found = rows._rows(np.arange(count), np.ones(count, np.int8), [texts], ("v",))
    assert [(each["time"][0].value, pc.binary_length(each["v"]).to_pylist()) for each in found] == [
        (n, [length]) for n in range(count)
    ]


def test_long_inputs_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BYTES", 10)
    packed = [b"", b"four", b"eleven long", b"five5", b"five5", b"one", b"x"]
    found = parts.routed_rows(3, packed)
    assert [each["data"].to_pylist() for each in found] == [packed[:2], packed[2:3], packed[3:4], packed[4:]]
    assert pa.Table.from_batches(found)["part"].to_pylist() == [*range(7)]
    monkeypatch.setattr(parts, "_MOST_BYTES", 10)
    with pytest.raises(RunError, match="or the query have more partitions"):
        parts.routed_rows(3, packed)


def test_invalid_triples_are_left_out() -> None:
    dictionary = Dictionary()
    template = (TemplateTriple("?s", "?p", "?o"), TemplateTriple("_:n", "?p", "?o"))
    numbers = pa.array(["10", "11", "12", "13", "14"], pa.large_string())
    found = [
        (row["sign"], row["subject"], row["predicate"], row["object"])
        for part in triple_rows(batch_in(dictionary), dictionary, template, numbers)
        for row in part.to_pylist()
    ]
    assert found == [
        (1, "<a:s>", "<a:p>", '"é\t"@fr'),
        (1, "_:r10_n", "<a:p>", '"é\t"@fr'),
        (-1, "_:r11_n", "<a:p>", "<a:o>"),
        (1, "_:r13_n", "<a:p>", "<a:o>"),
    ]
