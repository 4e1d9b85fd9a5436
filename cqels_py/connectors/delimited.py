"""Results as SPARQL 1.1 CSV and TSV, with leading columns for time and sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

import numpy as np

from cqels_py.connectors.rendering import LineWriter, write_utf8
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.kernels import rendering as kernel


class DelimitedSink(LineWriter):
    """A heading, then a line a result; unbound is empty. In TSV terms are complete and variables start with "?"."""

    def __init__(self, file: IO[str], dictionary: Dictionary, format: str, variables: Sequence[str]) -> None:
        separator, mark, form = (",", "", kernel.CSV_VALUE) if format == "csv" else ("\t", "?", kernel.TSV_TERM)
        super().__init__(file, dictionary, form, [separator] * len(variables), before_sign=separator, closing="\n")
        # At once: without any result there is a heading all the same.
        heading = separator.join(["time", "sign", *(mark + name for name in variables)]) + "\n"
        write_utf8(file, np.frombuffer(heading.encode(), np.uint8))
        file.flush()

    def close(self) -> None:
        pass
