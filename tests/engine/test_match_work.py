"""MATCH: how many nodes its steps make and visit, with lists and with heaps, and the invariants of both."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import log2
from random import Random

import numpy as np
import pytest
from rdflib import RDF, Literal, URIRef

import cqels_py as cqels
from cqels_py.dataflow.match_scan import MatchScan
from cqels_py.kernels.patterns import runs as kernel
from cqels_py.kernels.patterns import start_heap as heap
from cqels_py.state.named_values import restore, values_of
from tests.engine.test_match import told
from tests.oracle.naive import Element
from tests.support.drawn_matches import EX, MatchDrawer, drawn_elements
from tests.support.harness import parse

PREFIX = f"PREFIX : <{EX}>\n"
A = "EVENT ON :s0 { ?a a :A ; :x ?x }"
B = "EVENT ON :s0 { ?b a :B ; :x ?x ; :y ?y }"
C = "EVENT ON :s0 { ?c a :C ; :y ?y }"
LATE_STARTS = f"{PREFIX}SELECT ?a ?b ?c {{ MATCH WITHIN WINDOW {{ {A} SEQ {B} SEQ {C} }} }}"
"""The runs that C continues, by ?y, begin in any order, since the A before each B is found by ?x."""


def element(number, kind, **values):
    subject = URIRef(f"{EX}e{number}")
    named = ((subject, URIRef(EX + name), Literal(value)) for name, value in values.items())
    return Element(number * 1_000_000, URIRef(f"{EX}s0"), ((subject, RDF.type, URIRef(EX + kind)), *named))


def state_of(query):
    """The state of the only MATCH of a query."""
    (scan,) = [node for node in query._dataflow._scans if isinstance(node, MatchScan)]
    return scan.state


def run(text, elements, *, guarantee=False, after_each=None, changelog=False, batch=1):
    """The changes of a query, and the state of its automaton at the end."""
    engine = cqels.Engine(batch=batch)
    query = engine.register(text, guarantee=guarantee, changelog=changelog)
    found = Counter()
    query.subscribe(lambda r: found.update([(r.time, r.sign, frozenset((str(k), v) for k, v in r.bindings.items()))]))
    for each in elements:
        engine.push(str(each.stream), list(each.triples), time=each.time)
        if after_each is not None:
            engine.flush()
            after_each(state_of(query))
    engine.flush()
    return found, state_of(query)


def zigzag(count):
    """As many A as B, which take the newest and the oldest of the A in turn."""
    yield from (element(number, "A", x=number) for number in range(count))
    for number in range(count):
        yield element(count + number, "B", x=count - 1 - number // 2 if number % 2 else number // 2, y=0)


def assert_heaps_are_right(state):
    """Heap order (5) of the paper, and no run of a heap is out of reach."""
    nodes, trees, meta = state._nodes, state._trees, state._meta
    links = state._links.reshape(len(nodes), -1)
    mask, tail, trees_tail = len(nodes) - 1, meta[kernel.TAIL], meta[kernel.TREES_TAIL]

    def contents(number):
        if heap.is_dead(trees, number, tail, trees_tail):
            return []
        row = trees[number & (len(trees) - 1)]
        content = row[heap.CONTENT]
        assert content >= row[heap.START] >= tail
        assert row[heap.START] == content - links[content & mask, kernel.FIRST]
        found = [int(content)]
        for side in (heap.LEFT, heap.RIGHT):
            below = contents(row[side])
            if below:
                assert trees[row[side] & (len(trees) - 1), heap.START] <= row[heap.START]
            found += below
        return found

    heaped = state.program.array(kernel.HEAPED)
    for head in state._heads:
        number = head + meta[kernel.BASE]
        if head and number >= tail and heaped[links[number & mask, kernel.KIND] & kernel.NO_LIST]:
            found = contents(links[number & mask, kernel.OLDER])
            assert len(set(found)) == len(found)


@pytest.mark.parametrize("seed", range(60))
def test_heaps_and_lists_find_the_same(seed):
    random = Random(seed)
    while True:
        text = MatchDrawer(random, random.randint(2, 4)).text(consume=random.random() < 0.3)
        try:
            run(text, [], guarantee=True)
        except (cqels.UnsupportedQuery, cqels.QuerySyntaxError):
            continue
        break
    streams = {window.stream for window in parse(text).windows}
    elements = [each for each in drawn_elements(random, 60) if each.stream in streams]
    for changelog in (False, True):
        expected, _ = run(text, elements, changelog=changelog, batch=7)
        assert run(text, elements, changelog=changelog, batch=5, guarantee=True)[0] == expected, text


N = "EVENT ON :s0 { ?n a :N ; :y ?y }"
D = "EVENT ON :s0 { ?d :x ?x }"
HEAPED = [
    f"{A} SEQ {B} SEQ {C}",
    f"{A} SEQ {B} SEQ NOT {N} SEQ {C}",
    f"{{ {A} AND {D} }} SEQ {B} SEQ {C}",
    f"{A} SEQ {B}+ SEQ {C}",
    f"{{ {A} OR {{ {A} SEQ {D} }} }} SEQ {B} SEQ {C}",
]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("pattern", HEAPED)
def test_heaps_over_expiry(pattern, seed):
    random = Random(seed)
    within = random.choice((f"{random.randint(4, 20)} EVENTS", f"{random.randint(4, 20)}s"))
    words = f"{within} CONSUME" if seed % 3 == 0 else within
    text = f"{PREFIX}SELECT ?a ?c ?x {{ MATCH WITHIN {words} {{ {pattern} }} }}"
    elements = [
        element(number, random.choice("AABBCN"), x=random.randrange(4), y=random.randrange(2)) for number in range(70)
    ]
    expected, _ = run(text, elements, batch=9)
    found, state = run(text, elements, guarantee=True, after_each=assert_heaps_are_right)
    assert found == expected
    assert state.longest_union > 0
    assert run(text, elements, guarantee=True, changelog=True, batch=20)[0] == run(text, elements, changelog=True)[0]


@pytest.mark.parametrize("count", [128, 1024])
def test_an_insertion_into_a_heap_takes_logarithmic_steps(count):
    text = LATE_STARTS.replace("WINDOW", f"{2 * count} EVENTS")
    _, state = run(text, zigzag(count), guarantee=True)
    assert 2 < state.longest_union <= 2 * log2(count)
    assert state.most_steps <= 2 * log2(count) + 3


def test_a_list_may_pass_many_runs_out_of_reach_and_a_heap_does_not():
    count = 500
    elements = [element(0, "A", x=-1), *(element(1 + n, "A", x=n) for n in range(count))]
    elements.append(element(count + 1, "B", x=count - 1, y=0))
    # Newer in the list, and all of them begin before the one that is still within reach.
    elements += [element(count + 2 + n, "B", x=n, y=0) for n in range(count - 1)]
    elements.append(element(2 * count + 1, "C", y=0))
    text = LATE_STARTS.replace("WINDOW", f"{count + 1} EVENTS")
    listed, lists = run(text, elements)
    found, heaps = run(text, elements, guarantee=True)
    assert found == listed
    assert sum(found.values()) == 1
    assert lists.most_between > count / 2
    assert heaps.most_between <= 3


def chains(policy, kinds, pattern, within="100000 EVENTS"):
    elements = [element(number, kind, x=0, y=0) for number, kind in enumerate(kinds)]
    text = f"{PREFIX}SELECT ?a ?b ?c {{ MATCH {policy} WITHIN {within} {{ {pattern} }} }}"
    return run(text, elements, batch=100)


@pytest.mark.parametrize("policy", ["LATEST", "EARLIEST"])
def test_one_match_is_found_without_the_others(policy):
    found, state = chains(policy, "A" * 200 + "B" * 200 + "C" * 5, f"{A} SEQ {B} SEQ {C}")
    assert sum(found.values()) == 5
    assert state.most_between <= 4


def test_the_earliest_match_of_long_streams():
    random = Random(5)
    kinds = random.choices("ABC", k=2_000)
    found, state = chains("EARLIEST", kinds, f"{A} SEQ {B} SEQ {C}", "50 EVENTS")
    assert sum(found.values()) > 500
    # Runs that have begun too early are passed once.
    assert state.most_between <= 12


def test_what_not_forbids_is_not_visited():
    kinds = "A" * 300 + "N" + "C" * 20 + "A" + "C" * 3
    pattern = f"{A} SEQ NOT EVENT ON :s0 {{ ?n a :N ; :x ?x }} SEQ EVENT ON :s0 {{ ?c a :C ; :x ?x }}"
    found, state = chains("ALL", kinds, pattern)
    assert sum(found.values()) == 3
    assert state.most_between <= 2


def test_what_has_been_consumed_is_not_visited():
    kinds = "A" * 300 + "C" * 20 + "A" + "C" * 3
    text = (
        f"{PREFIX}SELECT ?a ?c {{ MATCH WITHIN 10000 EVENTS CONSUME {{ {A} SEQ EVENT ON :s0 {{ ?c a :C ; :x ?x }} }} }}"
    )
    found, state = run(text, [element(number, kind, x=0, y=0) for number, kind in enumerate(kinds)])
    assert sum(found.values()) == 301
    assert state.most_between <= 2


@pytest.mark.parametrize("seed", range(30))
def test_not_in_the_element_of_a_neighbour(seed):
    """Elements of several types at once: A and N, N and C, A and C."""
    random = Random(seed)
    elements = []
    for number in range(14):
        subject = URIRef(f"{EX}e{number}")
        types = [(subject, RDF.type, URIRef(EX + kind)) for kind in "ANC" if random.random() < 0.5]
        elements.append(
            Element(number * 1_000_000, URIRef(f"{EX}s0"), (*types, (subject, URIRef(f"{EX}x"), Literal(0))))
        )
    events = [f"EVENT ON :s0 {{ ?{kind} a :{kind.upper()} ; :x ?x }}" for kind in "anc"]
    pattern = f"{events[0]} SEQ NOT {events[1]} SEQ {events[2]}"
    for words in ("WITHIN 6 EVENTS", "LATEST WITHIN 6 EVENTS", "EARLIEST WITHIN 6 EVENTS", "WITHIN 6 EVENTS CONSUME"):
        text = f"{PREFIX}SELECT ?a ?c {{ MATCH {words} {{ {pattern} }} }}"
        expected = Counter()
        for (time, row), count in told(text, elements).items():
            expected[time, frozenset((str(name), term) for name, term in row)] += count
        for guarantee in (False, True) if "EARLIEST" not in words else (False,):
            found, _ = run(text, elements, guarantee=guarantee)
            assert Counter({(time, row): count for (time, _, row), count in found.items()}) == expected, text


@pytest.mark.parametrize(
    ("pattern", "words", "message"),
    [
        (f"{A} SEQ EVENT ON :s0 {{ ?b a :B }} SEQ {B}", "", r"\?x is compared when matches are formed"),
        (f"{A} SEQ NOT EVENT ON :s0 {{ ?n :x ?x }} SEQ EVENT ON :s0 {{ ?b a :B }}", "", "NOT is tested for each run"),
        (f"{A} SEQ {B} SEQ {C}", "LATEST", "LATEST orders runs"),
    ],
)
def test_what_cannot_be_guaranteed_is_refused(pattern, words, message):
    text = f"{PREFIX}SELECT * {{ MATCH {words} WITHIN 5m {{ {pattern} }} }}"
    cqels.Engine().register(text)
    with pytest.raises(cqels.UnsupportedQuery, match=f"guarantee=True: {message}.*; or leave guarantee=True out"):
        cqels.Engine().register(text, guarantee=True)


def test_a_guarantee_is_about_match():
    with pytest.raises(cqels.UnsupportedQuery, match="about MATCH, which this query does not have"):
        cqels.Engine().register(f"{PREFIX}SELECT * {{ STREAM :s0 [NOW] {{ ?a :x ?x }} }}", guarantee=True)
    with pytest.raises(cqels.UsageError, match="guarantee"):
        cqels.Engine().register(LATE_STARTS.replace("WINDOW", "5m"), guarantee="yes")


def test_explain_names_the_index_and_its_bound():
    text = LATE_STARTS.replace("WINDOW", "5m")
    listed = cqels.Engine().register(text).explain()
    assert "lists of runs by key, an insertion takes one step" in listed
    assert "guarantee=True" in listed
    guaranteed = cqels.Engine().register(text, guarantee=True).explain()
    assert "after 2 persistent heaps by the first event: an insertion takes about log2(runs) steps" in guaranteed


@pytest.mark.parametrize(
    ("words", "guarantee"), [("", False), ("", True), ("LATEST", False), ("EARLIEST", False), ("STRICT TIME", False)]
)
@pytest.mark.parametrize("first", [kernel.MOST_NUMBERS - 40, (1 << 31) - 40, (1 << 32) - 40])
def test_numbers_of_nodes_may_need_more_than_32_bits(first, words, guarantee):
    """Links and the hash table have 32 bits, and numbers grow for ever."""
    random = Random(3)
    elements = [element(n, random.choice("ABC"), x=random.randrange(3), y=random.randrange(3)) for n in range(150)]
    policy, order = (words, "") if words != "STRICT TIME" else ("", words)
    text = f"{PREFIX}SELECT ?a ?b ?c {{ MATCH {policy} WITHIN 20 EVENTS {order} {{ {A} SEQ {B} SEQ {C} }} }}"
    for changelog in (False, True):
        expected, _ = run(text, elements, changelog=changelog, guarantee=guarantee)
        engine = cqels.Engine(batch=7)
        query = engine.register(text, changelog=changelog, guarantee=guarantee)
        found = Counter()
        query.subscribe(
            lambda r, found=found: found.update(
                [(r.time, r.sign, frozenset((str(k), v) for k, v in r.bindings.items()))]
            )
        )
        state = state_of(query)
        state._meta[[kernel.NEXT, kernel.TAIL, kernel.NEXT_TREE, kernel.TREES_TAIL]] = first
        for each in elements:
            engine.push(str(each.stream), list(each.triples), time=each.time)
        engine.flush()
        assert found == expected
        assert sum(found.values()) > 20
        assert state._meta[kernel.NEXT] > first + 60


def test_memory_is_given_back_after_a_burst():
    text = f"{PREFIX}SELECT ?a ?b ?c {{ MATCH WITHIN 20s {{ {A} SEQ {B} SEQ {C} }} }}"
    burst = [replace(element(number, "A", x=number, y=0), time=0) for number in range(10_000)]
    later = [element(number, "ABC"[number % 3], x=0, y=0) for number in range(30, 150)]
    expected, small = run(text, later, batch=10)
    found, state = run(text, [*burst, *later], batch=10)
    assert found == expected
    assert sum(found.values()) > 500
    assert state._nodes.nbytes + state._heads.nbytes < 2 * (small._nodes.nbytes + small._heads.nbytes) + (1 << 19)


def test_a_live_node_takes_forty_bytes_and_its_values():
    """Twice that at most, as rings and tables grow by doubling, and six slots of four bytes for each key."""
    text = f"{PREFIX}SELECT ?a ?b ?c {{ MATCH WITHIN 3000 EVENTS {{ {A} SEQ {B} SEQ {C} }} }}"
    for count in (6_000, 4_500):
        elements = [element(number, "A", x=number, y=0) for number in range(count)]
        _, state = run(text, elements, batch=500)
        live = int(state._meta[kernel.NEXT] - state._meta[kernel.TAIL])
        assert live == 3_001
        assert state._nodes.nbytes <= 2 * live * (40 + 8 * state._width)
        assert state._heads.nbytes <= 4 * 6 * live
        assert state._width == 3


def test_many_matches_need_no_longer_runs():
    found, state = chains("ALL", "A" * 60 + "B" * 60 + "C" * 3, f"{A} SEQ {B} SEQ {C}")
    assert sum(found.values()) == 10_800
    assert len(state._stack) == 16
    assert state._heads.nbytes < state._nodes.nbytes < 1 << 15


@pytest.mark.parametrize("guarantee", [False, True])
def test_a_restored_state_goes_on(guarantee):
    """Nodes and their links are two views of one memory, also after a restore."""

    def put_back(state):
        restore(state, {name: np.copy(value) for name, value in values_of(state).items()})
        assert np.shares_memory(state._nodes, state._links)

    random = Random(9)
    elements = [element(n, random.choice("ABC"), x=random.randrange(3), y=random.randrange(3)) for n in range(150)]
    text = LATE_STARTS.replace("WINDOW", "30 EVENTS")
    for changelog in (False, True):
        expected, _ = run(text, elements, guarantee=guarantee, changelog=changelog)
        assert run(text, elements, guarantee=guarantee, changelog=changelog, after_each=put_back)[0] == expected
    assert expected


def test_explain_says_why_there_is_no_q_tree():
    text = """PREFIX : <http://ex.org/>
    SELECT ?x ?y { MATCH WITHIN 5m {
      EVENT ON :s { ?a :p ?x } AND EVENT ON :s { ?b :q ?x ; :r ?y } AND EVENT ON :s { ?c :t ?y } } }"""
    told = cqels.Engine().register(text).explain()
    assert "no q-tree, as the events are not hierarchical: ?x and ?y are together in an event" in told
    assert "?x, ?y compared when matches are formed, as no key has it: a search may end without a match" in told
