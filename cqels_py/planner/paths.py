"""Property paths that repeat or negate, over windows and static data.

The step of a repetition is planned as a pattern between two hidden variables. Its pairs are the edges of a graph, whose transitive
closure is maintained. Repetitions give each pair once (SPARQL 1.1, 18.4); a path of no length leads from every term in subject or
object position of the active graph, and from constant ends of the path, to itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rdflib import Variable

from cqels_py.algebra.nodes import (
    BGP,
    Call,
    Constant,
    Expression,
    Graph,
    Path,
    PathAlternative,
    PathInverse,
    PathPattern,
    PathRepeat,
    Pattern,
    Term,
    TermOrVariable,
    TriplePattern,
    VariableRef,
    Window,
)
from cqels_py.algebra.paths import may_have_no_steps
from cqels_py.plan.nodes import (
    ClosureRows,
    DistinctRowsOf,
    ExtendRows,
    FilterRows,
    Node,
    ProjectRows,
    Rows,
    Scan,
    UnionRows,
)
from cqels_py.planner.expressions import compile_expression
from cqels_py.planner.path_patterns import ActiveGraph, between
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import once, project
from cqels_py.planner.texts import position_text

Names = tuple[str, ...]


def path_pattern(planner: Planning, pattern: PathPattern, clause: Window | Graph | None, needed: Needed) -> Node:
    """The pairs of nodes that the path connects, as a plan."""
    graph = ActiveGraph(clause)
    match pattern.path:
        case PathRepeat(path, minimum, unbounded):
            zero = minimum == 0 or may_have_no_steps(path)
            if unbounded:
                node = _any_number(planner, graph, pattern, _step(path), zero=zero)
            else:
                node = _at_most_once(planner, graph, pattern, path, zero=zero)
            return project(once(node), tuple(v for v in node.variables if Variable(v) in needed))
        case path:
            return planner.plan(between(planner, graph, pattern.subject, path, pattern.object), needed)


def _step(path: Path) -> Path:
    """The step of an unbounded repetition: whether it is optional or repeated itself makes no difference.

    >>> from rdflib import URIRef
    >>> p, q = URIRef("http://ex.org/p"), URIRef("http://ex.org/q")
    >>> _step(PathAlternative((PathRepeat(p, 0, True), q))) == PathAlternative((p, q))
    True
    """
    match path:
        case PathRepeat(inner):
            return _step(inner)
        case PathInverse(inner):
            return PathInverse(_step(inner))
        case PathAlternative(parts):
            return PathAlternative(tuple(map(_step, parts)))
        case _:
            return path


# --- paths that repeat ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ends:
    """The ends of a path, and the variable of its graph's name, if it has one, as columns of their own.

    `names`: two or three columns. `conditions`, by place: the column equals the constant there, or the column of an earlier place
    with the same variable.
    """

    positions: tuple[TermOrVariable, ...]
    names: Names
    conditions: dict[int, Expression]

    @property
    def columns(self) -> Names:
        """The variables among the ends and the graph's name, each once."""
        return tuple(dict.fromkeys(str(position) for position in self.positions if isinstance(position, Variable)))

    @property
    def constant(self) -> Term | None:
        return next((end for end in self.positions[:2] if not isinstance(end, Variable)), None)


def _ends_of(planner: Planning, pattern: PathPattern, graph: ActiveGraph) -> _Ends:
    positions = (
        (pattern.subject, pattern.object) if graph.name is None else (pattern.subject, pattern.object, graph.name)
    )
    names: list[Variable] = []
    conditions: dict[int, Expression] = {}
    for place, position in enumerate(positions):
        if isinstance(position, Variable) and position not in names:
            names.append(position)
            continue
        name = planner.fresh("end")
        names.append(name)
        value = VariableRef(position) if isinstance(position, Variable) else Constant(position)
        conditions[place] = Call("SAMETERM", (VariableRef(name), value))
    return _Ends(positions, tuple(map(str, names)), conditions)


def _at_most_once(planner: Planning, graph: ActiveGraph, pattern: PathPattern, path: Path, *, zero: bool) -> Node:
    """`path?`: the path once, or no step."""
    ends = _ends_of(planner, pattern, graph)
    nodes = [_edges(planner, between(planner, graph, pattern.subject, path, pattern.object), ends.columns)]
    if zero:
        nodes.append(project(_where(_no_steps(planner, graph, ends), ends.conditions), ends.columns))
    return DistinctRowsOf(
        UnionRows(tuple(map(once, nodes)), ends.columns), "a path that may be left out gives each pair once"
    )


def _any_number(planner: Planning, graph: ActiveGraph, pattern: PathPattern, path: Path, *, zero: bool) -> Node:
    """`path+`, and with paths of no length (`zero`) `path*`.

    Paths of no length are added to the closure, which then leaves out pairs of equal nodes: so each pair is there once.
    """
    ends = _ends_of(planner, pattern, graph)
    if zero and pattern.subject == pattern.object:
        return _where(_no_steps(planner, graph, ends), ends.conditions)
    start, end = planner.fresh("start"), planner.fresh("end")
    inner = graph if graph.name is None else graph.under(planner.fresh("graph"))
    edge = (start, end) if inner.name is None else (start, end, inner.name)
    edges = once(_edges(planner, between(planner, inner, start, path, end), tuple(map(str, edge))))
    node, conditions = _closure(edges, ends, loops=not zero)
    if zero:
        node = UnionRows((once(node), once(_no_steps(planner, graph, ends))), ends.names)
    return _where(node, conditions)


def _closure(edges: Node, ends: _Ends, *, loops: bool) -> tuple[Node, dict[int, Expression]]:
    """The transitive closure of edges, and the conditions on its pairs that remain to be tested.

    With a constant end it is searched from that end alone: against the direction of edges if that is the object.
    """
    if ends.constant is None or len(ends.names) == 3:
        return ClosureRows(edges, edges.variables, ends.names, None, loops), ends.conditions
    place, text = ends.positions.index(ends.constant), position_text(ends.constant)
    node: Node = ClosureRows(edges, edges.variables, ends.names, text, loops)
    if place == 1:
        node = project(ClosureRows(edges, edges.variables[::-1], ends.names[::-1], text, loops), ends.names)
    return node, {other: test for other, test in ends.conditions.items() if other != place}


def _edges(planner: Planning, pattern: Pattern, columns: Names) -> Node:
    """The pairs of a pattern, for a reader to whom multiplicity makes no difference."""
    return _repeating(project(planner.plan(pattern, frozenset(map(Variable, columns))), columns))


def _repeating(node: Node) -> Node:
    """The node without the DISTINCT that makes a window a graph."""
    match node:
        case DistinctRowsOf(inner):
            return _repeating(inner)
        case ProjectRows(inner, variables):
            return project(_repeating(inner), variables)
        case FilterRows(inner, condition):
            found = _repeating(inner)
            if isinstance(found, Scan):
                return replace(found, conditions=(*found.conditions, condition))
            return FilterRows(found, condition)
        case UnionRows(inputs, variables):
            return UnionRows(tuple(map(_repeating, inputs)), variables)
        case _:
            return node


def _where(node: Node, conditions: dict[int, Expression]) -> Node:
    for condition in conditions.values():
        node = FilterRows(node, compile_expression(condition))
    return node


# --- paths of no steps ------------------------------------------------------------------------------------------


def _no_steps(planner: Planning, graph: ActiveGraph, ends: _Ends) -> Node:
    """Pairs of a term with itself, each once, under the ends' names.

    With a constant end only the pair of that term, whether the graph has it or not.
    """
    start, end, *name = ends.names
    if ends.constant is None:
        node = _terms(planner, graph, (start, *name))
        return project(_extended(node, end, VariableRef(Variable(start))), ends.names)
    if not name:
        text = position_text(ends.constant)
        return Rows((start, end), ((text, text),))
    # In each graph, also in one without triples.
    node = planner.plan(graph.under(Variable(name[0])).asked(BGP(())), frozenset([Variable(name[0])]))
    for column in (start, end):
        node = _extended(node, column, Constant(ends.constant))
    return project(node, ends.names)


def _terms(planner: Planning, graph: ActiveGraph, names: Names) -> Node:
    """All terms in subject or object position, each once; the second name, if there is one, is the graph's."""
    term, predicate, other = Variable(names[0]), planner.fresh("predicate"), planner.fresh("term")
    named = graph.under(Variable(names[1])) if len(names) == 2 else graph
    triples = (TriplePattern(term, predicate, other), TriplePattern(other, predicate, term))
    nodes = tuple(once(_edges(planner, named.asked(BGP((triple,))), names)) for triple in triples)
    return DistinctRowsOf(UnionRows(nodes, names), "the terms of the graph, each of which leads to itself")


def _extended(node: Node, name: str, expression: Expression) -> Node:
    return ExtendRows(node, name, compile_expression(expression))
