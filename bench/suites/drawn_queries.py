"""Draws queries over two streams, :a and :b, whose elements say `?k :a ?x`, `?k :b ?y` and `?k :other ?z`: of each kind of window,
operator and output that the steps of single elements know.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from string import Template

EX = "http://ex.org/"

_WINDOWS = (
    *(
        "RANGE 300ms",
        "RANGE 1s",
        "RANGE 600ms STEP 200ms",
        "RANGE 500ms STEP 500ms",
        "NOW",
        "SESSION 30ms",
        "SESSION 50ms STEP 100ms",
    ),
    *(
        "FROM NOW-800ms TO NOW-200ms",
        "FROM NOW-700ms TO NOW-300ms STEP 100ms",
        "COUNT 9",
        "COUNT 8 STEP 4",
        "TRIPLES 12",
    ),
    *("TRIPLES 9 STEP 3", "COUNT 3 PARTITION BY ?k", "TRIPLES 4 PARTITION BY ?k", "SESSION 200ms PARTITION BY ?k"),
)
_AS_CHANGELOG, _AS_WRITTEN = True, False
_OVER_WINDOWS = (
    ("SELECT ?k ?x { $a FILTER(?x > $n) }", _AS_CHANGELOG),
    ("SELECT ?k ?u { $a BIND(?x * 2 AS ?u) FILTER(?u > $n && ?x != 30) }", _AS_CHANGELOG),
    ("SELECT ?u { $a BIND(CONCAT(STR(?x), '-') AS ?u) FILTER(CONTAINS(?u, '1')) }", _AS_CHANGELOG),
    ("SELECT ?k ?x ?y { $a $b FILTER(?x < ?y) }", _AS_CHANGELOG),
    ("SELECT ?k ?l ?z { $a STREAM :b [$w] { ?l :b ?x } STREAM :a [$w] { ?l :other ?z } }", _AS_CHANGELOG),
    ("SELECT ?k ?x ?y { $a OPTIONAL { $b } }", _AS_CHANGELOG),
    ("SELECT ?k ?x { $a MINUS { $b } }", _AS_CHANGELOG),
    ("SELECT ?k ?x { $a FILTER EXISTS { $b } }", _AS_CHANGELOG),
    ("SELECT ?k ?x ?y { { $a } UNION { $b } }", _AS_CHANGELOG),
    ("SELECT DISTINCT ?k { $a $b }", _AS_CHANGELOG),
    ("SELECT ?k (COUNT(*) AS ?n) (MAX(?x) AS ?m) { $a } GROUP BY ?k HAVING(COUNT(*) > 1)", _AS_CHANGELOG),
    ("SELECT ?k (AVG(?x) AS ?n) (MIN(?y) AS ?m) { $a $b } GROUP BY ?k", _AS_CHANGELOG),
    ("SELECT ?y (SUM(?x) AS ?n) { $a $b } GROUP BY ?y", _AS_CHANGELOG),
    ("SELECT ?k (COUNT(DISTINCT ?x) AS ?n) (GROUP_CONCAT(?x) AS ?m) { $a } GROUP BY ?k", _AS_CHANGELOG),
    ("SELECT (COUNT(DISTINCT *) AS ?n) { $a $b }", _AS_CHANGELOG),
    ("SELECT ?k ?y { { SELECT ?k ?x { $a } ORDER BY ?x ?k LIMIT 3 } $b }", _AS_CHANGELOG),
    ("SELECT ?k ?l { STREAM :a [$w] { ?k :to+ ?l } }", _AS_CHANGELOG),
    ("SELECT RSTREAM ?k ?x ?y { $a $b FILTER(?x > $n) }", _AS_WRITTEN),
    ("SELECT ISTREAM ?k ?x { $a FILTER(?x > $n) }", _AS_WRITTEN),
    ("ASK { $a $b FILTER(?x > $n) }", _AS_WRITTEN),
)
_EVENT_A, _EVENT_B = "EVENT ON :a AT ?i { ?k :a ?x }", "EVENT ON :b AT ?j { ?k :b ?y }"
_MATCHES = (
    ("SELECT * { MATCH WITHIN 1s { $event_a SEQ $event_b } }", _AS_WRITTEN),
    ("SELECT * { MATCH LATEST WITHIN 1s { $event_a SEQ $event_b } FILTER(?x > $n) }", _AS_CHANGELOG),
    ("SELECT * { MATCH WITHIN 9 EVENTS { $event_a SEQ $event_b } }", _AS_WRITTEN),
    ("SELECT ?k ?x ?z { MATCH WITHIN 500ms { $event_a SEQ $event_b } STREAM :a [$w] { ?k :other ?z } }", _AS_CHANGELOG),
)
_FEW_A = "EVENT ON :a AT ?i { ?k :a ?x FILTER(?x IN (1, 2, 3, 50, 51)) }"
_EVENTS = (
    (
        "SELECT (COUNT(*) AS ?n) { EVENT ON :a AT ?i { ?k :a ?x FILTER(?x > $n) } EVENT ON :b AT ?j { ?l :b ?y } FILTER(?i < ?j) }",
        _AS_CHANGELOG,
    ),
    (
        "SELECT ?x (COUNT(*) AS ?n) (SUM(?y) AS ?s) { $few_a EVENT ON :b AT ?j { ?l :b ?y } FILTER(?i <= ?j) } GROUP BY ?x",
        _AS_CHANGELOG,
    ),
    (
        "SELECT DISTINCT ?x { $few_a EVENT ON :b AT ?j { ?l :b ?y FILTER(STRLEN(STR(?y)) < 2) } FILTER(?i > ?j) }",
        _AS_WRITTEN,
    ),
    ("SELECT ?i ?x { EVENT ON :a [ALL] AT ?i { ?k :a ?x } }", _AS_WRITTEN),
    ("SELECT ?x ?y { $few_a $event_b FILTER(?i = ?j) }", _AS_WRITTEN),
)
_RULES = """RULES ON :a {
RULE { ?k a :High } FOR [0s, 300ms) WHERE { ?k :a ?x FILTER(?x > $n) }
RULE { ?k :level ?z } UNTIL REPLACED BY ?k WITHIN 800ms WHERE { ?k :a ?x BIND(?x / 10 AS ?z) }
RULE { ?k a :Steady } WHERE { ALWAYS [0s, 200ms] { ?k a :High } SOMETIME [0s, 200ms] { ?k :a ?x FILTER(?x > 70) } }
RULE { ?k a :Quiet } WHERE { ?k a :High NOT { ?k a :Steady } }
RULE { ?k :name ?z } FOR [0s, 100ms] WHERE { ?k :a ?x BIND(CONCAT('n', STR(?x)) AS ?z) FILTER(?x < 10) }
} """
_STATES = (
    ("SELECT * { STATE { ?k a :High } }", _AS_CHANGELOG),
    ("SELECT * { STATE [STEP 200ms] { ?k a :High } }", _AS_CHANGELOG),
    ("SELECT * { STATE { ?k a :Steady } STREAM :b [$w] { ?k :b ?y } }", _AS_CHANGELOG),
    ("SELECT * { STREAM :a [$w] { ?k :a ?x } OPTIONAL { STATE { ?k a :Quiet } } }", _AS_CHANGELOG),
    ("SELECT ?z (COUNT(*) AS ?n) { STATE { ?k :level ?z } } GROUP BY ?z", _AS_CHANGELOG),
    ("SELECT * { { STATE { ?k :name ?z } } UNION { STATE { ?k a :Quiet } } }", _AS_CHANGELOG),
    ("SELECT RSTREAM * { STATE { ?k a :High } }", _AS_WRITTEN),
    ("ASK { STATE { ?k a :Steady } }", _AS_WRITTEN),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DrawnQuery:
    """A query's text. `changelog`: with results of both signs; `rules`: it has RULES, which the oracle's algebra has not."""

    text: str
    changelog: bool
    rules: bool = False


def drawn_query(draw: random.Random) -> DrawnQuery:
    """A query of any kind; every second one is over windows."""
    kinds = _OVER_WINDOWS if draw.random() < 0.5 else draw.choice((_MATCHES, _EVENTS, _STATES))
    form, changelog = draw.choice(kinds)
    a, b = f"STREAM :a [{draw.choice(_WINDOWS)}] {{ ?k :a ?x }}", f"STREAM :b [{draw.choice(_WINDOWS)}] {{ ?k :b ?y }}"
    rules = _RULES if kinds is _STATES else ""
    # Where it stands more than once, not all blocks have ?k.
    window = draw.choice([each for each in _WINDOWS if "PARTITION" not in each])
    drawn = {"a": a, "b": b, "w": window, "n": draw.randrange(100)}
    body = Template(rules + form).substitute(drawn, event_a=_EVENT_A, event_b=_EVENT_B, few_a=_FEW_A)
    return DrawnQuery(f"PREFIX : <{EX}> {body}", changelog and draw.random() < 0.7, bool(rules))
