"""Results as SPARQL 1.1 CSV and TSV, with leading columns for time and sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

import numpy as np

from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.formats.rendering import LineWriter, write_utf8
from cqels_py.kernels.text import rendering as kernel

_LEADING = ("time", "sign")


def check_csv_columns(variables: Sequence[str]) -> None:
    """UsageError if a variable has the name of the column for time or sign. (In TSV the names differ by their "?".)"""
    for name in variables:
        if name in _LEADING:
            raise UsageError(
                f"csv cannot hold ?{name}, since the {name} of every result is a column of this name: "
                "give the variable another name, or choose tsv or json"
            )


class DelimitedSink(LineWriter):
    """A heading, then one line per result. Unbound values are empty. TSV has complete terms, and variables with "?"."""

    def __init__(self, file: IO[str], dictionary: Dictionary, format: str, variables: Sequence[str]) -> None:
        separator, mark, form = (",", "", kernel.CSV_VALUE) if format == "csv" else ("\t", "?", kernel.TSV_TERM)
        super().__init__(file, dictionary, form, [separator] * len(variables), before_sign=separator, closing="\n")
        # Write the heading now: it is needed even if there are no results.
        heading = separator.join([*_LEADING, *(mark + name for name in variables)]) + "\n"
        write_utf8(file, np.frombuffer(heading.encode(), np.uint8))
        file.flush()
