"""Suggestions for misspelt names in messages."""

from __future__ import annotations

from collections.abc import Iterable

_LIKE = 0.75
"""The least similarity (difflib's ratio) of a name that is suggested."""


def similar(name: str, known: Iterable[str], *, least: float = _LIKE) -> str | None:
    """The known name that is most similar to a name, regardless of case; None if none is similar.

    >>> similar("stremas", ["stream", "static"]), similar("x", ["stream", "static"])
    ('stream', None)
    """
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=least)
    return by_lower[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name; empty if no known name is similar.

    >>> did_you_mean("STPE", ["STEP", "START"])
    '; did you mean STEP?'
    """
    meant = similar(name, known)
    return f"; did you mean {meant}?" if meant else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """A message about a name that is none of the known ones.

    >>> unknown("suite", "srbnch", ["srbench", "lsbench"])
    "there is no suite 'srbnch'; there are srbench, lsbench; did you mean srbench?"
    """
    names = list(known)
    return f"there is no {kind} {name!r}; there are {', '.join(names)}{did_you_mean(name, names)}"
