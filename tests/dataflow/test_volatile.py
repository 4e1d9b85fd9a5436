"""Random values that a seed decides: of each row, whatever rows are evaluated with it."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest

from cqels_py.dataflow.volatile import VolatileFunction, VolatileValues
from cqels_py.dictionary import Dictionary

SEED = "00" * 16


def values(seed: str, parts: list[int], function: str, name: str = "u") -> list[str | None]:
    """The texts of rows that are evaluated in parts."""
    dictionary = Dictionary()
    made = VolatileValues(dictionary, seed)
    found: list[str | None] = []
    for rows in parts:
        made.begin(rows)
        column = VolatileFunction(made, function, name, labelled=False)
        found += dictionary.decode(column.evaluate((), np.zeros(rows, np.int64)))
    return found


@pytest.mark.parametrize("function", ["UUID", "STRUUID", "RAND", "BNODE"])
def test_the_seed_and_the_number_of_the_row_decide(function: str) -> None:
    whole = values(SEED, [200], function)
    assert len(set(whole)) == 200
    assert values(SEED, [1, 77, 2, 120], function) == whole
    if function != "BNODE":
        assert not set(whole) & set(values(SEED, [200], function, name="v"))
        assert not set(whole) & set(values("01" * 16, [200], function))
        assert not set(values("", [200], function)) & set(values("", [200], function))


def test_uuids_are_of_version_4() -> None:
    for text in values(SEED, [50], "UUID"):
        assert text is not None
        found = UUID(text.removeprefix("<urn:uuid:").removesuffix(">"))
        assert found.version == 4
        assert found.variant == "specified in RFC 4122"


def test_random_numbers_are_between_0_and_1() -> None:
    numbers = [float(str(text).split('"')[1]) for text in values(SEED, [400], "RAND")]
    assert 0 <= min(numbers) < 0.02
    assert 0.98 < max(numbers) < 1
