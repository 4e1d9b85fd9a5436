"""A window around a group pattern becomes a window around each of its basic graph patterns.

    Window(w, Filter(Join(BGP a, BGP b), c))  →  Filter(Join(Window(w, BGP a), Window(w, BGP b)), c)

Patterns inside EXISTS are over the same window, as in SPARQL for the active graph. The same holds for GRAPH; where it would
make a difference that the variable of GRAPH ?g is bound inside already, graph_by_graph has been there before. GRAPH in a window is
matched against the window's own graphs:

    Window(w, Join(Graph(?g, BGP a), BGP b))  →  Join(Window(w, BGP a, ?g), Window(w, BGP b))
"""

from __future__ import annotations

from dataclasses import replace

from cqels_py.algebra.nodes import BGP, Graph, PathPattern, Pattern, Service, Window
from cqels_py.algebra.traverse import map_children


def push_windows(pattern: Pattern) -> Pattern:
    """Push every window and named graph down to the basic graph patterns and paths it holds.

    >>> from cqels_py.algebra.nodes import Union
    >>> from rdflib import URIRef
    >>> w = URIRef("http://ex.org/w")
    >>> push_windows(Window((w,), Union((BGP(()), BGP(()))))) == Union((Window((w,), BGP(())), Window((w,), BGP(()))))
    True
    """
    match pattern:
        case Window() | Graph():
            return _push(pattern, pattern.pattern)
        case _:
            return map_children(pattern, push_windows)


def _push(around: Window | Graph, pattern: Pattern) -> Pattern:
    match pattern:
        case BGP() | PathPattern():
            return replace(around, pattern=pattern)
        case Graph(name, inner, in_window=True):
            assert isinstance(around, Window)
            return _push(replace(around, graph=name), inner)
        case Window() | Graph():
            # The innermost graph clause is the active one.
            return push_windows(pattern)
        case Service():
            # Its pattern is asked elsewhere.
            return pattern
        case _:
            return map_children(pattern, lambda child: _push(around, child))
