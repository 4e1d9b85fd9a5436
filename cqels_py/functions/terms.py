"""Terms as the functions use them, parsed from and written to N-Triples."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
XSD_STRING: Final = XSD + "string"
XSD_BOOLEAN: Final = XSD + "boolean"
XSD_INTEGER: Final = XSD + "integer"
XSD_DECIMAL: Final = XSD + "decimal"
XSD_FLOAT: Final = XSD + "float"
XSD_DOUBLE: Final = XSD + "double"
XSD_DATETIME: Final = XSD + "dateTime"
XSD_DATE: Final = XSD + "date"
RDF_LANG_STRING: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"

_ESCAPE = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf"\'\\]))')
_SPECIAL = re.compile(r'["\\\n\r]')
_CONTROL = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_ASIDE = "\0\1\2\3"
_QUOTED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}


class ExpressionError(Exception):
    """SPARQL's error value: the row's result is unbound, or false in a FILTER."""


class LimitExceeded(ExpressionError):
    """An error value that is due to a limit of the engine and not to the query or its data. It is reported."""


class NotAnIri(ExpressionError):
    """The error value of IRI() over a text that is none. An expression's first is reported."""


class TermKind(Enum):
    IRI = "IRI"
    BLANK = "blank node"
    LITERAL = "literal"


@dataclass(frozen=True, slots=True)
class Term:
    """`text`: the IRI, the blank node's label, or the literal's lexical form. `datatype`: a full IRI for every literal."""

    kind: TermKind
    text: str
    datatype: str = ""
    language: str = ""

    @property
    def is_literal(self) -> bool:
        return self.kind is TermKind.LITERAL

    @property
    def is_simple(self) -> bool:
        """A string without a language tag."""
        return self.datatype == XSD_STRING

    @property
    def is_string(self) -> bool:
        """SPARQL's "string literal": with or without a language tag."""
        return self.datatype in (XSD_STRING, RDF_LANG_STRING)


def iri(text: str) -> Term:
    return Term(TermKind.IRI, text)


def literal(text: str, datatype: str = XSD_STRING) -> Term:
    return Term(TermKind.LITERAL, text, datatype)


def tagged(text: str, language: str) -> Term:
    """A string with a language tag; a simple string if `language` is empty."""
    return Term(TermKind.LITERAL, text, RDF_LANG_STRING, language) if language else literal(text)


TRUE_TERM: Final = literal("true", XSD_BOOLEAN)
FALSE_TERM: Final = literal("false", XSD_BOOLEAN)


def boolean(value: bool) -> Term:
    return TRUE_TERM if value else FALSE_TERM


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    # All escapes of a kind are replaced at once: one object per escape would be too many for a long text of quotes.
    aside = next((c for c in _ASIDE if c not in text), None)
    if aside is not None:
        plain_text = text.replace("\\\\", aside)
        for character, escaped in _QUOTED.items():
            plain_text = plain_text.replace(escaped, character)
        if "\\" not in plain_text:
            return plain_text.replace(aside, "\\")

    def plain(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else _CONTROL[match[3]]

    return _ESCAPE.sub(plain, text)


def parse_term(text: str) -> Term:
    """A term from its N-Triples text, which must be well-formed."""
    if text.startswith("<"):
        return iri(_unescape(text[1:-1]))
    if text.startswith("_:"):
        return Term(TermKind.BLANK, text[2:])
    end = text.rindex('"')
    content, suffix = _unescape(text[1:end]), text[end + 1 :]
    if suffix.startswith("@"):
        return tagged(content, suffix[1:])
    return literal(content, _unescape(suffix[3:-1]) if suffix else XSD_STRING)


def _escape(text: str) -> str:
    """Escape all characters of a kind at once: one object per escape would be too many for a long text of quotes."""
    for character, escaped in _QUOTED.items():
        text = text.replace(character, escaped)
    return text


def print_term(term: Term) -> str:
    """The canonical N-Triples text."""
    if term.kind is TermKind.IRI:
        return f"<{term.text}>"
    if term.kind is TermKind.BLANK:
        return f"_:{term.text}"
    text = _escape(term.text) if _SPECIAL.search(term.text) else term.text
    quoted = f'"{text}"'
    if term.language:
        return f"{quoted}@{term.language}"
    return quoted if term.datatype == XSD_STRING else f"{quoted}^^<{term.datatype}>"
