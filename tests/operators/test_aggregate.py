"""GROUP BY with aggregates against the oracle's aggregates, at every tick."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from rdflib import XSD, Literal, Variable

from cqels_py.algebra.nodes import AggregateCall, VariableRef
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.aggregates import accumulators as aggregate_kernel
from cqels_py.operators.r2r import aggregate as aggregate_operator
from cqels_py.operators.r2r.aggregate import Aggregate, GroupBy
from cqels_py.state.named_values import restore, values_of
from cqels_py.terms.rdf import to_rdflib
from tests.operators.deltas import Live, Port, Row, assert_follows, changes, delta, random_steps
from tests.operators.plain_dictionary import typed
from tests.oracle import naive_aggregates
from tests.oracle.naive_values import ExpressionError, Term, canonical
from tests.support.harness import _term_key as term_key

V = Variable("v")
ANY_TICK = Ticks(np.zeros(10_000, np.int64), first=False)
BOTH = (False, True)

# Sums of doubles and floats are exact here: all are multiples of a quarter.
INTEGERS = [typed(text, "integer") for text in ("0", "1", "-7", "05", "360287970189")]
LARGE = [
    typed("123456789012345678901", "integer"),
    typed("-1234567890123456789012", "integer"),
    typed("36028797018963967", "integer"),
]
NEAR_BOUNDS = [
    *(typed(text, "double") for text in ("1844700000000000.5", "-922337203685477.5", "3602879701896396.5", "2.5")),
    *(typed(text, "integer") for text in ("1845000000000000000", "922337203685477632", "-36028797018963968")),
]
"""Sums of a few are near 2^55, 2^63, 2^64 and their tenths. All are exact as doubles."""
EXACT_NEAR_BOUNDS = [
    *NEAR_BOUNDS[4:],
    *(
        typed(text, "decimal")
        for text in ("922337203685477580.7", "-184467440737095516.15", "3602879701896396.7", "0.5")
    ),
]
DECIMALS = [typed(text, "decimal") for text in ("0.0", "1.5", "-1.50", "12.345678", "-0.01", ".5", "9999999999999.75")]
DOUBLES = [typed("2.5", "double"), typed("25E-2", "double"), typed("-3", "double"), typed("1.5E1", "double")]
FLOATS = [typed("0.5", "float"), typed("1.25", "float"), typed("2E0", "float")]
SIZES = [typed(text, "double") for text in ("1e300", "-1e150", "3e43", "1e0", "-1.37e-174", "5e-324")]
SPECIAL = [typed("INF", "double"), typed("-INF", "double"), typed("NaN", "double"), typed("1.5", "float")]
OTHERS = ["<urn:a>", "<urn:b>", '"a"', '"b"', '"b"@en', "_:x", typed("true", "boolean"), '"1"^^<urn:t>', None]
DAY_TIMES = [
    typed(text, "dayTimeDuration") for text in ("PT1H", "PT60M", "-P1DT0.5S", "PT0S", "PT1.000000000000000001S")
]
YEAR_MONTHS = [typed(text, "yearMonthDuration") for text in ("P1Y", "P12M", "-P5M", "P0M", "-P7M")]
POOLS: dict[str, Sequence[str | None]] = {
    "integers": INTEGERS,
    "large integers": LARGE,
    "decimals": [*INTEGERS, *DECIMALS],
    "floats": [*INTEGERS[:3], *DECIMALS[:3], *FLOATS],
    "doubles": [*INTEGERS[:4], *DECIMALS[:3], *FLOATS, *DOUBLES],
    "special": [*DOUBLES, *SPECIAL],
    "all sizes": [*SIZES, *FLOATS],
    "near the bounds of words": NEAR_BOUNDS,
    "exact near the bounds of words": EXACT_NEAR_BOUNDS,
    "numbers and unbound": [*INTEGERS[:3], None],
    "days and seconds": DAY_TIMES,
    "months": YEAR_MONTHS,
    "durations and others": [
        *DAY_TIMES,
        *YEAR_MONTHS[:2],
        *INTEGERS[:2],
        FLOATS[0],
        typed("P1M", "dayTimeDuration"),
        typed("PT1H", "duration"),
        None,
    ],
    "anything": [*INTEGERS[:3], *DECIMALS[:2], *DOUBLES, *OTHERS],
    "seldom other than integers": [*INTEGERS * 5, DOUBLES[0], DECIMALS[1], LARGE[0], None],
}
DATES = [typed(text, "dateTime") for text in ("2020-01-01T00:00:00Z", "2019-01-01T00:00:00.5", "0001-01-01T00:00:00Z")]


class Terms:
    """A dictionary with what the oracle needs of it."""

    def __init__(self) -> None:
        self.dictionary = Dictionary()
        self.values = DictionaryValues(self.dictionary)
        self._known: dict[int, Term | None] = {0: None}

    def ids(self, texts: Sequence[str | None]) -> list[int]:
        return [int(i) for i in self.dictionary.encode(list(texts))]

    def term(self, identifier: int) -> Term | None:
        if identifier not in self._known:
            (text,) = self.dictionary.decode(np.array([identifier]))
            assert text is not None
            self._known[identifier] = canonical(to_rdflib(text))
        return self._known[identifier]


def seen(term: Term | None) -> Hashable:
    """Numbers by datatype and value; doubles to twelve digits, as their means have sixteen, and floats to six."""
    if isinstance(term, Literal) and term.datatype in (XSD.double, XSD.float):
        digits = 12 if term.datatype == XSD.double else 6
        return str(term.datatype), f"{float(str(term)):.{digits}g}"
    return None if term is None else term_key(term)


def bound_value(_: object, solution: Mapping[Variable, Term]) -> Term:
    if V not in solution:
        raise ExpressionError("unbound")
    return solution[V]


def groups(live: Live, keys: int, aggregates: Sequence[Aggregate], terms: Terms) -> Iterator[tuple[Hashable, ...]]:
    """The rows of the answer: keys, then the oracle's aggregates."""
    members: dict[Row, list[Row]] = {} if keys else {(): []}
    for row in live[0]:
        members.setdefault(row[:keys], []).append(row)
    for key, rows in members.items():
        found = [terms.term(row[keys]) for row in rows]
        solutions = [{} if term is None else {V: term} for term in found]
        results = []
        for aggregate in aggregates:
            argument = None if aggregate.argument is None else VariableRef(V)
            function = aggregate.function.removesuffix("(*)")
            call = AggregateCall(function, argument, aggregate.distinct, aggregate.separator)
            results.append(seen(naive_aggregates.evaluate(call, solutions, bound_value)))
        yield (*key, *results)


def all_aggregates(column: int) -> list[Aggregate]:
    found = [Aggregate("COUNT(*)", None)]
    found += [Aggregate(name, column, distinct) for name in ("COUNT", "SUM", "AVG") for distinct in BOTH]
    found += [Aggregate("GROUP_CONCAT", column), Aggregate("GROUP_CONCAT", column, distinct=True, separator='"\n')]
    found += [Aggregate(name, column, distinct) for name in ("MIN", "MAX") for distinct in BOTH]
    return [*found, Aggregate("SAMPLE", column)]


@pytest.mark.parametrize(("seed", "expires_fifo"), [(0, False), (1, False), (0, True), (1, True)])
@pytest.mark.parametrize("keys", [0, 1, 2])
@pytest.mark.parametrize("pool", [*POOLS, "dates"])
def test_every_tick_has_the_groups_difference(pool: str, keys: int, seed: int, expires_fifo: bool) -> None:
    assert_has_groups(pool, keys, seed, expires_fifo)


@pytest.mark.parametrize("expires_fifo", BOTH)
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_chunks_end_with_any_row(rows: int, expires_fifo: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # A tick has up to four rows: more than there is room for, or several ticks fill it up.
    monkeypatch.setattr(aggregate_operator, "_CHUNK", rows)
    monkeypatch.setattr(aggregate_operator, "_SMALLEST_CHUNK", 1)
    monkeypatch.setattr(aggregate_operator, "_SMALLEST_QUEUE", 1)
    for seed in range(3):
        assert_has_groups("anything", 1, seed, expires_fifo)


@pytest.mark.parametrize("expires_fifo", BOTH)
@pytest.mark.parametrize("keys", [0, 1, 2])
@pytest.mark.parametrize("pool", [*POOLS, "dates"])
def test_an_average_alone_is_the_same_as_with_other_aggregates(
    pool: str, keys: int, expires_fifo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [Aggregate("AVG", keys)]
    for seed in range(3):
        assert_has_groups(pool, keys, seed, expires_fifo, alone)
    monkeypatch.setattr(aggregate_operator, "_CHUNK", 7)
    assert_has_groups(pool, keys, 3, expires_fifo, alone)


def assert_has_groups(
    pool: str, keys: int, seed: int, expires_fifo: bool, aggregates: Sequence[Aggregate] | None = None
) -> None:
    """The changes at each tick of random steps are those of the oracle's groups. `aggregates`: not all that there are."""
    terms = Terms()
    arguments = terms.ids(DATES if pool == "dates" else POOLS[pool])
    group_keys = terms.ids(["<urn:g>", "<urn:h>", typed("1", "integer")])
    aggregates = aggregates or all_aggregates(keys)
    operator = GroupBy(range(keys), aggregates, terms.values, expires_fifo=expires_fifo)

    def view(row: Row) -> tuple[Hashable, ...]:
        return (*row[:keys], *(seen(terms.term(i)) for i in row[keys:]))

    # Keys and arguments are drawn as numbers, and replaced.
    steps = list(random_steps(seed, [Port(keys + 1, expires_fifo, range(60))], 12, 6, 10))

    def placed(row: Row) -> Row:
        return (*(group_keys[x % 3] for x in row[:keys]), arguments[row[keys] % len(arguments)])

    for step in steps:
        step.inputs[0][:] = [(tick, sign, placed(row)) for tick, sign, row in step.inputs[0]]
        for live in step.live:
            live[0][:] = [placed(row) for row in live[0]]
    assert_follows(
        operator, [keys + 1], steps, lambda live: groups(live, keys, aggregates, terms), chunk=3 * seed, view=view
    )


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_average_is_not_rounded_left_of_the_units(times: int) -> None:
    """As division has it."""
    terms = Terms()
    (large,) = terms.ids(LARGE[:1])
    operator = GroupBy([], [Aggregate("AVG", 0)], terms.values)
    found = changes(operator.process(ANY_TICK, [[delta([(0, 1, (large,))] * times, 1)]]))
    ((row, _),) = found[0].items()
    assert str(terms.term(int(row[0]))) == "123456789012345678901"  # type: ignore[call-overload]


def test_the_single_group_is_there_from_the_first_tick_on() -> None:
    terms = Terms()
    operator = GroupBy([], [Aggregate("COUNT(*)", None), Aggregate("SUM", 0), Aggregate("MIN", 0)], terms.values)
    zero, one, five = terms.ids([typed(text, "integer") for text in ("0", "1", "5")])
    first = Ticks(np.zeros(2, np.int64), first=True)
    assert changes(operator.process(first, [[]])) == {0: {(zero, zero, 0): 1}}
    assert changes(operator.process(ANY_TICK, [[]])) == {}
    found = changes(operator.process(ANY_TICK, [[delta([(0, 1, (five,))], 1)]]))
    assert found == {0: {(zero, zero, 0): -1, (one, five, five): 1}}


def test_an_unchanged_value_is_in_no_result() -> None:
    terms = Terms()
    five, six = terms.ids([typed(text, "integer") for text in ("5", "6")])
    operator = GroupBy([0], [Aggregate("MAX", 1)], terms.values)
    assert changes(
        operator.process(ANY_TICK, [[delta([(0, 1, (1, six)), (1, 1, (1, five)), (2, -1, (1, five))], 2)]])
    ) == {0: {(1, six): 1}}


def test_an_average_alone_has_a_sum_of_more_than_64_bits() -> None:
    terms = Terms()
    largest = (1 << 55) - 1
    (number,) = terms.ids([typed(str(largest), "integer")])
    operator = GroupBy([0], [Aggregate("AVG", 1)], terms.values)
    events = [(tick, 1 if tick < 600 else -1, (7, number)) for tick in range(1_199)]
    made = [chunk for chunk in operator.process(ANY_TICK, [[delta(events, 2)]]) if len(chunk)]
    # The average of equal numbers never changes.
    assert [len(chunk) for chunk in made] == [1]
    assert terms.term(int(made[0].columns[1, 0])) == Literal(str(largest), datatype=XSD.decimal)


def test_a_tick_of_numbers_of_two_kinds_gives_a_group_one_row() -> None:
    terms = Terms()
    one, half = terms.ids([typed("1", "integer"), typed("0.5", "double")])
    operator = GroupBy([0], [Aggregate("AVG", 1)], terms.values)
    (made,) = operator.process(ANY_TICK, [[delta([(0, 1, (7, one)), (0, 1, (8, one)), (0, 1, (7, half))], 2)]])
    assert sorted(made.columns[0].tolist()) == [7, 8]


@pytest.mark.parametrize(
    "numbers",
    [
        [("integer", str(-(10**20) - 7)), ("double", "1.0E20"), ("double", "0.1")],
        [("integer", str(2**63)), ("integer", str(-(2**63))), ("double", "0.5"), ("double", "1.0E-20")],
        [("decimal", "123456789012345678901.25"), ("double", "-1.23456789012345678E20")],
        [("integer", str(10**36 + 12345)), ("double", "-1.0E36")],
        [("integer", str(-(10**36) - 12345)), ("double", "1.0E36"), ("double", "1.0E-20")],
        [("decimal", "0." + "3" * 30), ("double", "1.0E-30"), ("double", "-0.25")],
    ],
)
def test_exact_numbers_and_doubles_that_cancel_out(numbers: list[tuple[str, str]]) -> None:
    """The separate sum is added to the exact sum with all digits of both."""
    terms = Terms()
    operator = GroupBy([], [Aggregate("SUM", 0)], terms.values)
    ids = terms.ids([typed(text, kind) for kind, text in numbers])
    (found,) = changes(operator.process(ANY_TICK, [[delta([(0, 1, (i,)) for i in ids], 1)]])).values()
    ((row, _),) = found.items()
    total = terms.term(row[0])  # type: ignore[arg-type]
    exact = sum(Fraction(float(text)) if "E" in text else Fraction(text) for _, text in numbers)
    assert float(str(total)) == pytest.approx(float(exact), rel=1e-13)


def test_retracted_doubles_leave_no_error_behind() -> None:
    """0.1 + 0.2 - 0.1 - 0.2 is 0, and a retracted large double leaves no rounding error behind."""
    terms = Terms()
    tenth, fifth, huge = terms.ids([typed(text, "double") for text in ("0.1", "0.2", "1.0E300")])
    operator = GroupBy([], [Aggregate("SUM", 0)], terms.values)
    arriving = [(0, 1, (x,)) for x in (tenth, huge, fifth)]
    leaving = [(1, -1, (x,)) for x in (huge, tenth)]
    list(operator.process(Ticks(np.zeros(2, np.int64), first=True), [[delta([*arriving, *leaving], 1)]]))
    (found,) = changes(operator.process(ANY_TICK, [[delta([(0, 1, (tenth,))], 1)]])).values()
    ((row, _),) = ((row, sign) for row, sign in found.items() if sign > 0)
    assert str(terms.term(row[0])) == "0.3"  # type: ignore[arg-type]


def test_a_sum_beyond_128_bits_stops_the_query() -> None:
    terms = Terms()
    (large,) = terms.ids([typed(str(2**125), "integer")])
    operator = GroupBy([], [Aggregate("SUM", 0)], terms.values)
    with pytest.raises(RunError, match="does not fit 128 bits"):
        list(operator.process(ANY_TICK, [[delta([(0, 1, (large,))] * 5, 1)]]))


def test_a_missing_mapping_cannot_be_retracted() -> None:
    operator = GroupBy([0], [Aggregate("COUNT(*)", None)], Terms().values)
    with pytest.raises(AssertionError, match="retracted"):
        list(operator.process(ANY_TICK, [[delta([(0, -1, (1,))], 1)]]))


@pytest.mark.parametrize("expires_fifo", BOTH)
def test_state_follows_the_groups_that_are_alive(expires_fifo: bool) -> None:
    """Ever-new groups, each of thirty mappings with ever-new values: index, heaps and values of DISTINCT do not grow."""
    terms = Terms()
    operator = GroupBy([0], [Aggregate("MIN", 1), Aggregate("COUNT", 1, True)], terms.values, expires_fifo=expires_fifo)
    numbers = terms.ids([typed(str(i), "integer") for i in range(12_000)])
    sizes = []
    for turn in range(400):
        old = [(0, -1, (turn, numbers[(turn - 1) * 30 + i])) for i in range(30)] if turn else []
        new = [(0, 1, (turn + 1, numbers[turn * 30 + i])) for i in range(30)]
        changes(operator.process(ANY_TICK, [[delta([*old, *new], 2)]]))
        sizes.append(operator.nbytes)
    assert sizes[-1] == sizes[200]


@pytest.mark.parametrize("distinct", BOTH)
@pytest.mark.parametrize("at_a_tick", [1, 7, 100])
def test_one_batch_may_bring_any_number_of_groups(at_a_tick: int, distinct: bool) -> None:
    """Groups are inserted and retracted, a hundred at a time: the index grows within the batch, and only as far as
    needed."""
    terms = Terms()
    operator = GroupBy([1], [Aggregate("COUNT", 0, distinct), Aggregate("MAX", 0)], terms.values)
    (one,) = terms.ids([typed("1", "integer")])
    events, expected = [], {}
    for group in range(1, 1001):
        tick = group // at_a_tick
        if group > 100:
            events.append((tick, -1, (one, group - 100)))
            expected[(tick, group - 100)] = -1
        events.append((tick, 1, (one, group)))
        expected[(tick, group)] = 1
    found = changes(operator.process(ANY_TICK, [[delta(events, 2)]]))
    assert {(tick, row[0]): n for tick, rows in found.items() for row, n in rows.items()} == expected
    assert {row[1:] for rows in found.values() for row in rows} == {(one, one)}
    assert operator.index.capacity <= 512


def test_any_number_of_groups_may_change_at_a_tick_and_in_a_batch() -> None:
    """More than are delivered together, with interruptions: bags and texts grow again and again."""
    terms = Terms()
    numbers = terms.ids([typed(str(i), "integer") for i in range(5)])
    aggregates = [Aggregate("AVG", 1), Aggregate("MAX", 1), Aggregate("GROUP_CONCAT", 1)]
    operator = GroupBy([0], aggregates, terms.values)
    events = [(0, 1, (group, numbers[i])) for i in (1, 3) for group in range(1, 2501)]
    events += [(group, 1, (group, numbers[4])) for group in range(1, 1501)]
    events += [(2000, -1, (group, numbers[3])) for group in range(1, 2501)]
    found = changes(
        operator.process(ANY_TICK, [[delta(events, 2)]]), lambda row: (row[0], *(str(terms.term(i)) for i in row[1:]))
    )
    both, three = ("2", "3", "1 3"), ("2.666666666666666667", "4", "1 3 4")
    expected = {0: {(group, *both): 1 for group in range(1, 2501)}}
    expected |= {group: {(group, *both): -1, (group, *three): 1} for group in range(1, 1501)}
    expected[2000] = {(group, *(three if group <= 1500 else both)): -1 for group in range(1, 2501)}
    expected[2000] |= {
        (group, *(("2.5", "4", "1 4") if group <= 1500 else ("1", "1", "1"))): 1 for group in range(1, 2501)
    }
    assert found == expected


class CountedTexts(DictionaryValues):
    """Counts the texts that are built."""

    built = 0

    def joined(self, values: Ids, start: Ids, length: Ids, separators: Sequence[str]) -> Ids:
        self.built += len(start)
        return super().joined(values, start, length, separators)


def test_a_text_is_built_once_a_tick_for_groups_whose_values_change() -> None:
    terms = Terms()
    values = CountedTexts(terms.dictionary)
    one, two = terms.ids([typed("1", "integer"), typed("2", "integer")])
    operator = GroupBy([0], [Aggregate("COUNT(*)", None), Aggregate("GROUP_CONCAT", 1, distinct=True)], values)
    groups = [(group, one) for group in terms.ids([f"<urn:{n}>" for n in range(5)])]
    list(operator.process(ANY_TICK, [[delta([(0, 1, row) for row in groups * 3], 2)]]))
    assert values.built == 5
    # A value that is there already changes nothing, as long as one copy of it is left.
    list(operator.process(ANY_TICK, [[delta([(0, 1, groups[0]), (1, -1, groups[0]), (1, -1, groups[1])], 2)]]))
    assert values.built == 5
    list(operator.process(ANY_TICK, [[delta([(0, 1, (groups[2][0], two)), (0, 1, (groups[2][0], one))], 2)]]))
    assert values.built == 6


def test_a_group_that_comes_again_has_its_own_text() -> None:
    terms = Terms()
    one, two, group = terms.ids([typed("1", "integer"), typed("2", "integer"), "<urn:g>"])
    operator = GroupBy([0], [Aggregate("GROUP_CONCAT", 1)], terms.values)
    events = [
        (0, 1, (group, one)),
        (1, -1, (group, one)),
        (2, 1, (group, two)),
        (3, -1, (group, two)),
        (4, 1, (group, 0)),
    ]
    found = changes(operator.process(ANY_TICK, [[delta(events, 2)]]), lambda row: (str(terms.term(row[1])),))
    assert found == {0: {("1",): 1}, 1: {("1",): -1}, 2: {("2",): 1}, 3: {("2",): -1}, 4: {("",): 1}}


@pytest.mark.parametrize("function", ["MIN", "MAX", "GROUP_CONCAT"])
@pytest.mark.parametrize("there", [1, 2, 7])
def test_a_missing_value_is_not_mistaken_for_another(there: int, function: str) -> None:
    terms = Terms()
    group, other, *values = terms.ids(["<urn:g>", *(typed(str(n), "integer") for n in range(there + 1))])
    operator = GroupBy([0], [Aggregate(function, 1)], terms.values)
    events = [(0, 1, (group, value)) for value in values]
    with pytest.raises(AssertionError, match="retracted mapping was never inserted"):
        list(operator.process(ANY_TICK, [[delta([*events, (1, -1, (group, other))], 2)]]))


def test_a_double_with_an_exponent_is_summed_as_without() -> None:
    dictionary = Dictionary()
    written = [
        "2.345E1",
        "-1e-3",
        "1.50E2",
        "0E0",
        "1.7e308",
        "INF",
        "1.2345678901234567890E0",
        "3.6028797018963968E16",
    ]
    numbers = DictionaryValues(dictionary).numbers(dictionary.encode([typed(text, "double") for text in written]))
    assert dictionary.decode(numbers.ids[:3]) == [typed(text, "double") for text in ("23.45", "-0.001", "150")]
    assert not numbers.ids[3:].any()
    assert numbers.real.tolist() == [float(text) for text in written]


def test_numbers_that_cannot_be_summed_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    dictionary = Dictionary()
    values = DictionaryValues(dictionary)
    long = [typed("9" * digits, "integer") for digits in (37, 38, 60)] + [typed("0." + 39 * "1", "decimal")]
    kinds = values.numbers(dictionary.encode(long)).kind
    assert kinds.tolist() == [aggregate_kernel.HASHED_INTEGER, *[aggregate_kernel.HASHED_ERROR] * 3]
    values.numbers(dictionary.encode(long))
    assert [record.getMessage() for record in caplog.records] == [
        f"SUM and AVG add numbers of up to 37 digits; {38 * '9'} has more, so that sums and averages over it are unbound"
    ]


def test_a_copy_goes_on_in_memory_of_its_own() -> None:
    """Its record has the addresses of others, which are elsewhere in the copy."""
    terms = Terms()
    one, two = terms.ids([typed("1", "integer"), typed("2", "integer")])
    aggregates = [Aggregate("COUNT", 1, distinct=True), Aggregate("MIN", 1), Aggregate("SUM", 1)]
    operator = GroupBy([0], aggregates, terms.values)
    others = [(0, 1, (group, two)) for group in range(100, 300)]
    changes(operator.process(ANY_TICK, [[delta([(0, 1, (7, two)), *others], 2)]]))
    copy = GroupBy([0], aggregates, terms.values)
    restore(copy, values_of(operator))
    for each in (copy, operator):
        found = changes(each.process(ANY_TICK, [[delta([(0, 1, (7, one)), (0, 1, (7, two))], 2)]]))[0]
        ((_, count, least, total),) = (row for row, sign in found.items() if sign > 0)
        assert [count, least, total] == terms.ids([typed(n, "integer") for n in ("2", "1", "5")])
