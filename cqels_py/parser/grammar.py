"""rdflib's SPARQL grammar: text → parse tree, and errors with their place and the tokens that were expected.

The grammar module is loaded a second time, as a private copy, because it is modified, which must not affect other users
of rdflib in the process: numbers keep their lexical form (rdflib turns `-1e3` into -1000.0), a sign that touches its
number belongs to it (SPARQL 1.1, 19.8), tabs in strings stay tabs, `!^ex:p` keeps its predicate.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import pyparsing
from rdflib import RDF, XSD, Literal, URIRef
from rdflib.plugins.sparql.parserutils import CompValue, Param

from cqels_py.terms.rdf import exact_literal

_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.\d*|\.\d+|\d+)[eE][+-]?\d+|\d*\.\d+|\d+)")
_NUMBERS = [f"{kind}{sign}" for kind in ("INTEGER", "DECIMAL", "DOUBLE") for sign in ("", "_POSITIVE", "_NEGATIVE")]
_COLON = "':'"
_LAST_WORD = re.compile(r"[\w.\-]*\Z")
_FRAMES = 10_000
_LOCK = threading.Lock()


class Nil(URIRef):
    """`()`: an empty list of arguments, or rdf:nil; in an argument list it is not the IRI."""

    __slots__ = ()


class GrammarError(Exception):
    """The text is not SPARQL: the offset in it, and the tokens that would be possible there."""

    def __init__(self, offset: int, expected: tuple[str, ...]) -> None:
        super().__init__(offset, expected)
        self.offset = offset
        self.expected = expected


def parse_tree(text: str) -> CompValue:
    """The parse tree of a query without comments; names are not resolved. Raises GrammarError."""
    try:
        tree = _grammar().Query.parse_string(text, parse_all=True)
    except pyparsing.ParseBaseException as error:
        raise _diagnose(text, error.loc) from None
    query: CompValue = tree[1]
    return query


@contextmanager
def room_for_nesting() -> Iterator[None]:
    """Raise the recursion limit inside: the grammar takes about fifty nested calls for each bracket, ten for each triple.

    One query at a time, so that one thread does not reset the limit while another one parses.
    """
    with _LOCK:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, _FRAMES))
        try:
            yield
        finally:
            sys.setrecursionlimit(before)


@contextmanager
def without_warnings() -> Iterator[None]:
    """rdflib logs a traceback for a literal like "abc"^^xsd:integer, which is a term all the same, or for a long number."""
    thread = threading.get_ident()
    logger = logging.getLogger("rdflib.term")

    def from_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger.addFilter(from_others)
    try:
        yield
    finally:
        logger.removeFilter(from_others)


@cache
def _grammar() -> Any:
    return _own_copy()


def _own_copy() -> Any:
    spec = importlib.util.find_spec("rdflib.plugins.sparql.parser")
    assert spec is not None and spec.loader is not None
    grammar: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(grammar)
    _adjust(grammar)
    return grammar


def _adjust(grammar: Any) -> None:
    grammar.Query.parse_with_tabs()
    _without_comments(grammar.Query)
    for name in _NUMBERS:
        getattr(grammar, name).set_parse_action(_exact_number)
    grammar.UnaryExpression.exprs[:0] = [grammar.NumericLiteralNegative, grammar.NumericLiteralPositive]
    grammar.NIL.set_parse_action(lambda: Nil(RDF.nil))
    # `!^ex:p`: rdflib forgets which predicate it was.
    backwards = next(e for e in grammar.PathOneInPropertySet.exprs if e.name == "InversePath")
    backwards.expr = pyparsing.Suppress("^") + Param("part", grammar.iri | grammar.A)


def _without_comments(grammar: Any) -> None:
    """Comments are not looked for before every token, which takes a third of the time: texts have none any more."""
    waiting, visited = [grammar], set[int]()
    while waiting:
        element = waiting.pop()
        if id(element) not in visited:
            visited.add(id(element))
            element.ignoreExprs = []
            waiting += [*getattr(element, "exprs", ()), *filter(None, [getattr(element, "expr", None)])]


def _exact_number(text: str, at: int, _tokens: object) -> Literal:
    match = _NUMBER.match(text, at)
    assert match is not None
    lexical = match[0]
    datatype = XSD.double if "e" in lexical.lower() else XSD.decimal if "." in lexical else XSD.integer
    return exact_literal(lexical, datatype=datatype)


# --- errors -----------------------------------------------------------------------------------------------------


def _diagnose(text: str, otherwise: int) -> GrammarError:
    """Parse again and record the tokens that are tried at the furthest place: these were expected there.

    The parser's own error often gives the position of the last part that was parsed successfully.
    """
    watched = _WatchedGrammar()
    try:
        watched.query.parse_string(text, parse_all=True)
    except pyparsing.ParseBaseException as error:
        otherwise = max(otherwise, error.loc)
    if watched.furthest < otherwise:
        return GrammarError(otherwise, ())
    return GrammarError(watched.furthest, tuple(watched.expected))


class _WatchedGrammar:
    def __init__(self) -> None:
        self.furthest = -1
        self.expected: dict[str, None] = {}
        grammar = _own_copy()
        self.query = grammar.Query + pyparsing.StringEnd()
        self.query.parse_with_tabs()
        self._kinds = _terminal_kinds(grammar)
        self._watch(self.query, set())

    def _watch(self, element: Any, seen: set[int]) -> None:
        if id(element) in seen:
            return
        seen.add(id(element))
        if isinstance(element, pyparsing.Token):
            element.set_fail_action(self._failed)
        for child in getattr(element, "exprs", None) or [getattr(element, "expr", None)]:
            if child is not None:
                self._watch(child, seen)

    def _failed(self, text: str, at: int, element: Any, _error: Exception) -> None:
        word = self._kinds.get(id(element)) or _word_for(element)
        if word == _COLON:
            # A word without a colon is no name: it is the word that was not expected.
            at -= len(_LAST_WORD.search(text, 0, at)[0])  # type: ignore[index]
            word = "an IRI"
        if word is None or at < self.furthest:
            return
        if at > self.furthest:
            self.furthest = at
            self.expected.clear()
        self.expected[word] = None


def _terminal_kinds(grammar: Any) -> dict[int, str]:
    kinds = {"VARNAME": "", "PN_PREFIX": "an IRI", "BLANK_NODE_LABEL": "a blank node", "PN_LOCAL": ""}
    kinds |= dict.fromkeys(("INTEGER", "DECIMAL", "DOUBLE"), "a number")
    strings = ("STRING_LITERAL1", "STRING_LITERAL2", "STRING_LITERAL_LONG1", "STRING_LITERAL_LONG2")
    kinds |= dict.fromkeys(strings, "a string")
    return {id(getattr(grammar, name)): kind for name, kind in kinds.items() if kind}


def _word_for(element: Any) -> str | None:
    """A name for a terminal in messages; None for one that only continues a word."""
    if isinstance(element, pyparsing.StringEnd):
        return "the end of the query"
    if isinstance(element, pyparsing.Regex):
        return "a number" if str(element.pattern).startswith(("[0-9]", r"\.")) else None
    word = str(getattr(element, "match", ""))
    if word in (">", "^^", ""):
        return None
    return {":": _COLON, "?": "a variable", "$": "a variable", "<": "an IRI"}.get(
        word, word if word[0].isalpha() else f"'{word}'"
    )
