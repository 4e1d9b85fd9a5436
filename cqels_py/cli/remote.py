"""The commands that speak to a running service. Their modules are imported when they run, so that `--help` is quick."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from cqels_py.cli.examples import WithExamples

if TYPE_CHECKING:
    from cqels_py.client import Client

SERVER = "http://127.0.0.1:8737"
_FILE = click.Path(path_type=Path)
_SECONDS_TO_COMPLETE = 1.0


def _names(of: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Completes names of the server: its "queries" or "streams"; none where it does not answer."""

    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
        from cqels_py.errors import CqelsError

        given = context.params
        try:
            client = _client(
                given.get("server") or os.environ.get("CQELS_SERVER", SERVER),
                given.get("token_file"),
                _SECONDS_TO_COMPLETE,
            )
            with client:
                found = getattr(client, of)()
        except CqelsError:
            return []
        return [CompletionItem(each["name"]) for each in found if each["name"].startswith(begun)]

    return complete


def _client(server: str, token_file: Path | None, timeout: float | None = None) -> Client:
    from cqels_py.cli.serve import token_of
    from cqels_py.client import Client

    return Client(server, token=token_of(token_file), **({} if timeout is None else {"timeout": timeout}))


@contextmanager
def _speaking(server: str, token_file: Path | None, text: str | None = None) -> Iterator[Client]:
    """Inside, a client of the server; errors are reported. `text`: the query in which they have their place."""
    from cqels_py.cli.failures import reported

    with reported(text), _client(server, token_file) as client:
        yield client


query_name = click.argument("name", shell_complete=_names("queries"))
server_option = click.option(
    "--server",
    metavar="URL",
    envvar="CQELS_SERVER",
    default=SERVER,
    show_default=True,
    help="The service's address; also by CQELS_SERVER.",
)
token_option = click.option(
    "--token-file", metavar="FILE", type=_FILE, help="The token of the service. Default: CQELS_TOKEN."
)
form_option = click.option(
    "--format",
    "format_",
    type=click.Choice(("table", "json")),
    help="Default: table on a terminal, otherwise a line of JSON each.",
)


def _with_server(command: Callable[..., Any]) -> Callable[..., Any]:
    return server_option(token_option(command))


@click.command("submit", cls=WithExamples)
@click.argument("query", required=False, type=_FILE)
@click.option("-q", "text", metavar="TEXT", help="The query itself, instead of a file.")
@click.option("--name", metavar="NAME", required=True, help="The name by which the service knows it.")
@click.option("--changelog", is_flag=True, help="Deliver retractions too: cqels tail can show the answer.")
@click.option("--static", metavar="FILE", type=_FILE, multiple=True, help="Static data, which is sent with the query.")
@click.option("--entailment", type=click.Choice(("rdfs",)), help="Infer triples from classes and properties.")
@click.option("--clock", type=click.Choice(("events", "wall")), help="Default: that of the streams.")
@click.option("--backfill", is_flag=True, help="Begin with the elements of before that the service still has.")
@_with_server
def submit_command(
    *,
    query: Path | None,
    text: str | None,
    name: str,
    changelog: bool,
    static: Sequence[Path],
    entailment: str | None,
    clock: str | None,
    backfill: bool,
    server: str,
    token_file: Path | None,
) -> None:
    """Register a query with a running service, or replace the one of that name.

    QUERY is a file with the query.
    """
    from cqels_py.cli import failures, files

    with failures.reported():
        asked = files.query_text(query, text)
    with _speaking(server, token_file, asked) as client:
        source = None if query is None else str(query)
        found = client.submit(
            name,
            asked,
            static=static,
            changelog=changelog,
            entailment=entailment,
            clock=clock,
            backfill="log" if backfill else None,
            source=source,
        )
        for warning in found.get("warnings", ()):
            failures.say(f"warning: {warning}")
        failures.say(f"{name} runs; cqels tail {name} shows its results")


@click.command("list", cls=WithExamples)
@click.option("--streams", is_flag=True, help="List the streams instead.")
@form_option
@_with_server
def list_command(*, streams: bool, format_: str | None, server: str, token_file: Path | None) -> None:
    """List the queries of a running service."""
    from cqels_py.cli import remote_output

    with _speaking(server, token_file) as client:
        if streams:
            remote_output.print_list(client.streams(), remote_output.OF_STREAMS, format_)
        else:
            remote_output.print_list(client.queries(), remote_output.OF_QUERIES, format_)


@click.command("show", cls=WithExamples)
@query_name
@click.option("--plan", is_flag=True, help="Show its plan instead.")
@form_option
@_with_server
def show_command(*, name: str, plan: bool, format_: str | None, server: str, token_file: Path | None) -> None:
    """Show a query of a running service and its figures."""
    from cqels_py.cli import remote_output
    from cqels_py.cli.printable import printable_lines

    with _speaking(server, token_file) as client:
        if plan:
            click.echo(printable_lines(client.plan(name)))
        else:
            remote_output.print_figures(client.show(name), format_)


@click.command("tail", cls=WithExamples)
@query_name
@click.option(
    "--from",
    "start",
    metavar="N",
    type=click.IntRange(min=0),
    help="Begin with result number N, or with the first that is kept (0). Default: those from now on.",
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Stop after N results.")
@form_option
@_with_server
def tail_command(
    *, name: str, start: int | None, limit: int | None, format_: str | None, server: str, token_file: Path | None
) -> None:
    """Show the results of a query of a running service as they come.

    A table shows the answer as it changes if the query was submitted with --changelog, otherwise its last results.
    """
    from cqels_py.cli import tail

    with _speaking(server, token_file) as client:
        tail.follow(client, name, start, limit, format_)


@click.command("send", cls=WithExamples)
@click.argument("stream", shell_complete=_names("streams"))
@click.argument("file", type=_FILE)
@click.option("--type", "media_type", metavar="TYPE", help="The media type. Default: by the ending of FILE.")
@click.option("--iri", metavar="IRI", help="Declare the stream by this IRI first, if it is not there.")
@click.option(
    "--clock",
    type=click.Choice(("wall", "events")),
    help="With --iri: does time go on with the computer's clock (default), or with elements alone, as for a file of long ago?",
)
@click.option("--key", metavar="TEXT", help="Sent again with the same key, the file counts once (for a day).")
@_with_server
def send_command(
    *,
    stream: str,
    file: Path,
    media_type: str | None,
    iri: str | None,
    clock: str | None,
    key: str | None,
    server: str,
    token_file: Path | None,
) -> None:
    """Send the elements of a file to a stream of a running service, all or none.

    FILE is a file of one of the formats that POST /streams/NAME takes (.nq .nt .trig .ttl .jsonld .ndjson .json .csv .tsv .arrow
    .jelly, each also with .gz), or - for standard input, with --type.
    """
    from cqels_py.cli import remote_output

    with _speaking(server, token_file) as client:
        remote_output.send(client, stream, file, media_type, key, iri, clock)


@click.command("pause", cls=WithExamples)
@query_name
@_with_server
def pause_command(*, name: str, server: str, token_file: Path | None) -> None:
    """Deliver no results of a query until it is resumed; they are kept."""
    from cqels_py.cli.failures import say

    with _speaking(server, token_file) as client:
        client.pause(name)
        say(f"{name} is paused; its state goes on, and its results are kept")


@click.command("resume", cls=WithExamples)
@query_name
@_with_server
def resume_command(*, name: str, server: str, token_file: Path | None) -> None:
    """Deliver the results of a query again."""
    from cqels_py.cli.failures import say

    with _speaking(server, token_file) as client:
        client.resume(name)
        say(f"{name} is resumed")


@click.command("stop", cls=WithExamples)
@query_name
@_with_server
def stop_command(*, name: str, server: str, token_file: Path | None) -> None:
    """Remove a query of a running service, with its state and its results."""
    from cqels_py.cli.failures import say

    with _speaking(server, token_file) as client:
        client.stop(name)
        say(f"{name} is removed")


COMMANDS = (
    submit_command,
    list_command,
    show_command,
    tail_command,
    send_command,
    pause_command,
    resume_command,
    stop_command,
)
