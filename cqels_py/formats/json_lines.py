"""Results as JSON, one object per line, with terms as in SPARQL 1.1 Query Results JSON Format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO

from cqels_py.dictionary import Dictionary
from cqels_py.formats.rendering import LineWriter
from cqels_py.kernels.text import rendering as kernel


class JsonSink(LineWriter):
    """`{"time":…,"sign":"+","bindings":{variable:{"type":…,"value":…}}}`; for ASK `"boolean"` instead of the bindings."""

    def __init__(self, file: IO[str], dictionary: Dictionary, variables: Sequence[str], *, boolean: bool) -> None:
        if boolean:
            # A boolean's value is written as a JSON value.
            form, before, around = kernel.CSV_VALUE, ["boolean"], ("", "}\n")
        else:
            form, before, around = kernel.JSON_OBJECT, list(variables), ('"bindings":{', "}}\n")
        super().__init__(
            file,
            dictionary,
            form,
            [f"{json.dumps(name, ensure_ascii=False)}:" for name in before],
            opening='{"time":"',
            before_sign='","sign":"',
            before_terms=f'",{around[0]}',
            closing=around[1],
        )
