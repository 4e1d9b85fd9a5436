"""The mappings of matching triples, and the terms allowed at each position of a triple."""

from __future__ import annotations

import numpy as np
import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.kernels.values import positions
from cqels_py.kernels.windows.mappings import mappings

SUBJECT, PREDICATE, OBJECT = np.array([1, 2, 3]), np.array([11, 12, 13]), np.array([21, 22, 23])
GRAPH, ELEMENT = np.array([0, 31, 0]), np.array([0, 0, 1])


@pytest.mark.parametrize(("by_triple", "points"), [(False, [500, 600]), (True, [7, 8])])
def test_columns_elements_and_points(by_triple: bool, points: list[int]) -> None:
    columns, elements, of_rows = np.empty((4, 2), np.int64), np.empty(2, np.int64), np.empty(2, np.int64)
    mappings(
        SUBJECT, PREDICATE, OBJECT, GRAPH, np.array([1, 2]), np.array([2, 0, 1, 3]), ELEMENT, np.array([500, 600]),
        np.array([6, 7, 8])[: 3 * by_triple], columns, elements, of_rows,
    )  # fmt: skip
    assert columns.tolist() == [[22, 23], [2, 3], [12, 13], [31, 0]]
    assert elements.tolist() == [0, 1]
    assert of_rows.tolist() == points


def test_literals_are_objects_only_and_blank_nodes_no_predicates() -> None:
    iri, blank, literal, number = Dictionary().encode(["<http://ex.org/a>", "_:b", '"text"', '"1"^^<http://ex.org/t>'])
    terms = np.array([iri, blank, literal, number, 0])
    assert [
        positions.misplaced(terms, each) for each in (positions.SUBJECT, positions.PREDICATE, positions.OBJECT)
    ] == [3, 4, 1]
