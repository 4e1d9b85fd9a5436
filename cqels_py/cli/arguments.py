"""Values of command-line options: IRI=SOURCE pairs, durations."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cqels_py.errors import UsageError

_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d)")


def duration(text: str) -> int:
    """`5s`, `1.5h`, `200ms` → microseconds."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no duration; write a number and a unit (us ms s m h d), like 5s or 1.5h")
    return round(float(found[1]) * _UNITS[found[2]])


def pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """`IRI=VALUE`, or `<IRI>=VALUE` where the IRI has an equals sign in it."""
    result: dict[str, str] = {}
    for text in texts:
        iri, value = _pair(option, text)
        if iri in result:
            raise UsageError(f"{option} names <{iri}> twice: {result[iri]} and {value}")
        result[iri] = value
    return result


def _pair(option: str, text: str) -> tuple[str, str]:
    iri, equals, value = text[1:].partition(">=") if text.startswith("<") else text.partition("=")
    if not (iri and equals and value):
        raise UsageError(f"{option} {text!r}: expected IRI={'FILE' if 'static' in option else 'SOURCE'}")
    return iri, value


def check_streams(given: Iterable[str], read: Iterable[str]) -> None:
    """Every stream that the query reads has a source, and no other stream has one."""
    given_set, read_set = set(given), set(read)
    names = ", ".join(f"<{iri}>" for iri in sorted(read_set)) or "none"
    for iri in sorted(given_set - read_set):
        raise UsageError(f"--stream <{iri}>: the query does not read this stream; it reads {names}")
    missing = sorted(read_set - given_set)
    if missing:
        options = " ".join(f"--stream {iri}=SOURCE" for iri in missing)
        raise UsageError(f"the query reads {names}; give the missing sources: {options}")
