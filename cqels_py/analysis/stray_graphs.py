"""GRAPH <stream> reads the static graph of that name; usually a window over the stream was meant."""

from __future__ import annotations

from rdflib import URIRef

from cqels_py.algebra.nodes import ContinuousQuery, Dialect, Graph
from cqels_py.algebra.validate import walk

_INSTEAD = {
    Dialect.CQELS_QL: "a window is written STREAM <{0}> [RANGE 10s] {{ … }}",
    Dialect.RSP_QL: "a window is written FROM NAMED WINDOW <w> ON <{0}> [RANGE PT10S STEP PT1S] and WINDOW <w> {{ … }}",
    Dialect.C_SPARQL: "a window is a graph with FROM NAMED STREAM <{0}> [RANGE 10s STEP 1s]",
}


def stray_graphs(query: ContinuousQuery) -> tuple[str, ...]:
    """A message for each graph of static data with the name of a stream, in order of the names."""
    streams = {window.stream for window in query.windows}
    asked = (node for node, _ in walk(query.pattern) if isinstance(node, Graph) and not node.in_window)
    named = {node.name for node in asked if isinstance(node.name, URIRef)}
    return tuple(
        f"GRAPH <{name}> reads static data of that name: {_INSTEAD[query.dialect].format(name)}"
        for name in sorted(named & streams)
    )
