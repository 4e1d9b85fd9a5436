"""Continuous SPARQL over RDF streams: register a query once, and its answer is kept up to date as elements arrive and expire.

>>> import cqels_py as cqels
>>> engine = cqels.Engine()
>>> query = engine.register("SELECT ?s ?v WHERE { STREAM <http://ex.org/s> [RANGE 10s] { ?s <http://ex.org/v> ?v } }")
>>> engine.push("http://ex.org/s", [("<http://ex.org/a>", "<http://ex.org/v>", '"1"')], time=0)
>>> [(result.sign, str(result.bindings["v"])) for result in query.results()]
[(1, '1')]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cqels_py.engine.analyse import analyse
    from cqels_py.engine.engine import Engine, Query, Result, Statistics
    from cqels_py.engine.metrics import EngineCollector
    from cqels_py.engine.once import query
    from cqels_py.errors import (
        CqelsError,
        DataError,
        MissingExtra,
        QueryError,
        QuerySyntaxError,
        RunError,
        TermCollision,
        UnsupportedQuery,
        UsageError,
    )
    from cqels_py.mappings.mapping import Mapping

__version__ = "0.1.0"

_ENGINE = ("Engine", "Query", "Result", "Statistics")
_ERRORS = (
    "CqelsError", "DataError", "MissingExtra", "QueryError", "QuerySyntaxError", "RunError", "TermCollision",
    "UnsupportedQuery", "UsageError",
)  # fmt: skip
_ELSEWHERE = {
    "EngineCollector": "cqels_py.engine.metrics",
    "Mapping": "cqels_py.mappings.mapping",
    "analyse": "cqels_py.engine.analyse",
    "query": "cqels_py.engine.once",
}

__all__ = [
    "CqelsError",
    "DataError",
    "Engine",
    "EngineCollector",
    "Mapping",
    "MissingExtra",
    "Query",
    "QueryError",
    "QuerySyntaxError",
    "Result",
    "RunError",
    "Statistics",
    "TermCollision",
    "UnsupportedQuery",
    "UsageError",
    "analyse",
    "query",
]


def __getattr__(name: str) -> object:
    """The engine is imported when it is asked for: `import cqels_py` and `cqels --help` stay quick."""
    from importlib import import_module

    if name in _ENGINE:
        return getattr(import_module("cqels_py.engine.engine"), name)
    if name in _ELSEWHERE:
        return getattr(import_module(_ELSEWHERE[name]), name)
    if name in _ERRORS:
        return getattr(import_module("cqels_py.errors"), name)
    raise AttributeError(f"module 'cqels_py' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, also those that have not been imported yet."""
    return sorted({*globals(), *__all__})
