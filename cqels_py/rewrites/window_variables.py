"""`WINDOW ?w {…}` becomes a union over the query's windows, each with its name.

    WindowVariable(?w, P)  →  Union(NaryJoin(Window(a, P), ?w = a), NaryJoin(Window(b, P), ?w = b))

As SPARQL has it for GRAPH, the name is joined around the pattern: a ?w that P binds itself must agree with it.
"""

from __future__ import annotations

from cqels_py.algebra.nodes import Join, Pattern, Union, Values, Window, WindowVariable
from cqels_py.algebra.traverse import bottom_up


def expand_window_variables(pattern: Pattern) -> Pattern:
    """Expand every WINDOW ?w into a union over the windows.

    >>> from cqels_py.algebra.nodes import BGP
    >>> from rdflib import URIRef, Variable
    >>> a, w = URIRef("http://ex.org/a"), Variable("w")
    >>> one = Join(Window((a,), BGP(())), Values((w,), ((a,),)))
    >>> expand_window_variables(WindowVariable(w, BGP(()), (a,))) == one
    True
    """
    return bottom_up(pattern, _expanded)


def _expanded(pattern: Pattern) -> Pattern:
    match pattern:
        case WindowVariable(variable, inner, windows):
            parts = tuple(Join(Window((name,), inner), Values((variable,), ((name,),))) for name in windows)
            return parts[0] if len(parts) == 1 else Union(parts)
        case _:
            return pattern
