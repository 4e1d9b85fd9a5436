"""Values of command-line options: IRIs, IRI=SOURCE pairs, durations."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cqels_py.connections.sizes import bytes_of
from cqels_py.connections.tables import is_table
from cqels_py.errors import QueryError, UsageError
from cqels_py.validation import instead

_EXPECTED = {
    "--stream": "IRI=SOURCE, such as http://example.org/readings=readings.nq",
    "--lateness": "IRI=DURATION, such as http://example.org/readings=10s",
}
_EXPECTED_FILE = "IRI=FILE, such as http://example.org/rooms=rooms.ttl"


def duration(option: str, text: str) -> int:
    """`5s`, `1h30m`, `PT5M` and whatever else is a duration in queries → microseconds."""
    from cqels_py.parser.times import duration_of

    try:
        return duration_of(text)
    except QueryError:
        # Its message is about queries.
        message = f"{option} {text!r} is not a duration of whole microseconds; write one like 5s, 1h30m or PT5M"
        raise UsageError(message) from None


def durations(option: str, texts: Iterable[str]) -> tuple[int, dict[str, int]]:
    """Durations (`5s`), of which the last one counts, and those of streams (`IRI=5s`), in microseconds; 0 without any."""
    of_all, of_streams = 0, []
    for text in texts:
        if "=" in text:
            of_streams.append(text)
        else:
            of_all = duration(option, text)
    return of_all, {iri: duration(option, value) for iri, value in pairs(option, of_streams).items()}


def size(option: str, text: str) -> int:
    """`500MB`, `2GiB`, a number of bytes → bytes."""
    found = bytes_of(text)
    if found is None:
        raise UsageError(f"{option} {text!r} is not a size; write one like 500MB, 2GiB, or a number of bytes")
    return found


def time(option: str, text: str) -> int:
    """An instant as in streams, ISO 8601 or an integer of microseconds since 1970 → microseconds."""
    from cqels_py.formats.times import NO_TIME, time_of_text

    found = time_of_text(text)
    if found == NO_TIME:
        raise UsageError(
            f"{option} {text!r} is not a time; write one like 2024-05-01T12:00:00Z, or microseconds since 1970"
        )
    return found


def iri(option: str, text: str) -> str:
    """An absolute IRI, which may stand in angle brackets."""
    from cqels_py.iris import is_iri

    found = text[1:-1] if text.startswith("<") and text.endswith(">") else text
    if not is_iri(found):
        raise UsageError(
            f"{option} {text!r} is not an IRI; write one in full, like http://www.w3.org/ns/prov#generatedAtTime"
        )
    return found


def static_of(given: Iterable[str]) -> list[Path | str]:
    """Files, and the URLs of tables as they are."""
    return [each if is_table(each) else Path(each) for each in given]


def pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """`IRI=VALUE`, or `<IRI>=VALUE` where the IRI has an equals sign in it."""
    result: dict[str, str] = {}
    for text in texts:
        iri, value = _pair(option, text)
        if iri in result:
            raise UsageError(f"{option} names <{iri}> twice: {result[iri]} and {value}")
        result[iri] = value
    return result


def heavy_values(texts: Iterable[str]) -> dict[str, list[str]]:
    """`VARIABLE=TERM`, each perhaps several times → N-Triples texts by variable."""
    found: dict[str, list[str]] = {}
    for text in texts:
        variable, equals, term = text.removeprefix("?").partition("=")
        if not (variable and equals and term):
            raise UsageError(f"--heavy {text!r}: expected VARIABLE=TERM, such as 'sensor=<http://example.org/s1>'")
        found.setdefault(variable, []).append(term)
    return found


def _pair(option: str, text: str) -> tuple[str, str]:
    iri, equals, value = text[1:].partition(">=") if text.startswith("<") else text.partition("=")
    if not (iri and equals and value):
        raise UsageError(f"{option} {text!r}: expected {_EXPECTED.get(option, _EXPECTED_FILE)}")
    return iri, value


def check_named(option: str, given: Iterable[str], streams: Iterable[str]) -> None:
    """Every stream that an option names has a source."""
    known = set(streams)
    for iri in sorted(set(given) - known):
        raise UsageError(f"{option} <{iri}>: there is no --stream {iri}=SOURCE{instead(iri, known)}")


def check_streams(given: Iterable[str], read: Iterable[str]) -> None:
    """Every stream that the query reads has a source, and no other stream has one."""
    given_set, read_set = set(given), set(read)
    names = ", ".join(f"<{iri}>" for iri in sorted(read_set)) or "none"
    for iri in sorted(given_set - read_set):
        raise UsageError(
            f"--stream <{iri}>: the query does not read this stream; it reads {names}{instead(iri, read_set)}"
        )
    missing = sorted(read_set - given_set)
    if missing:
        options = " ".join(f"--stream {iri}=SOURCE" for iri in missing)
        raise UsageError(f"the query reads {names}; give the missing sources: {options}")
