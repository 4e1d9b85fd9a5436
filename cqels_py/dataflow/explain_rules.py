"""The lines of `explain` about rules and STATE: the normal form, in which each rule has one operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cqels_py.analysis.rule_bounds import rule_bounds
from cqels_py.plan.nodes import Plan, StateRows
from cqels_py.plan.temporal_rules import BEGINNING, FOREVER, Kind, PlannedRules, Predicate, RuleProgram, RuleRow
from cqels_py.planner.windows import duration_text

_CLASS = "a "
_JOINED = (Kind.JOIN, Kind.NOT)
_SINCE = (Kind.SINCE_LEFT, Kind.SINCE_RIGHT, Kind.PARTS, Kind.PARTS_OF_LEFT)


def state_text(node: StateRows) -> str:
    """A STATE: its triples, and when its rows change."""
    when = "as soon as the facts that hold do" if node.step is None else f"every {duration_text(node.step)}"
    return f"state {{ {node.text} }}, changes {when}; keeps facts that hold now or will, by the rules"


def rule_lines(query: Plan) -> Iterator[str]:
    """The rules of a plan in normal form; hidden predicates have numbers, as @1, or belong to a STATE, as @state0."""
    rules = query.rules
    if rules is None:
        return
    program = rules.program
    streams = ", ".join(f"<{query.streams[stream]}>" for stream in rules.streams)
    yield f"facts are the triples of {streams} and of the static data; a triple that comes twice at one time is one fact"
    if rules.facts:
        yield f"{len(rules.facts)} facts are given with the rules"
    shown: set[tuple[object, ...]] = set()
    for row in program.rules:
        if row.kind in _SINCE:
            if row.kind is Kind.SINCE_LEFT:
                yield _since(program, row)
            continue
        partner = None if row.index is None or row.kind not in _JOINED else program.indexes[row.index].predicate
        key = row.kind, row.head, frozenset({row.body, partner})
        if row.kind is not Kind.JOIN or key not in shown:
            shown.add(key)
            yield _rule(rules, row, partner)
    levels = max((row.level for row in program.rules), default=0)
    if levels:
        yield f"{levels + 1} strata: NOT is applied when the strata below are final"
    delayed = [_name(each) for each in program.predicates if each.delayed and each.shown]
    if delayed:
        yield f"recursive with a delay, so that consequences wait for their time: {', '.join(delayed)}"
    yield from _bounds(program)


def _bounds(program: RuleProgram) -> Iterator[str]:
    """How much is kept, and the bounds of the paper."""
    bounds = rule_bounds(program)
    if bounds is None:
        return
    punctual = ", ".join(f"[{_duration(each)}]" for each in bounds.punctual)
    more = f", and by {punctual} one for each change of its body that is no longer ago" if punctual else ""
    yield f"for each combination of values SOMETIME, ALWAYS and FOR keep at most {bounds.kept:,} intervals{more}"
    if not bounds.in_paper:
        yield "the paper's bounds (Theorems 12 and 15) are for programs without SINCE and NOT"
        return
    terms = f" · |O|^{bounds.arity}" if bounds.arity > 1 else " · |O|" if bounds.arity else ""
    yield (
        f"the paper's bounds, in facts over |O| terms, with t_Π = {_duration(bounds.greatest)}, gran = "
        f"{_duration(bounds.shortest or 0)}, P = {bounds.predicates} predicates, R = {bounds.rules} rules, A = {bounds.arity}:"
    )
    yield (
        f"Theorem 12: (4 ((t_Π + step) / gcd + 1)² + 1) · P · |O|^A = {bounds.theorem_12:,}{terms}, if all times of the data are "
        f"multiples of gcd = step = {_duration(bounds.unit)}"
    )
    if bounds.theorem_15 is None:
        yield "Theorem 15: none, as it is for programs without punctual intervals"
    else:
        yield (
            f"Theorem 15: 9 (2 (t_Π / gran + 2) · R^((t_Π + step) / K))² · P · |O|^A = {bounds.theorem_15}{terms}, for "
            f"step = K = {_duration(bounds.least or 0)}"
        )


def _rule(rules: PlannedRules, row: RuleRow, partner: int | None) -> str:
    program = rules.program
    body = [f"?v{c}" for c in range(program.predicates[row.body].arity)]
    for column, equal in row.checks:
        body[column] = _column(program, equal, body, [])
    other: list[str] = []
    if partner is not None:
        assert row.index is not None
        other = [f"?w{c}" for c in range(program.predicates[partner].arity)]
        for column, probe in zip(program.indexes[row.index].columns, row.probe_columns, strict=True):
            other[column] = _column(program, probe, body, other)
    head = [_column(program, number, body, other) for number in row.head_columns]
    inner = _atom(program.predicates[row.body], body)
    match row.kind:
        case Kind.SOMETIME if (row.lo, row.hi) != (0, 0):
            inner = f"SOMETIME {_interval(row)} {inner}"
        case Kind.ALWAYS:
            inner = f"ALWAYS {_interval(row)} {inner}"
        case Kind.JOIN:
            assert partner is not None
            inner = f"{inner}, {_atom(program.predicates[partner], other)}"
        case Kind.NOT:
            assert partner is not None
            inner = f"{inner}, NOT {_atom(program.predicates[partner], other)}"
        case Kind.TEST:
            test = next(each for each in program.tests if each.predicate == row.body)
            names = ", ".join(f"?{name} = {body[column]}" for name, column in test.columns)
            word = "FILTER" if test.condition else "BIND ?value :="
            inner = f"{inner}, {word} {rules.expressions[test.number]}{f' ({names})' if names else ''}"
        case _:
            pass
    return f"{_atom(program.predicates[row.head], head)} ← {inner}"


def _since(program: RuleProgram, row: RuleRow) -> str:
    assert row.index is not None
    left, right = program.predicates[row.body], program.predicates[program.indexes[row.index].predicate]
    parts = next(each for each in program.rules if each.kind is Kind.PARTS and each.body == row.head)
    head = program.predicates[parts.head]
    return f"{_name(head)} ← {_name(left)} SINCE {_interval(row)} {_name(right)}"


def _column(program: RuleProgram, number: int, body: Sequence[str], other: Sequence[str]) -> str:
    if number == BEGINNING:
        return "?value"
    if number < BEGINNING:
        return program.constants[-2 - number]
    return body[number] if number < len(body) else other[number - len(body)]


def _name(predicate: Predicate) -> str:
    return f"<{predicate.name.removeprefix(_CLASS)}>" if predicate.shown else predicate.name


def _atom(predicate: Predicate, terms: Sequence[str]) -> str:
    return f"{_name(predicate)}({', '.join(terms)})"


def _interval(row: RuleRow) -> str:
    """That of the operator, from doubled microseconds."""
    end = "FOREVER)" if row.hi >= FOREVER else f"{_duration((row.hi + 1) >> 1)}{')' if row.hi & 1 else ']'}"
    return f"{'(' if row.lo & 1 else '['}{_duration(row.lo >> 1)}, {end}"


def _duration(micros: int) -> str:
    return duration_text(micros) if micros else "0s"
