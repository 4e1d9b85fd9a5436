"""Which of several media types a client gets."""

from __future__ import annotations

from collections.abc import Iterable

from cqels_py.service.failures import NotAcceptable


def chosen(accept: str, offered: Iterable[str]) -> str:
    """The media type that the header Accept prefers; of equal ones the first offered. NotAcceptable.

    >>> chosen("text/csv;q=0.5, application/json", ["text/csv", "application/json"])
    'application/json'
    >>> chosen("*/*", ["text/csv", "application/json"])
    'text/csv'
    """
    kinds = list(offered)
    ranges = [_range(each) for each in accept.split(",") if each.strip()] or [("*/*", 1.0)]
    qualities = [
        max([(_specific(range_), q) for range_, q in ranges if _fits(kind, range_)], default=(0, 0.0))[1]
        for kind in kinds
    ]
    best = max(qualities, default=0.0)
    if best <= 0:
        raise NotAcceptable(f"there is no {accept} here: accept one of {', '.join(kinds)}")
    return kinds[qualities.index(best)]


def _range(text: str) -> tuple[str, float]:
    kind, *parameters = text.split(";")
    for each in parameters:
        name, _, value = each.partition("=")
        if name.strip().lower() == "q":
            try:
                return kind.strip().lower(), float(value)
            except ValueError:
                return kind.strip().lower(), 0.0
    return kind.strip().lower(), 1.0


def _specific(range_: str) -> int:
    return 0 if range_ == "*/*" else 1 if range_.endswith("/*") else 2


def _fits(kind: str, range_: str) -> bool:
    return range_ in ("*/*", kind) or (range_.endswith("/*") and kind.startswith(range_[:-1]))
