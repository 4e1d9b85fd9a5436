"""`cqels map`: the elements that a map makes of a file."""

from __future__ import annotations

import sys
from pathlib import Path

from cqels_py.cli import failures
from cqels_py.errors import DataError


def show_elements(
    sample: Path, map_file: Path, format: str, time_predicate: str | None, limit: int | None, on_error: str
) -> None:
    """Print the elements, at most `limit` of them. Malformed rows are told on standard error, or end it."""
    from cqels_py.batches.rearrange import slice_elements
    from cqels_py.dictionary import Dictionary
    from cqels_py.formats.graphs import GraphWriter
    from cqels_py.formats.omissions import Omissions
    from cqels_py.mappings.context import read_map
    from cqels_py.sources.mapped import mapped_file
    from cqels_py.sources.protocol import Opening

    dictionary = Dictionary()
    opening = Opening(
        stream="urn:cqels:sample",
        number=0,
        dictionary=dictionary,
        time_predicate=time_predicate,
        on_error=on_error,
        report=_tell,
        omissions=Omissions(failures.say),
        map=read_map(map_file),
    )
    writer = GraphWriter(sys.stdout, dictionary, format)
    left = limit
    for batch in mapped_file(str(sample), opening):
        shown = batch if left is None else slice_elements(batch, 0, min(left, len(batch)))
        writer.write(shown)
        if left is not None:
            left -= len(shown)
            if left <= 0:
                return


def _tell(error: DataError) -> None:
    failures.say(f"malformed: {error}")
