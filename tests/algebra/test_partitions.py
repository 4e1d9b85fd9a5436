"""Which triple patterns give the values of PARTITION BY."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rdflib import Variable

from cqels_py.algebra import nodes
from cqels_py.algebra.partitions import partition_of
from cqels_py.parser import parse
from cqels_py.rewrites import rewrite
from tests.support import traces

WINDOW = traces.window("w", "S", nodes.ElementCount(3))


def alternatives(variables: str, pattern: nodes.Pattern) -> list[set[str]]:
    by = tuple(Variable(name) for name in variables.split())
    found = partition_of(pattern, replace(WINDOW, partition_by=by))
    assert not found.missing
    return [
        {str(asked.triple.predicate).removeprefix(traces.EX) for asked in patterns} for patterns in found.alternatives
    ]


@pytest.mark.parametrize(
    ("variables", "block", "expected"),
    [
        ("s", "?s p ?o", [{"p"}]),
        ("s", "?s p ?o, ?s q ?r, ?o r ?x", [{"p"}, {"q"}]),
        ("s o", "?s p ?o, ?s q ?r, ?r r ?o", [{"p"}]),
        ("s k", "?x p ?s, ?x q ?k, ?s r ?place", [{"p", "q"}]),
        ("s k", "?x p ?s, ?x q ?k, ?x r ?k", [{"p", "q"}, {"p", "r"}]),
        ("a c", "?a p ?x, ?x q ?y, ?y r ?c", [{"p", "q", "r"}]),
        ("a c", "?a p ?x, ?c q ?y", []),
    ],
)
def test_the_smallest_connected_patterns_that_have_all_variables(
    variables: str, block: str, expected: list[set[str]]
) -> None:
    assert alternatives(variables, traces.over("w", block)) == expected


def test_patterns_asked_of_the_window_anywhere_count_and_of_others_not() -> None:
    inside = nodes.LeftJoin(traces.bgp("?s p ?o"), nodes.Graph(traces.iri("g"), traces.bgp("?s static ?o")), None)
    where = nodes.Join(traces.over("w", inside), traces.over("v", "?s other ?o"))
    asked = nodes.Filter(where, nodes.Exists(traces.over("w", "?s q ?x"), True))
    assert alternatives("s", asked) == [{"p"}, {"q"}]
    assert alternatives("s", nodes.WindowVariable(Variable("w"), traces.bgp("?s p ?o"))) == [{"p"}]


def test_a_variable_that_no_pattern_has_is_missing() -> None:
    by = (Variable("s"), Variable("z"))
    found = partition_of(traces.over("w", "?s p ?o"), replace(WINDOW, partition_by=by))
    assert (found.alternatives, found.missing) == ((), (Variable("z"),))


def test_rewrites_leave_the_values_as_they_were() -> None:
    query = parse(
        "SELECT * { STREAM <s> [COUNT 2 PARTITION BY ?s ?k] { ?x <u:p> ?s ; <u:q> ?k OPTIONAL { ?s <u:r> ?t } FILTER(?k > 1) } }"
    )
    window = query.windows[0]
    assert partition_of(rewrite(query).pattern, window) == partition_of(query.pattern, window)
