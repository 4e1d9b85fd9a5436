"""Variables that take boundedly many values, however long the streams run: by the filters, VALUES and static data of a plan.

Values are compared as SPARQL's `=` does: `"05"^^xsd:integer` and `"5"^^xsd:integer` are one value, in two ways of writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from math import ceil, floor, prod
from typing import TypeAlias

from rdflib import XSD, Literal

from cqels_py.functions.dates import parse_datetime
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import (
    ClosureRows,
    CountedJoin,
    DistinctRowsOf,
    ExtendRows,
    FactorisedGroups,
    FilterRows,
    GraphNames,
    GroupRows,
    JoinAll,
    Negate,
    Node,
    NumberRows,
    Once,
    ProjectRows,
    Rows,
    Scan,
    Shared,
    StaticScan,
    TopRows,
    UnionRows,
)
from cqels_py.terms.rdf import to_rdflib

_LEAST = {
    XSD.nonNegativeInteger: 0, XSD.positiveInteger: 1, XSD.unsignedInt: 0, XSD.unsignedLong: 0, XSD.unsignedShort: 0,
    XSD.unsignedByte: 0, XSD.integer: None, XSD.int: None, XSD.long: None, XSD.short: None, XSD.byte: None,
    XSD.negativeInteger: None, XSD.nonPositiveInteger: None,
}  # fmt: skip
"""The datatypes of integers, with the least one of those that begin at 0 or 1."""
_FEW_VALUES = {"MONTH": 12, "DAY": 31, "HOURS": 24, "MINUTES": 60}
_TRUTH_VALUES = (
    *("=", "!=", "<", ">", "<=", ">=", "&&", "||", "!", "IN", "NOT-IN", "BOUND", "SAMETERM"),
    *(
        "ISIRI",
        "ISURI",
        "ISBLANK",
        "ISLITERAL",
        "ISNUMERIC",
        "CONTAINS",
        "STRSTARTS",
        "STRENDS",
        "REGEX",
        "LANGMATCHES",
    ),
)
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or a function of an expression."""

    function: str
    arguments: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """A variable of an expression."""

    variable: str


@dataclass(frozen=True, slots=True)
class Term:
    """A constant of an expression, as its N-Triples text."""

    text: str


Tree: TypeAlias = Call | Name | Term


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a variable, as far as they are known.

    `bounded`: boundedly many; then at most `count` (None: it is not known how many). `integer`: only integers, of which the
    least is `least` and the greatest `greatest` (None: without one). `date`: only dates; `after`, `before`: all of them are on this
    side of some date. `written`: they are known as values only, of which each may be written in any number of ways, and each of
    these is a term of its own.
    """

    bounded: bool = False
    count: int | None = None
    written: bool = False
    integer: bool = False
    least: int | None = None
    greatest: int | None = None
    date: bool = False
    after: bool = False
    before: bool = False

    def concluded(self) -> Values:
        """With the consequences: boundedly many integers lie between two of them, and boundedly many dates, each with any zone."""
        if self.date and self.after and self.before and not self.bounded:
            return replace(self, bounded=True, written=True).concluded()
        if not self.integer or self.least is None or self.greatest is None:
            return self
        between = max(0, self.greatest - self.least + 1)
        count = between if self.count is None else min(between, self.count)
        return replace(self, bounded=True, count=count, written=self.written or not self.bounded)

    def __and__(self, other: Values) -> Values:
        """Values of which both are known."""
        return Values(
            self.bounded or other.bounded,
            _first_or(min, self.count, other.count),
            all(each.written for each in (self, other) if each.bounded),
            self.integer or other.integer,
            _first_or(max, self.least, other.least),
            _first_or(min, self.greatest, other.greatest),
            self.date or other.date,
            self.after or other.after,
            self.before or other.before,
        ).concluded()

    def __or__(self, other: Values) -> Values:
        """Values of which one or the other is known."""
        counts, least, greatest = (self.count, other.count), (self.least, other.least), (self.greatest, other.greatest)
        bounded = self.bounded and other.bounded
        return Values(
            bounded,
            sum(each for each in counts if each is not None) if bounded and None not in counts else None,
            self.written or other.written,
            self.integer and other.integer,
            None if None in least else min(each for each in least if each is not None),
            None if None in greatest else max(each for each in greatest if each is not None),
            self.date and other.date,
            self.after and other.after,
            self.before and other.before,
        )


Known: TypeAlias = Mapping[str, Values]
ANY = Values()
_SOME = Values(bounded=True)


def one_of(count: int, *, written: bool = False) -> Values:
    """At most so many values."""
    return Values(bounded=True, count=count, written=written)


def _first_or(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


class BoundedValues:
    """Bounds of the variables of a plan's nodes. `assumed`: variables that are taken for bounded."""

    def __init__(self, assumed: Iterable[str] = ()) -> None:
        self._assumed = frozenset(assumed)
        self._known: dict[int, Known] = {}
        # The nodes whose identity is a key stay alive.
        self._nodes: list[Node] = []

    def of(self, node: Node) -> Known:
        """The values of a node's columns."""
        found = self._known.get(id(node))
        if found is None:
            found = self._known[id(node)] = self._find(node)
            self._nodes.append(node)
        return found

    def combinations(self, node: Node, columns: Iterable[str]) -> tuple[list[str], Values]:
        """The columns of a node that are not bounded; and the bound of combinations of the others' values."""
        known = self.of(node)
        values = {name: known.get(name, ANY) for name in columns}
        return [name for name, each in values.items() if not each.bounded], _combined(
            each for each in values.values() if each.bounded
        )

    def _find(self, node: Node) -> Known:
        match node:
            case Scan(variables=variables, conditions=conditions):
                known = {name: _SOME for name in variables if name in self._assumed}
                return filtered(known, conditions)
            case CountedJoin(bounded=bounded):
                return {name: one_of(count) if count is not None else _SOME for name, count in bounded}
            case StaticScan() | GraphNames() | Once():
                return dict.fromkeys(node.variables, _SOME)
            case Rows(variables, rows):
                return {name: one_of(len({row[i] for row in rows})) for i, name in enumerate(variables)}
            case FilterRows(inner, condition):
                return filtered(self.of(inner), [condition])
            case ExtendRows(inner, variable, expression):
                before = self.of(inner)
                return {**before, variable: value_of(before, tree_of(expression)).concluded()}
            case ProjectRows(inner, variables):
                below = self.of(inner)
                return {name: below.get(name, ANY) if name in inner.variables else one_of(1) for name in variables}
            case UnionRows(inputs, variables):
                each_known = [self.of(each) for each in inputs]
                return {name: _of_any(known.get(name, ANY) for known in each_known) for name in variables}
            case JoinAll() | FactorisedGroups():
                return self._joined(node)
            case Negate(left):
                return self.of(left)
            case ClosureRows(inner, edge, variables):
                # Paths lead from node to node: each column may have the values of both ends.
                nodes = _of_any(self.of(inner).get(name, ANY) for name in edge)
                return dict.fromkeys(variables, nodes)
            case GroupRows(inner, keys, aggregates):
                grouped = self.of(inner)
                terms = {a.variable: a.argument for a in aggregates if a.function in ("MIN", "MAX", "SAMPLE")}
                arguments = {name: grouped.get(of, ANY) for name, of in terms.items() if of is not None}
                return {**{name: grouped.get(name, ANY) for name in keys}, **arguments}
            case NumberRows(inner, of, variable):
                unbounded, numbers = self.combinations(inner, of)
                return {**self.of(inner), variable: ANY if unbounded else numbers}
            case DistinctRowsOf() | Shared() | TopRows():
                return self.of(node.input)
            case _:
                return {}

    def _joined(self, node: JoinAll | FactorisedGroups) -> Known:
        maybe_unbound = node.maybe_unbound if isinstance(node, JoinAll) else frozenset()
        result: dict[str, Values] = {}
        for name in node.variables:
            values = [self.of(each).get(name, ANY) for each in node.inputs if name in each.variables]
            if not values:
                continue
            if name in maybe_unbound:
                # Where one input leaves it unbound, another one gives its value.
                result[name] = _of_any(values)
                continue
            result[name] = values[0]
            for other in values[1:]:
                result[name] = result[name] & other
        return result


def _combined(values: Iterable[Values]) -> Values:
    """Combinations of bounded values."""
    each = list(values)
    counts = [one.count for one in each]
    count = None if None in counts else prod(one for one in counts if one is not None)
    return Values(True, count, any(one.written for one in each))


def _of_any(values: Iterable[Values]) -> Values:
    first, *others = values
    for other in others:
        first = first | other
    return first


# --- expressions --------------------------------------------------------------------------------------------------


def tree_of(program: ExpressionProgram) -> Tree:
    """An expression's program as a tree."""
    stack: list[Tree] = []
    for name, argument in program.instructions:
        match name, argument:
            case "variable", int(number):
                stack.append(Name(program.inputs[number]))
            case "bound", int(number):
                stack.append(Call("BOUND", (Name(program.inputs[number]),)))
            case "constant", str(text):
                stack.append(Term(text))
            case "now", _:
                stack.append(Call("NOW", ()))
            case _, int(count):
                at = len(stack) - count
                stack[at:] = [Call(name, tuple(stack[at:]))]
    (tree,) = stack
    return tree


def filtered(known: Known, conditions: Iterable[ExpressionProgram]) -> Known:
    """With the bounds that hold in rows for which the conditions are true."""
    result = dict(known)
    equal: list[tuple[str, str]] = []
    for condition in conditions:
        for each in conjuncts_of(tree_of(condition)):
            match each:
                case Call("=" | "SAMETERM", (Name(one), Name(other))):
                    equal.append((one, other))
            for name, values in _implied(each).items():
                result[name] = result.get(name, ANY) & values
    for _ in equal:
        for one, other in equal:
            both = result.get(one, ANY) & result.get(other, ANY)
            # They are equal as values: the terms may be written in different ways, and of different datatypes.
            for name in (one, other):
                result[name] = result.get(name, ANY) & Values(both.bounded, both.count, written=True)
    return result


def conjuncts_of(tree: Tree) -> list[Tree]:
    match tree:
        case Call("&&", (left, right)):
            return conjuncts_of(left) + conjuncts_of(right)
        case _:
            return [tree]


def _implied(tree: Tree) -> dict[str, Values]:
    """The bounds of variables where an expression is true."""
    match tree:
        case Call("&&", (left, right)):
            found, others = _implied(left), _implied(right)
            return {name: found.get(name, ANY) & others.get(name, ANY) for name in {**found, **others}}
        case Call("||", (left, right)):
            found, others = _implied(left), _implied(right)
            return {name: found[name] | others[name] for name in found if name in others}
        case Call("IN", (Name(name), *terms)) if all(isinstance(term, Term) for term in terms):
            written = any(isinstance(term, Term) and _is_value(term.text) for term in terms)
            return {name: one_of(len(set(terms)), written=written)}
        case Call("=", (Name(name), Term(text)) | (Term(text), Name(name))):
            return {name: one_of(1, written=_is_value(text))}
        case Call("SAMETERM", (Name(name), Term()) | (Term(), Name(name))):
            return {name: one_of(1)}
        case Call("=" | "SAMETERM", (Call("DATATYPE", (Name(name),)), Term(text))):
            return _typed(name, text)
        case Call("=" | "SAMETERM", (Term(text), Call("DATATYPE", (Name(name),)))):
            return _typed(name, text)
        case Call("<" | ">" | "<=" | ">=" as function, (Name(name), Term(text))):
            return _compared(name, function, text)
        case Call("<" | ">" | "<=" | ">=" as function, (Term(text), Name(name))):
            return _compared(name, _MIRRORED[function], text)
        case _:
            return {}


def _is_value(text: str) -> bool:
    """Are there other terms that are equal to this one: numbers, instants and the like in another way of writing?"""
    return text.startswith('"') and text.endswith(">")


def _typed(name: str, datatype: str) -> dict[str, Values]:
    if datatype == f"<{XSD.date}>":
        return {name: Values(date=True)}
    for known, least in _LEAST.items():
        if datatype == f"<{known}>":
            return {name: Values(integer=True, least=least)}
    return {}


def _compared(name: str, function: str, text: str) -> dict[str, Values]:
    """The least or greatest integer on this side of a number; is there a date on this side?"""
    if _is_date(text):
        return {name: Values(after=True) if function in (">", ">=") else Values(before=True)}
    number = number_of(text)
    if number is None:
        return {}
    match function:
        case ">":
            return {name: Values(least=floor(number) + 1)}
        case ">=":
            return {name: Values(least=ceil(number))}
        case "<":
            return {name: Values(greatest=ceil(number) - 1)}
        case _:
            return {name: Values(greatest=floor(number))}


def _is_date(text: str) -> bool:
    term = to_rdflib(text)
    return isinstance(term, Literal) and term.datatype == XSD.date and parse_datetime(str(term), True) is not None


def number_of(text: str) -> Decimal | None:
    term = to_rdflib(text)
    if not isinstance(term, Literal) or term.datatype not in (*_LEAST, XSD.decimal):
        return None
    try:
        return Decimal(str(term))
    except InvalidOperation:
        return None


def value_of(known: Known, tree: Tree) -> Values:
    """The values of an expression, with that of its errors: unbound."""
    match tree:
        case Name(name):
            return known.get(name, ANY)
        case Term():
            return one_of(1)
        case Call(function, arguments):
            count = _FEW_VALUES.get(function, 2 if function in _TRUTH_VALUES else None)
            if count is not None:
                return one_of(count + 1)
            values = [value_of(known, argument) for argument in arguments]
            if function != "NOW" and all(each.bounded for each in values):
                found = _combined(values)
                return replace(found, count=None if found.count is None else found.count + 1)
            # A cast that fails leaves the variable unbound: then a comparison is not true either.
            return Values(integer=function == str(XSD.integer), date=function == str(XSD.date))
