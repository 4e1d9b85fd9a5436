"""A short notation for small traces, so that a test fits under its timeline.

Terms: `?v` a variable, `12` an integer, `2.5` a decimal, `1e0` a double, `'text'` a string, `'text'@en`,
anything else an IRI of the test's namespace. Elements: one a line, `time stream  s p o, s p o`. Results:
`time + v=term w=term`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rdflib import XSD, Literal, URIRef, Variable

from cqels_py.algebra import nodes
from tests.oracle.naive import Change, Element, Mapping, Tick
from tests.oracle.naive_algebra import Triple
from tests.oracle.naive_values import Term, typed

EX = "http://ex.org/"
STREAMS = EX + "stream/"


def term(text: str) -> Term:
    """A term, or a variable, from its short form."""
    if text.startswith("?"):
        return Variable(text[1:])
    if found := re.fullmatch(r"'(.*)'(?:@(\w+))?", text):
        return Literal(found[1], lang=found[2])
    for form, datatype in (
        (r"[+-]?\d+", XSD.integer),
        (r"[+-]?\d+\.\d+", XSD.decimal),
        (r"[+-]?\d+(\.\d+)?[eE]-?\d+", XSD.double),
    ):
        if re.fullmatch(form, text):
            return typed(text, datatype)
    return URIRef(EX + text)


def iri(name: str) -> URIRef:
    return URIRef(EX + name)


def triples(text: str) -> tuple[Triple, ...]:
    """`s p o, s p o`."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        subject, predicate, object_ = part.split()
        found.append((term(subject), term(predicate), term(object_)))
    return tuple(found)


def elements(text: str) -> list[Element]:
    """One element a line: time in microseconds, the stream's short name, the triples."""
    found = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        time, stream, content = line.split(maxsplit=2)
        found.append(Element(int(time), URIRef(STREAMS + stream), triples(content)))
    return found


def bgp(text: str) -> nodes.BGP:
    return nodes.BGP(tuple(nodes.TriplePattern(*triple) for triple in triples(text)))  # type: ignore[arg-type]


def window(name: str, stream: str, extent: nodes.Extent) -> nodes.WindowDefinition:
    return nodes.WindowDefinition(iri(name), URIRef(STREAMS + stream), extent)


def over(name: str, pattern: str | nodes.Pattern) -> nodes.Window:
    """A pattern over one window; the text is a BGP."""
    return nodes.Window((iri(name),), bgp(pattern) if isinstance(pattern, str) else pattern)


def query(
    pattern: nodes.Pattern,
    variables: str,
    windows: Iterable[nodes.WindowDefinition],
    output: nodes.Output = nodes.Output.CHANGELOG,
    bags: bool = True,
    form: str = "SELECT",
) -> nodes.ContinuousQuery:
    return nodes.ContinuousQuery(
        form=form,
        pattern=pattern,
        variables=tuple(Variable(name) for name in variables.split()),
        windows=tuple(windows),
        output=output,
        dialect=nodes.Dialect.CQELS_QL,
        bag_windows=bags,
    )


def short(found: Term) -> str:
    """The short form of a term; datatypes outside of the notation as N-Triples."""
    if isinstance(found, URIRef):
        return str(found).removeprefix(EX)
    if isinstance(found, Literal):
        if found.language:
            return f"'{found}'@{found.language}"
        if found.datatype in (XSD.integer, XSD.decimal, XSD.double, XSD.boolean):
            return str(found)
        if found.datatype in (None, XSD.string):
            return f"'{found}'"
    return found.n3()


def row(mapping: Mapping) -> str:
    return " ".join(f"{name}={short(value)}" for name, value in sorted(mapping))


def answers(found: Sequence[Tick]) -> list[str]:
    """Each tick as `time: row | row`, rows sorted."""
    return [f"{tick.time}: {' | '.join(sorted(row(mapping) for mapping in tick.rows))}".strip() for tick in found]


def changes(found: Sequence[Change]) -> list[str]:
    """Each result as `time sign row`, sorted within a tick."""
    ordered = sorted(found, key=lambda change: (change.tick, change.sign, row(change.mapping)))
    return [f"{change.time} {'+' if change.sign > 0 else '-'} {row(change.mapping)}".strip() for change in ordered]
