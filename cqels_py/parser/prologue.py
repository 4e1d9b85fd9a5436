"""PREFIX and BASE: names and relative IRIs become full IRIs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urljoin

from rdflib import URIRef

from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Kind, Token

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_ESCAPED = re.compile(r"\\(.)")

WELL_KNOWN = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "prov": "http://www.w3.org/ns/prov#",
    "schema": "http://schema.org/",
    "foaf": "http://xmlns.com/foaf/0.1/",
}
"""Suggestions for errors about a missing prefix; no prefix is declared by default."""


class Prologue:
    """The declarations of a query; a base of "" leaves relative IRIs as they are."""

    def __init__(self, source: Source, base: str | None) -> None:
        self._source = source
        self._base = base or ""
        self.prefixes: dict[str, str] = {}

    def declare_base(self, reference: str) -> None:
        self._base = str(self.iri(reference))

    def declare_prefix(self, prefix: str, reference: str) -> None:
        self.prefixes[prefix] = str(self.iri(reference))

    @property
    def base(self) -> URIRef | None:
        """The base against which relative IRIs are resolved, if there is one."""
        return URIRef(self._base) if self._base else None

    def iri(self, reference: str) -> URIRef:
        """An IRI, resolved against the base where it is relative."""
        if not self._base or _SCHEME.match(reference):
            return URIRef(reference)
        joined = urljoin(self._base, reference)
        # urljoin drops an empty fragment.
        return URIRef(joined + "#" if reference.endswith("#") and not joined.endswith("#") else joined)

    def name(self, prefix: str, local: str) -> URIRef:
        return URIRef(self.prefixes[prefix] + _ESCAPED.sub(r"\1", local))

    def resolve(self, token: Token) -> URIRef:
        """The IRI of a token that is one, in brackets or with a prefix."""
        if token.kind is Kind.IRI:
            return self.iri(token.text[1:-1])
        self.check(token)
        prefix, _, local = token.text.partition(":")
        return self.name(prefix, local)

    def check(self, token: Token, *, begins_iri: bool = False) -> None:
        """Raise QuerySyntaxError where a name's prefix is not declared. `begins_iri`: there is a '<' in front of it."""
        prefix = token.text.partition(":")[0]
        if prefix not in self.prefixes:
            if begins_iri:
                raise self._source.error(
                    "this '<' begins an IRI that does not end, or has a space or another character that IRIs cannot have",
                    token.start - 1,
                )
            if self._source.text.startswith("//", token.end):
                raise self._source.error("an IRI is written in angle brackets, without spaces: <http://…>", token.start)
            iri = WELL_KNOWN.get(prefix, "…")
            raise self._source.error(
                f"the prefix '{prefix}:' of '{token.text}' is not declared: add PREFIX {prefix}: <{iri}>", token.start
            )


def read_prologue(source: Source, tokens: Sequence[Token], base: str | None) -> Prologue:
    """All declarations of the text; those that are not well-formed are left to the grammar's errors."""
    prologue = Prologue(source, base)
    for word, one, two in zip(tokens, tokens[1:], (*tokens[2:], tokens[-1]), strict=False):
        if word.is_word("BASE") and one.kind is Kind.IRI:
            prologue.declare_base(one.text[1:-1])
        elif word.is_word("PREFIX") and one.kind is Kind.NAME and two.kind is Kind.IRI and one.text.endswith(":"):
            prologue.declare_prefix(one.text[:-1], two.text[1:-1])
    return prologue


def check_prefixes(prologue: Prologue, tokens: Sequence[Token]) -> None:
    """Raise QuerySyntaxError for the first name whose prefix is not declared."""
    for before, token in zip((tokens[-1], *tokens), tokens, strict=False):
        if token.kind is not Kind.NAME or before.is_word("PREFIX"):
            continue
        prologue.check(token, begins_iri=before.is_mark("<") and before.end == token.start)
