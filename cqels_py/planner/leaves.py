"""Triple patterns over windows and static data."""

from __future__ import annotations

from dataclasses import replace

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import BGP, TermOrVariable, TriplePattern, Values, Window
from cqels_py.plan.nodes import (
    DistinctRowsOf,
    GraphNames,
    Node,
    Once,
    Rows,
    Scan,
    StaticScan,
    TemplateTriple,
    UnionRows,
)
from cqels_py.planner.joins import join, join_nodes
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import once, project
from cqels_py.planner.texts import pattern_text, position_text
from cqels_py.terms.rdf import from_rdflib


def pattern_variables(triple: TriplePattern) -> tuple[Variable, ...]:
    positions = (triple.subject, triple.predicate, triple.object)
    return tuple(dict.fromkeys(position for position in positions if isinstance(position, Variable)))


def template_triple(triple: TriplePattern) -> TemplateTriple:
    positions = []
    for position in (triple.subject, triple.predicate, triple.object):
        if isinstance(position, Variable) and position.startswith("_:"):
            positions.append(str(position))
        else:
            positions.append(position_text(position))
    return TemplateTriple(*positions)


def window_bgp(planner: Planning, window: Window, bgp: BGP, needed: Needed) -> Node:
    if not bgp.triples:
        return Rows((), ((),)) if window.graph is None else _graph_names(planner, window, window.graph)
    if len(bgp.triples) == 1:
        return leaf(planner, window, bgp.triples[0], needed)
    return join(planner, tuple(replace(window, pattern=BGP((triple,))) for triple in bgp.triples), needed)


def _graph_names(planner: Planning, window: Window, graph: URIRef | Variable) -> Node:
    """The distinct named graphs of a window: their names, or, of a constant name, the empty mapping if there is this graph."""
    triple = TriplePattern(planner.fresh("subject"), planner.fresh("predicate"), planner.fresh("object"))
    name = (str(graph),) if isinstance(graph, Variable) else ()
    scans = tuple(
        Scan(
            planner.streams.number(each),
            pattern_text(triple, graph),
            name,
            expires_fifo=planner.streams.expires_fifo(each),
            expires=planner.streams.expires(each),
        )
        for each in window.windows
    )
    return DistinctRowsOf(scans[0] if len(scans) == 1 else UnionRows(scans, name), "a graph is there once")


def leaf(planner: Planning, window: Window, triple: TriplePattern, needed: Needed) -> Node:
    """One triple pattern over one or more windows. Where windows are graphs, a triple counts once in each graph."""
    pattern = pattern_text(triple, window.graph)
    variables = pattern_variables(triple)
    if isinstance(window.graph, Variable) and window.graph not in variables:
        variables = (*variables, window.graph)
    names = tuple(map(str, variables))
    scans: list[Node] = [
        Scan(
            planner.streams.number(name),
            pattern,
            names,
            expires_fifo=planner.streams.expires_fifo(name),
            expires=planner.streams.expires(name),
        )
        for name in window.windows
    ]
    if window.with_static:
        scans.append(Once(StaticScan("", pattern, names)))
    node = scans[0] if len(scans) == 1 else UnionRows(tuple(scans), names)
    if not planner.bags or len(scans) > 1:
        node = DistinctRowsOf(node, "a window is a graph: the same triple counts once" + _once_where(window))
    return project(node, tuple(str(v) for v in variables if v in needed))


def _once_where(window: Window) -> str:
    return "" if window.graph is None else " in each graph"


def static_bgp(
    planner: Planning,
    graph: str,
    triples: tuple[TriplePattern, ...],
    needed: Needed,
    name: TermOrVariable | None = None,
) -> Node:
    if not triples:
        return Rows((), ((),)) if name is None else once(GraphNames(graph))
    scans: list[Node] = []
    for triple in triples:
        variables = pattern_variables(triple)
        if isinstance(name, Variable) and name not in variables:
            variables = (*variables, name)
        scans.append(StaticScan(graph, pattern_text(triple), tuple(map(str, variables))))
    if len(scans) == 1:
        return once(scans[0])
    return join_nodes(planner, scans, [frozenset()] * len(scans), needed)


def inline_rows(values: Values) -> Rows:
    texts = tuple(tuple(None if term is None else str(from_rdflib(term)) for term in row) for row in values.rows)
    return Rows(tuple(str(v) for v in values.variables), texts)
