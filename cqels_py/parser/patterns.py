"""rdflib's algebra → ours: graph patterns and solution modifiers.

On the way the markers of window blocks become `Window`s, the default graph of C-SPARQL becomes a window around each
basic graph pattern, and details of grouping that rdflib's translation loses are restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from rdflib import URIRef, Variable
from rdflib.plugins.sparql.parserutils import CompValue

from cqels_py.algebra import nodes
from cqels_py.algebra.nodes import Expression, Pattern, TermOrVariable, VariableRef
from cqels_py.algebra.variables import expression_variables, possible_variables
from cqels_py.parser import paths
from cqels_py.parser.clauses import Lifted
from cqels_py.parser.events import EventBlock, event_of
from cqels_py.parser.expressions import ExpressionReader, as_list, term_of
from cqels_py.parser.groups import Groups
from cqels_py.parser.long_lists import Rows
from cqels_py.parser.matches import MatchBlock, match_of
from cqels_py.parser.prepare import NOTHING, STAR, FreshVariables, RawTriple
from cqels_py.parser.source import Source, unsupported
from cqels_py.parser.states import StateBlock, state_of


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts of the text that the tree no longer has.

    `order`: triples by their place in the text. `appearance`: variables by their first place in the text.
    `bound_at`: where in the source `AS ?v` stands. `long_lists`: the lists for which IRIs stand in VALUES and IN.
    """

    source: Source
    lifted: Lifted
    order: dict[RawTriple, int]
    appearance: dict[str, int]
    bound_at: Callable[[Variable], int]
    fresh: FreshVariables
    long_lists: Mapping[URIRef, Rows]


def _each_graph(name: Variable, windows: list[URIRef], inner: Pattern) -> Pattern:
    """GRAPH ?name where windows are named graphs too: those, and static ones of other names."""
    asked = [nodes.Join(nodes.Window((each,), inner), nodes.Values((name,), ((each,),))) for each in windows]
    names = tuple(map(nodes.Constant, windows))
    static = nodes.Filter(nodes.Graph(name, inner), nodes.Call("NOT-IN", (VariableRef(name), *names)))
    return nodes.Union((*asked, static))


_WINDOW = "a window"
_MATCH = "MATCH"
_STATE = "STATE"


class PatternReader:
    """Turns rdflib's algebra into ours. Raises QuerySyntaxError, UnsupportedQuery and Unplaced."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._inside: str | None = None
        self._in_exists = False
        self._groups = Groups(around.fresh)
        self._scope: list[Pattern] = []
        self._expressions = ExpressionReader(self._exists_pattern, self._variable, around.long_lists)
        self._readers: dict[str, Callable[[Any], Pattern]] = {
            "BGP": self._bgp,
            "Join": self._join,
            "LeftJoin": self._left_join,
            "Filter": self._filter,
            "Union": self._union,
            "Minus": lambda n: nodes.Minus(self.read(n.p1), self.read(n.p2)),
            "Extend": self._extend,
            "ToMultiSet": self._multiset,
            "Graph": self._graph,
            "ServiceGraphPattern": self._service,
            "AggregateJoin": self._aggregate_join,
            "Group": lambda n: nodes.Group(self.read(n.p), _keys(n), ()),
            "Project": self._project,
            "Distinct": lambda n: nodes.Distinct(self.read(n.p)),
            "Reduced": lambda n: nodes.Reduced(self.read(n.p)),
            "OrderBy": self._order_by,
            "Slice": lambda n: nodes.Slice(self.read(n.p), n.start, n.length),
        }

    def read(self, node: CompValue) -> Pattern:
        reader = self._readers.get(node.name)
        if reader is None:
            raise unsupported(f"patterns of the form {node.name} are not supported", node.name)
        return reader(node)

    def _exists_pattern(self, node: CompValue) -> Pattern:
        before, self._in_exists = self._in_exists, True
        try:
            with self._groups.set_aside():
                return self.read(node)
        finally:
            self._in_exists = before

    # --- leaves ----------------------------------------------------------------------------------------------------

    def _bgp(self, node: CompValue) -> Pattern:
        order = self._around.order
        found: list[Pattern] = []
        for subject, predicate, object_ in sorted(node.triples, key=lambda triple: order.get(triple, len(order))):
            one, other = _term(subject), _term(object_)
            if isinstance(predicate, Variable):
                found.append(nodes.BGP((nodes.TriplePattern(one, predicate, other),)))
            else:
                found += list(paths.patterns_of(one, predicate, other, lambda: self._around.fresh.make("_:")))
        return self._over_merged(paths.join(found))

    def _over_merged(self, pattern: Pattern) -> Pattern:
        """C-SPARQL: outside of GRAPH a pattern is matched against all FROM STREAM windows and the static data together."""
        merged = tuple(self._around.lifted.merged)
        if not merged or self._inside is not None or pattern == nodes.BGP(()):
            return pattern
        match pattern:
            case nodes.Join(left, right):
                return nodes.Join(self._over_merged(left), self._over_merged(right))
            case nodes.Union(parts):
                return nodes.Union(tuple(self._over_merged(part) for part in parts))
            case _:
                return nodes.Window(merged, pattern, with_static=True)

    def _multiset(self, node: CompValue) -> Pattern:
        """Inline data, or a subquery."""
        if not isinstance(node.p, CompValue):
            return nodes.Values((), ())
        if node.p.name != "values":
            return self.read(node.p)
        variables = tuple(dict.fromkeys(Variable(v) for row in node.p.res for v in row if v != NOTHING))
        first = next(iter(node.p.res[0].values()), None) if len(node.p.res) == 1 else None
        if isinstance(first, URIRef) and first in self._around.long_lists:
            return nodes.Values(variables, self._around.long_lists[first])
        rows = tuple(tuple(_value(row.get(v, "UNDEF")) for v in variables) for row in node.p.res)
        return nodes.Values(variables, rows)

    # --- graphs and windows ------------------------------------------------------------------------------------------

    def _graph(self, node: CompValue) -> Pattern:
        lifted = self._around.lifted
        block = lifted.blocks.get(node.term)
        if block is not None:
            self._check_not_inside(_WINDOW, block.offset)
            inner = self._read_inside(_WINDOW, node.p)
            if isinstance(block.target, Variable):
                return nodes.WindowVariable(block.target, inner, tuple(window.name for window in lifted.windows))
            return nodes.Window((block.target,), inner)
        if node.term in lifted.matches:
            return self._match(lifted.matches[node.term], node.p)
        if node.term in lifted.events:
            return self._event(lifted.events[node.term], node.p)
        if node.term in lifted.states:
            return self._state(lifted.states[node.term], node.p)
        if node.term in lifted.named:
            return nodes.Window((URIRef(node.term),), self._read_inside("a named stream", node.p))
        in_window = self._inside == _WINDOW
        # A graph within the graph is the window's too.
        inner = self._read_inside(_WINDOW if in_window else "GRAPH", node.p)
        if isinstance(node.term, Variable) and lifted.named:
            return _each_graph(Variable(node.term), lifted.named, inner)
        name = Variable(node.term) if isinstance(node.term, Variable) else URIRef(node.term)
        return nodes.Graph(name, inner, in_window)

    def _match(self, block: MatchBlock, node: CompValue) -> Pattern:
        self._check_not_inside(_MATCH, block.start)
        if self._in_exists:
            raise self._around.source.refusal(
                "MATCH inside of EXISTS is not supported: write MATCH beside the other patterns, and MINUS instead of NOT "
                "EXISTS",
                block.start,
            )
        source = self._around.source
        events = {
            marker: event_of(block.events[marker], self._read_inside(_MATCH, inner), source)
            for marker, inner in _event_groups(node, block.events)
        }
        return match_of(block, events, source)

    def _event(self, block: EventBlock, node: CompValue) -> Pattern:
        self._check_not_inside("EVENT", block.start)
        source = self._around.source
        if self._in_exists:
            raise source.refusal(
                "EVENT inside of EXISTS is not supported: results of events never go, so they cannot end when an event comes",
                block.start,
            )
        return nodes.EventJoin((event_of(block, self._read_inside("EVENT", node), source),))

    def _state(self, block: StateBlock, node: CompValue) -> Pattern:
        self._check_not_inside(_STATE, block.start)
        if self._in_exists:
            raise self._around.source.refusal(
                "STATE inside of EXISTS is not supported: write STATE beside the other patterns, and MINUS instead of NOT "
                "EXISTS",
                block.start,
            )
        return state_of(block, self._read_inside(_STATE, node), self._around.source)

    def _check_not_inside(self, what: str, offset: int) -> None:
        if self._inside is not None:
            raise self._around.source.error(
                f"{what} inside of {self._inside}: put one next to the other; they are joined by their common variables",
                offset,
            )

    def _read_inside(self, what: str, node: CompValue) -> Pattern:
        before, self._inside = self._inside, what
        try:
            return self.read(node)
        finally:
            self._inside = before

    def _service(self, node: CompValue) -> Pattern:
        remote = self._around.lifted.services[node.term]
        inner = self._read_inside("SERVICE", node.graph)
        return nodes.Service(remote.endpoint, inner, node.silent is not None, remote.text)

    # --- groups ------------------------------------------------------------------------------------------------------

    def _join(self, node: CompValue) -> Pattern:
        left, right = self.read(node.p1), self.read(node.p2)
        if left == nodes.BGP(()):
            return right
        return left if right == nodes.BGP(()) else nodes.Join(left, right)

    def _left_join(self, node: CompValue) -> Pattern:
        left, right = self.read(node.p1), self.read(node.p2)
        if isinstance(node.expr, CompValue) and node.expr.name == "TrueFilter":
            return nodes.LeftJoin(left, right, None)
        return nodes.LeftJoin(left, right, self._expression(node.expr, nodes.Join(left, right)))

    def _filter(self, node: CompValue) -> Pattern:
        inner = self.read(node.p)
        return nodes.Filter(inner, self._expression(node.expr, inner))

    def _union(self, node: CompValue) -> Pattern:
        """`A UNION B UNION C` is one node."""
        first, second = self.read(node.p1), self.read(node.p2)
        parts = first.parts if isinstance(first, nodes.Union) and node.p1.name == "Union" else (first,)
        return nodes.Union((*parts, second))

    def _extend(self, node: CompValue) -> Pattern:
        inner = self.read(node.p)
        variable = Variable(node.var)
        self._groups.selected = variable
        expression = self._expression(node.expr, inner)
        self._groups.selected = None
        if expression == VariableRef(variable):
            return inner
        if variable in possible_variables(inner):
            raise self._around.source.error(
                f"AS ?{variable}: the variable ?{variable} already has a value here; take another name",
                self._around.bound_at(variable),
            )
        return nodes.Extend(inner, variable, expression)

    # --- grouping ----------------------------------------------------------------------------------------------------

    def _aggregate_join(self, node: CompValue) -> Pattern:
        inner = self.read(node.p.p)
        keys = _keys(node.p)
        aggregates = self._groups.enter(keys, node.A, partial(self._aggregate, inner))
        for variable, _ in aggregates:
            if variable in possible_variables(inner):
                raise self._around.source.error(
                    f"AS ?{variable}: the variable ?{variable} is already used in the pattern; take another name",
                    self._around.bound_at(variable),
                )
        return nodes.Group(inner, keys, aggregates)

    def _aggregate(self, scope: Pattern, call: CompValue) -> nodes.AggregateCall:
        with self._reading_over(scope):
            return self._expressions.aggregate(call)

    def _variable(self, variable: Variable) -> Expression:
        return self._groups.meaning(variable, possible_variables(self._scope[-1]))

    def _expression(self, value: Any, scope: Pattern) -> Expression:
        with self._reading_over(scope):
            return self._expressions.read(value)

    @contextmanager
    def _reading_over(self, scope: Pattern) -> Iterator[None]:
        """Expressions read meanwhile see the variables of this pattern."""
        self._scope.append(scope)
        try:
            yield
        finally:
            self._scope.pop()

    # --- solution modifiers ------------------------------------------------------------------------------------------

    def _project(self, node: CompValue) -> Pattern:
        inner = self.read(node.p)
        return nodes.Project(inner, self.columns(node.PV, inner))

    def columns(self, selected: list[Variable], inner: Pattern) -> tuple[Variable, ...]:
        """Selected variables, once each; `*` is the visible ones, in the order in which the text has them."""
        if STAR not in selected:
            return tuple(dict.fromkeys(Variable(v) for v in selected if isinstance(v, Variable)))
        visible = [v for v in possible_variables(inner) if not v.startswith("_:")]
        appearance = self._around.appearance
        return tuple(sorted(visible, key=lambda v: (appearance.get(str(v), len(appearance)), v)))

    def _order_by(self, node: CompValue) -> Pattern:
        inner = self.read(node.p)
        conditions = tuple((self._expression(each.expr, inner), each.order == "DESC") for each in node.expr)
        if _is_grouped(inner):
            for key, _ in conditions:
                self._groups.check_visible(expression_variables(key), possible_variables(inner))
        return nodes.OrderBy(inner, conditions)


def _event_groups(node: CompValue, events: Mapping[URIRef, EventBlock]) -> Iterator[tuple[URIRef, CompValue]]:
    """The groups of a clause's EVENT blocks, by their markers."""
    if node.name == "Graph" and node.term in events:
        yield node.term, node.p
        return
    for part in ("p", "p1", "p2"):
        if isinstance(inner := node.get(part), CompValue):
            yield from _event_groups(inner, events)


def _keys(node: CompValue) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(Variable(key) for key in as_list(node.expr or [])))


def _is_grouped(pattern: Pattern) -> bool:
    """Is it the rows of a group, perhaps with HAVING and selected expressions above it?"""
    while isinstance(pattern, nodes.Filter | nodes.Extend):
        pattern = pattern.pattern
    return isinstance(pattern, nodes.Group)


def _term(value: Any) -> TermOrVariable:
    return Variable(value) if isinstance(value, Variable) else term_of(value)


def _value(value: Any) -> nodes.Term | None:
    return None if value == "UNDEF" and not isinstance(value, URIRef) else term_of(value)
