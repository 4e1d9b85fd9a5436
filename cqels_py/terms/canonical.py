"""The canonical N-Triples form of a term: the text that is hashed and kept."""

from __future__ import annotations

import re

from cqels_py.errors import DataError
from cqels_py.terms.labels import LABEL
from cqels_py.terms.layout import XSD
from cqels_py.terms.versions import refusal

_LITERAL = re.compile(
    r'"((?:[^"\\]|\\.)*+)"(?:[ \t]*@([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*)|[ \t]*\^\^[ \t]*(<[^<>]*>))?', re.DOTALL
)
"""RDF 1.2 allows blanks before a language tag and a datatype."""
_WITHOUT_TAG = tuple(f"<http://www.w3.org/1999/02/22-rdf-syntax-ns#{name}>" for name in ("langString", "dirLangString"))
_IRI = re.compile(r'<[^\x00-\x20<>"{}|^`\\]*>')
_LABEL = re.compile(LABEL)
BARE_IRI = r'(?:[A-Za-z][A-Za-z0-9+.-]*://|urn:|mailto:|tag:)[^\x00-\x20<>"{}|^`\\]+'
_BARE_IRI = re.compile(BARE_IRI)
_PREFIXED = re.compile(r"[A-Za-z][\w.-]*:[\w.-]+|:[\w.-]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MOST_SHOWN = 80
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SIMPLE = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_NEEDED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


_NUMERIC: dict[str, str] = {}
"""The simple escapes of IRIs: there are none."""


def unescape(text: str, simple_escapes: dict[str, str] = _SIMPLE) -> str:
    """Resolve N-Triples escapes. DataError names one that is unknown."""

    def one(match: re.Match[str]) -> str:
        short, long, simple = match.groups()
        if simple is not None:
            if simple not in simple_escapes:
                raise DataError(f"unknown escape \\{simple} in {_shown(text)}")
            return simple_escapes[simple]
        code = int(short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise DataError(f"\\{'u' if short else 'U'}{short or long} is not a character, in {_shown(text)}")
        return chr(code)

    return _ESCAPE.sub(one, text)


def escape(text: str) -> str:
    """Escape only the characters that must be escaped between quotes."""
    return text.translate(_NEEDED)


def canonical(text: str) -> str:
    """The canonical form of a term in N-Triples syntax.

    >>> canonical('"caf\\\\u00e9"@FR')
    '"café"@fr'
    >>> canonical('"a"^^<http://www.w3.org/2001/XMLSchema#string>')
    '"a"'
    """
    if text.startswith("<"):
        return _iri(text)
    if _LABEL.fullmatch(text):
        return text
    match = _LITERAL.fullmatch(text)
    if match is None:
        raise malformed(text)
    lexical, language, datatype = match.groups()
    body = f'"{escape(unescape(lexical))}"'
    if language:
        return f"{body}@{language.lower()}"
    datatype = _iri(datatype) if datatype else None
    if datatype in _WITHOUT_TAG:
        raise DataError(f"{_shown(text)} has the datatype of texts with a language, and no language: write {body}@en")
    return body if datatype in (None, f"<{XSD}string>") else f"{body}^^{datatype}"


def _iri(text: str) -> str:
    found = unescape(text, _NUMERIC) if "\\" in text else text
    if _IRI.fullmatch(found) is None:
        raise malformed(text)
    return found


def is_bare_iri(text: str) -> bool:
    """Is the text an IRI without angle brackets, beyond doubt: with a scheme that no prefix is mistaken for?"""
    return _BARE_IRI.fullmatch(text) is not None


def malformed(text: str) -> DataError:
    """The error for a text that is not a term, with the term to write instead where it can be guessed."""
    # An IRI in two pairs of angle brackets is no reifier.
    newer = refusal(text) if text.startswith(("<<", '"')) and not _IRI.fullmatch(text[1:-1]) else None
    if newer is not None:
        return DataError(newer)
    instead = _instead(text)
    known = '<iri>, "text", "text"@en, "1"^^<datatype> or _:label'
    return DataError(f"{_shown(text)} is not a term in N-Triples syntax: {instead or known}")


def _instead(text: str) -> str | None:
    if len(text) > _MOST_SHOWN:
        return None
    inner = text[1:-1]
    if text.startswith("<") and text.endswith(">") and _IRI.fullmatch(inner):
        return f"there is a pair of angle brackets too many, write {inner} (an rdflib.URIRef is given without any)"
    if text.startswith("<") and text.endswith(">"):
        return "an IRI has no spaces nor any of <>{}|^`\\ and quotes in it; write those as %20, %22 and so on"
    if text.startswith("<") and _BARE_IRI.fullmatch(text[1:]):
        return f"the angle bracket at its end is missing, write {text}>"
    if _BARE_IRI.fullmatch(text):
        return f"an IRI must be in angle brackets, write <{text}>"
    if _PREFIXED.fullmatch(text):
        return (
            "prefixes are not known here, write the IRI in full and in angle brackets, like <http://example.org/name>"
        )
    if _NUMBER.fullmatch(text):
        datatype = "integer" if text.lstrip("+-").isdecimal() else "double" if "e" in text.lower() else "decimal"
        return f'write "{text}"^^<{XSD}{datatype}>'
    if text and '"' not in text and not text.startswith(("<", "_:")):
        return f'a text must be in quotes, write "{escape(text)}", and an IRI in angle brackets'
    return None


def _shown(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "…"
