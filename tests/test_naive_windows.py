"""The oracle's sessions, windows in the past and PARTITION BY, against answers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rdflib import Variable

from cqels_py.algebra import nodes
from cqels_py.algebra.nodes import ElementCount, Everything, Session, TimeRange, TripleCount
from tests.oracle.naive import moments, relevant, ticks
from tests.support import traces
from tests.support.traces import elements, over, query, window


def scan(extent: nodes.Extent, text: str, by: str = "", pattern: str = "?s p ?o") -> list[str]:
    """The answers of `SELECT ?s ?o { WINDOW w {…} }` over one stream S."""
    asked = replace(window("w", "S", extent), partition_by=tuple(Variable(name) for name in by.split()))
    return traces.answers(ticks(query(over("w", pattern), "s o", [asked]), elements(text)))


def instants(windows: list[nodes.WindowDefinition], text: str) -> list[str]:
    asked = query(nodes.Values((), ((),)), "", windows)
    return [f"{m.time}{m.phase.name[0]}{m.seen}" for m in moments(asked, relevant(asked, elements(text)))]


def test_a_session_ends_a_gap_after_its_last_element() -> None:
    """
    time  1 2 3 4 5 6 7
    a     ├───────○           gap 2: b belongs to it, at 5 it ends
    b         ├───○
    c                 ├
    """
    assert scan(Session(2), "1 S a p 1\n3 S b p 2\n7 S c p 3") == [
        "1: o=1 s=a",
        "3: o=1 s=a | o=2 s=b",
        "5:",
        "7: o=3 s=c",
    ]


def test_a_session_that_the_last_element_leaves_open_does_not_end() -> None:
    assert scan(Session(2), "1 S a p 1\n2 S b p 2") == ["1: o=1 s=a", "2: o=1 s=a | o=2 s=b"]


def test_a_session_ends_after_the_arrivals_of_its_last_instant() -> None:
    """Both of T's elements at 3 still see the session; S has none then."""
    windows = [window("w", "S", Session(2)), window("v", "T", Everything())]
    assert instants(windows, "1 S a p 1\n3 T b p 2\n3 T c p 3\n4 T d p 4") == ["1A1", "3A2", "3A3", "3B3", "4A4"]


def test_a_session_with_a_step_is_looked_at_at_boundaries() -> None:
    """
    time  1 2 3 4 5 6 7
    a     ├─────○             gap 1: b belongs to it; at 3 it ends, at 4 it is looked at
    b       ├───○
    c             ├─          at 6 it has not ended
    boundaries 2, 4, 6, 8
    """
    text = "1 S a p 1\n2 S b p 2\n5 S c p 3\n6 S d p 4"
    assert scan(Session(1, 2), text) == ["2: o=1 s=a | o=2 s=b", "4:", "6: o=3 s=c | o=4 s=d"]
    assert scan(Session(2, 4, 1), text) == ["1: o=1 s=a", "5: o=3 s=c", "9:"]


def test_each_value_has_sessions_of_its_own() -> None:
    """The element at 2 is in those of a and b; a's ends at 4, b's at 5. At 7 perhaps one ends, but none does."""
    text = "1 S a p 1\n2 S a p 2, b p 3\n3 S b p 4\n5 S c q 5\n9 S a p 6"
    assert scan(Session(2), text, "s") == [
        "1: o=1 s=a",
        "2: o=1 s=a | o=2 s=a | o=3 s=b",
        "3: o=1 s=a | o=2 s=a | o=3 s=b | o=4 s=b",
        "3: o=1 s=a | o=2 s=a | o=3 s=b | o=4 s=b",
        "4: o=2 s=a | o=3 s=b | o=4 s=b",
        "5: o=2 s=a | o=3 s=b | o=4 s=b",
        "5:",
        "7:",
        "9: o=6 s=a",
    ]
    assert scan(Session(2, 3), text, "s") == ["3: o=1 s=a | o=2 s=a | o=3 s=b | o=4 s=b", "6:", "9: o=6 s=a"]


def test_a_window_in_the_past_holds_elements_of_that_time() -> None:
    """
    time  1 2 3 4 5 6 7
    a     . . ├───○         in at 1 + 2, out at 1 + 2 + 2
    b       . . ├───○
    c                 ├     an arrival, not yet in
    """
    assert scan(TimeRange(2, delay=2), "1 S a p 1\n2 S b p 2\n7 S c p 3") == [
        "1:",
        "2:",
        "3: o=1 s=a",
        "4: o=1 s=a | o=2 s=b",
        "5: o=2 s=b",
        "6:",
        "7:",
    ]


def test_a_window_in_the_past_with_a_step_is_looked_at_at_boundaries() -> None:
    text = "1 S a p 1\n2 S b p 2\n3 S c p 3\n9 S d p 4"
    assert scan(TimeRange(2, 4, delay=1), text) == ["4: o=2 s=b | o=3 s=c", "8:", "12:"]
    assert scan(TimeRange(2, 4, 1, delay=1), text) == ["1:", "5: o=3 s=c", "9:"]


def test_the_last_n_elements_of_each_value_are_kept_as_wholes() -> None:
    """The second element is the last of b, so a's triple in it stays, though a has a later one."""
    text = "1 S a p 1\n2 S a p 2, b p 3\n3 S a p 4\n4 S c q 5\n5 S b p 6"
    assert scan(ElementCount(1), text, "s") == [
        "1: o=1 s=a",
        "2: o=2 s=a | o=3 s=b",
        "3: o=2 s=a | o=3 s=b | o=4 s=a",
        "4: o=2 s=a | o=3 s=b | o=4 s=a",
        "5: o=4 s=a | o=6 s=b",
    ]


def test_the_last_n_triples_of_each_value() -> None:
    text = "1 S a p 1\n2 S a p 2, b p 3, b p 4\n3 S a q 7"
    assert scan(TripleCount(1), text, "s") == ["1: o=1 s=a", "2: o=2 s=a | o=4 s=b", "3: o=2 s=a | o=4 s=b"]


def test_with_a_step_the_last_of_each_value_are_looked_at_every_so_many_of_the_stream() -> None:
    text = "1 S a p 1\n2 S b p 2, a p 3\n3 S b p 4\n4 S a p 5, c p 6"
    assert scan(ElementCount(1, 2), text, "s") == ["2: o=2 s=b | o=3 s=a", "4: o=4 s=b | o=5 s=a | o=6 s=c"]
    assert scan(TripleCount(1, 3), text, "s") == ["2: o=2 s=b | o=3 s=a", "4: o=4 s=b | o=5 s=a | o=6 s=c"]


def test_triples_with_a_step_are_those_up_to_the_last_multiple() -> None:
    text = "1 S a p 1\n2 S b p 2, c p 3, d p 4\n3 S e p 5\n4 S f p 6, g p 7, h p 8, i p 9"
    assert scan(TripleCount(2, 2), text) == ["2: o=3 s=c | o=4 s=d", "4: o=7 s=g | o=8 s=h"]
    assert scan(TripleCount(3, 4), text) == ["2: o=2 s=b | o=3 s=c | o=4 s=d", "4: o=6 s=f | o=7 s=g | o=8 s=h"]


@pytest.mark.parametrize(("by", "kept"), [("s", "1 4"), ("k", "3 4"), ("s k", "1 3 4")])
def test_values_of_several_patterns_belong_together(by: str, kept: str) -> None:
    """Four observations of sensors and kinds: (a, i), (b, j), (b, i), (b, j)."""
    lines = [
        f"{n} S o{n} of {s}, o{n} kind {k}" for n, s, k in [(1, "a", "i"), (2, "b", "j"), (3, "b", "i"), (4, "b", "j")]
    ]
    found = scan(ElementCount(1), "\n".join(lines), by, "?o of ?s, ?o kind ?k")[-1]
    assert [row.split()[0] for row in found.removeprefix("4: ").split(" | ")] == [f"o=o{n}" for n in kept.split()]


def test_the_time_stands_in_the_element() -> None:
    timed = replace(window("w", "S", TimeRange(2)), time_predicate=traces.iri("at"))
    element = elements("1 S a p 1")[0]
    with pytest.raises(AssertionError):
        ticks(query(over("w", "?s p ?o"), "s o", [timed]), [element])
