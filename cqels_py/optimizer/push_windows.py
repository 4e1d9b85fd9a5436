"""A window around a group pattern becomes a window around each of its basic graph patterns.

    Window(w, Filter(Join(BGP a, BGP b), c))  →  Filter(Join(Window(w, BGP a), Window(w, BGP b)), c)

Patterns inside EXISTS are asked of the same window, as SPARQL has it for the active graph. The same holds for GRAPH.
"""

from __future__ import annotations

from dataclasses import replace

from cqels_py.algebra.nodes import BGP, Graph, PathPattern, Pattern, Window, WindowVariable
from cqels_py.optimizer.traverse import map_children


def push_windows(pattern: Pattern) -> Pattern:
    """Push every window and named graph down to the basic graph patterns and paths it holds.

    >>> from cqels_py.algebra.nodes import Union
    >>> from rdflib import URIRef
    >>> w = URIRef("http://ex.org/w")
    >>> push_windows(Window((w,), Union((BGP(()), BGP(()))))) == Union((Window((w,), BGP(())), Window((w,), BGP(()))))
    True
    """
    if isinstance(pattern, Window | Graph):
        return _push(pattern, pattern.pattern)
    return map_children(pattern, push_windows)


def _push(around: Window | Graph, pattern: Pattern) -> Pattern:
    match pattern:
        case BGP() | PathPattern():
            return replace(around, pattern=pattern)
        case Window() | WindowVariable() | Graph():
            # The innermost graph clause is the active one.
            return push_windows(pattern)
        case _:
            return map_children(pattern, lambda child: _push(around, child))
