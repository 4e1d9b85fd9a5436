"""Sources as plain Python: elements with texts, blank nodes renamed by their order of appearance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.formats.compression import CHUNK_BYTES
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening

Triple = tuple[str, str, str]
Element = tuple[int, list[Triple]]

GENERATED = "<http://www.w3.org/ns/prov#generatedAtTime>"
TIME = "http://ex.org/time"
XSD = "http://www.w3.org/2001/XMLSchema#"


@dataclass
class Read:
    """The outcome of a source: elements, reported errors, and the error that stopped it."""

    elements: list[Element] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    error: DataError | None = None
    sizes: list[int] = field(default_factory=list)

    @property
    def triples(self) -> list[list[Triple]]:
        return [triples for _, triples in self.elements]


def instant(seconds: int) -> str:
    """A time of the first minute of 1970."""
    return f'"1970-01-01T00:00:{seconds:02}Z"^^<{XSD}dateTime>'


def ahead(graph: str, seconds: int) -> str:
    """The line that gives a graph's time."""
    return f"{graph} {GENERATED} {instant(seconds)} .\n"


def iri(name: str) -> str:
    return f"<http://ex.org/{name}>"


def renamed(elements: Iterable[tuple[int, Iterable[tuple[str, ...]]]], per_element: bool = False) -> list[Element]:
    """Blank nodes as _:0, _:1, … in order of appearance; `per_element`: the same label elsewhere is another node."""
    numbers: dict[Any, str] = {}
    found: list[Element] = []
    for number, (time, triples) in enumerate(elements):
        out = []
        for triple in triples:
            keys = [((number, term) if per_element else term) if term.startswith("_:") else None for term in triple]
            terms = [
                term if key is None else numbers.setdefault(key, f"_:{len(numbers)}")
                for term, key in zip(triple, keys, strict=True)
            ]
            out.append((terms[0], terms[1], terms[2]))
        found.append((time, out))
    return found


def elements_of(batches: Iterable[ElementBatch], dictionary: Dictionary, read: Read | None = None) -> Iterator[Element]:
    """The elements of batches, checked for the guarantees of every batch."""
    for batch in batches:
        assert len(batch) > 0
        assert batch.first[0] == 0
        assert batch.first[-1] == batch.triples
        assert len(batch.stream) == len(batch)
        if read is not None:
            read.sizes.append(len(batch))
        columns = [dictionary.decode(ids) for ids in (batch.subject, batch.predicate, batch.object)]
        triples = list(zip(*columns, strict=True))
        for e, time in enumerate(batch.time.tolist()):
            yield time, triples[batch.first[e] : batch.first[e + 1]]  # type: ignore[misc]


def read_source(
    location: str | Path, dictionary: Dictionary | None = None, chunk_bytes: int = CHUNK_BYTES, **options: Any
) -> Read:
    """All elements of a source, until it ends or a DataError stops it. `options`: of the `Opening`."""
    dictionary = dictionary or Dictionary()
    read = Read()
    found: list[Element] = []
    try:
        opening = Opening(
            stream=iri("s"), number=3, dictionary=dictionary, report=lambda e: read.reported.append(str(e)), **options
        )
        batches = open_source(str(location), opening, chunk_bytes=chunk_bytes)
        for element in elements_of(batches, dictionary, read):
            found.append(element)  # noqa: PERF402  (those before an error count)
    except DataError as error:
        read.error = error
    read.elements = renamed(found)
    return read


Source = Callable[..., Read]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """Write a file of this name and read it as a stream."""

    def read(name: str, content: str | bytes, **options: Any) -> Read:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_source(path, **options)

    return read
