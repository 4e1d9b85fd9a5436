"""The keywords of queries: those of SPARQL 1.1, and those of window clauses and event patterns."""

from __future__ import annotations

SPARQL = (
    "A", "AS", "ASC", "ASK", "BASE", "BIND", "BY", "CONSTRUCT", "DESC", "DESCRIBE", "DISTINCT", "EXISTS", "FALSE", "FILTER",
    "FROM", "GRAPH", "GROUP", "HAVING", "IN", "LIMIT", "MINUS", "NAMED", "NOT", "OFFSET", "OPTIONAL", "ORDER", "PREFIX",
    "REDUCED", "SELECT", "SEPARATOR", "SERVICE", "SILENT", "TRUE", "UNDEF", "UNION", "VALUES", "WHERE",
)  # fmt: skip
WINDOWS = (
    "ALL", "COMPUTED", "COUNT", "DSTREAM", "ELEMENTS", "EVERY", "ISTREAM", "NOW", "ON", "PARTITION", "QUERY", "RANGE",
    "REGISTER", "ROWS", "RSTREAM", "SESSION", "SLIDE", "START", "STARTING", "STEP", "STREAM", "TO", "TRIPLES", "TUMBLING",
    "WINDOW",
)  # fmt: skip
EVENTS = (
    "AND",
    "AT",
    "CONSUME",
    "EARLIEST",
    "EVENT",
    "EVENTS",
    "LATEST",
    "MATCH",
    "OR",
    "SEQ",
    "STRICT",
    "TIME",
    "WITHIN",
)
KEYWORDS = (*SPARQL, *WINDOWS, *EVENTS)
