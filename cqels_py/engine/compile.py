"""A query's way, from its text to the plan that runs it.

text ─ parse ─ ask the endpoints of SERVICE ─ analyse ─ rewrite the algebra ─ plan ─ rewrite the plan ─ CompiledQuery
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache

from cqels_py.algebra.nodes import ContinuousQuery, EventJoin, Output, RuleSet
from cqels_py.algebra.validate import walk
from cqels_py.analysis.checks import ANALYSES
from cqels_py.analysis.memory import MemoryVerdict, growing_events, memory_verdict
from cqels_py.engine.services import TIMEOUT, Ask, answer_services
from cqels_py.errors import UnsupportedQuery, UsageError
from cqels_py.parser import parse
from cqels_py.parser.calls import place_of_call
from cqels_py.parser.source import Source
from cqels_py.plan.nodes import Plan
from cqels_py.planner import CHOICES, RULES, plan_query, rewrite_plan
from cqels_py.planner.matches import with_guarantee
from cqels_py.rewrites import OPTIONAL, rewrite
from cqels_py.rewrites.entailment import Ontology, entail
from cqels_py.sources.sparql_protocol import select
from cqels_py.validation import check_flag

OPTIMISATIONS: tuple[str, ...] = (*(rule.__name__ for rule in (*OPTIONAL, *RULES)), *CHOICES)
"""The names of all optional steps. Without them answers are the same: for tests, and to find the cause of an error."""

_MOST_KEPT, _LONGEST = 256, 1 << 13
"""The texts whose algebra is kept, and the characters of the longest of them."""


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query that any engine can run, in any process: plain data, which can be pickled.

    `text`: the query as it was written. `asked`: its algebra before any rewrite, with the answers of SERVICE. `plan`: its physical
    plan, with the warnings of analyses and planner. `ontology`: by which it was rewritten for entailment, if it was.
    `without`: names of `OPTIMISATIONS` that were left out. `guarantee`: MATCH has indexes with a bound for each step.
    `explained`: it is registered to be explained, and never run.
    """

    text: str
    asked: ContinuousQuery
    plan: Plan
    ontology: Ontology | None = None
    without: frozenset[str] = frozenset()
    guarantee: bool = False
    explained: bool = False

    @property
    def static_graphs(self) -> tuple[str, ...]:
        """IRIs of the static data that the query needs: the graphs of FROM and FROM NAMED."""
        return tuple(dict.fromkeys((*self.plan.static_default, *self.plan.static_named)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Messages about probable mistakes in the query, and about expensive operators of its plan."""
        return self.plan.warnings

    @property
    def memory(self) -> MemoryVerdict:
        """Does the query's state stay below a bound, however long the streams run?"""
        return memory_verdict(self.plan)

    def check_memory(self, source: str | None = None) -> None:
        """UnsupportedQuery, at the first block to blame, for events without windows whose memory is not bounded.

        `source` names the text. A query that is only explained is not checked.
        """
        growing = growing_events(self.plan)
        if not growing or self.explained:
            return
        names = [self.plan.windows[number].name for number in growing]
        offsets = {
            str(event.window): event.offset
            for node, _ in walk(self.asked.pattern)
            if isinstance(node, EventJoin)
            for event in node.events
        }
        streams = dict.fromkeys(f"<{self.plan.streams[self.plan.windows[number].stream]}>" for number in growing)
        raise UnsupportedQuery(
            f"memory: {self.memory}. Where memory may grow, say so in these blocks: EVENT ON {', '.join(streams)} [ALL] {{ … }}",
            Source(self.text, source).place(min(offsets[name] for name in names)),
        )


def compile_query(
    query: str | CompiledQuery,
    *,
    source: str | None = None,
    changelog: bool = False,
    service_timeout: float = TIMEOUT,
    ontology: Ontology | None = None,
    without: Collection[str] = (),
    guarantee: bool = False,
    rules: RuleSet | None = None,
    ask: Ask = select,
) -> CompiledQuery:
    """Compile a query's text; or compile a compiled query again, with other options, without parsing its text again.

    `source` names the text in messages. `changelog`: results of both signs. `service_timeout`: seconds that an endpoint of
    SERVICE may be silent. `ontology`: the query also sees the triples that it entails (RDFS). `without`: names of
    `OPTIMISATIONS` to leave out. `guarantee`: see `Engine.register`. `rules`: those that STATE asks, for a text without RULES.
    `ask`: gives the endpoints' answers. Raises QuerySyntaxError, UnsupportedQuery, DataError (of an endpoint), UsageError.
    """
    check_flag(changelog, "changelog")
    check_flag(guarantee, "guarantee")
    if rules is not None and isinstance(query, CompiledQuery):
        raise UsageError("rules are given with the text of a query, not with a compiled query: register the text")
    if isinstance(query, CompiledQuery):
        text, asked, ontology = query.text, query.asked, ontology or query.ontology
        guarantee = guarantee or query.guarantee
        without = query.without.union(without)
    else:
        text, asked = query, answer_services(_parsed(query, source, rules), service_timeout, ask)
    left_out = _checked(without)
    if changelog:
        # Before planning: the rows of a whole answer have an order, changes have none.
        asked = replace(asked, output=Output.CHANGELOG)
    if isinstance(query, CompiledQuery):
        options = replace(query, asked=asked, ontology=ontology, without=left_out, guarantee=guarantee)
        if query == options:
            return query
    findings = [finding for analysis in ANALYSES for finding in analysis(asked)]
    # First of all rewrites: it makes unions of triple patterns, into which windows and filters are then pushed.
    entailed = asked if ontology is None else entail(asked, ontology, Source(text, source).place)
    plan = _planned(entailed, left_out, text, source)
    plan = replace(plan, warnings=(*findings, *plan.warnings))
    if guarantee:
        plan = replace(plan, root=with_guarantee(plan.root))
    explained = isinstance(query, CompiledQuery) and query.explained
    return CompiledQuery(text, asked, plan, ontology, left_out, guarantee, explained)


def _planned(asked: ContinuousQuery, left_out: frozenset[str], text: str, source: str | None) -> Plan:
    """The plan, rewritten. UnsupportedQuery, with a place in the text where the planner's error names a function."""
    try:
        return rewrite_plan(plan_query(rewrite(asked, left_out), left_out), left_out)
    except UnsupportedQuery as error:
        if error.function is None or error.place is not None:
            raise
        place = place_of_call(text, source, error.function)
        raise UnsupportedQuery(error.message, place).calling(error.function) from None


def _parsed(text: str, source: str | None, rules: RuleSet | None) -> ContinuousQuery:
    if not isinstance(text, str):
        raise UsageError(f"a query is a text, not {text!r}")
    if source is not None and not isinstance(source, str):
        raise UsageError(f"source is the name of the query's text in messages, not {source!r}")
    return algebra_of(text, source) if rules is None else parse(text, source=source, rules=rules)


def algebra_of(text: str, source: str | None = None) -> ContinuousQuery:
    """The algebra of a text, as of `parse`; it is kept for those who ask for it next."""
    return _kept(text, source) if len(text) <= _LONGEST else parse(text, source=source, rules=None)


@lru_cache(maxsize=_MOST_KEPT)
def _kept(text: str, source: str | None) -> ContinuousQuery:
    """The algebra of a text: services often have many equal queries, and most of a registration's time is that of the grammar."""
    return parse(text, source=source, rules=None)


def _checked(without: Collection[str]) -> frozenset[str]:
    if unknown := sorted(set(without).difference(OPTIMISATIONS)):
        raise UsageError(f"there is no optimisation {unknown[0]!r} to leave out; there are {', '.join(OPTIMISATIONS)}")
    return frozenset(without)


def check_entailment(entailment: str | None) -> None:
    """UsageError for an entailment regime that does not exist."""
    if entailment not in (None, "rdfs"):
        raise UsageError(f"entailment is 'rdfs' or None, not {entailment!r}")
