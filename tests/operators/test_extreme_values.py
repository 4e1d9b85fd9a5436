"""Every function over the largest and oddest values that terms can have: an error of SPARQL at most, never one of Python."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from cqels_py.functions.numbers import Number, number_term, parse_number
from cqels_py.functions.program import evaluate_program
from cqels_py.functions.table import FUNCTIONS
from cqels_py.functions.terms import XSD, XSD_DECIMAL, XSD_INTEGER, Term, literal

NINES = "9" * 4000
_LONG_DURATION = f"P{'9' * 9}Y{'9' * 9}M{'9' * 9}DT{'9' * 9}H{'9' * 9}M{'9' * 9}.{'9' * 18}S"
TEXTS = {
    XSD_INTEGER: (NINES, f"-{NINES[:-1]}", "7" * 3000, "9" * 5000, "0", "-1", "3"),
    XSD_DECIMAL: (f"{NINES[:2000]}.{NINES[:1999]}", f"0.{NINES[:3998]}", f"0.{'0' * 3996}7", "-0.5", "3.0"),
    XSD + "double": ("1E308", "-INF", "NaN", "4.9E-324", "-0.0", "1e999999999"),
    XSD + "float": ("1E308", "3.4E38", "-0.0", "1e-999999999"),
    XSD + "dateTime": (
        "999999999-12-31T23:59:59.999999999Z",
        "-999999999-01-01T00:00:00+14:00",
        "9" * 5000,
        "2024-05-01T12:00:00.5Z",
    ),
    XSD + "date": ("999999999-12-31", f"{'9' * 5000}-12-31"),
    XSD + "duration": (_LONG_DURATION, f"-{_LONG_DURATION}"),
    XSD + "yearMonthDuration": (f"P{'9' * 9}Y", "P0M"),
    XSD + "dayTimeDuration": (f"-P{'9' * 9}D", "PT0S"),
    XSD + "boolean": ("true", "maybe"),
    XSD + "string": ("", "a" * 5000, NINES, "9" * 5000, f"P{'9' * 5000}Y", "(a+)+$", "2024-02-30", "\U0010ffff"),
}
VALUES = [literal(text, datatype) for datatype, texts in TEXTS.items() for text in texts]


def arguments(name: str) -> list[Sequence[Term]]:
    """All single values and pairs, some of the longer lists."""
    _, least, most, _ = FUNCTIONS[name]
    random, found = Random(name), list[Sequence[Term]]()
    for count in range(least, min(4, most if most is not None else 4) + 1):
        every = (
            list(product(VALUES, repeat=count)) if count < 3 else [random.choices(VALUES, k=count) for _ in range(300)]
        )
        found += every if len(every) <= 1000 else random.sample(every, 1000)
    return found


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_no_function_raises_an_error_of_python(name: str) -> None:
    for given in arguments(name):
        program = [*(("variable", place) for place in range(len(given))), (name, len(given))]
        found = evaluate_program(program, list(given), 0)
        assert found is None or isinstance(found, Term)


@pytest.mark.parametrize("digits", [1999, 2000, 2001, 3000, 4000])
def test_products_have_at_most_4000_digits(digits: int) -> None:
    value = int("9" * digits)
    term = literal(str(value), XSD_INTEGER)
    found = evaluate_program([("variable", 0), ("variable", 0), ("*", 2)], [term], 0)
    if 2 * digits > 4000:
        assert found is None
    else:
        # Python's own product, checked without its text.
        assert found is not None
        assert parse_number(found.text, XSD_INTEGER) == Number(0, value * value)
    assert number_term(Number(0, value)) == term
