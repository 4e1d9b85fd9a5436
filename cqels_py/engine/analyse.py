"""Analyses of a query before it is registered."""

from __future__ import annotations

from dataclasses import dataclass

from cqels_py.analysis.memory import MemoryVerdict
from cqels_py.engine.compile import compile_query


@dataclass(frozen=True, slots=True)
class Analysis:
    """`memory`: does the query's state stay below a bound? `warnings`: probable mistakes, and expensive operators."""

    memory: MemoryVerdict
    warnings: tuple[str, ...]


def analyse(text: str, *, source: str | None = None) -> Analysis:
    """Analyse a query by its text; `source` names the text in messages. Endpoints of SERVICE are asked, as they are to register it.

    Raises QuerySyntaxError, UnsupportedQuery, DataError, UsageError.
    """
    compiled = compile_query(text, source=source)
    return Analysis(compiled.memory, compiled.warnings)
