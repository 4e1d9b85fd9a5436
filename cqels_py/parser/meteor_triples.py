"""Programs in MeTeoR's syntax as rules over triples: `P(X)` is `?x a <P>`, `P(X,Y)` is `?x <P> ?y`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from rdflib import RDF, XSD, URIRef

from cqels_py.algebra.nodes import RuleSet
from cqels_py.algebra.temporal_rules import (
    CLASS,
    Always,
    Atom,
    Formula,
    Rule,
    Since,
    Sometime,
    Term,
    Variable,
    atoms_of,
)
from cqels_py.errors import CqelsError, DataError, Place, UnsupportedQuery
from cqels_py.parser.meteor import read_meteor_fact, read_meteor_rules
from cqels_py.terms.rdf import exact_literal, from_rdflib

_NOT_IN_IRIS = re.compile(r'[\x00-\x20<>"{}|\\^`]')
_INTEGER, _DECIMAL = re.compile(r"[+-]?\d+"), re.compile(r"[+-]?\d+\.\d+")


def meteor_rule_set(
    text: str, facts: Iterable[str], streams: Iterable[str], namespace: str, *, source: str, facts_source: str
) -> RuleSet:
    """The rules of a program, whose facts are triples of the streams, and lines of given facts.

    Raises QuerySyntaxError and UnsupportedQuery for the program, and DataError for the facts, with line and column.
    """
    rules = read_meteor_rules(text, source)
    lines = [(n, line) for n, line in enumerate(facts, 1) if line.strip()]
    given = [(*read_meteor_fact(line, n, facts_source), Place(n, _column(line), facts_source)) for n, line in lines]
    _check_widths(rules, {_key(atom) for atom, _, _ in given})
    translated = tuple(_RuleTranslation(namespace, rule.place, UnsupportedQuery).rule(rule) for rule in rules)
    known = tuple(
        (_RuleTranslation(namespace, place, DataError).atom(atom), interval) for atom, interval, place in given
    )
    return RuleSet(tuple(URIRef(stream) for stream in streams), translated, (), known)


def meteor_iri(name: str, namespace: str) -> str:
    """The IRI of a name: a name with a colon is one already."""
    bare = name[1:-1] if name.startswith("<") and name.endswith(">") else name
    return bare if ":" in bare else namespace + bare


def _column(line: str) -> int:
    return len(line) - len(line.lstrip()) + 1


def _key(atom: Atom) -> tuple[str, int]:
    return atom.predicate, len(atom.terms)


def _check_widths(rules: Iterable[Rule], given: set[tuple[str, int]]) -> None:
    """UnsupportedQuery for a predicate that is no triple and that nothing else makes."""
    made = given | {_key(rule.head) for rule in rules}
    for rule in rules:
        for atom in (each for formula in rule.body for each in atoms_of(formula)):
            if len(atom.terms) not in (1, 2) and _key(atom) not in made:
                raise UnsupportedQuery(
                    f"{atom.predicate} has {len(atom.terms) or 'no'} arguments, and no rule or given fact makes it: the triples of "
                    "streams are facts with one argument, as in Hot(X), or two, as in near(X,Y)",
                    rule.place,
                )


class _RuleTranslation:
    """The parts of a rule or a fact at a place, in the terms of RDF."""

    def __init__(self, namespace: str, place: Place, error: type[CqelsError]) -> None:
        self._namespace, self._place, self._error = namespace, place, error

    def rule(self, rule: Rule) -> Rule:
        return replace(rule, head=self.atom(rule.head), body=tuple(map(self._formula, rule.body)))

    def _formula(self, formula: Formula) -> Formula:
        match formula:
            case Always(interval, inner):
                return Always(interval, self._formula(inner))
            case Sometime(interval, inner):
                return Sometime(interval, self._formula(inner))
            case Since(left, interval, right):
                return Since(self._formula(left), interval, self._formula(right))
            case _:
                assert isinstance(formula, Atom), "MeTeoR's syntax has no others"
                return self.atom(formula)

    def atom(self, atom: Atom) -> Atom:
        iri = self._iri(atom.predicate)
        if iri == str(RDF.type):
            raise self._error(f"{atom.predicate}: a class is a predicate of its own, as in Hot(X)", self._place)
        terms = tuple(map(self._term, atom.terms))
        if len(terms) == 2 and isinstance(terms[0], str) and terms[0].startswith('"'):
            raise self._error(f"the subject of {atom.predicate} is a number: numbers stand second", self._place)
        return Atom(f"{CLASS}{iri}" if len(terms) == 1 else iri, terms)

    def _term(self, term: Term) -> Term:
        if isinstance(term, Variable):
            return term
        for number, datatype in ((_INTEGER, XSD.integer), (_DECIMAL, XSD.decimal)):
            if number.fullmatch(term):
                return str(from_rdflib(exact_literal(term, datatype=datatype)))
        return f"<{self._iri(term)}>"

    def _iri(self, name: str) -> str:
        iri = meteor_iri(name, self._namespace)
        if wrong := _NOT_IN_IRIS.search(iri):
            raise self._error(f"{name} makes no IRI: {wrong[0]!r} cannot stand in one", self._place)
        return iri
