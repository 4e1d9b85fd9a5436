"""Automata over tuples: the paper's examples, the definitions by brute force, counted work and the invariants of the heap."""

from __future__ import annotations

import json
from math import log2
from pathlib import Path
from random import Random

import numpy as np
import pytest

import cqels_py as cqels
from cqels_py.automata import Automaton, Evaluation, Key, Predicate, Transition, not_hierarchical, q_tree
from cqels_py.kernels.patterns import parallel_runs as kernel
from cqels_py.kernels.patterns import start_heap as heap
from tests.oracle import naive_automata

S0 = [("S", 2, 11), ("T", 2), ("R", 1, 10), ("S", 2, 11), ("T", 1), ("R", 2, 11), ("S", 4, 13), ("T", 1)]
"""The stream of the paper's section 2."""


def equal(left, right):
    """Keys by relation: the positions of the earlier tuple, and of the later one."""
    return {left[0]: Key(left[1])}, {right[0]: Key(right[1])}


C0 = Automaton(
    [
        Transition({}, Predicate("T"), "o", 0),
        Transition({0: equal(("T", [0]), ("S", [0]))}, Predicate("S"), "o", 1),
        Transition({1: equal(("S", [0, 1]), ("R", [0, 1]))}, Predicate("R"), "o", 2),
    ],
    final=[2],
)
P0 = Automaton(
    [
        Transition({}, Predicate("T"), "o", 0),
        Transition({}, Predicate("S"), "o", 1),
        Transition({0: equal(("T", [0]), ("R", [0])), 1: equal(("S", [0, 1]), ("R", [0, 1]))}, Predicate("R"), "o", 2),
    ],
    final=[2],
)
Q0 = [("T", "?x"), ("S", "?x", "?y"), ("R", "?x", "?y")]


def found(automaton, stream, window=None):
    """For each position the valuations, sorted, as the oracle gives them."""
    return [sorted(tuple(each.items()) for each in matches) for matches in automaton.run(stream, window)]


def at_5(*valuations):
    return [list(valuations) if position == 5 else [] for position in range(len(S0))]


@pytest.mark.parametrize("window", [None, 5, 4])
def test_example_2_1_a_chain(window):
    assert found(C0, S0, window) == at_5((("o", (1, 3, 5)),))
    assert found(C0, S0, 3) == at_5()


def test_example_3_3_finds_more_than_a_chain():
    later, earlier = (("o", (1, 3, 5)),), (("o", (0, 1, 5)),)
    assert found(P0, S0) == at_5(earlier, later)
    assert found(P0, S0, 4) == at_5(later)


def test_the_hierarchical_query_of_section_4():
    automaton = Automaton.from_query(Q0)
    assert found(automaton, S0) == at_5(((0, (1,)), (1, (0,)), (2, (5,))), ((0, (1,)), (1, (3,)), (2, (5,))))
    assert found(automaton, S0, 4) == at_5(((0, (1,)), (1, (3,)), (2, (5,))))


def test_a_query_that_is_not_hierarchical_has_no_automaton():
    with pytest.raises(cqels.UsageError, match=r"\?x and \?y .*Theorem 4\.2"):
        Automaton.from_query([("T", "?x"), ("R", "?x", "?y"), ("S", 2, "?y"), ("T", "?x")])
    assert not_hierarchical([{"x"}, {"x", "y"}, {"y"}]) == ("x", "y")


def test_compact_q_trees():
    # Figure 3: R(x, y, z), S(x, y, v), T(x, w), U(x, y).
    tree = q_tree([{"x", "y", "z"}, {"x", "y", "v"}, {"x", "w"}, {"x", "y"}])
    assert str(tree) == "?x(?y(1 2 4) 3)"
    assert str(q_tree([{"x"}, {"y"}, {"x", "z"}])) == "(?x(1 3) 2)"
    assert str(q_tree([{"x", "y"}, {"x", "y"}])) == "?x ?y(1 2)"
    assert q_tree([{"x"}, {"x", "y"}, {"y"}]) is None


def test_without_self_joins_the_automaton_is_quadratic():
    for count in (4, 8, 16):
        chain = [("R0", "?x"), *((f"R{n}", "?x", *(f"?y{k}" for k in range(n))) for n in range(1, count))]
        assert len(Automaton.from_query(chain).transitions) <= count * count


def test_a_shared_vector_file():
    places = [parent / "shared/data/seeds/patterns/vectors.json" for parent in Path(__file__).parents]
    path = next((place for place in places if place.exists()), None)
    if path is None:
        pytest.skip("no vectors beside the repository")
    for vector in json.loads(path.read_text(encoding="utf-8")):
        kind = vector["kind"]
        if kind == "not_hierarchical":
            with pytest.raises(cqels.UsageError, match="not hierarchical"):
                Automaton.from_query(vector["atoms"])
        elif kind == "hcq_translation":
            theirs, ours = Automaton.from_json(vector["pcea"]), Automaton.from_query(vector["atoms"])
            stream = drawn_stream(Random(1), vector["atoms"], 14)
            assert found(theirs, stream) == found(ours, stream)
        else:
            automaton = Automaton.from_json(vector["pcea"]) if kind == "pcea" else Automaton.from_query(vector["atoms"])
            mine = [[dict(each) for each in matches] for matches in found(automaton, vector["stream"], vector["w"])]
            labels = {str(label): label for matches in mine for each in matches for label in each}
            theirs = [
                sorted(tuple((labels.get(label, label), tuple(places)) for label, places in each) for each in matches)
                for matches in vector["outputs"]
            ]
            assert [sorted(tuple(each.items()) for each in matches) for matches in mine] == theirs, vector["name"]


# --- the definitions, by brute force ------------------------------------------------------------------------------------


def drawn_stream(random, atoms, length):
    shapes = sorted({(atom[0], len(atom) - 1) for atom in atoms})
    return [
        (relation, *(random.randrange(2) for _ in range(width)))
        for relation, width in (random.choice(shapes) for _ in range(length))
    ]


def drawn_automaton(random):
    """States q0 to qn, transitions from earlier states and from the state itself."""
    relations, transitions = ("A", "B", "C"), []
    for state in range(random.randint(2, 5)):
        for again in range(random.randint(1, 2)):
            sources = random.sample(range(state + again), random.randint(0, min(2, state)))
            size = random.randint(0, 2)
            keys = {
                f"q{each}": (
                    {name: Key(random.choices(range(2), k=size)) for name in random.sample(relations, 2)},
                    {name: Key(random.choices(range(2), k=size)) for name in relations},
                )
                for each in sources
            }
            constants = {0: random.randrange(2)} if random.random() < 0.2 else {}
            predicate = Predicate(random.choice(relations), constants, [(0, 1)] if random.random() < 0.2 else [])
            transitions.append(Transition(keys, predicate, random.choice(["o", "p", "op"]), f"q{state}"))
    targets = sorted({each.target for each in transitions})
    return Automaton(transitions, final=random.sample(targets, random.randint(1, 2)))


@pytest.mark.parametrize("seed", range(60))
def test_automata_find_what_the_definition_says(seed):
    random = Random(seed)
    automaton = drawn_automaton(random)
    stream = drawn_stream(random, [("A", 0, 0), ("B", 0, 0), ("C", 0)], random.randint(1, 14))
    for window in (None, 4):
        expected = naive_automata.outputs(automaton, stream, window)
        assert found(automaton, stream, window) == expected
        again = Automaton.from_json(json.loads(json.dumps(automaton.to_json())))
        assert found(again, stream, window) == expected


QUERIES = [
    Q0,
    [("R", "?x", "?y", "?z"), ("S", "?x", "?y", "?v"), ("T", "?x", "?w"), ("U", "?x", "?y")],
    [("R", "?x", "?y"), ("R", "?x", "?z"), ("T", "?x")],
    [("R", "?x", "?y"), ("R", "?y", "?x")],
    [("R", "?x", "?x"), ("R", "?x", 1), ("T", "?x"), ("T", "?x")],
    [("T", "?x"), ("V", "?y"), ("S", "?x", "?z"), ("V", "?y")],
    [("T", 1)],
    [("R", "?x", "?y", "?z"), ("R", "?x", "?y", "?v"), ("R", "?x", "?w", "?w"), ("S", "?x", "?y")],
]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_queries_find_what_the_definition_says(number, seed):
    random = Random(seed)
    stream = drawn_stream(random, QUERIES[number], 9)
    for window in (None, 5):
        expected = naive_automata.query_outputs(QUERIES[number], stream, window)
        assert found(Automaton.from_query(QUERIES[number]), stream, window) == expected


# --- counted work -------------------------------------------------------------------------------------------------------

STAR = Automaton(
    [
        Transition({}, Predicate("A"), "a", "a"),
        Transition({"a": equal(("A", [0]), ("B", [0]))}, Predicate("B"), "b", "b"),
        Transition({"b": equal(("B", []), ("C", []))}, Predicate("C"), "c", "c"),
    ],
    final=["c"],
)
"""A(x), then B(x), then any C: the runs that C continues begin at times in any order."""


def zigzag(count):
    """Half of the tuples are A; the B after them take the newest and the oldest in turn."""
    yield from (("A", number) for number in range(count))
    for number in range(count):
        yield ("B", count - 1 - number // 2 if number % 2 else number // 2)


def live_trees(evaluation):
    """The trees within reach, by the runs in them."""
    nodes, meta = evaluation._nodes, evaluation._meta
    mask, tail = len(nodes) - 1, meta[kernel.TAIL]
    low = meta[kernel.SEEN] - 1 - evaluation._window if evaluation._window >= 0 else -(1 << 62)

    def contents(number):
        if heap.is_dead(nodes, number, low, tail):
            return []
        row = nodes[number & mask]
        content = nodes[row[heap.CONTENT] & mask]
        assert row[heap.START] == content[heap.START] >= low
        below = []
        for side in (heap.LEFT, heap.RIGHT):
            if not heap.is_dead(nodes, row[side], low, tail):
                # The heap order (5) of the paper.
                assert nodes[row[side] & mask, heap.START] <= row[heap.START]
                assert row[side] >= tail
                below += contents(row[side])
        return [int(row[heap.CONTENT]), *below]

    found = [contents(root) for root in evaluation._heads if root]
    for each in found:
        assert len(set(each)) == len(each)
    return [each for each in found if each]


@pytest.mark.parametrize("count", [256, 1024, 4096])
def test_an_insertion_takes_logarithmic_steps(count):
    evaluation = STAR.start(2 * count)
    evaluation.push_all(zigzag(count))
    assert max(map(len, live_trees(evaluation))) == count
    assert 2 < evaluation.longest_union <= 2 * log2(count)


def test_a_tuple_and_an_output_take_steps_that_do_not_depend_on_the_window():
    between, steps = [], []
    for window in (100, 1000, 4000):
        random = Random(1)
        evaluation = STAR.start(window)
        kinds = ("A", "B", "A", "B", "D")
        stream = [(random.choice(kinds), random.randrange(window)) for _ in range(3 * window)]
        evaluation.push_all([*stream, ("C", 0)])
        between.append(evaluation.most_between)
        steps.append(evaluation.most_steps)
    assert max(between) <= 3
    assert steps[2] - steps[0] <= 2 * log2(4000 / 100)


@pytest.mark.parametrize("seed", range(5))
def test_the_heap_holds_what_is_within_reach(seed):
    random = Random(seed)
    evaluation = STAR.start(20)
    entered = {}
    for position in range(300):
        relation, value = random.choice("ABBC"), random.randrange(12)
        evaluation.push((relation, value))
        trees = live_trees(evaluation)
        entered[position] = sum(map(len, trees))
        assert entered[position] <= 2 * 21
    assert max(entered.values()) > 10


def test_memory_stays_the_same_over_ever_new_keys():
    evaluation = STAR.start(50)
    sizes = set()
    for start in range(0, 20_000, 1000):
        evaluation.push_all(("AB"[n % 2], n // 2) for n in range(start, start + 1000))
        sizes.add(evaluation.nbytes)
    assert len(sizes) <= 2
    assert max(sizes) < 300_000


def test_many_valuations_of_one_tuple():
    evaluation = STAR.start()
    matches = evaluation.push_all([*(("A", n) for n in range(700)), *(("B", n) for n in range(700)), ("C", 0)])[-1]
    assert {each["a"][0] for each in matches} == set(range(700))
    assert evaluation.most_between <= 3


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "KeyError 'transitions'"),
        (
            {"transitions": [{"P": ["q"], "U": {"rel": "A"}, "B": {}, "L": ["o"], "q": "q"}], "final": []},
            "B says nothing",
        ),
        ({"transitions": [], "final": ["q"]}, "no transition leads into the final state 'q'"),
        ({"transitions": [{"P": [], "U": {"rel": "A"}, "B": {}, "L": [], "q": "q"}], "final": []}, "no label"),
    ],
)
def test_documents_that_are_no_automata(document, message):
    with pytest.raises(cqels.UsageError, match=message):
        Automaton.from_json(document)


def test_bad_input():
    with pytest.raises(cqels.UsageError, match="window of -1"):
        C0.start(-1)
    with pytest.raises(cqels.UsageError, match="an empty tuple"):
        C0.start().push(())
    with pytest.raises(cqels.UsageError, match="different lengths"):
        Transition({0: equal(("A", [0]), ("B", [0, 1]))}, Predicate("B"), "o", 1)
    with pytest.raises(cqels.UsageError, match="expected atoms"):
        Automaton.from_query([])
    assert isinstance(C0.start(3), Evaluation)
    assert np.array_equal(C0.start()._heads, np.zeros(64))
