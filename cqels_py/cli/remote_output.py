"""The output of the service's commands, and the files that they send."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from cqels_py.cli.failures import say
from cqels_py.cli.printable import printable, printable_lines
from cqels_py.client import Client
from cqels_py.errors import UsageError
from cqels_py.service.failures import NotFound

OF_QUERIES = ("name", "state", "results", "subscribers", "state_bytes", "streams")
OF_STREAMS = ("name", "iri", "elements", "requests", "refused", "queries")


def shown_as(format_: str | None) -> str:
    """The format that was asked for, or the default one."""
    return format_ or ("table" if sys.stdout.isatty() else "json")


def print_list(found: Sequence[dict[str, Any]], columns: Sequence[str], format_: str | None) -> None:
    """A row for each of them, or a line of JSON."""
    if shown_as(format_) == "json":
        for each in found:
            print(as_json(each))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in columns:
        numeric = any(isinstance(each.get(column), int) for each in found)
        table.add_column(column.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for each in found:
        # A cell that is a plain string would be read as markup.
        table.add_row(*(Text(_text(each.get(column))) for column in columns))
    Console().print(table)


def print_figures(found: dict[str, Any], format_: str | None) -> None:
    """A line for each of its figures and the text of the query, or one line of JSON."""
    if shown_as(format_) == "json":
        print(as_json(found))
        return
    for name, value in found.items():
        if name != "text" and value not in (None, []):
            shown = _time(value) if name == "created" else _text(value)
            print(f"{name.replace('_', ' '):<12} {shown}")
    print(f"\n{printable_lines(found['text'].strip())}")


def send(
    client: Client, stream: str, file: Path, media_type: str | None, key: str | None, iri: str | None, clock: str | None
) -> None:
    """Send a file, or standard input ("-"), and say what became of it. `iri`, `clock`: declare the stream, if it is not there."""
    if clock is not None and iri is None:
        raise UsageError("--clock is for a stream that --iri declares: add --iri IRI")
    data: bytes | Path = file
    if str(file) == "-":
        if media_type is None:
            raise UsageError("standard input needs its media type, such as --type application/n-quads")
        data = sys.stdin.buffer.read()
    if iri is not None:
        try:
            client.stream(stream)
        except NotFound:
            client.put_stream(stream, iri, clock=clock)
    counts = client.send(stream, data, media_type=media_type, key=key)
    dropped = "".join(f", {counts[reason]:,} dropped ({reason})" for reason in ("late", "ahead") if counts[reason])
    repeated = ", which were there already" if counts["repeated"] else ""
    unread = "; no query reads the stream, so nothing was kept" if counts["unread"] else ""
    count = counts["elements"]
    say(f"{count:,} element{'' if count == 1 else 's'}{dropped}{repeated}{unread}")
    if counts["late"] and client.stream(stream)["clock"] == "wall":
        say(
            "Time goes on with the computer's clock there, so that elements of long ago are late: declare a stream for them by "
            "cqels send NAME FILE --iri IRI --clock events"
        )


def as_json(value: object) -> str:
    """A line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _time(seconds: float) -> str:
    """A time of this machine's zone, to seconds."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:,}" if isinstance(value, int) else printable(str(value))
