"""Where results go and in which form: the table on a terminal, or one of the sinks' formats."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, cast

from cqels_py.cli.written import Written
from cqels_py.errors import RunError, UsageError
from cqels_py.sinks.protocol import Sink, SinkConnector
from cqels_py.state.named_values import restore, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cqels_py.batches.results import ResultBatch
    from cqels_py.dictionary import Dictionary
    from cqels_py.engine.query import Query
    from cqels_py.plan.nodes import Plan
    from cqels_py.state.named_values import NamedValues

SOLUTIONS = ("table", "json", "csv", "tsv")
"""Formats of SELECT and ASK."""

GRAPHS = ("nquads", "turtle", "trig", "jelly")
"""Formats of CONSTRUCT and DESCRIBE."""

_OF_TRIPLES = ("CONSTRUCT", "DESCRIBE")

_BY_ENDING = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".nq": "nquads",
    ".nquads": "nquads",
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".trig": "trig",
    ".jelly": "jelly",
}
"""The format of a file of results; a file without an ending gets that of standard output."""


class Writer(Sink, Protocol):
    """A sink beside which progress is shown: `show` is called from time to time with a line, `close` once with the last one."""

    @property
    def show(self) -> Callable[[str], None] | None: ...

    def close(self, line: str) -> None: ...


def by_ending(path: Path | None) -> str | None:
    """The format of a file by its ending."""
    return None if path is None else _BY_ENDING.get(path.suffix.lower())


def choose(asked: str | None, path: Path | None, form: str, variables: Sequence[str]) -> str:
    """The format, if it fits the query's form and variables: the given one, that of the file's ending, or the default."""
    fitting = GRAPHS if form in _OF_TRIPLES else SOLUTIONS
    format_ = asked or by_ending(path)
    if format_ is None and path is not None and path.suffix:
        if path.suffix.lower() == ".parquet":
            raise UsageError(
                f"--output {path}: Parquet files are written by URL, --output parquet:{path.with_suffix('')}"
            )
        endings = ", ".join(ending for ending, of in _BY_ENDING.items() if of in fitting)
        raise UsageError(
            f"--output {path}: the ending {path.suffix!r} is not known here; known are {endings}, "
            f"or choose a --format of {', '.join(fitting)}"
        )
    if format_ is None:
        on_terminal = path is None and sys.stdout.isatty()
        return fitting[0] if on_terminal or fitting is GRAPHS else "json"
    if format_ not in fitting:
        formats = ", ".join(fitting)
        if asked is not None:
            raise UsageError(f"--format {asked} cannot hold the results of {form}; choose one of {formats}")
        raise UsageError(
            f"--output {path}: by its ending the file is {format_}, which cannot hold the results of {form}; "
            f"give it another ending, or choose a --format of {formats}"
        )
    if format_ == "csv":
        from cqels_py.formats.delimited import check_csv_columns

        check_csv_columns(variables)
    if format_ == "jelly":
        _check_jelly(path)
    return format_


def _check_jelly(path: Path | None) -> None:
    from cqels_py.formats.jelly import require_pyjelly

    if path is None and sys.stdout.isatty():
        raise UsageError("--format jelly is binary, and not for a terminal: give --output out.jelly, or a pipe")
    require_pyjelly("the format jelly")


def check_signs(form: str, reports: str, changelog: bool) -> None:
    """UsageError for results with retractions in a form without signs. `reports`: ISTREAM, DSTREAM, …"""
    asked = "--changelog" if changelog else reports
    if form in _OF_TRIPLES and asked in ("--changelog", "DSTREAM"):
        raise UsageError(
            f"{asked} retracts results, and the triples of {form} have no sign to mark a retraction: "
            "use SELECT, whose results have one"
        )


def open_writer(
    format_: str,
    path: Path | None,
    title: str,
    dictionary: Dictionary,
    plan: Plan,
    cleanup: ExitStack,
    former: Written | None = None,
) -> Writer:
    """A writer to `path` or standard output; files are closed by `cleanup`. `former`: continue the file from there."""
    if format_ == "table":
        return _table(path, title, dictionary, plan, cleanup)
    file, documents = _open(path, cleanup, "w" if former is None else "r+"), dictionary.documents
    writer = SinkWriter(
        format_, file, path, dictionary, plan, None if path is None and sys.stdout.isatty() else _status_line(cleanup)
    )
    if former is not None:
        # The sink has written its heading over the same one, and goes on in the scope of that for its blank nodes.
        file.seek(former.length)
        file.truncate()
        writer.restore(former)
        dictionary.number_documents_after(documents)
    return writer


def open_url(
    connector: SinkConnector, query: Query, dictionary: Dictionary, cleanup: ExitStack, max_backlog: int | None
) -> UrlWriter:
    """A writer to the sink of a connector, which `cleanup` closes. `max_backlog`: see `Query.write_to`."""
    from cqels_py.engine.url_sinks import close_sink, opened_sink

    sink = opened_sink(
        connector, query.plan, dictionary, query.refused, query.continued, query.backlog(max_backlog or None)
    )
    cleanup.callback(close_sink, sink)
    return UrlWriter(sink, _status_line(cleanup))


class UrlWriter:
    """The sink of a URL, and a line of progress beside it."""

    def __init__(self, sink: Sink, show: Callable[[str], None] | None) -> None:
        self.show = show
        self._sink = sink
        self.write, self.flush, self.commit = sink.write, sink.flush, sink.commit

    def settle(self) -> bool:
        """Has the sink all results, as long as it gets on? Otherwise they wait for it, and a commit would, too."""
        settle = getattr(self._sink, "settle", None)
        return settle is None or bool(settle())

    def close(self, line: str) -> None:
        """The line was shown on a terminal, where nothing stays."""


class SinkWriter:
    """A sink, and a line of progress beside it."""

    def __init__(
        self,
        format_: str,
        file: IO[str],
        path: Path | None,
        dictionary: Dictionary,
        plan: Plan,
        show: Callable[[str], None] | None,
    ) -> None:
        from cqels_py.sinks.files import open_sink

        self.show = show
        self._path = path
        self._sink = open_sink(
            format_,
            file,
            dictionary=dictionary,
            form=plan.form,
            variables=plan.variables,
            template=[(triple.subject, triple.predicate, triple.object) for triple in plan.template],
        )

    def write(self, batch: ResultBatch) -> None:
        with writing(self._path):
            self._sink.write(batch)

    def flush(self) -> None:
        with writing(self._path):
            self._sink.flush()

    def commit(self) -> object:
        with writing(self._path):
            return self._sink.commit()

    @property
    def state(self) -> NamedValues:
        """The state of the sink."""
        return values_of(self._sink)

    def restore(self, former: Written) -> None:
        """Give the sink the state of a former one."""
        restore(self._sink, former.writer)

    def close(self, line: str) -> None:
        """The line was shown on a terminal, where nothing stays."""


def written(writer: Writer) -> Written:
    """Commit, and say how far the output is."""
    position = writer.commit()
    return Written(cast(int, position), writer.state) if isinstance(writer, SinkWriter) else Written()


def _table(path: Path | None, title: str, dictionary: Dictionary, plan: Plan, cleanup: ExitStack) -> Writer:
    from rich.console import Console

    from cqels_py.batches.elements import Ids
    from cqels_py.cli.table import AnswerTable, Heading

    def decode(ids: Ids) -> list[str]:
        return [text or "" for text in dictionary.decode(ids)]

    heading = Heading(title, plan.variables, _order(plan))
    return AnswerTable(heading, decode, Console(file=_open(path, cleanup)))


def _order(plan: Plan) -> tuple[tuple[str, bool], ...]:
    """The keys of the query's ORDER BY that are columns of the result."""
    from cqels_py.plan.nodes import ProjectRows, TopRows

    node = plan.root
    while isinstance(node, ProjectRows):
        node = node.input
    if not isinstance(node, TopRows):
        return ()
    return tuple(each for each in node.order if each[0] in plan.variables)


def _open(path: Path | None, cleanup: ExitStack, mode: str = "w") -> IO[str]:
    if path is None:
        return sys.stdout
    try:
        file = path.open(mode, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"--output: cannot write {path}: {error.strerror}") from None
    cleanup.callback(_close, file, path)
    return file


def _close(file: IO[str], path: Path) -> None:
    with writing(path):
        file.close()


@contextmanager
def writing(path: Path | None) -> Iterator[None]:
    """RunError for output that cannot be written, as on a full disk; BrokenPipeError as it is. None: standard output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunError(f"cannot write {path or 'standard output'}: {error.strerror}") from None


def _status_line(cleanup: ExitStack) -> Callable[[str], None] | None:
    """A line of progress that changes in place, on a terminal to which nothing else is written."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console

    status = cleanup.enter_context(Console(stderr=True).status("waiting for the first element"))
    return status.update
