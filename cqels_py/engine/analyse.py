"""Analyses of a query before it is registered."""

from __future__ import annotations

from dataclasses import dataclass, field

from cqels_py.analysis.memory import MemoryVerdict
from cqels_py.engine.compile import compile_query
from cqels_py.engine.notebooks import html_table
from cqels_py.plan.nodes import Plan


@dataclass(frozen=True, slots=True)
class Analysis:
    """A description of a query before it runs.

    `memory`: does its state stay below a bound? `warnings`: probable mistakes, and expensive operators. `form`: SELECT, ASK or
    CONSTRUCT. `variables`: the columns of a result. `streams`: IRIs. `windows`: as they are written. `plan`: the physical plan.
    """

    memory: MemoryVerdict
    warnings: tuple[str, ...]
    form: str
    variables: tuple[str, ...]
    streams: tuple[str, ...]
    windows: tuple[str, ...]
    plan: Plan = field(repr=False)

    def _repr_html_(self) -> str:
        rows = [
            ("form", self.form),
            ("variables", ", ".join(self.variables)),
            ("streams", ", ".join(self.streams)),
            ("windows", ", ".join(self.windows)),
            ("memory", self.memory),
            *(("warning", warning) for warning in self.warnings),
        ]
        return html_table(("", ""), rows, "query")


def analyse(text: str, *, source: str | None = None) -> Analysis:
    """Analyse a query by its text; `source` names the text in messages. Endpoints of SERVICE are asked, as they are to register it.

    Raises QuerySyntaxError, UnsupportedQuery, DataError, UsageError.

    >>> analyse("SELECT ?s { STREAM <urn:r> [RANGE 5m] { ?s <urn:t> ?t } }").windows
    ('[RANGE 5m]',)
    """
    compiled = compile_query(text, source=source)
    plan = compiled.plan
    windows = tuple(window.text for window in plan.windows)
    return Analysis(compiled.memory, compiled.warnings, plan.form, plan.variables, plan.streams, windows, plan)
