"""The exceptions of the package: one family, a class for each kind of failure, each with a code that never changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a text of the user: line and column, which begin at 1, and the name of the source, if it has one."""

    line: int
    column: int | None = None
    source: str | None = None

    def __str__(self) -> str:
        name = self.source or "<query>"
        return f"{name}:{self.line}" if self.column is None else f"{name}:{self.line}:{self.column}"


class CqelsError(Exception):
    """Base of all that this package raises for a reason that the user can act on.

    `message` describes the fault and a correct form, `place` its position. `code` identifies the class for programs: it stays the
    same in all versions, and no other class has it.
    """

    code: ClassVar[str] = "CQ-ERROR"

    def __init__(self, message: str = "", place: Place | None = None) -> None:
        # All arguments are the exception's own, so that a pickled one is read back with its place.
        super().__init__(message, place)
        self.message = message
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class QueryError(CqelsError):
    """A query cannot be registered."""

    code = "CQ-QUERY"


class QuerySyntaxError(QueryError):
    """The text is not a query of the dialect: the message names the offending text and what was expected."""

    code = "CQ-SYNTAX"


class UnsupportedQuery(QueryError):
    """The query is well-formed, but cannot be evaluated exactly; the message names the construct.

    `function`: the IRI of a function that is not known, if that is the reason.
    """

    code = "CQ-UNSUPPORTED"
    function: str | None = None

    def calling(self, function: str) -> UnsupportedQuery:
        """This error, with the unknown function that the query calls."""
        self.function = function
        return self


class DataError(CqelsError):
    """Input that cannot be read: a malformed line, a wrong time, a truncated file.

    `stream`: the IRI of the stream that it is input of. `element`: the text that is left out. None where they are not known.
    """

    code = "CQ-DATA"
    stream: str | None = None
    element: str | None = None

    def about(self, element: str) -> DataError:
        """The same error, with the text that is left out."""
        self.element = element
        return self


class TermCollision(CqelsError):
    """Two terms with the same id, where no overflow id can be given."""

    code = "CQ-COLLISION"


class UsageError(CqelsError):
    """A wrong argument of the Python API or of the command line; the message shows a correct one."""

    code = "CQ-USAGE"


class MissingExtra(CqelsError):
    """A feature needs a package that is not installed; the message gives the install command."""

    code = "CQ-EXTRA"


class RunError(CqelsError):
    """A failure while a registered query runs."""

    code = "CQ-RUN"


class RefusedResult(RunError):
    """A result that the other side of a sink refuses: it is left out, and the others are written.

    `number`: that of the result; where results are changes of a row, that of the last one of the step. `result`: its values, as the
    sink writes them.
    """

    code = "CQ-REFUSED"
    number: int | None = None
    result: object = None

    def about(self, number: int, result: object) -> RefusedResult:
        """The same error, with the result that is left out."""
        self.number, self.result = number, result
        return self
