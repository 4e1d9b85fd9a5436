"""Where results go: a writer for each format. All of them render each distinct term once a batch, and rows as columns."""

from __future__ import annotations

from typing import IO, Protocol

from cqels_py.batches.results import ResultBatch
from cqels_py.connectors.delimited import DelimitedSink
from cqels_py.connectors.graphs import NQuadsSink, Template, TrigSink
from cqels_py.connectors.json_lines import JsonSink
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.errors import UsageError

FORMATS = ("json", "csv", "tsv", "nquads", "turtle")


class Sink(Protocol):
    """Takes results in order."""

    def write(self, batch: ResultBatch) -> None: ...

    def close(self) -> None:
        """The results have ended; the file stays open."""
        ...


def open_sink(
    format: str, file: IO[str], *, dictionary: Dictionary, template: Template = (), boolean: bool | None = None
) -> Sink:
    """A writer to a text file, by its format.

    json, csv and tsv take the results of SELECT and ASK; nquads and turtle those of CONSTRUCT with its `template`: triples of
    variables ("?name"), N-Triples texts and blank nodes ("_:label"). `boolean`: is this ASK? None: it is if the only variable
    is "boolean". UsageError for an unknown format.
    """
    if format == "json":
        return JsonSink(file, dictionary, boolean)
    if format in ("csv", "tsv"):
        return DelimitedSink(file, dictionary, format)
    if format in ("nquads", "turtle"):
        return (NQuadsSink if format == "nquads" else TrigSink)(file, dictionary, template)
    raise UsageError(f"there is no format {format!r}; there are {', '.join(FORMATS)}")
