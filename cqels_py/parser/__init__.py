"""Query text to algebra, in three dialects: SPARQL 1.1 plus window clauses.

    CQELS-QL   STREAM <s> [RANGE 5s STEP 1s] {…}                     in place
    RSP-QL     FROM NAMED WINDOW <w> ON <s> [RANGE PT5S STEP PT1S]   declared ahead, asked by WINDOW <w> {…}
    C-SPARQL   FROM STREAM <s> [RANGE 5s STEP 1s]                    part of the default graph
               FROM NAMED STREAM <s> [RANGE 5s STEP 1s]              asked by GRAPH <s> {…}

In CQELS-QL a window is a bag, in the others a graph; C-SPARQL delivers RSTREAM, the others ISTREAM. In C-SPARQL
patterns outside of GRAPH are matched against all windows and the static data together, in the others against the static data.

In the brackets stands one of

    RANGE d    RANGE d STEP s    RANGE d STEP s START time    RANGE d TUMBLING    NOW    ALL
    COUNT n    COUNT n STEP m    COUNT n TUMBLING             TRIPLES n           RANGE TRIPLES n

SLIDE is STEP; ELEMENTS and ROWS are COUNT. Durations are `5s`, `1h30m`, `1.5 s`, `PT10S`, `P1DT2H`, with the units d, h,
m (min), s, ms, us, ns; in RSP-QL a bare number is one of milliseconds. `@ :p`, inside the brackets at their end or
right behind them, says which property of the elements carries their event time.

In front of every dialect, before, between or behind PREFIX declarations, there may be one of

    REGISTER QUERY name [COMPUTED EVERY d] AS       REGISTER ISTREAM <name> AS   (DSTREAM, RSTREAM)
    REGISTER STREAM name [COMPUTED EVERY d] AS

COMPUTED EVERY is the STEP of windows without one; another period than the STEP is refused. `FROM STREAM` as CQELS-QL 2
writes it is read as C-SPARQL, unless the dialect is given: then the default graph is merged just so, but windows are
bags and ISTREAM is delivered.
"""

from cqels_py.parser.query import parse, parse_mapping

__all__ = ["parse", "parse_mapping"]
