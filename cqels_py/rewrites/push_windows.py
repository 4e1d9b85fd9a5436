"""A window around a group pattern becomes a window around each of its basic graph patterns.

    Window(w, Filter(Join(BGP a, BGP b), c))  →  Filter(Join(Window(w, BGP a), Window(w, BGP b)), c)

Patterns inside EXISTS are asked of the same window, as SPARQL has it for the active graph. The same holds for GRAPH, but for
GRAPH ?g only where it makes no difference that ?g is bound inside already and not, as SPARQL has it, around the whole group;
elsewhere see graph_by_graph. GRAPH in a window is asked of the window's own graphs:

    Window(w, Join(Graph(?g, BGP a), BGP b))  →  Join(Window(w, BGP a, ?g), Window(w, BGP b))
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import (
    BGP,
    Expression,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Minus,
    PathPattern,
    Pattern,
    Service,
    Union,
    Values,
    Window,
    WindowVariable,
)
from cqels_py.algebra.traverse import map_children
from cqels_py.algebra.variables import certain_variables, exists_patterns
from cqels_py.rewrites.absent_graphs import where_there_is
from cqels_py.rewrites.graph_by_graph import Named, graph_by_graph


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
            return _asked(pattern)
        case _:
            return map_children(pattern, push_windows)


def _asked(around: Named) -> Pattern:
    """A window, or named graphs, pushed down."""
    name, inner = _name(around), around.pattern
    if isinstance(name, Variable) and not _may_bind_inside(inner, name):
        return graph_by_graph(around, name, _pushed, lambda pattern: _push(around, pattern))
    if isinstance(name, URIRef) and inner != BGP(()):
        return where_there_is(around, _push(around, inner))
    return _push(around, inner)


def _name(around: Named) -> URIRef | Variable | None:
    return around.graph if isinstance(around, Window) else around.name


def _pushed(around: Named) -> Pattern | None:
    name = _name(around)
    assert isinstance(name, Variable)
    return _push(around, around.pattern) if _may_bind_inside(around.pattern, name) else None


def _push(around: Named, pattern: Pattern) -> Pattern:
    match pattern:
        case BGP() | PathPattern():
            return replace(around, pattern=pattern)
        case Graph(name, inner, in_window=True):
            assert isinstance(around, Window)
            return _asked(replace(around, graph=name, pattern=inner))
        case Window() | WindowVariable() | Graph():
            # The innermost graph clause is the active one.
            return push_windows(pattern)
        case Service():
            # Its pattern is asked elsewhere.
            return pattern
        case _:
            return map_children(pattern, lambda child: _push(around, child))


def _may_bind_inside(pattern: Pattern, name: Variable) -> bool:
    """Is Graph(name, pattern) the same when every basic graph pattern in it binds the name?

    Not where something inside sees the name, forgets it (a subquery, a group), or has no graph to ask (VALUES alone).
    """
    match pattern:
        case BGP() | PathPattern():
            return True
        case Join(left, right):
            asking = [part for part in (left, right) if not isinstance(part, Values)]
            return bool(asking) and all(_may_bind_inside(part, name) for part in asking)
        case Union(parts):
            return all(_may_bind_inside(part, name) for part in parts)
        case Filter(inner, condition):
            hidden = name in certain_variables(inner) or not _mentions(pattern, name)
            return hidden and _all_may(name, inner, *exists_patterns(condition))
        case Extend(inner, _, expression):
            return not _mentions(pattern, name) and _all_may(name, inner, *exists_patterns(expression))
        case LeftJoin(left, right, condition):
            inside = _patterns_of(condition)
            return not _mentions(pattern, name) and _all_may(name, left, right, *inside)
        case Minus(left, right):
            # The name in common does not make solutions compatible that had nothing in common.
            related = certain_variables(left) & certain_variables(right)
            return bool(related) and not _mentions(pattern, name) and _all_may(name, left, right)
        case _:
            return False


def _all_may(name: Variable, *patterns: Pattern) -> bool:
    return all(_may_bind_inside(pattern, name) for pattern in patterns)


def _patterns_of(condition: Expression | None) -> tuple[Pattern, ...]:
    return () if condition is None else exists_patterns(condition)


def _mentions(node: object, variable: Variable) -> bool:
    """Does the variable stand anywhere in a tree of patterns and expressions?"""
    if isinstance(node, tuple):
        return any(_mentions(each, variable) for each in node)
    if is_dataclass(node):
        return any(_mentions(getattr(node, field.name), variable) for field in fields(node))
    return isinstance(node, Variable) and node == variable
