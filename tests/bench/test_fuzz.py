"""Generated queries against pyoxigraph: a slice of the suite, and whether it would find a wrong answer."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyoxigraph as ox
import pytest

from bench.suites.fuzz import __main__ as fuzz
from bench.suites.fuzz import compare, json_numbers, sums, upserts
from bench.suites.fuzz.compare import judge
from bench.suites.fuzz.drawing import DATA_SETS, FEATURES, draw
from bench.suites.fuzz.engines import Delivered, run
from bench.suites.fuzz.json_numbers import differences
from bench.suites.fuzz.summary import described
from bench.suites.fuzz.sums import Sum, sum_differences
from bench.suites.fuzz.texts import continuous
from cqels_py.formats import json_ld
from cqels_py.sinks.groups_of_keys import GroupsOfKeys

SLICE = 60


@pytest.mark.parametrize("first", [0, 100_000])
def test_the_engine_answers_generated_queries_as_pyoxigraph_does(first: int) -> None:
    compared = 0
    for seed in range(first, first + SLICE):
        case = draw(seed, FEATURES)
        verdict = judge(case)
        assert verdict.state != "different", described(case, verdict)
        compared += verdict.rows
    assert compared > 0


def test_a_seed_is_always_the_same_case_and_its_neighbours_ask_it_of_other_data() -> None:
    first, second, other = draw(0, FEATURES), draw(1, FEATURES), draw(DATA_SETS, FEATURES)
    assert first == draw(0, FEATURES)
    assert continuous(first) == continuous(second) != continuous(other)
    assert first.elements != second.elements


def test_a_wrong_answer_is_found_shrunk_and_printed_with_both_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forgetful(*arguments: Any, **named: Any) -> Delivered:
        delivered = run(*arguments, **named)
        return replace(delivered, rows=delivered.rows[1:])

    monkeypatch.setattr(compare, "run", forgetful)
    asked = ["--cases", "40", "--features", "static,optional", "--stop-after", "1"]
    assert fuzz.main(asked) == 1
    printed = capsys.readouterr().out
    assert "only pyoxigraph says" in printed and "=== --seed" in printed
    assert printed.count("s0 ") + printed.count("s1 ") <= 4
    assert "1 different" in printed


def test_a_table_that_takes_groups_for_their_texts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupsOfKeys, "may_concern", lambda self, changes: False)
    grouped = (case for seed in range(3_600, 6_000) if (case := draw(seed, ["aggregate", "optional"])).query.grouped)
    languages = (case for case in grouped if case.output == "CHANGELOG" and "@fr" in str(case.elements))
    found = next(lines for case in languages if (lines := upserts.differences(case, continuous(case))))
    assert found[0].startswith("  only the ")


def test_cases_that_are_equal_are_counted_by_feature(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--cases", "4", "--features", "filter"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("4 cases") and "4 equal" in printed


def test_the_listed_deviations_of_pyoxigraph_exist() -> None:
    """One that has been mended there need not be dealt with any more."""

    def rows(pattern: str) -> int:
        store = ox.Store()
        for predicate in ("p", "q"):
            ends = ox.NamedNode("x:a"), ox.NamedNode(f"x:{predicate}"), ox.NamedNode("x:b")
            store.add(ox.Quad(*ends, ox.DefaultGraph()))
        store.add(ox.Quad(ox.NamedNode("x:b"), ox.NamedNode("x:p"), ox.NamedNode("x:a"), ox.DefaultGraph()))
        found: Any = store.query(f"SELECT ?x {{ {pattern} }}")
        return len(list(found))

    assert rows("?x <x:p>|<x:q> <x:b>") == 1, "18.4: two"
    assert rows("?x !(<x:r>|^<x:r>) <x:b>") == 1, "18.4: three"
    assert rows("?x <x:p>* <x:absent>") == 0, "18.4: one"
    assert rows("FILTER('x'@en)") == 0, "17.2.2: one"
    assert rows("FILTER(<x:a> <= <x:a>)") == 1, "17.3: none"
    assert rows("FILTER(REGEX('_', '^\\\\w$'))") == 1, "XSD F.1.1: none"
    assert rows("FILTER(2 / 3 = 0.666666666666666666)") == 1, "F&O 4.2.4: rounded"
    assert rows("FILTER(STR(1.50) = '1.5')") == 1, "RDF Concepts 3.3: '1.50'"


def test_numbers_of_json_ld_are_their_terms_at_every_entrance(monkeypatch: pytest.MonkeyPatch) -> None:
    assert differences(range(40)) == []
    assert {json_numbers.draw(seed).type for seed in range(200)} == set(json_numbers.TYPES)
    monkeypatch.setattr(json_ld, "double_text", lambda value: "0")
    json_ld._number_of.cache_clear()
    assert differences(range(40))
    json_ld._number_of.cache_clear()


def test_sums_near_the_bounds_of_words_are_those_of_fractions() -> None:
    assert sum_differences(range(40)) == []
    drawn = [sums.draw(seed) for seed in range(200)]
    totals = [
        sum(Fraction(text) for text, _ in each.numbers)
        for each in drawn
        if "double" in {datatype for _, datatype in each.numbers}
    ]
    assert any(10 * total >= 1 << 63 and total < 1 << 62 for total in totals), "ten times the sum is beyond a word"
    wrapped = Sum(0, (("2.5", "double"), ("1845000000000000000", "integer")), 1)
    assert wrapped.differs("325592629044840.4", "double", Fraction("1845000000000000002.5"), mean=False)
    assert not wrapped.differs("1.845E18", "double", Fraction("1845000000000000002.5"), mean=False)
