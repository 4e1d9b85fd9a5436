"""Terms and times as bytes, against the standard library."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.kernels.text import rendering as kernel
from cqels_py.terms.canonical import canonical, escape
from tests.formats import plain_rendering as plain

FORMS = {
    kernel.JSON_OBJECT: plain.json_object,
    kernel.CSV_VALUE: plain.csv_value,
    kernel.TSV_TERM: plain.tsv_term,
    kernel.NTRIPLES_TERM: str,
}

DELICATE = st.sampled_from([*map(chr, range(33)), *'",\\@^<>\x7f\x80\x9fé中😀\u2028nrtu'])
TEXTS = st.text(DELICATE | st.characters(exclude_categories=["Cs"]), max_size=24)
IRIS = st.text(st.sampled_from("abc:/#?,é中😀%\x7f\u2028"), max_size=20).map("<{}>".format)
LITERALS = st.builds(
    '"{}"{}'.format,
    TEXTS.map(escape),
    st.just("") | st.sampled_from(["@en", "@de-at-1996"]) | IRIS.map("^^{}".format),
)
TERMS = IRIS | LITERALS | st.sampled_from(["_:b0", "_:b0123456789abcde"])


def rendered(form: int, term: str) -> str:
    """The term, read from and written to the middle of a buffer."""
    raw = term.encode()
    data = np.frombuffer(b'",' + raw + b'"\\,', np.uint8).copy()
    out = np.full(3 + 6 * len(raw) + 64 + 5, 35, np.uint8)
    end = kernel.write_term(form, data, np.int64(2), np.int64(2 + len(raw)), out, np.int64(3))
    assert end <= len(out) - 5, "more room than a line has for it"
    assert set(out[:3]) == set(out[end:]) == {35}
    return out[3:end].tobytes().decode()


@pytest.mark.parametrize("form", FORMS)
@given(TERMS)
@example('""')
@example("<>")
@example('"\\\\"')
@example('"\\\\\\\\n"@en')
@example('"\\\\,"')
@example('"' + "\x01" * 40 + '"')
@example('"' + '\\"' * 40 + '"')
def test_a_term(form: int, term: str) -> None:
    assert canonical(term) == term
    assert rendered(form, term) == FORMS[form](term)


def texts(times: list[int]) -> list[str]:
    out = np.empty(kernel.LONGEST_TIME, np.uint8)
    return [out[: kernel.put_time(np.int64(time), out, np.int64(0))].tobytes().decode() for time in times]


FAR = 1 << 62
FRACTIONS = st.builds(lambda second, unit, count: second * 10**6 + unit * count, st.integers(-(10**12), 10**12),
                      st.sampled_from([1, 10, 100, 1000, 10**4, 10**5, 10**6]), st.integers(0, 100))  # fmt: skip


@given(st.lists(st.integers(-FAR, FAR) | FRACTIONS))
def test_times(times: list[int]) -> None:
    assert texts(times) == [plain.time_text(time) for time in times]


def test_years_of_few_and_many_digits() -> None:
    years = [-100_000, -10_000, -9_999, -1_000, -999, -1, 0, 1, 999, 1_000, 9_999, 10_000, 123_456]
    times = [int(np.datetime64(year - 1970, "Y").astype("datetime64[us]").astype(np.int64)) for year in years]
    assert texts(times) == [plain.time_text(time) for time in times]
    assert texts(times)[3:8] == [f"{year}-01-01T00:00:00Z" for year in ("-1000", "-0999", "-0001", "0000", "0001")]


@given(st.datetimes())
def test_the_calendar(time: datetime.datetime) -> None:
    micros = (time - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    [text] = texts([micros])
    assert datetime.datetime.fromisoformat(text) == time.replace(tzinfo=datetime.UTC)
