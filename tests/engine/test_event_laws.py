"""Laws of EVENT blocks without windows: bounded queries keep their size, others grow, and what means nothing changes nothing."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations, groupby, product
from random import Random

import pytest
from rdflib import XSD, URIRef

import cqels_py as cqels
from cqels_py.engine.compile import compile_query
from tests.support.amount import ALL
from tests.support.drawn_events import EX, SECOND, START, STATIC, EventDrawer, drawn_elements
from tests.support.harness import run_engine

SEEDS = range(12)
PREFIX = f"PREFIX : <{EX}>\nPREFIX xsd: <{XSD}>\n"


def drawn(seed, count=16):
    """A query that is counted where it can be, and elements of its streams."""
    random = Random(f"laws {seed}")
    text = EventDrawer(random, 3).text()
    streams = compile_query(text).plan.streams
    return text, [each for each in drawn_elements(random, count) if str(each.stream) in streams]


def answers(text, elements, without=()):
    found = run_engine(text, elements, STATIC, batch=3, without=without)
    return Counter((result.time, result.mapping) for result in found)


# --- memory -------------------------------------------------------------------------------------------------------


def test_memory_of_bounded_queries_does_not_change_by_a_byte():
    """Numbers from a wide range that rise, fall or are drawn; the warm-up has the largest instants."""
    tested = 0
    for seed in range(90 if ALL else 30):
        text = EventDrawer(Random(f"bytes {seed}"), 3, all_rows=False).text()
        verdict = cqels.analyse(text).memory
        if verdict.kind == "bounded" and "way of writing" not in str(verdict) and "keeps nothing" not in str(verdict):
            tested += 1
            for value in (lambda n: n, lambda n: -n, lambda n: n * 7919 % 10_007):
                sizes = sizes_of(text, value)
                assert min(sizes) > 0
                assert len(set(sizes[250:])) == 1, text
    assert tested > (8 if ALL else 2)


def sizes_of(text, value):
    engine = cqels.Engine()
    query = engine.register(text, static=[list(STATIC.default)])
    query.subscribe_batches(lambda batch: None, ids=True)
    sizes = []
    for n in range(500):
        number = value(n) if n % 3 else n // 3 % 7
        triples = [
            (f"<{EX}e{n}>", f"<{EX}n>", f'"{number}"^^<{XSD}integer>'),
            (f"<{EX}e{n}>", f"<{EX}k>", f"<{EX}k{n % 3}>"),
        ]
        for stream in query.streams:
            engine.push(stream, triples, time=START + n // 2 * SECOND)
        sizes.append(query.nbytes)
    return sizes


@dataclass(frozen=True)
class Query:
    """Streams 0 to n - 1 with a number each. `times`, `numbers`: comparisons (stream, operator, stream)."""

    streams: int
    times: tuple[tuple[int, str, int], ...]
    numbers: tuple[tuple[int, str, int], ...]
    shown: tuple[int, ...]
    few: tuple[int, ...]

    def text(self):
        blocks = " ".join(
            f"EVENT ON :s{i} AT ?t{i} {{ ?e{i} :n ?n{i} FILTER(DATATYPE(?n{i}) = xsd:integer"
            f"{f' && ?n{i} > 0 && ?n{i} < 5' if i in self.few else ''}) }}"
            for i in range(self.streams)
        )
        tests = [
            f"?{kind}{i} {o} ?{kind}{j}" for kind in "tn" for i, o, j in (self.times if kind == "t" else self.numbers)
        ]
        shown = " ".join(f"?n{i}" for i in self.shown) or "(1 AS ?one)"
        return f"{PREFIX}SELECT {shown} WHERE {{ {blocks} {' '.join(f'FILTER({each})' for each in tests)} }}"

    def answers(self, elements):
        """The rows of all combinations of elements (time, stream, number), by brute force."""
        found = Counter()
        for row in product(*([e for e in elements if e[1] == i] for i in range(self.streams))):
            ok = all(0 < row[i][2] < 5 for i in self.few)
            ok = ok and all(HOLDS[o](row[i][0], row[j][0]) for i, o, j in self.times)
            if ok and all(HOLDS[o](row[i][2], row[j][2]) for i, o, j in self.numbers):
                found[tuple(row[i][2] for i in self.shown)] += 1
        return found


HOLDS = {"<": lambda a, b: a < b, ">": lambda a, b: a > b, "=": lambda a, b: a == b, "!=": lambda a, b: a != b}


def drawn_query(random):
    streams = random.choice((2, 3))
    pairs = list(combinations(range(streams), 2))
    times = tuple((i, random.choice("<>>="), j) for i, j in pairs if random.random() < 0.6)
    numbers = tuple((i, random.choice(("<", ">", "=", "!=")), j) for i, j in pairs if random.random() < 0.5)
    some = [tuple(i for i in range(streams) if random.random() < p) for p in (0.3, 0.4)]
    return Query(streams, times, numbers, *some)


def distinguishable(query, count, random):
    """How many of the 2^count subsets of elements have to be told apart, in the best of some families.

    A family has `count` groups of elements of a part of the streams, far from each other in value. Two subsets of groups are told
    apart by what the same later elements add to the answers.
    """
    best = 0
    for _ in range(1_500):
        order = random.sample(range(query.streams), query.streams)
        cut = random.randint(1, query.streams - 1)
        alike = random.random() < 0.5
        widest = random.choice((0, 1))
        offset = {i: random.randint(-widest, widest) for i in order}
        # Some streams have the same value in each group.
        step = {i: 0 if i in query.few else 10 if alike else random.choice((0, 10, 10)) for i in order}
        least = {i: 2 if i in query.few else 10 if alike else random.choice((2, 10, -50)) for i in order}

        def value(i, group, offset=offset, step=step, least=least):
            return least[i] + step[i] * group + offset[i]

        tied = random.random() < 0.5
        early = [[(0 if tied else n, i, value(i, g)) for n, i in enumerate(order[:cut])] for g in range(count)]
        late = [
            [(9 if tied else 9 + n, i, value(i, g) + 5 * shift * (step[i] > 0)) for n, i in enumerate(order[cut:])]
            for g in range(count)
            for shift in (0, 1, -1)
        ]
        residuals = set()
        for chosen in product((False, True), repeat=count):
            prefix = [each for group, taken in zip(early, chosen, strict=True) if taken for each in group]
            before = query.answers(prefix)
            added = (query.answers(prefix + suffix) - before for suffix in late)
            residuals.add(tuple(frozenset(each.items()) for each in added))
        best = max(best, len(residuals))
        if best == 2**count:
            break
    return best


def test_what_is_not_bounded_has_to_tell_ever_more_apart():
    tested = 0
    for seed in range(60):
        random = Random(f"grows {seed}")
        query = drawn_query(random)
        if cqels.analyse(query.text()).memory.kind == "not bounded":
            tested += 1
            assert [distinguishable(query, count, random) for count in (2, 3)] == [4, 8], query.text()
    assert tested > 15


# --- changes that mean nothing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_within_an_instant_and_a_shift_of_time_change_nothing(seed):
    text, elements = drawn(seed)
    expected = answers(text, elements)
    random, shuffled = Random(seed), []
    for _, those in groupby(elements, key=lambda each: each.time):
        instant = list(those)
        shuffled += random.sample(instant, len(instant))
    assert answers(text, shuffled) == expected
    shift = 86_400 * SECOND
    later = [replace(each, time=each.time + shift) for each in elements]
    moved = text.replace("2024-01-01T", "2024-01-02T")
    assert answers(moved, later) == Counter({(time + shift, row): n for (time, row), n in expected.items()})
    assert str(cqels.analyse(moved).memory).replace("-02T", "-01T") == str(cqels.analyse(text).memory)


@pytest.mark.parametrize("seed", SEEDS)
def test_names_of_streams_variables_and_constants_do_not_matter(seed):
    text, elements = drawn(seed)
    names = {"s": "z9", "t": "a1", "u": "m", "v": "b"}
    renamed = re.sub(r"ON :([stuv])\b", lambda found: f"ON :{names[found[1]]}", text)
    renamed = re.sub(r"\?(i|e)(\d)", r"?z\1\2", renamed).replace("?k1", "?aa1").replace("?n3", "?a3")
    moved = [replace(each, stream=URIRef(EX + names[str(each.stream)[len(EX) :]])) for each in elements]
    back = {"aa1": "k1", "a3": "n3"}
    found = answers(renamed, moved)
    again = Counter(
        {(t, frozenset((type(v)(back.get(str(v), str(v))), o) for v, o in row)): n for (t, row), n in found.items()}
    )
    assert again == answers(text, elements)
    one, other = cqels.analyse(text).memory, cqels.analyse(renamed).memory
    assert (one.kind, len(one.blame)) == (other.kind, len(other.blame))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_implied_condition_changes_nothing(seed):
    text, elements = drawn(seed)
    mirrored = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
    implied = "".join(
        f" FILTER({right} {mirrored[operator]} {left})"
        for left, operator, right in re.findall(r"FILTER\((\?[in]\d) ([<>=!]+) (\?[in]\d)\)", text)
    )
    pattern, brace, rest = text.rpartition("}")
    if "UNION" in text or not implied:
        pytest.skip("nothing to imply")
    more = f"{pattern}{implied} {brace}{rest}"
    assert answers(more, elements) == answers(text, elements)
    assert str(cqels.analyse(more).memory) == str(cqels.analyse(text).memory)


def test_what_follows_from_times_and_numbers_changes_nothing():
    query = Query(3, ((0, ">", 1), (1, ">", 2)), ((0, ">", 1), (1, ">", 2)), (0, 1), (1,))
    more = replace(query, times=(*query.times, (0, ">", 2)), numbers=(*query.numbers, (0, ">", 2)))
    verdicts = [cqels.analyse(each.text()).memory for each in (query, more)]
    assert str(verdicts[0]) == str(verdicts[1])


@pytest.mark.parametrize("seed", range(40))
def test_a_condition_on_one_block_never_makes_a_bounded_query_unbounded(seed):
    random = Random(f"narrow {seed}")
    query = drawn_query(random)
    text = query.text()
    pattern, brace, _ = text.rpartition("}")
    number = f"?n{random.randrange(query.streams)}"
    narrow = (
        f"{number} > 3",
        f"{number} < 40",
        f"{number} IN (1, 2)",
        f"{number} = 4",
        f"{number} != 7",
        f"{number} >= 2.5",
    )
    before = cqels.analyse(text).memory.kind
    for each in narrow:
        after = cqels.analyse(f"{pattern} FILTER({each}) {brace}").memory.kind
        assert before != "bounded" or after == "bounded", (text, each)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rows_of_a_bag_are_those_of_distinct(seed):
    text, elements = drawn(seed)
    bag = text.replace("SELECT DISTINCT", "SELECT")
    rows = {row for _, row in answers(bag, elements)}
    distinct = answers(bag.replace("SELECT", "SELECT DISTINCT"), elements)
    assert {row for _, row in distinct} == rows
    assert sum(distinct.values()) == len(rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_counters_give_the_rows_of_the_join_on_all(seed):
    text, elements = drawn(seed, 24)
    assert answers(text, elements) == answers(text, elements, without=("count_events",))
