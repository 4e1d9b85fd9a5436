"""Opens the sink that a URL names for the results of a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cqels_py.connections.reach import Reach
from cqels_py.dictionary import Dictionary
from cqels_py.engine.backlog import Backlog, BackloggedSink
from cqels_py.errors import RefusedResult, UsageError
from cqels_py.plan.answer_key import answer_key
from cqels_py.plan.nodes import Plan
from cqels_py.sinks.protocol import Sink, SinkConnector, SinkOpening


@dataclass(frozen=True, slots=True)
class Continued:
    """Where the results that a sink is to get begin; the fields are those of `SinkOpening`."""

    written: int | None = None
    run: str | None = None
    made: int | None = 0


def opened_sink(
    connector: SinkConnector,
    plan: Plan,
    dictionary: Dictionary,
    report: Callable[[RefusedResult], None],
    continued: Continued,
    backlog: Backlog | None = None,
    reach: Reach | None = None,
) -> Sink:
    """The sink of a connector. `backlog`: results wait for it, up to so many, if it can be tried again. `reach`: of `SinkOpening`.

    UsageError for one that needs retractions, of a query that has none.
    """
    has_both_signs = plan.output == "CHANGELOG"
    if connector.changelog and not has_both_signs:
        raise UsageError(
            "this sink keeps the answer, for which it needs retractions too: register the query with changelog=True"
        )
    opening = SinkOpening(
        dictionary=dictionary,
        form=plan.form,
        variables=plan.variables,
        template=tuple((each.subject, each.predicate, each.object) for each in plan.template),
        key=answer_key(plan),
        changelog=has_both_signs,
        report=report,
        name=plan.name,
        written=continued.written,
        run=continued.run,
        made=continued.made,
        reach=reach,
    )
    if backlog is None or not getattr(connector, "can_retry", False):
        return connector.open(opening)
    return BackloggedSink(connector.open, opening, backlog)


def close_sink(sink: object) -> None:
    """Close a sink that has something to close."""
    if callable(close := getattr(sink, "close", None)):
        close()
