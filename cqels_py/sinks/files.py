"""Results in files, text in UTF-8 or binary: a sink for each format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, cast

from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.formats.construction import Template
from cqels_py.formats.delimited import DelimitedSink, check_csv_columns
from cqels_py.formats.graphs import GraphSink
from cqels_py.formats.json_lines import JsonSink
from cqels_py.formats.kernel_calls import calls_to_write
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.sinks.protocol import Sink
from cqels_py.suggestions import unknown

SOLUTION_FORMATS = ("json", "csv", "tsv")
"""Formats of the results of SELECT and ASK."""

GRAPH_FORMATS = ("nquads", "turtle", "trig")
"""Formats of the results of CONSTRUCT; in turtle, which has no graphs, a comment separates results."""

BINARY_FORMATS = ("jelly",)
"""Formats of the results of CONSTRUCT that are no text."""


def open_sink(
    format: str,
    file: IO[str] | IO[bytes],
    *,
    dictionary: Dictionary,
    form: str,
    variables: Sequence[str],
    template: Template = (),
) -> Sink:
    """A sink that writes the results of a query to a text file, which stays open; for jelly the file may also be a binary one.

    json, csv and tsv hold the results of the forms SELECT and ASK with their `variables`; nquads, turtle, trig and jelly those of
    CONSTRUCT with its `template`: triples of variables ("?name"), N-Triples texts and blank nodes ("_:label"). UsageError for
    a format that is unknown, or cannot hold the form's results or its variables. MissingExtra for jelly without pyjelly.
    """
    _check(format, form)
    prepare(calls_to_write(format))
    if format == "jelly":
        from cqels_py.formats.jelly_graphs import JellySink

        return JellySink(file, dictionary, template)
    text = cast(IO[str], file)
    if format == "json":
        return JsonSink(text, dictionary, variables, boolean=form == "ASK")
    if format == "csv":
        check_csv_columns(variables)
    if format in SOLUTION_FORMATS:
        return DelimitedSink(text, dictionary, format, variables)
    return GraphSink(text, dictionary, format, template)


def _check(format: str, form: str) -> None:
    known = SOLUTION_FORMATS + GRAPH_FORMATS + BINARY_FORMATS
    if format not in known:
        raise UsageError(unknown("format", format, known))
    fitting = GRAPH_FORMATS + BINARY_FORMATS if form == "CONSTRUCT" else SOLUTION_FORMATS
    if format not in fitting:
        raise UsageError(f"{format} cannot hold the results of {form}; choose one of {', '.join(fitting)}")
