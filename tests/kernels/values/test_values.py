from __future__ import annotations

import datetime
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.kernels.values import decimals, values
from cqels_py.terms.layout import ZONE_Z
from tests.operators.plain_dictionary import inline_id

DAYS = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))


def identifier(text: str, datatype: str) -> np.int64:
    found = inline_id(text, datatype)
    assert found is not None
    return np.int64(found)


@pytest.mark.parametrize(
    ("text", "datatype", "kind", "number", "scale"),
    [
        ("-5", "integer", values.INTEGER, -5, 0),
        ("127", "byte", values.INTEGER, 127, 0),
        (str(-(1 << 55)), "integer", values.INTEGER, -(1 << 55), 0),
        ("-23.50", "decimal", values.DECIMAL, -2350, 2),
        ("0.000000000000001", "decimal", values.DECIMAL, 1, 15),
        ("true", "boolean", values.BOOLEAN, 1, 0),
        ("0", "boolean", values.BOOLEAN, 0, 0),
        ("1", "boolean", values.BOOLEAN, 1, 0),
        ("1969-12-31T23:59:59.5Z", "dateTime", values.DATETIME, -500_000, ZONE_Z),
        ("1970-01-01T01:00:00.123456Z", "dateTime", values.DATETIME, 3_600_123_456, ZONE_Z),
        ("1969-12-31T23:59:59.999999", "dateTime", values.DATETIME, -1, 0),
        ("1970-01-01T01:00:00+01:00", "dateTime", values.DATETIME, 0, 62),
        ("1970-01-01T01:00:00-14:00", "dateTime", values.DATETIME, 15 * 3_600_000_000, 2),
        ("1969-12-30", "date", values.DATE, -2, 0),
        ("1970-01-02+14:00", "date", values.DATE, 1, 114),
    ],
)
def test_ids_are_decoded(text: str, datatype: str, kind: int, number: int, scale: int) -> None:
    assert values.decode(identifier(text, datatype)) == (kind, number, scale, 0.0)


def test_doubles_and_floats_are_decoded() -> None:
    assert values.decode(identifier("-0.1", "double"))[3] == -0.1
    assert values.decode(identifier("0.1", "float"))[3] == float(np.float32(0.1))
    assert values.decode(identifier("16777217", "float"))[3] == 16777216.0
    # Beyond 53 bits the quotient of two rounded numbers need not be the nearest double.
    assert values.decode(identifier("18.014398509481985", "double"))[0] == values.SLOW
    assert values.decode(identifier("18014398509481985", "double"))[3] == 18014398509481984.0
    assert values.decode(np.int64(0))[0] == values.ERROR


@given(st.integers(-(1 << 55), 1 << 55))
@example(0)
@example(-1)
@example(1_356_998_400_123_456)
@example(1_356_998_400_123_000)
@example(1_356_998_400_100_000)
def test_instants_become_ids(micros: int) -> None:
    found = values.datetime_to_id(np.int64(micros))
    assert values.decode(np.int64(found)) == (values.DATETIME, micros, ZONE_Z, 0.0)
    seconds, fraction = divmod(micros, 1_000_000)
    digits = f".{fraction:06}".rstrip("0").rstrip(".")
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    assert int(found) == inline_id(f"{moment.isoformat()}{digits}Z", "dateTime")


@given(DAYS)
@example(datetime.date(2000, 2, 29))
@example(datetime.date(1900, 3, 1))
@example(datetime.date(1970, 1, 1))
def test_days_have_dates(day: datetime.date) -> None:
    assert values.civil(np.int64(day.toordinal() - 719163)) == (day.year, day.month, day.day)


def test_parts_are_those_of_the_text() -> None:
    kind, number, zone, _ = values.decode(identifier("2011-01-10T14:45:13.815-05:30", "dateTime"))
    parts = [values.date_part(part, kind, number, zone) for part in range(6)]
    assert [int(part[1]) for part in parts] == [2011, 1, 10, 14, 45, 13_815]
    assert parts[5][0] == values.DECIMAL
    assert parts[5][2] == 3
    assert values.date_part(3, values.DATE, number, zone)[0] == values.ERROR


@given(
    st.integers(-(1 << 61), 1 << 61),
    st.integers(0, 18),
    st.integers(-(1 << 61), 1 << 61),
    st.integers(0, 18),
    st.sampled_from([values.ADD, values.SUBTRACT, values.MULTIPLY]),
)
def test_exact_arithmetic_is_exact_or_slow(a: int, a_scale: int, b: int, b_scale: int, operation: int) -> None:
    decimal = np.int64(values.DECIMAL)
    first, second = Fraction(a, 10**a_scale), Fraction(b, 10**b_scale)
    kind, number, scale, _ = values.arithmetic(
        operation, decimal, np.int64(a), np.int64(a_scale), 0.0, decimal, np.int64(b), np.int64(b_scale), 0.0
    )
    results = {values.ADD: first + second, values.SUBTRACT: first - second, values.MULTIPLY: first * second}
    assert kind in (values.SLOW, values.DECIMAL)
    if kind == values.DECIMAL:
        assert Fraction(int(number), 10 ** int(scale)) == results[operation]
        assert abs(int(number)) < decimals.LIMIT
        assert scale <= decimals.MAX_SCALE


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="this is the run without compilation")
def test_kernels_agree_without_compilation() -> None:
    """The tests of this module in plain Python, where integers do not wrap around and types are not fixed."""
    folder = Path(__file__).parent
    files = [folder / f"test_{name}.py" for name in ("decimals", "values", "compare")]
    files.append(folder.parents[1] / "operators" / "test_expressions.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *map(str, files)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=folder.parents[2], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
