"""The benchmark suites."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Protocol, cast

import pyarrow as pa

from cqels_py.errors import UsageError
from cqels_py.suggestions import unknown


class Dataset(Protocol):
    """A module of data: streams as record batches (columns as in datasets/tables.py), static knowledge as N-Triples."""

    def streams(self, triples: int, *, seed: int = 1) -> Mapping[str, pa.RecordBatchReader]: ...

    def static(self, *, seed: int = 1) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Suite:
    """`dataset` is a module; the queries are the .rq files of `folder` in the package `package`.

    `paper`: triples per second by query in the paper "Operator-aware approach for boosting performance in RDF stream
    processing", on a Xeon of 2.13 GHz of 2010.
    """

    name: str
    description: str
    dataset: str
    folder: str
    package: str = "cqels_py.queries"
    paper: Mapping[str, float] = field(default_factory=dict)

    def queries(self) -> dict[str, str]:
        """The queries' texts by id: a number ("1" for 01.rq), or a name."""
        found = (entry for entry in (files(self.package) / self.folder).iterdir() if entry.name.endswith(".rq"))
        ordered = sorted(found, key=lambda entry: entry.name)
        return {id_of(entry.name): entry.read_text(encoding="utf-8") for entry in ordered}

    def chosen(self, ids: Sequence[str]) -> dict[str, str]:
        """The requested queries in the suite's order; all if none is requested. UsageError for an unknown one."""
        queries = self.queries()
        if not queries:
            raise UsageError(f"{self.name} has no queries")
        for each in ids:
            if each not in queries:
                raise UsageError(f"{self.name}: {unknown('query', each, queries)}")
        return {id_: text for id_, text in queries.items() if id_ in ids or not ids}

    def data(self) -> Dataset:
        return cast(Dataset, import_module(self.dataset))

    def sources(self) -> list[Path]:
        """The files on which its data depend."""
        file = inspect.getsourcefile(import_module(self.dataset))
        assert file is not None
        path = Path(file)
        return sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]


SUITES = (
    Suite(
        "srbench",
        "observations of weather stations, places and their links: the 17 queries of SRBench",
        "cqels_py.datasets.srbench",
        "srbench",
        paper={"1": 25_147, "4": 20_161, "5": 13_966, "8": 22_278, "10": 29_463},
    ),
    Suite(
        "lsbench",
        "a social network's positions, posts, likes and photos: the 12 queries of LSBench",
        "cqels_py.datasets.lsbench",
        "lsbench",
        paper={"1": 118_924, "2": 96_789, "3": 88_647, "4": 60_467, "5": 52_890, "6": 44_391, "10": 103_698},
    ),
)


def find(name: str, suites: Sequence[Suite] | None = None) -> Suite:
    """The suite of this name. UsageError if there is none."""
    known = SUITES if suites is None else suites
    for suite in known:
        if suite.name == name:
            return suite
    raise UsageError(unknown("suite", name, [suite.name for suite in known]))


def title(text: str) -> str:
    """The first line of a query's header: a short description."""
    first = text.partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def id_of(file: str) -> str:
    """The id of a query's file."""
    name = file.removesuffix(".rq")
    return str(int(name)) if name.isdigit() else name
