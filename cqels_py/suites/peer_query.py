"""A continuous query rewritten for pyoxigraph: the same text, with window blocks as named graphs.

The parser reads the windows. The rest of the text is the user's and is read by pyoxigraph alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from itertools import count
from typing import Any

import pyoxigraph as ox
from rdflib import Variable

from cqels_py.algebra import nodes
from cqels_py.parser import parse
from cqels_py.parser.clauses import Lifted, lift
from cqels_py.parser.dialects import detect
from cqels_py.parser.prologue import read_prologue
from cqels_py.parser.source import Edit, EditedText, Source
from cqels_py.parser.tokens import Token, tokenize

_MARKER = re.compile(r"<(urn:cqels:block:\d+)>")
_LIMIT = re.compile(r"\b(LIMIT|OFFSET)\s+\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PeerQuery:
    """The query's algebra, and the SPARQL text for pyoxigraph.

    `unlimited`: that text without LIMIT and OFFSET, if it has them. `columns`: the variables of a row. `merged`: the
    graphs that make up the default graph.
    """

    query: nodes.ContinuousQuery
    text: str
    unlimited: str | None
    columns: tuple[str, ...]
    merged: tuple[Any, ...]

    def rows(self, store: ox.Store, *, unlimited: bool = False) -> Iterator[tuple[Any, ...]]:
        """The answer over the store. For ASK, a single row with the truth value."""
        text = self.unlimited if unlimited and self.unlimited else self.text
        found: Any = store.query(text, default_graph=list(self.merged) or None)
        if self.query.form == "ASK":
            yield (ox.Literal(next(iter(found), None) is not None),)
            return
        for row in found:
            yield tuple(row[name] for name in self.columns)


def peer_query(text: str) -> PeerQuery:
    """The SPARQL text for a continuous query. Raises the parser's errors."""
    query = parse(text)
    source = Source(text, None)
    tokens = tokenize(source)
    prologue = read_prologue(source, tokens.tokens, None)
    lifted = lift(source, tokens, prologue, detect(source, tokens.tokens, None))
    edits = [_with_names(edit, lifted) for edit in lifted.edits]
    if query.form == "CONSTRUCT":
        edits.append(_selection(tokens.tokens, query))
    elif query.form == "ASK":
        # pyoxigraph does not accept aggregates in HAVING of ASK.
        ask = next(token for token in tokens.tokens if token.is_word("ASK"))
        edits.append((ask.start, ask.end, f"SELECT (1 AS ?{_unused(source.text)})"))
    plain = EditedText(source.text, edits).text
    head, brace, tail = plain.rpartition("}")
    unlimited = head + brace + _LIMIT.sub("", tail) if _LIMIT.search(tail) else None
    merged = [ox.DefaultGraph(), *(ox.NamedNode(str(name)) for name in lifted.merged)] if lifted.merged else []
    columns = ("boolean",) if query.form == "ASK" else tuple(map(str, query.variables))
    return PeerQuery(query, plain, unlimited, columns, tuple(merged))


def reason_not_to_compare(query: nodes.ContinuousQuery) -> str | None:
    """Why the query cannot be compared, if pyoxigraph gives it another meaning; None if it can."""
    if query.form == "DESCRIBE":
        return "SPARQL leaves the answer of DESCRIBE open"
    if any(window.partition_by for window in query.windows):
        return "the content of a window with PARTITION BY is not a contiguous part of the stream"
    if query.static_from or query.static_named:
        return "FROM names static graphs"
    for part in _parts(query.pattern):
        match part:
            case nodes.Service():
                return "SERVICE is asked once, at registration"
            case nodes.WindowVariable() | nodes.Graph(name=Variable()):
                return "a variable ranges over windows or graphs, and to pyoxigraph both are graphs"
            case nodes.AggregateCall(function="SAMPLE" | "GROUP_CONCAT" as function):
                return f"{function} depends on an order that SPARQL leaves open"
            case nodes.Call(function="NOW" | "RAND" | "UUID" | "STRUUID" | "BNODE" as function):
                return f"{function}() has a new value at each call"
    return None


def aggregates(query: nodes.ContinuousQuery) -> bool:
    return any(isinstance(part, nodes.Group) for part in _parts(query.pattern))


def order(query: nodes.ContinuousQuery) -> tuple[str, ...]:
    """The selected variables that ORDER BY names, most important first."""
    for part in _parts(query.pattern):
        if isinstance(part, nodes.OrderBy):
            keys = (key for key, _ in part.conditions)
            named = (str(key.variable) for key in keys if isinstance(key, nodes.VariableRef))
            return tuple(name for name in named if Variable(name) in query.variables)
    return ()


def _unused(text: str) -> str:
    """A name that no variable of the text has."""
    return next(name for name in (f"row{number}" for number in count()) if name not in text)


def _with_names(edit: Edit, lifted: Lifted) -> Edit:
    """The window's own name for its block's marker, and no text for its declaration."""
    start, end, text = edit
    marker = _MARKER.search(text)
    if marker is None:
        return edit
    for name, block in lifted.blocks.items():
        if str(name) == marker[1]:
            target = f"?{block.target}" if isinstance(block.target, Variable) else f"<{block.target}>"
            return start, end, f"GRAPH {target} "
    return start, end, " "


def _selection(tokens: tuple[Token, ...], query: nodes.ContinuousQuery) -> Edit:
    """SELECT of the template's variables instead of CONSTRUCT and its template."""
    at = next(number for number, token in enumerate(tokens) if token.is_word("CONSTRUCT"))
    start, end = tokens[at].start, tokens[at].end
    if tokens[at + 1].is_mark("{"):
        # A template has no inner braces.
        end = next(token.end for token in tokens[at:] if token.is_mark("}"))
    return start, end, f"SELECT {' '.join(f'?{name}' for name in query.variables) or '*'} "


def _parts(node: Any) -> Iterator[Any]:
    """A node of the algebra and everything in it, outermost first."""
    yield node
    if is_dataclass(node):
        children = [getattr(node, each.name) for each in fields(node)]
    else:
        children = list(node) if isinstance(node, tuple) else []
    for child in children:
        if is_dataclass(child) or isinstance(child, tuple):
            yield from _parts(child)
