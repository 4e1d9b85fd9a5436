"""Nested joins, and the triple patterns of windows, become one n-ary join, across windows and static data.

Join(Join(a, b), Join(c, d))  →  NaryJoin(a, b, c, d)
Window(w, BGP(t1, t2))        →  NaryJoin(Window(w, BGP(t1)), Window(w, BGP(t2)))
"""

from __future__ import annotations

from dataclasses import replace

from cqels_py.algebra.nodes import BGP, Join, NaryJoin, Pattern, Window
from cqels_py.algebra.traverse import bottom_up


def flatten_joins(pattern: Pattern) -> Pattern:
    """Flatten joins everywhere; the empty group, which joins with anything, is left out.

    >>> from cqels_py.algebra.nodes import Values
    >>> a, b, c = (Values((), ((),) * n) for n in (1, 2, 3))
    >>> flatten_joins(Join(Join(a, BGP(())), Join(b, c))) == NaryJoin((a, b, c))
    True
    """
    return bottom_up(pattern, _flatten)


def _parts(pattern: Pattern) -> tuple[Pattern, ...]:
    match pattern:
        case NaryJoin(parts):
            return parts
        case BGP(()):
            return ()
        case Window(pattern=BGP(()), graph=None):
            return ()
        case _:
            return (pattern,)


def _flatten(pattern: Pattern) -> Pattern:
    match pattern:
        case Join(left, right):
            parts = (*_parts(left), *_parts(right))
        case Window(pattern=BGP(triples)) if len(triples) > 1:
            parts = tuple(replace(pattern, pattern=BGP((triple,))) for triple in triples)
        case _:
            return pattern
    if not parts:
        return BGP(())
    return parts[0] if len(parts) == 1 else NaryJoin(parts)
