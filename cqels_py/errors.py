"""The one exception family: a class for each stage, each message saying what, where and what would be right."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a text the user wrote: 1-based line and column, and the source's name if there is one."""

    line: int
    column: int | None = None
    source: str | None = None

    def __str__(self) -> str:
        name = self.source or "<query>"
        return f"{name}:{self.line}" if self.column is None else f"{name}:{self.line}:{self.column}"


class CqelsError(Exception):
    """Base of everything this package raises for a reason the user can act on."""


class QueryError(CqelsError):
    """A query cannot be registered."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place


class QuerySyntaxError(QueryError):
    """The text is not a query of the dialect: the message names the offending text and what was expected."""


class UnsupportedQuery(QueryError):
    """The query is well-formed, but cannot be evaluated exactly; the message names the construct."""


class DataError(CqelsError):
    """Input that cannot be understood: a malformed line, a wrong time, a truncated file."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place


class TermCollision(CqelsError):
    """Two terms with the same id, where no overflow id can be given."""


class UsageError(CqelsError):
    """An argument of the Python API or of the command line that makes no sense; the message says what would."""


class MissingExtra(CqelsError):
    """A feature needs a package that is not installed; the message gives the install command."""


class RunError(CqelsError):
    """A failure while a registered query runs."""
