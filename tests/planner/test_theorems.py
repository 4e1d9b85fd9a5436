"""The conditions of the paper's theorems beside the verdicts, where both agree and where they do not."""

from __future__ import annotations

import pytest

from cqels_py.engine.compile import compile_query

PREFIX = "PREFIX : <http://ex.org/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"


def query(blocks, times, select, bounds=""):
    """Blocks on streams of the same names; `bounds`: those whose numbers lie between 0 and 5."""
    events = " ".join(
        f"EVENT ON :{name} AT ?t{name} {{ ?e{name} :n ?{name} FILTER(DATATYPE(?{name}) = xsd:integer "
        f"{f'&& ?{name} > 0 && ?{name} < 5' if name in bounds else ''}) }}"
        for name in blocks
    )
    return f"{PREFIX}SELECT {select} WHERE {{ {events} FILTER({times}) }}"


CHAIN = "?ta > ?tb && ?tb > ?tc"
CASES = {
    "a chain": (query("abc", f"{CHAIN} && ?a > ?b", "?a ?b", "b"), "", "C1", "bounded", ""),
    "shown at depth 2": (query("abc", CHAIN, "?c", "c"), "C3", "", "bounded", "not necessary"),
    "two parents": (query("abc", "?ta > ?tc && ?tb > ?tc", "(1 AS ?one)"), "C1", "", "bounded", "not necessary"),
    "a join with a grandchild": (
        query("abc", f"{CHAIN} && ?a = ?c", "?a", "c"),
        "C2 C4",
        "",
        "bounded",
        "not necessary",
    ),
    "a join across trees": (
        query("abc", "?ta > ?tb && ?b = ?c", "(1 AS ?one)", "b"),
        "C2",
        "",
        "bounded",
        "not necessary",
    ),
    "pairs": (
        query("abcd", "?tb > ?tc && ?a < ?b && ?d < ?c", "(1 AS ?one)"),
        "C2 C5",
        "",
        "not bounded",
        "does not suffice",
    ),
    "a followed best value": (
        query("abc", "?tb > ?tc && ?a < ?c", "(1 AS ?one)"),
        "C2 C5",
        "",
        "not bounded",
        "proof can answer",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_conditions(name):
    text, bag, distinct, verdict, difference = CASES[name]
    compiled = compile_query(text)
    (memory,) = compiled.plan.event_memory
    assert compiled.memory.kind == verdict
    lines = {line.partition(":")[0]: line for line in memory.notes if line.startswith("Theorem")}
    for theorem, failing, every in (("Theorem 1 (bag)", bag, 5), ("Theorem 2 (DISTINCT)", distinct, 3)):
        failed = {f"C{n}" for n in range(1, every + 1) if f"C{n} fails" in lines[theorem]}
        assert failed == set(failing.split())
    told = [line for line in memory.notes if line.startswith("  ")]
    assert [difference in line for line in told] == [True] * bool(difference)


def test_a_tree_is_shown_from_its_root():
    (memory,) = compile_query(query("abc", "?ta > ?tb && ?ta > ?tc", "?a")).plan.event_memory
    assert memory.notes[0] == "Theorem 1 (bag): C1 C2 C3 C4 C5 hold; times: a > {b, c}"
