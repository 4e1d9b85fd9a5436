"""Results as JSON objects, each a text of its own, for sinks that send messages."""

from __future__ import annotations

import io

from cqels_py.batches.results import ResultBatch
from cqels_py.sinks.files import open_sink
from cqels_py.sinks.protocol import SinkOpening


class JsonBodies:
    """Writes the results of SELECT and ASK as `cqels run --format json` does."""

    def __init__(self, opening: SinkOpening) -> None:
        self._file = io.StringIO()
        self._lines = open_sink(
            "json", self._file, dictionary=opening.dictionary, form=opening.form, variables=opening.variables
        )

    def of(self, batch: ResultBatch) -> list[str]:
        """A JSON object for each result."""
        if not len(batch):
            return []
        self._lines.write(batch)
        self._lines.flush()
        bodies = self._file.getvalue().removesuffix("\n").split("\n")
        self._file.seek(0)
        self._file.truncate()
        return bodies
