"""The oracle's ticks, windows and output, against answers worked out by hand."""

from __future__ import annotations

import pytest

from cqels_py.algebra import nodes
from cqels_py.algebra.nodes import ElementCount, Everything, Output, TimeRange, TripleCount
from tests.oracle.naive import Static, moments, output, relevant, ticks
from tests.support import traces
from tests.support.traces import elements, over, query, window

SCAN = over("w", "?s p ?o")


def scan(extent: nodes.Extent, text: str, ended: bool = True, bags: bool = True) -> list[str]:
    """The answers of `SELECT ?s ?o { WINDOW w { ?s p ?o } }` over one stream S."""
    asked = query(SCAN, "s o", [window("w", "S", extent)], bags=bags)
    return traces.answers(ticks(asked, elements(text), ended=ended))


def instants(windows: list[nodes.WindowDefinition], text: str, ended: bool = True) -> list[str]:
    """The ticks of a query with these windows: time and E(xpiry), A(rrival) or B(oundary)."""
    asked = query(nodes.Values((), ((),)), "", windows)
    return [f"{m.time}{m.phase.name[0]}{m.seen}" for m in moments(asked, relevant(asked, elements(text)), ended)]


# --- one window -----------------------------------------------------------------------


def test_range_holds_elements_younger_than_its_width() -> None:
    """
    time  1 2 3 4 5 6
    a     ├─────○              in at 1, out at 4
    b       ├─────○            in at 2, out at 5
    c               ├          in at 6
    """
    text = "1 S a p 1\n2 S b p 2\n6 S c p 3"
    assert scan(TimeRange(3), text) == [
        "1: o=1 s=a",
        "2: o=1 s=a | o=2 s=b",
        "4: o=2 s=b",
        "5:",
        "6: o=3 s=c",
    ]


def test_an_expiry_at_the_instant_of_an_arrival_is_part_of_its_tick() -> None:
    """
    time  1 2 3 4
    a     ├─────○
    b           ├     one tick at 4: a out, b in
    """
    assert scan(TimeRange(3), "1 S a p 1\n4 S b p 2") == ["1: o=1 s=a", "4: o=2 s=b"]


def test_an_expiry_is_a_tick_whether_the_element_matched_or_not() -> None:
    """
    time  1 2 3 4 5
    x     ├───○           no match, yet a tick at 3
    a             ├
    """
    assert scan(TimeRange(2), "1 S x other 1\n5 S a p 2") == ["1:", "3:", "5: o=2 s=a"]


def test_expiries_after_the_last_element_are_no_ticks() -> None:
    assert scan(TimeRange(2), "1 S a p 1") == ["1: o=1 s=a"]


def test_two_elements_of_one_instant_are_two_ticks_and_expire_in_one() -> None:
    """
    time  1 2 3 4 5
    a     ├─────○
    b     ├─────○
    c             ├
    """
    assert scan(TimeRange(3), "1 S a p 1\n1 S b p 2\n5 S c p 3") == [
        "1: o=1 s=a",
        "1: o=1 s=a | o=2 s=b",
        "4:",
        "5: o=3 s=c",
    ]


def test_several_arrivals_at_the_instant_of_an_expiry_let_it_happen_in_the_first() -> None:
    assert scan(TimeRange(3), "1 S a p 1\n4 S b p 2\n4 S c p 3") == [
        "1: o=1 s=a",
        "4: o=2 s=b",
        "4: o=2 s=b | o=3 s=c",
    ]


def test_all_triples_of_an_element_enter_together() -> None:
    assert scan(TimeRange(9), "1 S a p 1, b p 2") == ["1: o=1 s=a | o=2 s=b"]


def test_now_is_a_range_of_one_microsecond() -> None:
    """
    time  1 2 3 4
    a     ├─○
    b,c         ├      the window still holds b when c comes at the same instant
    """
    assert scan(TimeRange(1), "1 S a p 1\n4 S b p 2\n4 S c p 3") == [
        "1: o=1 s=a",
        "2:",
        "4: o=2 s=b",
        "4: o=2 s=b | o=3 s=c",
    ]


def test_all_forgets_nothing() -> None:
    assert scan(Everything(), "1 S a p 1\n900 S b p 2") == ["1: o=1 s=a", "900: o=1 s=a | o=2 s=b"]


def test_count_holds_the_last_elements_of_the_stream() -> None:
    """
    time  1 2 3        COUNT 2: x, which does not match, pushes a out
    a     ├───○
    b       ├──
    x         ├
    """
    assert scan(ElementCount(2), "1 S a p 1, aa p 1\n2 S b p 2\n3 S x other 3") == [
        "1: o=1 s=a | o=1 s=aa",
        "2: o=1 s=a | o=1 s=aa | o=2 s=b",
        "3: o=2 s=b",
    ]


def test_triples_cuts_through_an_element() -> None:
    """TRIPLES 3 over elements of two triples: half of the first element is left."""
    assert scan(TripleCount(3), "1 S a p 1, b p 2\n2 S c p 3, d p 4") == [
        "1: o=1 s=a | o=2 s=b",
        "2: o=2 s=b | o=3 s=c | o=4 s=d",
    ]


def test_an_element_with_more_triples_than_the_window_leaves_its_last_ones() -> None:
    assert scan(TripleCount(1), "1 S a p 1, b p 2") == ["1: o=2 s=b"]


def test_range_with_step_reports_at_boundaries_only() -> None:
    """
    time  1 2 3 4 5 6 7 8 9      RANGE 4 STEP 3: boundaries 3 6 9
    a     ·   ┃━━━━━┃            t=1: in (-1,3], not in (2,6]
    b       · ┃━━━━━┃            t=2: likewise: 6-4 = 2 is outside
    c               ·   ┃        t=7: in (5,9]
    """
    assert scan(TimeRange(4, 3), "1 S a p 1\n2 S b p 2\n7 S c p 3") == [
        "3: o=1 s=a | o=2 s=b",
        "6:",
        "9: o=3 s=c",
    ]


def test_an_element_at_a_boundary_belongs_to_it() -> None:
    assert scan(TimeRange(3, 3), "3 S a p 1\n4 S b p 2") == ["3: o=1 s=a", "6: o=2 s=b"]


def test_tumbling_holds_each_element_once() -> None:
    assert scan(TimeRange(5, 5), "1 S a p 1\n5 S b p 2\n6 S c p 3\n11 S d p 4") == [
        "5: o=1 s=a | o=2 s=b",
        "10: o=3 s=c",
        "15: o=4 s=d",
    ]


def test_a_step_larger_than_the_width_drops_elements_between() -> None:
    """RANGE 2 STEP 5: (3,5] and (8,10]; a and c never seen."""
    assert scan(TimeRange(2, 5), "1 S a p 1\n4 S b p 2\n7 S c p 3\n9 S d p 4") == [
        "5: o=2 s=b",
        "10: o=4 s=d",
    ]


def test_start_moves_the_boundaries() -> None:
    """STEP 5 from 2: boundaries 2, 7, 12; also backwards from a start that is yet to come."""
    text = "1 S a p 1\n3 S b p 2"
    assert scan(TimeRange(5, 5, start=2), text) == ["2: o=1 s=a", "7: o=2 s=b"]
    assert scan(TimeRange(5, 5, start=102), text) == ["2: o=1 s=a", "7: o=2 s=b"]


def test_boundaries_of_a_silent_stretch_are_ticks() -> None:
    assert scan(TimeRange(2, 2), "1 S a p 1\n7 S b p 2") == ["2: o=1 s=a", "4:", "6:", "8: o=2 s=b"]


def test_before_the_end_a_boundary_waits_until_time_has_passed_it() -> None:
    text = "1 S a p 1\n4 S b p 2"
    assert scan(TimeRange(2, 2), text, ended=False) == ["2: o=1 s=a"]
    assert scan(TimeRange(2, 2), text, ended=True) == ["2: o=1 s=a", "4: o=2 s=b"]


def test_count_with_step_changes_at_every_mth_element() -> None:
    """COUNT 3 STEP 2: at the 2nd, 4th and 6th element the last three."""
    text = "\n".join(f"{t} S e{t} p {t}" for t in range(1, 7))
    assert scan(ElementCount(3, 2), text) == [
        "2: o=1 s=e1 | o=2 s=e2",
        "4: o=2 s=e2 | o=3 s=e3 | o=4 s=e4",
        "6: o=4 s=e4 | o=5 s=e5 | o=6 s=e6",
    ]


def test_no_elements_no_ticks() -> None:
    for extent in (TimeRange(5), TimeRange(5, 5), ElementCount(1), ElementCount(2, 2), Everything()):
        assert scan(extent, "") == []


def test_the_same_triple_twice_counts_twice_in_a_bag_and_once_in_a_graph() -> None:
    """
    time  1 2 3 4 5         in a graph the triple stays until its last occurrence leaves
    a     ├─────○
    a       ├─────○
    x             ├
    """
    text = "1 S a p 1\n2 S a p 1\n5 S x other 1"
    assert scan(TimeRange(3), text) == ["1: o=1 s=a", "2: o=1 s=a | o=1 s=a", "4: o=1 s=a", "5:"]
    assert scan(TimeRange(3), text, bags=False) == ["1: o=1 s=a", "2: o=1 s=a", "4: o=1 s=a", "5:"]


# --- several windows ------------------------------------------------------------------


def test_elements_of_other_streams_do_not_exist() -> None:
    assert scan(ElementCount(1), "1 S a p 1\n2 T b p 2") == ["1: o=1 s=a"]


def test_every_eager_window_makes_ticks_of_its_own() -> None:
    """
    time  1 2 3 4 5 6
    S     a   ×           RANGE 2: expiry at 3
    T       b       ×     RANGE 4: expiry at 6
    S               c
    """
    windows = [window("w", "S", TimeRange(2)), window("v", "T", TimeRange(4))]
    text = "1 S a p 1\n2 T b p 2\n7 S c p 1"
    assert instants(windows, text) == ["1A1", "2A2", "3E2", "6E2", "7A3"]


def test_arrivals_that_only_step_windows_read_are_no_ticks() -> None:
    """
    time  1 2 3 4 5
    S     a   ×   c        RANGE 2, eager
    T       b              RANGE 4 STEP 4: boundaries 4 and 8
    """
    windows = [window("w", "S", TimeRange(2)), window("v", "T", TimeRange(4, 4))]
    text = "1 S a p 1\n2 T b p 2\n5 S c p 1"
    assert instants(windows, text) == ["1A1", "3E2", "4B2", "5A3", "8B3"]


def test_a_boundary_is_a_tick_after_the_arrival_at_its_instant() -> None:
    windows = [window("w", "S", ElementCount(1)), window("v", "S", TimeRange(4, 4))]
    asked = query(
        nodes.Union((over("w", "?s p ?o"), over("v", "?t p ?o"))),
        "s t o",
        windows,
    )
    assert traces.answers(ticks(asked, elements("2 S a p 1\n4 S b p 2"))) == [
        "2: o=1 s=a",
        "4: o=2 s=b",
        "4: o=1 t=a | o=2 s=b | o=2 t=b",
    ]


def test_a_boundary_is_a_tick_after_the_expiry_at_its_instant() -> None:
    windows = [window("w", "S", TimeRange(2)), window("v", "S", TimeRange(4, 4))]
    assert instants(windows, "2 S a p 1\n5 S b p 1") == ["2A1", "4E1", "4B1", "5A2", "8B2"]


def test_different_steps_tick_at_the_union_of_their_boundaries() -> None:
    """
    time  1 2 3 4 5 6       STEP 2: 2 4 6, STEP 3: 3 6; each keeps its content in between
    S     a   b
    """
    asked = query(
        nodes.Union((over("w", "?s p ?o"), over("v", "?t p ?o"))),
        "s t",
        [window("w", "S", TimeRange(2, 2)), window("v", "S", TimeRange(3, 3))],
    )
    assert traces.answers(ticks(asked, elements("1 S a p 1\n4 S b p 2"))) == [
        "2: s=a",
        "3: s=a | t=a",
        "4: s=b | t=a",
        "6: t=b",
    ]


def test_the_first_boundary_follows_the_first_element_of_any_stream() -> None:
    windows = [window("w", "S", TimeRange(2, 2)), window("v", "T", TimeRange(2, 2))]
    assert instants(windows, "1 T a p 1\n6 S b p 1") == ["2B1", "4B1", "6B2"]


def test_a_boundary_after_the_last_element_sees_the_eager_window_of_its_instant() -> None:
    """
    time  1 2 3 4 5         S RANGE 2 expires at 3, which is no tick; at boundary 5 it is empty
    """
    asked = query(
        nodes.Union((over("w", "?s p ?o"), over("v", "?t p ?o"))),
        "s t",
        [window("w", "S", TimeRange(2)), window("v", "S", TimeRange(5, 5))],
    )
    assert traces.answers(ticks(asked, elements("1 S a p 1"))) == ["1: s=a", "5: t=a"]


def test_elements_of_one_instant_in_two_streams_are_ticks_in_arrival_order() -> None:
    asked = query(
        nodes.Join(over("w", "?s p ?o"), over("v", "?s q ?r")),
        "s o r",
        [window("w", "S", ElementCount(1)), window("v", "T", ElementCount(1))],
        Output.RSTREAM,
    )
    assert traces.answers(ticks(asked, elements("1 T a q 7\n1 S a p 1\n1 T a q 8"))) == [
        "1:",
        "1: o=1 r=7 s=a",
        "1: o=1 r=8 s=a",
    ]


def test_a_count_step_tick_takes_the_expiry_of_its_instant() -> None:
    """
    time  1 2 3          S RANGE 2, T COUNT 1 STEP 1: the arrival at 3 is a tick, so the expiry is part of it
    """
    windows = [window("w", "S", TimeRange(2)), window("v", "T", ElementCount(1, 1))]
    assert instants(windows, "1 S a p 1\n3 T b p 1") == ["1A1", "3A2"]


# --- output ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Output.ISTREAM, ["1 + o=1 s=a", "3 + o=2 s=b"]),
        (Output.DSTREAM, ["3 - o=1 s=a"]),
        (Output.CHANGELOG, ["1 + o=1 s=a", "3 - o=1 s=a", "3 + o=2 s=b"]),
        (Output.RSTREAM, ["1 + o=1 s=a", "3 + o=2 s=b"]),
    ],
)
def test_output_operators(wanted: Output, expected: list[str]) -> None:
    asked = query(SCAN, "s o", [window("w", "S", ElementCount(1))], wanted)
    found = output(asked, ticks(asked, elements("1 S a p 1\n3 S b p 2")))
    assert traces.changes(found) == expected


def test_rstream_repeats_and_istream_does_not() -> None:
    text = "1 S a p 1\n2 S x other 1"
    windows = [window("w", "S", Everything())]
    again = query(SCAN, "s", windows, Output.RSTREAM)
    assert traces.changes(output(again, ticks(again, elements(text)))) == ["1 + s=a", "2 + s=a"]
    once = query(SCAN, "s", windows, Output.ISTREAM)
    assert traces.changes(output(once, ticks(once, elements(text)))) == ["1 + s=a"]


def test_differences_are_of_bags() -> None:
    """ALL, projected to ?o: the second equal row is new; COUNT 1: one out, one in is no change."""
    text = "1 S a p 1\n2 S b p 1"
    grows = query(SCAN, "o", [window("w", "S", Everything())])
    assert traces.changes(output(grows, ticks(grows, elements(text)))) == ["1 + o=1", "2 + o=1"]
    stays = query(SCAN, "o", [window("w", "S", ElementCount(1))])
    assert traces.changes(output(stays, ticks(stays, elements(text)))) == ["1 + o=1"]


def test_static_data_joins_at_once() -> None:
    asked = query(
        nodes.Join(nodes.BGP(traces.bgp("?s label ?l").triples), SCAN),
        "l o",
        [window("w", "S", ElementCount(1))],
    )
    static = Static(default=traces.triples("a label 'A', a label 'A', b label 'B'"))
    found = ticks(asked, elements("1 S a p 1\n2 S c p 1"), static)
    assert traces.answers(found) == ["1: l='A' o=1", "2:"]


def test_merged_windows_of_c_sparql_are_one_graph_with_the_static_data() -> None:
    both = nodes.Window((traces.iri("w"), traces.iri("v")), traces.bgp("?s p ?o"), with_static=True)
    asked = query(
        both,
        "s o",
        [window("w", "S", Everything()), window("v", "T", Everything())],
        bags=False,
    )
    found = ticks(asked, elements("1 S a p 1\n2 T a p 1\n3 T c p 3"), Static(traces.triples("c p 3, d p 4")))
    assert traces.answers(found) == [
        "1: o=1 s=a | o=3 s=c | o=4 s=d",
        "2: o=1 s=a | o=3 s=c | o=4 s=d",
        "3: o=1 s=a | o=3 s=c | o=4 s=d",
    ]


def test_ask_is_a_boolean_at_every_tick() -> None:
    asked = query(SCAN, "", [window("w", "S", ElementCount(1))], form="ASK")
    found = output(asked, ticks(asked, elements("1 S x other 1\n2 S a p 1\n3 S b p 1")))
    assert traces.changes(found) == ["1 + boolean=false", "2 - boolean=false", "2 + boolean=true"]
