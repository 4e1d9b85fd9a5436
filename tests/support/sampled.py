"""Compares the engine with the oracle where the oracle is too slow for every tick: at the ends of instants.

The engine delivers a changelog of every tick; its sum up to the end of an instant is the answer there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from rdflib import URIRef

from cqels_py.algebra import nodes
from cqels_py.terms.rdf import to_rdflib
from tests.oracle import naive
from tests.oracle.naive import Element, Mapping, Static
from tests.oracle.naive_algebra import Triple
from tests.support.harness import parse, run_engine, unmatched


def elements_of(stream: str, table: pa.Table) -> list[Element]:
    """A table in the form of datasets/tables.py as elements for the oracle."""
    terms = {
        text: to_rdflib(text) for name in ("subject", "predicate", "object") for text in set(table[name].to_pylist())
    }
    found: list[tuple[tuple[int, str], list[Triple]]] = []
    for row in table.to_pylist():
        key = (row["time"], row["graph"])
        if not found or found[-1][0] != key:
            found.append((key, []))
        found[-1][1].append((terms[row["subject"]], terms[row["predicate"]], terms[row["object"]]))
    return [Element(key[0], URIRef(stream), tuple(triples)) for key, triples in found]


def static_of(ntriples: bytes) -> Static:
    """N-Triples, one space between terms, as the datasets write them."""
    triples = [line.removesuffix(" .").split(" ", 2) for line in ntriples.decode().splitlines()]
    return Static([tuple(map(to_rdflib, triple)) for triple in triples])


def answers(
    text: str, elements: Sequence[Element], static: Static, moments: Sequence[naive.Moment]
) -> list[naive.Tick]:
    """The oracle's answers at these moments."""
    query = parse(text)
    arrived = naive.relevant(query, elements)
    return [naive.answer(query, arrived, static, moment) for moment in moments]


def ends(query: nodes.ContinuousQuery, elements: Sequence[Element], every: int = 1) -> list[naive.Moment]:
    """The last ticks of instants: of each instant, or of every n-th and the last."""
    moments = naive.moments(query, naive.relevant(query, elements))
    last = list({moment.time: moment for moment in moments}.values())
    return last[every - 1 :: every] if len(last) % every == 0 else [*last[every - 1 :: every], last[-1]]


def assert_right_at_ends(
    text: str, elements: Sequence[Element], static: Static, every: int = 1, batch: int | None = None
) -> list[naive.Tick]:
    """The engine's answers equal the oracle's at the ends of instants; returns them."""
    ticks = answers(text, elements, static, ends(parse(text), elements, every))
    results = run_engine(text, elements, static, batch, nodes.Output.CHANGELOG)
    held: Counter[Mapping] = Counter()
    place = 0
    for tick in ticks:
        while place < len(results) and results[place].time <= tick.time:
            held[results[place].mapping] += results[place].sign
            place += 1
        assert min(held.values(), default=0) >= 0, f"{tick.time}: withdrawn before it was said"
        held = +held
        wanted = [(1, mapping) for mapping in tick.answer.elements()]
        missing, unexpected = unmatched(wanted, [(1, mapping) for mapping in held.elements()])
        assert not missing and not unexpected, f"{tick.time}: missing {missing[:3]}, unexpected {unexpected[:3]}"
    return ticks


__all__ = ["answers", "assert_right_at_ends", "elements_of", "ends", "static_of"]
