"""A file of N-Quads that another process can go on with, without reading all before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any, TypeAlias

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import slice_elements
from cqels_py.errors import DataError
from cqels_py.formats.compression import CHUNK_BYTES, is_file, local_path, read_chunks
from cqels_py.formats.endings import STREAMS, compression_of, format_of
from cqels_py.formats.marks import Mark, Marks
from cqels_py.sources.batches import BatchSource
from cqels_py.sources.files import elements_of_chunks
from cqels_py.sources.protocol import Opening
from cqels_py.sources.stdin import STANDARD_INPUT

Position: TypeAlias = list[int]
"""The fields of a mark, and the number of elements behind it that were polled."""


def can_be_marked(location: str, opening: Opening) -> bool:
    """Is it a regular file of N-Quads, in a run that another process may go on with?"""
    path = location.removeprefix("file://")
    return (
        opening.continues
        and opening.map is None
        and location != STANDARD_INPUT
        and is_file(local_path(location))
        and compression_of(path) is None
        and format_of(path, STREAMS) == "nq"
    )


class MarkedFile(BatchSource):
    """The elements of a file from the opening's position on."""

    resumes = True

    def __init__(self, location: str, opening: Opening) -> None:
        position: Any = opening.position
        *fields, self._skip = [*astuple(Mark()), 0] if position is None else position
        begin = Mark(*fields)
        self._told, self._read = begin.malformed, begin.elements
        self._marks = Marks(begin)
        self._report = opening.report
        chunks = self._chunks(location)
        # Nothing is split: the file is read without waiting.
        opening = replace(opening, report=self._count, wait=None, on_split=None)
        super().__init__(elements_of_chunks("nq", chunks, opening, location, self._marks), again=True)

    def poll(self) -> ElementBatch | None:
        batch = super().poll()
        if batch is None:
            return None
        self._read += len(batch)
        skipped = min(self._skip, len(batch))
        self._skip -= skipped
        return slice_elements(batch, skipped, len(batch)) if skipped else batch

    def position(self) -> Position:
        mark = self._marks.last
        return [*astuple(mark), self._read - mark.elements + self._skip]

    def _count(self, error: DataError) -> None:
        self._told += 1
        if self._report is not None:
            self._report(error)

    def _chunks(self, location: str) -> Iterator[bytes]:
        at, line, whole = self._marks.begin.at, self._marks.begin.line, False
        for chunk in read_chunks(location, CHUNK_BYTES, start=at):
            if whole:
                self._marks.line_begins(at, line, self._told, self._read)
            at, line, whole = at + len(chunk), line + chunk.count(b"\n"), chunk.endswith(b"\n")
            yield chunk
        if whole:
            self._marks.line_begins(at, line, self._told, self._read)
