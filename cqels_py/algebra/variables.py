"""Which variables a pattern may bind, and which it binds in every mapping."""

from __future__ import annotations

from collections.abc import Iterator

from rdflib import Variable

from cqels_py.algebra.nodes import (
    BGP,
    Call,
    Constant,
    Distinct,
    Event,
    EventAlternatives,
    EventConjunction,
    EventJoin,
    EventPattern,
    EventRepetition,
    EventSequence,
    Exists,
    Expression,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Match,
    Minus,
    NaryJoin,
    OrderBy,
    PathPattern,
    Pattern,
    Planned,
    Project,
    Reduced,
    Service,
    Slice,
    State,
    Union,
    Values,
    VariableRef,
    Window,
    WindowVariable,
)

Variables = frozenset[Variable]

_GRAPH = "_:graph "
"""The prefix of the variables that `graph_variable` makes, and of no others."""

_ALWAYS_BOUND = {"COUNT"}


def graph_variable(name: Variable) -> Variable:
    """A hidden variable for the name of a graph, where the query's own variable must not be visible."""
    return Variable(f"{_GRAPH}{name}")


def written_variable(name: Variable) -> Variable:
    """The query's variable for one of `graph_variable`; any other variable as it is.

    >>> written_variable(graph_variable(graph_variable(Variable("g"))))
    rdflib.term.Variable('g')
    """
    while name.startswith(_GRAPH):
        name = Variable(name[len(_GRAPH) :])
    return name


def expression_variables(expression: Expression) -> Variables:
    """Variables an expression reads; not those inside EXISTS."""
    match expression:
        case VariableRef(variable):
            return frozenset([variable])
        case Call(_, arguments):
            others = (each for each in arguments if not isinstance(each, Constant))
            return frozenset().union(*map(expression_variables, others))
        case Constant() | Exists():
            return frozenset()


def exists_patterns(expression: Expression) -> tuple[Pattern, ...]:
    """The patterns of all EXISTS and NOT EXISTS in an expression, outermost ones only."""
    match expression:
        case Exists(pattern):
            return (pattern,)
        case Call(_, arguments):
            return tuple(pattern for argument in arguments for pattern in exists_patterns(argument))
        case _:
            return ()


def first_exists(expression: Expression) -> Exists | None:
    """The leftmost EXISTS or NOT EXISTS in an expression."""
    match expression:
        case Exists():
            return expression
        case Call(_, arguments):
            return next(filter(None, map(first_exists, arguments)), None)
        case _:
            return None


def replaced(expression: Expression, old: Expression, new: Expression) -> Expression:
    """The expression with `new` in all places of `old`."""
    if expression == old:
        return new
    if isinstance(expression, Call):
        return Call(expression.function, tuple(replaced(argument, old, new) for argument in expression.arguments))
    return expression


def has_exists(expression: Expression) -> bool:
    """Is there an EXISTS or NOT EXISTS anywhere in it?"""
    return bool(exists_patterns(expression))


def _named(*positions: object) -> Variables:
    return frozenset(position for position in positions if isinstance(position, Variable))


def possible_variables(pattern: Pattern) -> Variables:
    """Variables in scope: those some mapping may bind."""
    return _variables(pattern, certain=False)


def certain_variables(pattern: Pattern) -> Variables:
    """Variables bound in every mapping of the pattern."""
    return _variables(pattern, certain=True)


def _variables(pattern: Pattern, *, certain: bool) -> Variables:
    match pattern:
        case BGP(triples):
            return _named(*(p for t in triples for p in (t.subject, t.predicate, t.object)))
        case PathPattern(subject, _, object_):
            return _named(subject, object_)
        case Join(left, right):
            return _variables(left, certain=certain) | _variables(right, certain=certain)
        case NaryJoin(parts):
            return frozenset().union(*(_variables(part, certain=certain) for part in parts))
        case LeftJoin(left, right):
            optional = frozenset() if certain else _variables(right, certain=False)
            return _variables(left, certain=certain) | optional
        case Union(parts):
            each = [_variables(part, certain=certain) for part in parts]
            return frozenset.intersection(*each) if certain else frozenset().union(*each)
        case Minus(left, _):
            return _variables(left, certain=certain)
        case Extend(inner, variable, expression):
            bound = not certain or _has_value(expression, inner)
            return _variables(inner, certain=certain) | (frozenset([variable]) if bound else frozenset())
        case Values(variables, rows):
            if not certain:
                return frozenset(variables)
            return frozenset(v for c, v in enumerate(variables) if all(row[c] is not None for row in rows))
        case State(triples):
            return _named(*(p for t in triples for p in (t.subject, t.object)))
        case Match(events):
            return event_variables(events, certain=certain)
        case EventJoin(events, others):
            of_events = (_of_events(event, certain=certain) for event in events)
            return frozenset().union(*of_events, *(_variables(other, certain=certain) for other in others))
        case Graph(name, inner):
            return _variables(inner, certain=certain) | _named(name)
        case WindowVariable(variable, inner):
            return _variables(inner, certain=certain) | frozenset([variable])
        case Service(endpoint, inner, silent):
            return frozenset() if certain and silent else _variables(inner, certain=certain) | _named(endpoint)
        case Planned(_, variables, always):
            return always if certain else frozenset(variables)
        case Group(inner, keys, aggregates):
            # Variables that are never bound are in scope too: each has a column without values.
            kept = frozenset(keys) & _variables(inner, certain=True) if certain else frozenset(keys)
            made = frozenset(v for v, call in aggregates if not certain or call.function in _ALWAYS_BOUND)
            return kept | made
        case Project(inner, variables):
            return frozenset(variables) & _variables(inner, certain=True) if certain else frozenset(variables)
        case Window(_, inner, graph=graph):
            return _variables(inner, certain=certain) | _named(graph)
        case Filter(inner) | Distinct(inner) | Reduced(inner) | OrderBy(inner) | Slice(inner):
            return _variables(inner, certain=certain)


def event_variables(pattern: EventPattern, *, certain: bool = False) -> Variables:
    """Variables that a match binds: all but those that only events of a repetition, or of NOT, have."""
    return _of_events(pattern, certain=certain) - repeated_variables(pattern)


def repeated_variables(pattern: EventPattern) -> Variables:
    """Variables that only events inside of one `+` have: each repetition has values of its own."""
    return frozenset().union(*local_variables(pattern).values())


def local_variables(pattern: EventPattern) -> dict[int, Variables]:
    """For each `+`, by its place among them from the left, the variables that no event outside of it has."""
    groups = list(_variable_groups(pattern))
    repetitions = [place for place, (repeated, _) in enumerate(groups) if repeated]
    found: dict[int, Variables] = {}
    for number, place in enumerate(repetitions):
        others = frozenset().union(*(names for other, (_, names) in enumerate(groups) if other != place))
        found[number] = groups[place][1] - others
    return found


def _variable_groups(pattern: EventPattern) -> Iterator[tuple[bool, Variables]]:
    """The variables of each `+`, and of each event outside of them."""
    match pattern:
        case Event():
            yield False, variables_of_event(pattern)
        case EventRepetition(part):
            yield True, _of_events(part, certain=False)
        case _:
            for part in pattern.parts:
                yield from _variable_groups(part)


def variables_of_event(event: Event) -> Variables:
    """Variables that a single event binds, with those for blank nodes."""
    found = _named(*(p for t in event.triples for p in (t.subject, t.predicate, t.object)), event.time)
    return found | frozenset(variable for variable, _ in event.bindings)


def _of_events(pattern: EventPattern, *, certain: bool) -> Variables:
    match pattern:
        case Event():
            fixed = variables_of_event(pattern) - frozenset(v for v, _ in pattern.bindings)
            return fixed if certain else variables_of_event(pattern)
        case EventRepetition(part):
            return _of_events(part, certain=certain)
        case EventSequence(parts) | EventConjunction(parts):
            return frozenset().union(*(_of_events(part, certain=certain) for part in parts))
        case EventAlternatives(parts):
            each = [_of_events(part, certain=certain) for part in parts]
            return frozenset.intersection(*each) if certain else frozenset().union(*each)


def _has_value(expression: Expression, inner: Pattern) -> bool:
    """Is it certain that an expression over a pattern's mappings is never an error?"""
    match expression:
        case Constant():
            return True
        case VariableRef(variable):
            return variable in certain_variables(inner)
        case Call("COALESCE", arguments):
            return any(_has_value(argument, inner) for argument in arguments)
        case _:
            return False
