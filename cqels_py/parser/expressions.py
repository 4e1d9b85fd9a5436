"""rdflib's expressions → ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rdflib import Literal, URIRef, Variable
from rdflib.plugins.sparql.parserutils import CompValue

from cqels_py.algebra.nodes import AggregateCall, Call, Constant, Exists, Expression, Pattern, Term
from cqels_py.parser.grammar import Nil
from cqels_py.parser.long_lists import Rows
from cqels_py.parser.prepare import CONDITION
from cqels_py.parser.source import unsupported, wrong

_OPERANDS = ("arg", "arg1", "arg2", "arg3", "text", "pattern", "replacement", "start", "length", "flags")
"""rdflib's names of arguments, in the order in which functions take them (REGEX: text, pattern, flags …)."""

_AGGREGATES = {"GroupConcat": "GROUP_CONCAT"}
_SIGNS = {"UnaryNot": "!", "UnaryMinus": "unary-", "UnaryPlus": "unary+"}
_CONNECTIVES = {"ConditionalOrExpression": "||", "ConditionalAndExpression": "&&"}
_LONG_CHAIN = 16
_F_TIMESTAMP = "http://larkc.eu/csparql/sparql/jena/ext#timestamp"


def term_of(value: Any) -> Term:
    """A constant, without rdflib's or our own subclasses."""
    return value if isinstance(value, Literal) else URIRef(str(value))


class ExpressionReader:
    """Turns rdflib's expressions into ours.

    `pattern_of` turns the pattern of an EXISTS; `variable` gives the meaning of a variable (an aggregate's result).
    `long_lists`: the lists for which IRIs stand where IN has one alone.
    """

    def __init__(
        self,
        pattern_of: Callable[[CompValue], Pattern],
        variable: Callable[[Variable], Expression],
        long_lists: Mapping[URIRef, Rows],
    ) -> None:
        self._pattern_of = pattern_of
        self._long_lists = long_lists
        self._variable = variable

    def read(self, value: Any) -> Expression:
        if isinstance(value, Variable):
            return self._variable(value)
        if isinstance(value, Nil):
            raise wrong("'()' is not a value", "(")
        if isinstance(value, URIRef | Literal):
            return Constant(term_of(value))
        if not isinstance(value, CompValue):
            if isinstance(value, list) and len(value) == 1:
                return self.read(value[0])
            raise wrong(f"'{value}' is not an expression", str(value))
        return self._compound(value)

    def _compound(self, value: CompValue) -> Expression:
        name = value.name
        if name == CONDITION:
            return self.read(value.expr)
        if name in _SIGNS:
            return Call(_SIGNS[name], (self.read(value.expr),))
        if name.endswith("Expression"):
            return self._operators(value)
        if name in ("Builtin_EXISTS", "Builtin_NOTEXISTS"):
            return Exists(self._pattern_of(value.graph.graph), name == "Builtin_NOTEXISTS")
        if name == "Function":
            return self._function(value)
        if name.startswith("Builtin_"):
            return Call(name.removeprefix("Builtin_").upper(), self._operands(value))
        if name.startswith("Aggregate_"):
            raise wrong(
                f"{aggregate_name(value)} can only be used in SELECT, HAVING and ORDER BY, not in FILTER, BIND, "
                "GROUP BY or inside of another aggregate: use a subquery",
                aggregate_name(value),
            )
        raise unsupported(f"expressions of the form {name} are not supported", name)

    def _operators(self, value: CompValue) -> Expression:
        first = self.read(value.expr)
        if value.other is None:
            return first
        if value.name == "RelationalExpression":
            return self._relation(first, str(value.op), value.other)
        others = [self.read(other) for other in as_list(value.other)]
        if value.name in _CONNECTIVES:
            return _connected(_CONNECTIVES[value.name], [first, *others])
        for operator, other in zip(as_list(value.op), others, strict=True):
            first = Call(str(operator), (first, other))
        return first

    def _relation(self, first: Expression, operator: str, other: Any) -> Expression:
        if operator in ("IN", "NOT IN"):
            return Call(operator.replace(" ", "-"), (first, *self._choices(other)))
        return Call(operator, (first, self.read(other)))

    def _choices(self, value: Any) -> tuple[Expression, ...]:
        choices = as_list(value)
        if len(choices) == 1 and isinstance(choices[0], URIRef) and choices[0] in self._long_lists:
            return tuple(Constant(term) for (term,) in self._long_lists[URIRef(choices[0])] if term is not None)
        return self._list(value)

    def _list(self, value: Any) -> tuple[Expression, ...]:
        return tuple(self.read(each) for each in as_list(value) if not isinstance(each, Nil))

    def _operands(self, value: CompValue) -> tuple[Expression, ...]:
        found = [value[name] for name in _OPERANDS if name in value and not isinstance(value[name], Nil)]
        return tuple(argument for each in found for argument in self._list(each))

    def _function(self, value: CompValue) -> Expression:
        if value.get("distinct") == "DISTINCT":
            raise unsupported(
                f"DISTINCT in a call of <{value.iri}> is not supported: it takes single values", str(value.iri)
            )
        name = str(value.iri)
        if name == _F_TIMESTAMP:
            raise unsupported(
                "f:timestamp is not supported: take the time from a property of the elements, as in ?reading :time ?t",
                name,
            )
        return Call(name, self._list(value.expr) if "expr" in value else ())

    def aggregate(self, value: CompValue) -> AggregateCall:
        argument = None if isinstance(value.vars, str) and value.vars == "*" else self.read(value.vars)
        separator = str(value.separator) if "separator" in value else None
        return AggregateCall(aggregate_name(value), argument, value.get("distinct") == "DISTINCT", separator)


def _connected(operator: str, operands: list[Expression]) -> Expression:
    """A chain of || or &&, to the left; a long one as a balanced tree, which means the same and is not as deep."""
    if len(operands) > _LONG_CHAIN:
        return _balanced(operator, operands)
    joined, *others = operands
    for operand in others:
        joined = Call(operator, (joined, operand))
    return joined


def _balanced(operator: str, operands: list[Expression]) -> Expression:
    # Small leaves, so that the chain as which the left side is printed is not a long one: it reads back as it was.
    if len(operands) <= _LONG_CHAIN // 2:
        return _connected(operator, operands)
    half = len(operands) // 2
    return Call(operator, (_balanced(operator, operands[:half]), _balanced(operator, operands[half:])))


def aggregate_name(value: CompValue) -> str:
    name = str(value.name.removeprefix("Aggregate_"))
    return _AGGREGATES.get(name, name.upper())


def as_list(value: Any) -> list[Any]:
    """rdflib unwraps a list of one."""
    return value if isinstance(value, list) else [value]
