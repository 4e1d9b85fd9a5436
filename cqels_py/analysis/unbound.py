"""Variables that a query uses and never binds, such as misspelt ones: in SPARQL they are unbound, without a message."""

from __future__ import annotations

from rdflib import Variable

from cqels_py.algebra.mentions import aggregate_arguments
from cqels_py.algebra.nodes import (
    BGP,
    ContinuousQuery,
    Distinct,
    EventJoin,
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
    Window,
    WindowVariable,
)
from cqels_py.algebra.variables import exists_patterns, expression_variables, possible_variables
from cqels_py.suggestions import similar


def unbound_variables(query: ContinuousQuery) -> tuple[str, ...]:
    """A message for each variable that is used and bound nowhere, in order of the names."""
    found = _Names()
    found.take(query.pattern)
    found.used.update(query.variables, (term for term in query.describe if isinstance(term, Variable)))
    return tuple(_warning(name, found.bound) for name in sorted(found.used - found.bound))


def _warning(name: Variable, bound: set[Variable]) -> str:
    close = similar(name, sorted(bound), least=0.6)
    return f"nothing in the query binds ?{name}{f': is ?{close} meant?' if close else ''}"


class _Names:
    """The variables that are bound somewhere, and those that are used by expressions, keys and projections."""

    def __init__(self) -> None:
        self.bound: set[Variable] = set()
        self.used: set[Variable] = set()

    def take(self, pattern: Pattern) -> None:
        match pattern:
            case BGP() | PathPattern() | Values() | Planned() | Match() | State():
                self.bound |= possible_variables(pattern)
            case EventJoin(_, others, conditions):
                self.bound |= possible_variables(pattern)
                self._take_all(*others)
                self._use(*conditions)
            case Join(left, right) | Minus(left, right):
                self._take_all(left, right)
            case LeftJoin(left, right, condition):
                self._take_all(left, right)
                if condition is not None:
                    self._use(condition)
            case NaryJoin(parts) | Union(parts):
                self._take_all(*parts)
            case Filter(inner, condition):
                self.take(inner)
                self._use(condition)
            case Extend(inner, variable, expression):
                self.take(inner)
                self._use(expression)
                self.bound.add(variable)
            case OrderBy(inner, conditions):
                self.take(inner)
                self._use(*(expression for expression, _ in conditions))
            case Group(inner, keys, aggregates):
                self.take(inner)
                self._use(*aggregate_arguments(aggregates))
                self.used.update(keys)
                self.bound.update(variable for variable, _ in aggregates)
            case Project(inner, variables):
                self.take(inner)
                self.used.update(variables)
            case Graph(name, inner) | WindowVariable(name, inner) | Service(name, inner):
                self.take(inner)
                if isinstance(name, Variable):
                    self.bound.add(name)
            case Window(_, inner) | Distinct(inner) | Reduced(inner) | Slice(inner):
                self.take(inner)

    def _take_all(self, *patterns: Pattern) -> None:
        for pattern in patterns:
            self.take(pattern)

    def _use(self, *expressions: Expression) -> None:
        for expression in expressions:
            self.used |= expression_variables(expression)
            self._take_all(*exists_patterns(expression))
