"""Errors as a user sees them: one message, the place in the text, an exit status, no traceback."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from cqels_py.cli.printable import printable_lines
from cqels_py.errors import CqelsError, MissingExtra, QueryError, UsageError
from cqels_py.interrupts import Signalled

DONE = 0
FAILED = 1
BAD_USAGE = 2
_BY_SIGNAL = 128
"""More than the number of the signal that ended a command, as shells have it."""
_SIGNALLED = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "ended: the terminal was closed (SIGHUP)",
}
_as_json = False
"""Messages are lines of JSON: `logged_as`."""


class Exit(Exception):
    """Ends the command with this exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@contextmanager
def reported(text: str | None = None) -> Iterator[None]:
    """Turns each exception inside into a message and an `Exit`; `text` is the query being read."""
    try:
        yield
    except (QueryError, UsageError, MissingExtra) as error:
        say(describe(error, text), error)
        raise Exit(BAD_USAGE) from None
    except CqelsError as error:
        say(f"error: {error}", error)
        raise Exit(FAILED) from None
    except KeyboardInterrupt as error:
        raise interrupted(error) from None
    except BrokenPipeError:
        close_broken_output()
        raise Exit(DONE) from None
    except OSError as error:
        if os.environ.get("CQELS_DEBUG"):
            raise
        # A full disk, or a folder that may not be written: inputs are checked where they are opened.
        where = "" if error.filename is None else f": {error.filename}"
        say(f"error: {error.strerror or error}{where}")
        raise Exit(FAILED) from None
    except Exception as error:
        if isinstance(error, Exit) or os.environ.get("CQELS_DEBUG"):
            raise
        first_line = str(error).partition("\n")[0]
        say(f"error: {type(error).__name__}: {first_line}\nThis should not happen; CQELS_DEBUG=1 shows where it did.")
        raise Exit(FAILED) from None


def interrupted(error: KeyboardInterrupt) -> Exit:
    """Print a message; returns the `Exit` of a command that a signal ended."""
    signum = error.signum if isinstance(error, Signalled) else signal.SIGINT
    with suppress(OSError):
        # The terminal may have been closed.
        say(_SIGNALLED[signal.Signals(signum)])
    return Exit(_BY_SIGNAL + signum)


def describe(error: CqelsError, text: str | None) -> str:
    """The message, and for a query the line in question with a caret below the column."""
    message = f"error: {error}"
    place = error.place if isinstance(error, QueryError) else None
    lines = (text or "").splitlines()
    if place is None or not 1 <= place.line <= len(lines):
        return message
    line = lines[place.line - 1]
    if place.column is None:
        return f"{message}\n  {line}"
    # Tabs stay tabs, so that the caret stands below its column however wide they are.
    indent = "".join("\t" if character == "\t" else " " for character in line[: place.column - 1])
    return f"{message}\n  {line}\n  {indent}^"


def say(message: str, error: CqelsError | None = None, **figures: object) -> None:
    """Print to standard error, which gets everything that is not a result.

    `error`: that which the message is about. `figures`: the numbers in the message, by name; they are members of a JSON line.
    """
    line = _json_line(message, error, figures) if _as_json else printable_lines(message)
    print(line, file=sys.stderr, flush=True)


@contextmanager
def logged_as(form: str) -> Iterator[None]:
    """Inside, messages are lines of JSON ("json") or text."""
    global _as_json
    before, _as_json = _as_json, form == "json"
    try:
        yield
    finally:
        _as_json = before


def _json_line(message: str, error: CqelsError | None, figures: Mapping[str, object]) -> str:
    level, colon, text = message.partition(": ")
    if not colon or level not in ("error", "warning"):
        level, text = "info", ", ".join(figures) or message
    line: dict[str, object] = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level}
    if error is not None:
        line["code"] = error.code
        text = error.message
        if error.place is not None:
            line |= {"file": error.place.source, "line": error.place.line, "column": error.place.column}
    return json.dumps({**line, "message": text, **figures}, ensure_ascii=False)


def close_broken_output() -> None:
    """The reader of standard output has gone: redirect it to null, so that the interpreter's last flush does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
