"""The contenders for a query over the last observations: the engine, and the alternatives of a Python user.

The others re-evaluate: at each step they update their data, run the whole query, and read all rows. In their favour,
terms are made outside of the timing, and data frames get numbers instead of terms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyoxigraph

import cqels_py as cqels
from bench.suites.observations import MICROSECONDS, PREFIX, STREAM, Int64, Property, observation_iris, table
from bench.suites.stepping import Answers, Contender, checksum, checksums, row_hashes
from cqels_py.batches.results import ResultBatch

_BLOCK = 10_000
"""Observations per call of the engine, or a step's if that is more."""
_DECIMALS = 1_000_000
"""Values are compared to the sixth digit after the point."""
Row = tuple[str, str]


@dataclass(frozen=True)
class Question:
    """One value for each sensor: `aggregate` of ?result, over the last `window` observations and all of their properties."""

    properties: Sequence[Property]
    aggregate: str
    window: int

    @property
    def pattern(self) -> str:
        return " . ".join(f"?o <{each.iri}> ?{each.name}" for each in self.properties)

    @property
    def sparql(self) -> str:
        return f"SELECT ?sensor ({self.aggregate}(?result) AS ?value) WHERE {{ {self.pattern} }} GROUP BY ?sensor"

    def continuous(self, step: int, *, whole: bool) -> str:
        """`whole`: the whole answer at each step instead of changes."""
        asked = f"SELECT ?sensor ({self.aggregate}(?result) AS ?value)"
        window = f"[COUNT {self.window} STEP {step}]"
        if not whole:
            return f"{asked} WHERE {{ STREAM <{STREAM}> {window} {{ {self.pattern} }} }} GROUP BY ?sensor"
        return (
            f"PREFIX : <{PREFIX}> REGISTER RSTREAM :answers AS {asked} FROM NAMED WINDOW :w ON <{STREAM}> {window} "
            f"WHERE {{ WINDOW :w {{ {self.pattern} }} }} GROUP BY ?sensor"
        )


def _code(sensor: str) -> int:
    """The number in a sensor's IRI."""
    return int(sensor.strip("<>").rpartition("/")[2])


def _rounded(value: str) -> int:
    return round(float(value) * _DECIMALS)


# --- the engine ----------------------------------------------------------------------------------------------------


class Engine(Contender[Any]):
    """Through `push_batch`, terms as texts; changes of both signs are delivered."""

    whole = False

    def __init__(self, question: Question, step: int, *, name: str = "engine", at_once: int = _BLOCK) -> None:
        self.name = name
        self.unit = -(-at_once // step) * step
        self._properties = question.properties
        self.engine = cqels.Engine()
        query = self.engine.register(question.continuous(step, whole=self.whole), changelog=not self.whole)
        self._found: list[ResultBatch] = []
        query.subscribe_batches(self._found.append, ids=True)

    def prepare(self, first: int, count: int) -> Any:
        return table(first, count, self._properties)

    def take(self, prepared: Any) -> None:
        self.engine.push_batch(STREAM, prepared)

    def answers(self) -> Answers:
        time = np.concatenate([batch.time for batch in self._found]) // MICROSECONDS
        sign = np.concatenate([batch.sign for batch in self._found])
        columns = [np.concatenate([batch.columns[c] for batch in self._found]) for c in range(2)]
        read: tuple[Callable[[str], int], ...] = (_code, lambda text: _rounded(text.split('"')[1]))
        hashes = row_hashes([self._numbers(ids, number) for ids, number in zip(columns, read, strict=True)])
        if self.whole:
            return checksums(time, hashes)
        changes = checksums(time, np.where(sign > 0, hashes, -hashes))
        answers = np.cumsum(np.array(list(changes.values()), np.uint64), dtype=np.uint64)
        return dict(zip(changes, answers.tolist(), strict=True))

    def _numbers(self, ids: Int64, number: Callable[[str], int]) -> Int64:
        unique, place = np.unique(ids, return_inverse=True)
        texts = self.engine.dictionary.decode(unique)
        return np.array([number(text or "") for text in texts], np.int64)[place]


class WholeAnswers(Engine):
    """The whole answer at each step."""

    whole = True


class StepByStep(Engine):
    """A call for each step: `push` for one observation, `push_batch` for more."""

    def __init__(self, question: Question, step: int) -> None:
        super().__init__(question, step, name="engine, a push a step", at_once=1)

    def prepare(self, first: int, count: int) -> Any:
        made = super().prepare(first, count)
        if count > 1:
            return made
        columns = [made.column(name).to_pylist() for name in ("subject", "predicate", "object")]
        return list(zip(*columns, strict=True)), made.column("time")[0].as_py()

    def take(self, prepared: Any) -> None:
        if isinstance(prepared, pa.Table):
            super().take(prepared)
        else:
            triples, time = prepared
            self.engine.push(STREAM, triples, time=time)


# --- re-evaluation -------------------------------------------------------------------------------------------------


class Reevaluation(Contender[Any]):
    """One step per call; `rows` are the answer's, read completely."""

    def __init__(self, question: Question, step: int) -> None:
        self.unit = self._step = step
        self.question = question
        self._seen = 0
        self._rows: list[tuple[int, Any]] = []

    def fill(self, first: int, count: int) -> None:
        self.update(self.prepare(first, count))
        self._seen += count

    def take(self, prepared: Any) -> None:
        self.update(prepared)
        self._seen += self._step
        self._rows.append((self._seen, self.rows()))

    def update(self, prepared: Any) -> None:
        """Add new observations and remove expired ones."""
        raise NotImplementedError

    def rows(self) -> Any:
        raise NotImplementedError

    def columns(self, rows: Any) -> Sequence[Int64]:
        """An answer as numbers: sensors and values, rounded."""
        sensors, values = zip(*rows, strict=True)
        return np.array(list(map(_code, sensors))), np.array(list(map(_rounded, values)))

    def answers(self) -> Answers:
        return {seen: checksum(self.columns(rows)) for seen, rows in self._rows}


class _OverTerms(Reevaluation):
    """Keeps the window's observations as triples of a library's terms, grouped by observation."""

    def __init__(self, question: Question, step: int) -> None:
        super().__init__(question, step)
        self._window: deque[list[Any]] = deque()
        self._terms: dict[bytes, Any] = {}

    def triple(self, subject: Any, predicate: Any, object: Any) -> Any:
        raise NotImplementedError

    def iri(self, text: str) -> Any:
        raise NotImplementedError

    def literal(self, text: str, datatype: str) -> Any:
        raise NotImplementedError

    def prepare(self, first: int, count: int) -> list[list[Any]]:
        numbers = np.arange(first, first + count)
        subjects = [self.iri(text.decode()[1:-1]) for text in _texts(observation_iris(numbers))]
        predicates = [self.iri(each.iri) for each in self.question.properties]
        objects = [map(self._term, _texts(each.objects(numbers))) for each in self.question.properties]
        return [
            [self.triple(subject, predicate, object) for predicate, object in zip(predicates, mine, strict=True)]
            for subject, *mine in zip(subjects, *objects, strict=True)
        ]

    def _term(self, text: bytes) -> Any:
        if text not in self._terms:
            plain = text.decode()
            value, _, datatype = plain[1:].rpartition('"')
            self._terms[text] = (
                self.iri(plain[1:-1]) if plain[0] == "<" else self.literal(value, datatype.lstrip("^").strip("<>"))
            )
        return self._terms[text]

    def _gone(self) -> Iterator[Any]:
        """The triples of expired observations."""
        while len(self._window) > self.question.window:
            yield from self._window.popleft()


def _texts(terms: Any) -> list[bytes]:
    data, width = terms.tobytes(), terms.shape[1]
    return [data[at : at + width] for at in range(0, len(data), width)]


class PyoxigraphKept(_OverTerms):
    """One store: expired triples are removed, new ones added."""

    name = "pyoxigraph, store kept"

    def __init__(self, question: Question, step: int) -> None:
        super().__init__(question, step)
        self.store = pyoxigraph.Store()

    def triple(self, subject: Any, predicate: Any, object: Any) -> Any:
        return pyoxigraph.Quad(subject, predicate, object)

    def iri(self, text: str) -> Any:
        return pyoxigraph.NamedNode(text)

    def literal(self, text: str, datatype: str) -> Any:
        return (
            pyoxigraph.Literal(text, datatype=pyoxigraph.NamedNode(datatype)) if datatype else pyoxigraph.Literal(text)
        )

    def update(self, prepared: list[list[Any]]) -> None:
        self._window.extend(prepared)
        self.store.extend(quad for each in prepared for quad in each)
        for quad in self._gone():
            self.store.remove(quad)

    def rows(self) -> list[Row]:
        found: Any = self.store.query(self.question.sparql)
        return [(row[0].value, row[1].value) for row in found]


class PyoxigraphRebuilt(PyoxigraphKept):
    """A new store at each step, filled with the whole window."""

    name = "pyoxigraph, store rebuilt"

    def update(self, prepared: list[list[Any]]) -> None:
        self._window.extend(prepared)
        for _ in self._gone():
            pass
        self.store = pyoxigraph.Store()
        self.store.extend(quad for each in self._window for quad in each)


class RdflibKept(_OverTerms):
    """One graph that is kept up to date; the query is prepared once."""

    name = "rdflib, graph kept"

    def __init__(self, question: Question, step: int) -> None:
        from rdflib import Graph
        from rdflib.plugins.sparql import prepareQuery

        super().__init__(question, step)
        self._graph = Graph()
        self._query = prepareQuery(question.sparql)

    def triple(self, subject: Any, predicate: Any, object: Any) -> Any:
        return subject, predicate, object

    def iri(self, text: str) -> Any:
        from rdflib import URIRef

        return URIRef(text)

    def literal(self, text: str, datatype: str) -> Any:
        from rdflib import Literal, URIRef

        return Literal(text, datatype=URIRef(datatype) if datatype else None)

    def update(self, prepared: list[list[Any]]) -> None:
        self._window.extend(prepared)
        for each in prepared:
            for triple in each:
                self._graph.add(triple)
        for triple in self._gone():
            self._graph.remove(triple)

    def rows(self) -> list[Row]:
        found: Any = self._graph.query(self._query)
        return [(str(row[0]), str(row[1])) for row in found]


class OverNumbers(Reevaluation):
    """Keeps the window as a table of triples of numbers: (3, n) subject, predicate, object."""

    def __init__(self, question: Question, step: int) -> None:
        super().__init__(question, step)
        self.triples = np.empty((3, 0), np.int64)

    def prepare(self, first: int, count: int) -> Int64:
        numbers, properties = np.arange(first, first + count), self.question.properties
        objects = np.stack([each.codes(numbers) for each in properties], axis=1).reshape(-1)
        return np.stack([np.repeat(numbers, len(properties)), np.tile(np.arange(len(properties)), count), objects])

    def update(self, prepared: Int64) -> None:
        kept = self.question.window * len(self.question.properties)
        self.triples = np.concatenate([self.triples, prepared], axis=1)[:, -kept:]

    def columns(self, rows: Any) -> Sequence[Int64]:
        sensors, values = rows
        return np.asarray(sensors, np.int64), np.rint(np.asarray(values, float) * _DECIMALS).astype(np.int64)


class Polars(OverNumbers):
    """A lazy query over a data frame of the window."""

    name = "Polars"

    def rows(self) -> Any:
        import polars as pl

        frame = pl.LazyFrame(dict(zip(("o", "p", "v"), self.triples, strict=True)))
        joined: Any = None
        for number, each in enumerate(self.question.properties):
            mine = frame.filter(pl.col("p") == number).select("o", pl.col("v").alias(each.name))
            joined = mine if joined is None else joined.join(mine, on="o")
        value = pl.col("result").mean() if self.question.aggregate == "AVG" else pl.col("result").count()
        answer = joined.group_by("sensor").agg(value).collect()
        return answer["sensor"].to_numpy(), answer["result"].to_numpy()


class PolarsOverTexts(Reevaluation):
    """The same query over terms as texts, which is the engine's input."""

    name = "Polars, over texts"

    def __init__(self, question: Question, step: int) -> None:
        super().__init__(question, step)
        self._frame: Any = None

    def prepare(self, first: int, count: int) -> Any:
        import polars as pl

        return pl.from_arrow(table(first, count, self.question.properties).drop_columns("time"))

    def update(self, prepared: Any) -> None:
        import polars as pl

        together = prepared if self._frame is None else pl.concat([self._frame, prepared])
        self._frame = together.tail(self.question.window * len(self.question.properties))

    def rows(self) -> Any:
        import polars as pl

        joined: Any = None
        for each in self.question.properties:
            mine = self._frame.lazy().filter(pl.col("predicate") == f"<{each.iri}>")
            mine = mine.select("subject", pl.col("object").alias(each.name))
            joined = mine if joined is None else joined.join(mine, on="subject")
        number = pl.col("result").str.extract('"([0-9]+)"').cast(pl.Int64)
        value = number.mean() if self.question.aggregate == "AVG" else number.count()
        answer = joined.group_by("sensor").agg(value).collect()
        return zip(answer["sensor"].to_list(), map(str, answer["result"].to_list()), strict=True)


class DuckDB(OverNumbers):
    """A SQL query over an Arrow table of the window."""

    name = "DuckDB"

    def __init__(self, question: Question, step: int) -> None:
        import duckdb

        super().__init__(question, step)
        names = [each.name for each in question.properties]
        parts = [
            f"(SELECT o, v AS {name} FROM triples WHERE p = {number}) {name}_" for number, name in enumerate(names)
        ]
        joined = parts[0] + "".join(f" JOIN {part} USING (o)" for part in parts[1:])
        self._sql = f"SELECT sensor, {question.aggregate}(result) AS value FROM {joined} GROUP BY sensor"
        self._connection = duckdb.connect()

    def rows(self) -> Any:
        self._connection.register("triples", pa.table(dict(zip(("o", "p", "v"), self.triples, strict=True))))
        found = self._connection.execute(self._sql).fetchnumpy()
        return found["sensor"], found["value"]


def available(contenders: Iterable[tuple[str, type[Reevaluation]]]) -> tuple[list[type[Reevaluation]], list[str]]:
    """The contenders whose library is installed, and a message for each of the others."""
    there, missing = [], []
    for library, contender in contenders:
        if find_spec(library) is None:
            missing.append(f"{contender.name} is left out: {library} is not installed (pip install {library})")
        else:
            there.append(contender)
    return there, missing
