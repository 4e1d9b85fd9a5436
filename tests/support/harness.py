"""Runs the engine and compares its results with the oracle, tick by tick.

`assert_engine_right(text, elements)` does everything: parse, ask the oracle, run the engine at several batch sizes.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from rdflib import XSD, Literal, Variable

from cqels_py.algebra import nodes
from tests.oracle import naive, naive_updates, naive_values
from tests.oracle.naive import Change, Element, Mapping, Static
from tests.oracle.naive_values import ExpressionError, Term, canonical
from tests.support import traces

BATCH_SIZES: tuple[int | None, ...] = (1, 2, 3, 7, None)
TOLERANCE = {XSD.double: 1e-9, XSD.float: 2.0**-22}
"""Relative tolerance; for xsd:float two units in the last place: either a sum is rounded before it is divided, or only
the quotient.
"""

MANY_RESULTS = 100_000
"""Above this number of results, each an object here, the comparison takes minutes: it is done at one batch size only."""

Update: TypeAlias = tuple[int, Static]
"""After how many elements, and the static data from then on."""
Key: TypeAlias = frozenset[tuple[Variable, tuple[object, ...]]]


@dataclass(frozen=True)
class Result:
    """A result of the engine: the tick's time in microseconds, +1 or -1, the mapping."""

    time: int
    sign: int
    mapping: Mapping


def parse(text: str) -> nodes.ContinuousQuery:
    """The project's parser, imported late so that the oracle can be used without it."""
    query: nodes.ContinuousQuery = importlib.import_module("cqels_py.parser").parse(text)
    return query


def expected_changes(
    query: nodes.ContinuousQuery,
    elements: Sequence[Element],
    static: Static | None = None,
    output: nodes.Output | None = None,
    updates: Sequence[Update] = (),
) -> list[Change]:
    """The oracle's result stream; `output` replaces the query's own operator."""
    asked = query if output is None else replace(query, output=output)
    return naive.output(asked, naive_updates.ticks(asked, elements, static, updates))


def compiled(text: Any, output: nodes.Output | None = None, without: Sequence[str] = ()) -> Any:
    """A CompiledQuery that can be run several times: most of a scenario's time would go into parsing its text again.

    `text` may be a CompiledQuery. `output` and `without` are those of `run_engine`.
    """
    assert output in (None, nodes.Output.CHANGELOG), "only a changelog can be asked for from outside the query"
    compile_query = importlib.import_module("cqels_py.engine.compile").compile_query
    return compile_query(text, changelog=output is nodes.Output.CHANGELOG, without=without)


def run_engine(
    text: Any,
    elements: Sequence[Element],
    static: Static | None = None,
    batch: int | None = None,
    output: nodes.Output | None = None,
    updates: Sequence[Update] = (),
    without: Sequence[str] = (),
) -> list[Result]:
    """The engine's results in order. `batch`: elements between two flushes (None: all of them in one).

    `text`: a query, also a compiled one. `output` may be CHANGELOG, which overrides the query's own operator, or None.
    `without`: optimisations that are left out.
    """
    engine = importlib.import_module("cqels_py").Engine(batch=batch or max(1, len(elements)))
    asked = compiled(text, output, without)
    query = engine.register(asked, **_given(static or Static()), changelog=output is nodes.Output.CHANGELOG)
    delivered: list[Result] = []
    query.subscribe(lambda result: delivered.append(_result(result)))
    timed = {window.stream for window in asked.asked.windows if window.time_predicate is not None}
    for number, element in enumerate(elements, 1):
        for data in [data for after, data in updates if after == number - 1]:
            query.update_static(**_given(data))
        time = None if element.stream in timed else element.time
        assert not element.about, "only a source tells of graphs"
        engine.push(str(element.stream), list(element.triples), time=time, graph=element.graph)
        if batch is not None and number % batch == 0:
            engine.flush()
    engine.flush()
    for data in [data for after, data in updates if after == len(elements)]:
        query.update_static(**_given(data))
    engine.finish()
    return delivered


def _given(static: Static) -> dict[str, Any]:
    """The data as arguments of the engine."""
    return {
        "static": [list(static.default)] if static.default else [],
        "static_graphs": {str(name): list(triples) for name, triples in static.named.items()},
    }


def _result(result: Any) -> Result:
    if result.boolean is not None:
        answer = frozenset({(Variable("boolean"), naive_values.boolean(result.boolean))})
        return Result(int(result.time), int(result.sign), answer)
    bound = {Variable(name): canonical(term) for name, term in result.bindings.items() if term is not None}
    return Result(int(result.time), int(result.sign), frozenset(bound.items()))


def assert_engine_right(
    text: str,
    elements: Sequence[Element],
    static: Static | None = None,
    output: nodes.Output | None = nodes.Output.CHANGELOG,
    batches: Iterable[int | None] = BATCH_SIZES,
    updates: Sequence[Update] = (),
) -> None:
    """The engine's results equal the oracle's, at each batch size. `updates` are those of naive_updates."""
    query = compiled(text, output)
    expected = expected_changes(query.asked, elements, static, output, updates)
    sizes = list(batches)
    for batch in sizes if len(expected) <= MANY_RESULTS else sizes[-1:]:
        results = run_engine(query, elements, static, batch, output, updates)
        check_equal(expected, results, f"batch {batch or 'of everything'}")


# --- comparing ------------------------------------------------------------------------


def check_equal(expected: Sequence[Change], actual: Sequence[Result], title: str = "results") -> None:
    """Equal signed mappings at equal ticks, in the ticks' order. An AssertionError shows the differences.

    Numbers are equal if value and datatype are (doubles and floats within TOLERANCE), other terms if identical.
    """
    report: list[str] = []
    for time in sorted({change.time for change in expected} | {result.time for result in actual}):
        wanted = [change for change in expected if change.time == time]
        got = [result for result in actual if result.time == time]
        report += _differences_at(wanted, got)
    times = [result.time for result in actual]
    if not report and times != sorted(times):
        report.append(f"the ticks are out of order: {times}")
    if report:
        raise AssertionError("\n".join([f"{title}: the engine differs from the oracle", *report]))


def _differences_at(wanted: Sequence[Change], got: Sequence[Result]) -> list[str]:
    """The differences at one instant. It may have several ticks: their sizes divide the engine's results."""
    sizes = Counter(change.tick for change in wanted)
    report: list[str] = []
    start = 0
    for place, tick in enumerate(sorted(sizes)):
        end = len(got) if place == len(sizes) - 1 else start + sizes[tick]
        chunk = [(result.sign, result.mapping) for result in got[start:end]]
        mine = [(change.sign, change.mapping) for change in wanted if change.tick == tick]
        report += _differences(f"{wanted[0].time} (tick {tick})", mine, chunk)
        start = end
    if not sizes:
        report += _differences(f"{got[0].time} (no tick)", [], [(r.sign, r.mapping) for r in got])
    return report


def _differences(place: str, wanted: Sequence[tuple[int, Mapping]], got: Sequence[tuple[int, Mapping]]) -> list[str]:
    missing, unexpected = unmatched(wanted, got)
    lines = [f"  {place} missing    {_signed(sign, mapping)}" for sign, mapping in missing]
    lines += [f"  {place} unexpected {_signed(sign, mapping)}" for sign, mapping in unexpected]
    return lines


def _signed(sign: int, mapping: Mapping) -> str:
    return f"{'+' if sign > 0 else '-'} {traces.row(mapping)}"


def unmatched(
    wanted: Sequence[tuple[int, Mapping]], got: Sequence[tuple[int, Mapping]]
) -> tuple[list[tuple[int, Mapping]], list[tuple[int, Mapping]]]:
    """The rows that are only in one of the bags: compared exactly first, the rest within the tolerance."""
    open_wanted: dict[tuple[int, Key], list[tuple[int, Mapping]]] = {}
    for item in wanted:
        open_wanted.setdefault((item[0], _key(item[1])), []).append(item)
    unexpected: list[tuple[int, Mapping]] = []
    for item in got:
        same = open_wanted.get((item[0], _key(item[1])))
        if same:
            same.pop()
        else:
            unexpected.append(item)
    missing = [item for items in open_wanted.values() for item in items]
    for item in list(unexpected):
        close = next((one for one in missing if one[0] == item[0] and _close(one[1], item[1])), None)
        if close is not None:
            missing.remove(close)
            unexpected.remove(item)
    return missing, unexpected


def _key(mapping: Mapping) -> Key:
    return frozenset((variable, _term_key(term)) for variable, term in mapping)


def _term_key(term: Term) -> tuple[object, ...]:
    """Numbers by datatype and value, other terms by themselves."""
    spelled = canonical(term)
    try:
        found = naive_values.number(spelled).value
    except ExpressionError:
        return (spelled,)
    assert isinstance(spelled, Literal)
    if isinstance(found, float) and not math.isfinite(found):
        return (str(spelled.datatype), str(found))
    return (str(spelled.datatype), Fraction(found))


def _close(one: Mapping, other: Mapping) -> bool:
    left, right = dict(one), dict(other)
    return left.keys() == right.keys() and all(_close_terms(left[v], right[v]) for v in left)


def _close_terms(one: Term, other: Term) -> bool:
    if _term_key(one) == _term_key(other):
        return True
    if not (isinstance(one, Literal) and isinstance(other, Literal)) or one.datatype != other.datatype:
        return False
    if one.datatype not in TOLERANCE:
        return False
    return math.isclose(float(one), float(other), rel_tol=TOLERANCE[one.datatype])
