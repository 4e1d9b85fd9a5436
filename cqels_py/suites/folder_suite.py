"""A suite of one's own: a folder with queries and the files of their streams."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening
from cqels_py.suites.suite import Dataset, Suite, id_of

_STREAMS, _STATIC = "streams.json", "static.nt"
_SCHEMA = pa.schema(
    [("time", pa.int64()), *((name, pa.string()) for name in ("graph", "subject", "predicate", "object"))]
)
_EXAMPLE = '{"http://ex.org/readings": "readings.nq"}'


@dataclass(frozen=True, slots=True)
class FolderData:
    """The streams by IRI, as files in any format in which elements have their times, and the static data."""

    files: Mapping[str, Path]
    knowledge: Path

    def streams(self, triples: int, *, seed: int = 1) -> Mapping[str, pa.RecordBatchReader]:
        """At most so many triples of each stream, in whole elements; `seed` makes no difference."""
        return {
            iri: pa.RecordBatchReader.from_batches(_SCHEMA, _elements(path, triples))
            for iri, path in self.files.items()
        }

    def static(self, *, seed: int = 1) -> bytes:
        return self.knowledge.read_bytes() if self.knowledge.is_file() else b""


def _elements(path: Path, triples: int) -> Iterator[pa.RecordBatch]:
    dictionary = Dictionary()
    for batch in open_source(str(path), Opening(stream="", number=0, dictionary=dictionary, graphs=True)):
        end = int(np.searchsorted(batch.first, triples, side="right")) - 1
        rows = int(batch.first[end])
        counts = np.diff(batch.first[: end + 1])
        columns = [batch.subject[:rows], batch.predicate[:rows], batch.object[:rows]]
        texts = [pa.array(dictionary.decode(column), pa.string()) for column in columns]
        graph = pa.nulls(rows, pa.string())
        if batch.graph is not None:
            named = batch.graph[:rows]
            graph = pa.array([text if id_ else None for id_, text in zip(named, dictionary.decode(named), strict=True)])
        yield pa.record_batch([pa.array(np.repeat(batch.time[:end], counts)), graph, *texts], schema=_SCHEMA)
        triples -= rows
        if end < len(batch):
            return


@dataclass(frozen=True, slots=True)
class FolderSuite(Suite):
    """The queries are the .rq files of `place`."""

    place: Path = field(default_factory=Path)

    @classmethod
    def of(cls, place: Path) -> FolderSuite:
        """UsageError for a folder that is none, or has no queries or streams."""
        if not place.is_dir():
            raise UsageError(f"--suite-dir {place} is not a folder")
        suite = cls(place.resolve().name, f"queries of {place}", "", "", place=place)
        suite.data()
        return suite

    def queries(self) -> dict[str, str]:
        """The queries' texts by id, as those of `Suite`."""
        return {id_of(path.name): path.read_text(encoding="utf-8") for path in sorted(self.place.glob("*.rq"))}

    def data(self) -> Dataset:
        """The files that streams.json names."""
        named = self.place / _STREAMS
        try:
            found = json.loads(named.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UsageError(f"{named} is not there: write a file for each stream's IRI, such as {_EXAMPLE}") from None
        except ValueError as error:
            raise UsageError(f"{named} is no JSON ({error}): write {_EXAMPLE}") from None
        if not isinstance(found, dict) or not found or not all(isinstance(each, str) for each in found.values()):
            raise UsageError(f"{named}: expected an object with a file for each stream's IRI, such as {_EXAMPLE}")
        files = {iri: self.place / file for iri, file in found.items()}
        for iri, path in files.items():
            if not path.is_file():
                raise UsageError(f"{named}: {path}, the file of <{iri}>, is not there")
        return FolderData(files, self.place / _STATIC)

    def sources(self) -> list[Path]:
        """The files of the streams, and static.nt."""
        data = self.data()
        assert isinstance(data, FolderData)
        return [*data.files.values(), *([data.knowledge] if data.knowledge.is_file() else [])]
