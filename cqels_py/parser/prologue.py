"""PREFIX and BASE: names and relative IRIs become full IRIs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rdflib import URIRef

from cqels_py.errors import DataError
from cqels_py.iris import checked, resolved
from cqels_py.languages import check_tag
from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Kind, Token

_SCHEME = re.compile(r"[^:/?#]+:")
_ESCAPED = re.compile(r"\\(.)")
_TAG = re.compile(r"(?<=[\"'])@([A-Za-z0-9-]+)\Z")

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
        """An IRI, resolved against the base where it is relative. DataError for one that is none."""
        if not self._base and not _SCHEME.match(reference):
            # A name of a stream, a window or a query, whose characters are checked.
            resolved("a:", reference)
            return URIRef(reference)
        return URIRef(resolved(self._base, reference) if self._base else checked(reference))

    def name(self, prefix: str, local: str) -> URIRef:
        return URIRef(self.prefixes[prefix] + _ESCAPED.sub(r"\1", local))

    def resolve(self, token: Token) -> URIRef:
        """The IRI of a token that is one, in brackets or with a prefix. QuerySyntaxError for one that makes none."""
        with placed(self._source, token):
            if token.kind is Kind.IRI:
                return self.iri(token.text[1:-1])
            self.check(token)
            prefix, _, local = token.text.partition(":")
            return URIRef(checked(self.name(prefix, local)))

    def check_constant(self, token: Token) -> None:
        """Raise QuerySyntaxError for a term of a pattern that is relative, and there is no base."""
        with placed(self._source, token):
            if not _SCHEME.match(iri := self.resolve(token)):
                raise DataError(
                    f"<{iri}> is relative, and there is no base: write the IRI in full, or BASE <http://…> in front of the query"
                )

    def check_language(self, token: Token) -> None:
        """Raise QuerySyntaxError where a text's language tag is none."""
        language = _TAG.search(token.text)
        if language is not None:
            with placed(self._source, token, language.start()):
                check_tag(language[1])

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
            with placed(source, one):
                prologue.declare_base(one.text[1:-1])
        elif word.is_word("PREFIX") and one.kind is Kind.NAME and two.kind is Kind.IRI and one.text.endswith(":"):
            with placed(source, two):
                prologue.declare_prefix(one.text[:-1], two.text[1:-1])
    return prologue


@contextmanager
def placed(source: Source, token: Token, within: int = 0) -> Iterator[None]:
    """A DataError within it becomes a QuerySyntaxError at the token, so many characters behind its beginning."""
    try:
        yield
    except DataError as error:
        raise source.error(error.message, token.start + within) from None


def check_names(prologue: Prologue, tokens: Sequence[Token]) -> None:
    """Raise QuerySyntaxError for the first name whose prefix is not declared, and the first IRI or language tag that is
    none."""
    known: set[str] = set()
    for before, token in zip((tokens[-1], *tokens), tokens, strict=False):
        if before.is_word("PREFIX") or before.is_word("BASE"):
            continue
        if token.kind is Kind.STRING:
            prologue.check_language(token)
        if token.kind is Kind.NAME:
            prologue.check(token, begins_iri=before.is_mark("<") and before.end == token.start)
        if token.kind in (Kind.NAME, Kind.IRI) and token.text not in known and not token.text.startswith("<?"):
            # After a keyword stands a name, which may be relative: FROM <rooms>.
            if before.kind is not Kind.WORD or before.text == "a":
                known.add(token.text)
                prologue.check_constant(token)
            else:
                prologue.resolve(token)
