"""Results as rows of a data frame, without Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.plan.nodes import TemplateTriple
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
    rows = solution_rows(batch_in(dictionary), dictionary, ("s", "p", "o")).to_pydict()
    assert rows["s"] == COLUMNS["s"]
    assert rows["o"] == COLUMNS["o"]
    assert rows["sign"] == [1, -1, 1, 1, 1]


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
