"""Query text to algebra, in three dialects: SPARQL 1.1 plus window clauses.

    CQELS-QL   STREAM <s> [RANGE 5s STEP 1s] {…}                     in place; ISTREAM; a window is a bag
    RSP-QL     FROM NAMED WINDOW <w> ON <s> [RANGE PT5S STEP PT1S]   ahead, then WINDOW <w> {…}; ISTREAM; a graph
    C-SPARQL   FROM STREAM <s> [RANGE 5s STEP 1s]                    the default graph, with static data; RSTREAM; a graph

In brackets: `RANGE d`, `RANGE d STEP s` (also SLIDE, with `START time`), `RANGE d TUMBLING`, `COUNT n` (also ELEMENTS, ROWS;
also with STEP m), `TRIPLES n` (also RANGE TRIPLES n), `NOW`, `ALL`. Durations: `5s`, `1h30m`, `1.5 s`, `PT10S`; units d, h, m, s,
ms, us, ns; in RSP-QL a bare number is one of milliseconds. `@ :p` before or behind the closing bracket says which property of
the elements carries their event time.

In front of any of them: `REGISTER QUERY|STREAM name [COMPUTED EVERY d] AS` or `REGISTER ISTREAM|DSTREAM|RSTREAM <name> AS`,
before, between or behind PREFIX declarations. CQELS-QL 2's `FROM STREAM` is read as C-SPARQL unless the dialect is given.
"""

from cqels_py.parser.query import parse

__all__ = ["parse"]
