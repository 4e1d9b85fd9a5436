"""HAVING is evaluated before SELECT's expressions (SPARQL 1.1, 18.2.4.2 and 18.2.4.4): it sees keys and aggregates, no
aliases.
"""

from __future__ import annotations

import pytest
from pyoxigraph import RdfFormat, Store

import cqels_py as cqels

EX = "http://ex.org/"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
ROWS = [("a", 2), ("a", 3), ("b", 9)]
TEXT = "PREFIX : <http://ex.org/> SELECT %s WHERE { %s } GROUP BY ?k HAVING%s"
TOTAL = "?k (SUM(?v) AS ?total)"
MORE = "?k (SUM(?v) + 1 AS ?more)"


@pytest.mark.parametrize(
    ("selected", "having", "keys"),
    [
        (TOTAL, "(!BOUND(?total))", "ab"),
        (TOTAL, "(BOUND(?total))", ""),
        (TOTAL, "(?total > 1)", ""),
        (TOTAL, "(?total > 1 || COUNT(*) > 1)", "a"),
        (TOTAL, "(SUM(?v) > 5)", "b"),
        (TOTAL, "(COUNT(?total) = 0)", "ab"),
        (TOTAL, "(!BOUND(?total)) (SUM(?v) < 6)", "a"),
        (TOTAL, "(COALESCE(?total, 7) = 7) ORDER BY ?total", "ab"),
        (MORE, "(?more > 1)", ""),
        (MORE, "(!BOUND(?more))", "ab"),
        (f"{TOTAL} (SUM(?v) + 1 AS ?more)", "(!BOUND(?more) && !BOUND(?total))", "ab"),
        ("?k (SUM(?v) AS ?x)", "(NOT EXISTS { ?x :none ?k })", "ab"),
    ],
)
def test_an_alias_is_unbound_in_having(selected: str, having: str, keys: str) -> None:
    engine = cqels.Engine()
    block = "STREAM :s [ALL] { ?k :v ?v }"
    query = engine.register(TEXT % (selected, block, having), changelog=True)
    triples = [(f"<{EX}{key}>", f"<{EX}v>", f'"{value}"{INTEGER}') for key, value in ROWS]
    engine.push(f"{EX}s", triples, time=1_000_000)
    found = "".join(sorted(str(result.bindings["k"])[-1] for result in query.results()))
    assert found == keys
    store = Store()
    store.load("\n".join(f"{s} {p} {o} ." for s, p, o in triples).encode(), format=RdfFormat.N_TRIPLES)
    asked = store.query(TEXT % (selected, "?k :v ?v", having))
    assert "".join(sorted(row["k"].value[-1] for row in asked)) == keys  # type: ignore[index, union-attr]


@pytest.mark.parametrize(
    ("selected", "having", "instead"),
    [
        (TOTAL, "(?total > 1)", "(SUM(?v) > 1)"),
        (MORE, "(?more > 1)", "(SUM(?v) + 1 > 1)"),
        (TOTAL, "(!BOUND(?total))", "(!COALESCE(SAMETERM(SUM(?v), SUM(?v)), false))"),
    ],
)
def test_a_warning_suggests_a_correction(selected: str, having: str, instead: str) -> None:
    query = cqels.Engine().register(TEXT % (selected, "STREAM :s [ALL] { ?k :v ?v }", having))
    (warning,) = query.warnings
    assert "is unbound in HAVING, which is evaluated before" in warning and warning.endswith(f"write HAVING{instead}")
    # The suggested query registers without a warning.
    again = cqels.Engine().register(TEXT % (selected, "STREAM :s [ALL] { ?k :v ?v }", instead))
    assert again.warnings == ()


def test_two_aliases_have_a_warning_each_and_one_way_out() -> None:
    selected = f"{TOTAL} (COUNT(*) AS ?n)"
    query = cqels.Engine().register(TEXT % (selected, "STREAM :s [ALL] { ?k :v ?v }", "(?total > ?n)"))
    assert len(query.warnings) == 2
    assert all(warning.endswith("write HAVING(SUM(?v) > COUNT(*))") for warning in query.warnings)


def test_a_variable_of_the_pattern_alone_is_still_refused() -> None:
    with pytest.raises(cqels.QuerySyntaxError, match=r"\?v is used in HAVING or ORDER BY, but is neither in GROUP BY"):
        cqels.Engine().register(TEXT % (TOTAL, "STREAM :s [ALL] { ?k :v ?v }", "(?v > 1)"))
