"""`WINDOW ?w {…}` becomes a union over the query's windows, each with its name.

    WindowVariable(?w, P)  →  Union(NaryJoin(Window(a, P), ?w = a), NaryJoin(Window(b, P), ?w = b))

As SPARQL has it for GRAPH, the name is joined around the pattern: a ?w that P binds itself must agree with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rdflib import URIRef

from cqels_py.algebra.nodes import Join, Pattern, Union, Values, Window, WindowVariable
from cqels_py.algebra.traverse import map_children


def expand_window_variables(pattern: Pattern, windows: Sequence[URIRef]) -> Pattern:
    """Ask each window for itself, everywhere.

    >>> from cqels_py.algebra.nodes import BGP
    >>> from rdflib import Variable
    >>> a, w = URIRef("http://ex.org/a"), Variable("w")
    >>> one = Join(Window((a,), BGP(())), Values((w,), ((a,),)))
    >>> expand_window_variables(WindowVariable(w, BGP(())), [a]) == one
    True
    """
    match pattern:
        case WindowVariable(variable, inner):
            inner = expand_window_variables(inner, windows)
            parts = tuple(Join(Window((name,), inner), Values((variable,), ((name,),))) for name in windows)
            return parts[0] if len(parts) == 1 else Union(parts)
        case _:
            return map_children(pattern, lambda child: expand_window_variables(child, windows))
