"""Values of options."""

from __future__ import annotations

import pytest

from cqels_py.cli import arguments
from cqels_py.errors import UsageError


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("5s", 5_000_000),
        ("0s", 0),
        ("PT0S", 0),
        ("1.5h", 5_400_000_000),
        ("200ms", 200_000),
        ("2 m", 120_000_000),
        ("2min", 120_000_000),
        ("7us", 7),
        ("7µs", 7),
        ("5000 ns", 5),
        ("1h30m", 5_400_000_000),
        ("PT5S", 5_000_000),
        ("P1DT2H", 93_600_000_000),
        (" 1d ", 86_400_000_000),
    ],
)
def test_durations(text: str, microseconds: int) -> None:
    assert arguments.duration("--lateness", text) == microseconds


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-5s", "5 parsecs", "5s!", "1e3s", "٥s\n5", "5s 3s", "1ns", "99999999d", '"', "P1Y"]
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"--lateness (?s:.*) like 5s"):
        arguments.duration("--lateness", text)


@pytest.mark.parametrize(
    ("text", "found"),
    [("7", 7), ("7b", 7), ("2kB", 2_000), ("2KiB", 2_048), ("500 MB", 500_000_000), ("2gib", 2 << 30), ("1TB", 10**12)],
)
def test_sizes(text: str, found: int) -> None:
    assert arguments.size("--max-state", text) == found


@pytest.mark.parametrize("text", ["http://ex.org/time", "<http://ex.org/time>", "urn:time", "http://ex.org/é"])
def test_iris(text: str) -> None:
    assert arguments.iri("--time-predicate", text) == text.strip("<>")


@pytest.mark.parametrize("text", ["", "not an iri", "time", "<>", "<http://ex.org/", "http://ex.org/ time", ":time"])
def test_what_is_no_iri_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"--time-predicate .* is not an IRI; .* like http://"):
        arguments.iri("--time-predicate", text)


def test_pairs_split_at_the_first_equals_sign_or_after_the_brackets() -> None:
    found = arguments.pairs("--stream", ["http://a=x=y.nq", "<http://b?q=1>=z.nq"])
    assert found == {"http://a": "x=y.nq", "http://b?q=1": "z.nq"}


@pytest.mark.parametrize("text", ["", "=", "http://a", "http://a=", "=file.nq", "<http://a=file.nq"])
def test_pairs_without_both_parts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected IRI=SOURCE"):
        arguments.pairs("--stream", [text])


def test_one_stream_has_one_source() -> None:
    with pytest.raises(UsageError, match=r"<http://a> twice: x\.nq and y\.nq"):
        arguments.pairs("--stream", ["http://a=x.nq", "http://a=y.nq"])


def test_streams_given_and_read_must_agree() -> None:
    arguments.check_streams(["http://a", "http://b"], ["http://b", "http://a"])
    with pytest.raises(UsageError, match=r"<http://c>: the query does not read this stream; it reads <http://a>"):
        arguments.check_streams(["http://a", "http://c"], ["http://a"])
    with pytest.raises(UsageError, match=r"--stream http://b=SOURCE"):
        arguments.check_streams(["http://a"], ["http://a", "http://b"])
