"""An error inside of a step stops the queries that it is of, with the reason, and no others: raised in every call of a corpus."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FunctionType
from typing import Any

import pytest

from cqels_py import Engine
from cqels_py.errors import RunError
from cqels_py.functions import table

STREAM = "http://ex.org/s"
PREFIX = "PREFIX : <http://ex.org/> "
W = "STREAM :s [RANGE 4s]"
QUERIES = {
    "plain": f"SELECT ?x ?o WHERE {{ {W} {{ ?x :v ?o }} }}",
    "filter": f"SELECT ?x WHERE {{ {W} {{ ?x :v ?o FILTER(?o > 2) }} }}",
    "texts": f"SELECT ?x (CONCAT(STR(?x), STR(?o)) AS ?t) WHERE {{ {W} {{ ?x :v ?o }} FILTER(REGEX(STR(?x), 'b|c')) }}",
    "group": f"SELECT ?x (SUM(?o) AS ?n) (MAX(?o) AS ?m) WHERE {{ {W} {{ ?x :v ?o }} }} GROUP BY ?x HAVING(SUM(?o) > 1)",
    "distinct": f"SELECT DISTINCT ?o WHERE {{ {W} {{ ?x :v ?o }} }}",
    "join": f"SELECT ?x ?y WHERE {{ {W} {{ ?x :v ?o . ?x :near ?y }} }}",
    "joined": f"SELECT ?x ?y ?p WHERE {{ {W} {{ ?x :v ?o . ?x :near ?y . ?y :v ?p }} }}",
    "optional": f"SELECT ?x ?y WHERE {{ {W} {{ ?x :v ?o OPTIONAL {{ ?x :near ?y }} }} }}",
    "minus": f"SELECT ?x WHERE {{ {W} {{ ?x :v ?o MINUS {{ ?x :near ?y }} }} }}",
    "exists": f"SELECT ?x WHERE {{ {W} {{ ?x :v ?o FILTER EXISTS {{ ?x :near ?y }} }} }}",
    "union": f"SELECT ?x WHERE {{ {W} {{ {{ ?x :v 1 }} UNION {{ ?x :near ?y }} }} }}",
    "path": f"SELECT ?x ?y WHERE {{ {W} {{ ?x :near+ ?y }} }}",
    "top": f"SELECT ?x ?o WHERE {{ {W} {{ ?x :v ?o }} }} ORDER BY DESC(?o) LIMIT 2",
    "count": f"SELECT (COUNT(DISTINCT *) AS ?n) WHERE {{ {W} {{ ?x :v ?o }} }}",
    "ask": f"ASK {{ {W} {{ ?x :v 7 }} }}",
    "rstream": f"REGISTER RSTREAM <urn:r> AS SELECT ?x WHERE {{ {W} {{ ?x :v ?o }} }}",
    "step": "SELECT ?x (COUNT(*) AS ?n) WHERE { STREAM :s [RANGE 4s STEP 2s] { ?x :v ?o } } GROUP BY ?x",
    "last": "SELECT ?x ?o WHERE { STREAM :s [COUNT 1 PARTITION BY ?x] { ?x :v ?o } }",
    "session": "SELECT ?x ?o WHERE { STREAM :s [SESSION 1s] { ?x :v ?o } }",
    "match": "SELECT ?x ?y WHERE { MATCH WITHIN 5s { EVENT ON :s { ?x :v 1 } SEQ EVENT ON :s { ?y :v 2 } } }",
    "rules": "RULES ON :s { RULE { ?m a :Warm } FOR [0s, 1s] WHERE { ?m :v ?t FILTER(?t > 1) } } "
    "SELECT ?m WHERE { STATE { ?m a :Warm } }",
    "feeds": f"REGISTER STREAM :made AS CONSTRUCT {{ ?x :w ?o }} WHERE {{ {W} {{ ?x :v ?o }} }}",
    "fed": "SELECT ?x WHERE { STREAM :made [RANGE 4s] { ?x :w ?o } }",
}
FED_BY = {"fed": "feeds"}


def elements() -> list[tuple[list[tuple[str, str, Any]], int]]:
    found = []
    for n in range(14):
        subject, other = (f"<http://ex.org/{'abc'[at % 3]}>" for at in (n, n + 1))
        triples: list[tuple[str, str, Any]] = [
            (subject, "<http://ex.org/v>", f'"{n % 4}"^^<http://www.w3.org/2001/XMLSchema#integer>')
        ]
        if n % 3:
            triples.append((subject, "<http://ex.org/near>", other))
        found.append((triples, 400_000 * n + 1_000_000))
    return found


ELEMENTS = elements()
PATCHED = ("operators", "state", "dataflow", "kernels")


class Injected(Exception):
    """Raised where nobody expects it."""


class Engines:
    """An engine with queries of the corpus, whose results are collected. It is pushed to with a batch size, or one by one."""

    def __init__(self, names: Iterable[str], **options: Any) -> None:
        self.engine = Engine(**options)
        self.results: dict[str, list[str]] = {}
        self.queries = {name: self.engine.register(PREFIX + QUERIES[name], name=name) for name in names}
        for name, query in self.queries.items():
            self.results[name] = []
            query.subscribe(lambda result, of=self.results[name]: of.append(repr(result)))
        self.errors: list[RunError] = []
        self.left_out: set[int] = set()

    def push(self, number: int) -> None:
        triples, time = ELEMENTS[number]
        try:
            self.engine.push(STREAM, triples, time=time)
        except Injected:
            self.left_out.add(number)
        except RunError as error:
            self.errors.append(error)

    def run(self, left_out: Container[int] = ()) -> Engines:
        for number in range(len(ELEMENTS)):
            if number not in left_out:
                self.push(number)
        return self

    @property
    def stopped(self) -> set[str]:
        """Those that the engine has no more."""
        return {name for name, query in self.queries.items() if query not in self.engine.queries}


def callers() -> Iterator[tuple[Any, str, Any]]:
    """Where functions of steps are called from: a module or a class, a name there, and the function."""
    for name, module in list(sys.modules.items()):
        parts = name.split(".")
        if parts[0] != "cqels_py" or len(parts) < 3 or parts[1] not in PATCHED or "compiler" in parts:
            continue
        for attribute, value in list(vars(module).items()):
            if hasattr(value, "py_func") and parts[1] == "kernels" and value.py_func.__module__ == name:
                yield module, attribute, value
            elif isinstance(value, type) and value.__module__ == name:
                for method, function in list(vars(value).items()):
                    if isinstance(function, FunctionType) and not method.startswith("__"):
                        yield value, method, function


@contextmanager
def wrapped(wrap: Callable[[str, Any], Any], only: str | None = None) -> Iterator[None]:
    """The functions of steps are replaced, or the one of this name."""
    undo = []
    for owner, name, function in callers():
        called = f"{getattr(owner, '__module__', owner.__name__)}.{owner.__name__}.{name}"
        if only is None or called == only:
            undo.append((owner, name, function))
            setattr(owner, name, wrap(called, function))
    try:
        yield
    finally:
        for owner, name, function in undo:
            setattr(owner, name, function)


def counted(names: list[str], **options: Any) -> Counter[str]:
    """How often each function is called in the steps."""
    counts: Counter[str] = Counter()

    def counting(name: str, function: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            counts[name] += 1
            return function(*given, **named)

        return call

    engines = Engines(names, **options)
    with wrapped(counting):
        engines.run()
    return counts


def injected(target: str, nth: int, names: list[str], **options: Any) -> Engines:
    """A run in which one call of a function raises an error."""
    count = 0

    def raising(_: str, function: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == nth:
                raise Injected(target)
            return function(*given, **named)

        return call

    engines = Engines(names, **options)
    with wrapped(raising, only=target):
        engines.run()
    return engines


APART = ("values.dictionary.decode", "values.dictionary.room_for_texts", "SharedScansPool.close")
"""Functions that also write results for subscribers, which is no step, and one of the engine itself, which empties a dict."""
NAMES = list(QUERIES)
ALL = "CQELS_TEST_ALL" in os.environ
TARGETS = 12
"""So many functions are tried, unless all are."""


@pytest.mark.parametrize("options", [{}, {"batch": 4}], ids=["one by one", "batches"])
def test_an_error_in_any_call_stops_the_queries_that_it_is_of_and_no_others(options: dict[str, Any]) -> None:
    expected = Engines(NAMES, **options).run()
    counts = {name: count for name, count in counted(NAMES, **options).items() if not name.endswith(APART)}
    assert len(counts) > 100 and not expected.errors
    tried = sorted(counts) if ALL else Random(str(options)).sample(sorted(counts), TARGETS)
    some_stopped = some_alone = 0
    for target in tried:
        engines = injected(target, (counts[target] + 1) // 2, NAMES, **options)
        stopped = engines.stopped
        reasons = [str(error) for error in engines.errors]
        assert engines.engine._steps.ended is None, target
        assert bool(reasons) == bool(stopped), (target, reasons, stopped)
        assert all("has been stopped: an error in its evaluation (Injected: " in reason for reason in reasons), reasons
        found = expected if not engines.left_out else Engines(NAMES, **options).run(engines.left_out)
        for name, results in engines.results.items():
            before = found.results[name]
            if name in stopped:
                assert results == before[: len(results)], (target, name)
            elif FED_BY.get(name) not in stopped:
                assert results == before, (target, name)
        some_stopped += bool(stopped)
        some_alone += len(stopped) == 1
    assert some_stopped > len(tried) // 2 and some_alone


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_query_that_failed_comes_back_stopped(
    tmp_path: Path, snapshot: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["plain", "texts", "group"]
    options: dict[str, Any] = {"checkpoint": tmp_path / "folder"}
    engines = Engines(names, **options)

    def fails(*_: object, **__: object) -> Any:
        raise Injected("in a function")

    with monkeypatch.context() as patched:
        patched.setitem(table.FUNCTIONS, "CONCAT", table.FUNCTIONS["CONCAT"]._replace(call=fails))
        for number in range(5):
            engines.push(number)
    assert engines.stopped == {"texts"}
    if snapshot:
        engines.engine.close()
    del engines
    gc.collect()
    engine = Engine(**options)
    with pytest.raises(
        RunError, match=r"has been stopped: an error in its evaluation \(Injected: in a function\).*under another name="
    ):
        engine.register(PREFIX + QUERIES["texts"], name="texts")
    assert {query.name for query in engine.queries} == {"plain", "group"}
    others = {name: engine.register(PREFIX + QUERIES[name], name=name) for name in ("plain", "group")}
    engine.register(PREFIX + QUERIES["texts"], name="texts again")
    triples, time = ELEMENTS[5]
    engine.push(STREAM, triples, time=time)
    assert all(list(query.results()) for query in others.values())
    engine.close()


def test_a_query_that_fails_in_a_replay_is_stopped_and_the_others_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the log was written by a version without the fault, or the process ended before it could log that it failed."""
    names = ["plain", "texts", "group"]
    options: dict[str, Any] = {"checkpoint": tmp_path / "folder"}
    engines = Engines(names, **options)
    for number in range(5):
        engines.push(number)
    shutil.copytree(tmp_path / "folder", tmp_path / "copy")
    engines.engine.close()

    def fails(*_: object, **__: object) -> Any:
        raise Injected("in a function")

    with monkeypatch.context() as patched:
        patched.setitem(table.FUNCTIONS, "CONCAT", table.FUNCTIONS["CONCAT"]._replace(call=fails))
        engine = Engine(checkpoint=tmp_path / "copy")
    assert {query.name for query in engine.queries} == {"plain", "group"}
    engine.close()
    # Now the log says so.
    engine = Engine(checkpoint=tmp_path / "copy")
    with pytest.raises(RunError, match="Injected: in a function"):
        engine.register(PREFIX + QUERIES["texts"], name="texts")
    assert {query.name for query in engine.queries} == {"plain", "group"}
    engine.close()


def test_an_integer_of_3000_digits_stops_nothing() -> None:
    engine = Engine()
    product = engine.register(PREFIX + "SELECT ?s (?x * ?x AS ?y) WHERE { STREAM :s [RANGE 10s] { ?s :v ?x } }")
    for time, digits in enumerate((3000, 1), 1):
        text = f'"{"7" * digits}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        engine.push(STREAM, [("<urn:a>", "<http://ex.org/v>", text)], time=time)
    assert [str(result.bindings.get("y")) for result in product.results()] == ["None", "49"]
