"""STATE: its question becomes one rule more of the query's program."""

from __future__ import annotations

from rdflib import RDF, Variable

from cqels_py.algebra import temporal_rules as rules
from cqels_py.algebra.nodes import ContinuousQuery, RuleSet, State, TermOrVariable
from cqels_py.algebra.printer import triple_text
from cqels_py.algebra.temporal_rules import Atom, Rule
from cqels_py.errors import Place, UnsupportedQuery
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import Node, StateRows
from cqels_py.plan.temporal_rules import PlannedRules, RuleProgram
from cqels_py.planner.expressions import compile_expression
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import project
from cqels_py.planner.temporal_rules.compile import compile_rules
from cqels_py.planner.temporal_rules.normal_form import HIDDEN
from cqels_py.planner.texts import position_text

_NOWHERE = Place(0, 0)


def state_rows(planner: Planning, state: State, needed: Needed) -> Node:
    """The node of a STATE."""
    planner.states.append(state)
    text = " . ".join(map(triple_text, state.triples))
    node = StateRows(len(planner.states) - 1, _columns(state), state.step, text)
    return project(node, tuple(name for name in node.variables if Variable(name) in needed))


def planned_rules(planner: Planning, query: ContinuousQuery) -> PlannedRules | None:
    """The rules of a query, with those of its STATEs, which have been planned."""
    if query.rules is None:
        return None
    expressions = _expressions(query.rules)
    assert all(expression.deterministic for expression in expressions), "the parser refuses NOW() in rules"
    answers = [_answer(number, state) for number, state in enumerate(planner.states)]
    program = compile_rules([*query.rules.rules, *answers], [rule.head for rule in answers])
    streams = tuple(planner.streams.streams.index(str(stream)) for stream in query.rules.streams)
    return PlannedRules(program, streams, expressions, _given(program, query.rules))


def _expressions(rule_set: RuleSet) -> tuple[ExpressionProgram, ...]:
    """The programs of FILTER and BIND. UnsupportedQuery, at the rule, for a function that cannot be evaluated."""
    places = {
        part.number: rule.place
        for rule in rule_set.rules
        for part in rules.all_parts(rule.body)
        if isinstance(part, rules.Condition | rules.Computed)
    }
    found = []
    for number, expression in enumerate(rule_set.expressions):
        try:
            found.append(compile_expression(expression))
        except UnsupportedQuery as error:
            raise UnsupportedQuery(error.message, error.place or places[number]) from None
    return tuple(found)


def _given(program: RuleProgram, rule_set: RuleSet) -> tuple[tuple[int, tuple[str, ...], int, int], ...]:
    """The facts that come with the rules, but those that no rule and no STATE asks for."""
    numbers = {(each.name, each.arity): number for number, each in enumerate(program.predicates)}
    found = []
    for atom, interval in rule_set.facts:
        number = numbers.get((atom.predicate, len(atom.terms)))
        if number is not None:
            found.append((number, tuple(map(str, atom.terms)), interval.lo, interval.hi))
    return tuple(found)


def _columns(state: State) -> tuple[str, ...]:
    positions = [p for triple in state.triples for p in (triple.subject, triple.object)]
    return tuple(dict.fromkeys(str(p) for p in positions if isinstance(p, Variable)))


def _answer(number: int, state: State) -> Rule:
    head = Atom(f"{HIDDEN}state{number}", tuple(map(rules.Variable, _columns(state))))
    body = []
    for triple in state.triples:
        if triple.predicate == RDF.type:
            body.append(Atom(f"{rules.CLASS}{triple.object}", (_term(triple.subject),)))
        else:
            body.append(Atom(str(triple.predicate), (_term(triple.subject), _term(triple.object))))
    return Rule(head, (), tuple(dict.fromkeys(body)), _NOWHERE)


def _term(term: TermOrVariable) -> rules.Term:
    return rules.Variable(str(term)) if isinstance(term, Variable) else position_text(term)
