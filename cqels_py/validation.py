"""Checks of arguments of the Python API: a wrong one raises UsageError with a value that would be accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cqels_py.errors import UsageError
from cqels_py.formats import python_times
from cqels_py.formats.times import FAR
from cqels_py.suggestions import did_you_mean


def instant(time: object) -> int:
    """The time as an integer of microseconds since the epoch, from any value that `python_times` takes; UsageError for others."""
    return time if type(time) is int and -FAR < time < FAR else python_times.instant(time)


def whole(value: object, name: str, unit: str) -> int:
    """An integer."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise UsageError(f"{name} is an integer of {unit}, not {value!r}")
    return int(value)


def check_callable(value: object, name: str, of: str) -> None:
    """UsageError for a value that cannot be called (with `of`)."""
    if not callable(value):
        raise UsageError(f"{name} is a function of {of}, not {value!r}")


def check_flag(value: object, name: str) -> None:
    """UsageError for a value that is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise UsageError(f"{name} is True or False, not {value!r}")


def instead(iri: str, known: Iterable[str]) -> str:
    """A suggestion for an unknown IRI, beginning with a semicolon; empty if there is none."""
    streams = list(known)
    plain = iri.strip().removeprefix("<").removesuffix(">")
    if plain in streams and iri != plain:
        return f"; its IRI is written without angle brackets here: {plain}"
    return did_you_mean(plain, streams)


def by_iri(given: object, name: str, of: str) -> dict[str, Any]:
    """A mapping whose keys are IRIs, which become plain texts: rdflib's are not equal to them."""
    if not isinstance(given, Mapping):
        raise UsageError(f"{name} is a mapping, {{iri: {of}}}, not {given!r}")
    for iri in given:
        if not isinstance(iri, str):
            raise UsageError(f"{name} is a mapping, {{iri: {of}}}: an IRI is a text, not {iri!r}")
    return {str(iri): value for iri, value in given.items()}
