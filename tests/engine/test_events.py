"""EVENT blocks outside of MATCH: all elements ever, joined by counters where memory is bounded."""

from __future__ import annotations

from random import Random

import pytest
from rdflib import XSD, Literal, URIRef

import cqels_py as cqels
from cqels_py.dataflow.counted_join import CountedJoinScan
from cqels_py.engine.compile import compile_query
from cqels_py.plan.nodes import CountedJoin
from cqels_py.plan.traverse import nodes_of
from tests.oracle.naive import Element
from tests.oracle.naive_algebra import TooManyPairs
from tests.support.drawn_events import EX, SECOND, START, STATIC, EventDrawer, drawn_elements
from tests.support.harness import assert_engine_right, run_engine

PREFIX = f"PREFIX : <{EX}>\nPREFIX xsd: <{XSD}>\n"
INTEGER = "DATATYPE(?{0}) = xsd:integer"
# A reading above a threshold level that was set after a reset.
LEVELS = f"""{PREFIX}SELECT ?reading ?level WHERE {{
  EVENT ON :readings AT ?i {{ ?s :value ?reading }}
  EVENT ON :thresholds AT ?j {{ ?t :level ?level FILTER(0 < ?level && ?level < 5 && DATATYPE(?level) = xsd:integer) }}
  EVENT ON :resets AT ?k {{ ?u a :Reset }}
  FILTER(?i > ?j && ?j > ?k && ?reading > ?level)
}}"""


def counted(text):
    return [node for node in nodes_of(compile_query(text).plan.root) if isinstance(node, CountedJoin)]


def element(second, stream, *pairs):
    subject = URIRef(f"{EX}e{second}{stream}")
    return Element(START + second * SECOND, URIRef(EX + stream), tuple((subject, URIRef(EX + p), o) for p, o in pairs))


def reading(second, value):
    return element(second, "readings", ("value", Literal(value)))


def threshold(second, level):
    return element(second, "thresholds", ("level", Literal(level)))


def reset(second):
    subject = URIRef(f"{EX}u")
    kind = URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    return Element(START + second * SECOND, URIRef(f"{EX}resets"), ((subject, kind, URIRef(f"{EX}Reset")),))


def told(text, elements, batch=None):
    found = run_engine(text, elements, batch=batch)
    return [((r.time - START) // SECOND, sorted(str(term) for _, term in r.mapping)) for r in found]


@pytest.mark.parametrize("batch", [1, 2, None])
def test_results_come_at_the_instant_of_their_last_element(batch):
    elements = [
        reading(0, 42), threshold(0, 3), reset(1), threshold(2, 2), reset(3), threshold(4, 1), reading(5, 42), threshold(5, 3),
    ]  # fmt: skip
    # A threshold of the same instant as the reading is not earlier than it; two resets came before the last threshold.
    assert sorted(told(LEVELS, elements, batch)) == [(5, ["1", "42"]), (5, ["1", "42"]), (5, ["2", "42"])]


def test_an_instant_is_complete_when_time_moves_on():
    engine = cqels.Engine()
    query = engine.register(f"{PREFIX}SELECT ?a WHERE {{ EVENT ON :s {{ ?x :n ?a }} }}")
    engine.push(f"{EX}s", [(f"<{EX}e>", f"<{EX}n>", '"1"')], time=START)
    assert list(query.results()) == []
    engine.push(f"{EX}s", [(f"<{EX}e>", f"<{EX}n>", '"2"')], time=START)
    engine.advance(START + 1)
    assert [str(result.bindings["a"]) for result in query.results()] == ["1", "2"]
    engine.push(f"{EX}s", [(f"<{EX}e>", f"<{EX}n>", '"3"')], time=START + 5)
    engine.finish()
    assert [result.time for result in query.results()] == [START + 5]


@pytest.mark.parametrize("seed", range(60))
def test_drawn_queries_against_the_oracle(seed):
    random = Random(seed)
    text, elements = EventDrawer(random).text(), drawn_elements(random, random.choice((8, 14, 20)))
    streams = compile_query(text).plan.streams
    try:
        assert_engine_right(
            text, [e for e in elements if str(e.stream) in streams], STATIC, output=None, batches=(1, 3, None)
        )
    except TooManyPairs:
        pytest.skip("more combinations than the oracle tries")


@pytest.mark.parametrize("seed", range(40))
def test_drawn_aggregates_against_the_oracle(seed):
    random = Random(seed)
    text, elements = EventDrawer(random).aggregates(), drawn_elements(random, random.choice((8, 14, 20)))
    streams = compile_query(text).plan.streams
    try:
        assert_engine_right(text, [e for e in elements if str(e.stream) in streams], STATIC, batches=(2, None))
    except TooManyPairs:
        pytest.skip("more combinations than the oracle tries")


def test_a_million_million_results_are_counted_without_being_made():
    blocks = " ".join(f"EVENT ON :{stream} {{ ?x{stream} :n ?{stream} }}" for stream in "stuv")
    text = f"{PREFIX}SELECT (COUNT(*) AS ?n) (SUM(?s) AS ?sum) (AVG(?s) AS ?mean) WHERE {{ {blocks} FILTER(?s IN (1, 3)) }}"
    engine = cqels.Engine(batch=5000)
    query = engine.register(text)
    for number in range(1000):
        for stream in "stuv":
            triple = (f"<{EX}e>", f"<{EX}n>", f'"{1 + 2 * (number % 2)}"^^<{XSD}integer>')
            engine.push(f"{EX}{stream}", [triple], time=START + number)
    engine.finish()
    *_, last = query.results()
    assert {name: str(term) for name, term in last.bindings.items()} == {
        "n": "1000000000000",
        "sum": "2000000000000",
        "mean": "2",
    }
    assert str(cqels.analyse(text).memory).startswith("bounded: at most ")


def test_drawn_queries_are_mostly_counted():
    texts = [EventDrawer(Random(seed)).text() for seed in range(60)]
    assert sum(bool(counted(text)) for text in texts) > 20


def test_bounded_queries_keep_no_more_counters_than_they_say():
    """Numbers from a wide range: if the verdict were wrong, counters would grow with the elements."""
    tested = 0
    for seed in range(100):
        text = EventDrawer(Random(seed)).text()
        nodes = counted(text)
        if any(node.sets for node in nodes) and all(each.most is not None for node in nodes for each in node.sets):
            tested += 1
            for scan in scans_after(text, drawn_elements(Random(seed), 300, wide=True)):
                assert scan.counters <= sum(each.most for each in scan.node.sets), text
    assert tested > 20


def scans_after(text, elements):
    """The counted joins of a query after it has taken in these elements."""
    engine = cqels.Engine(batch=50)
    query = engine.register(text, static=[list(STATIC.default)])
    for each in elements:
        if str(each.stream) in query.streams:
            engine.push(str(each.stream), list(each.triples), time=each.time)
    engine.finish()
    return [scan for scan in query._dataflow._scans if isinstance(scan, CountedJoinScan)]


def test_memory_does_not_change_by_a_byte():
    engine = cqels.Engine()
    query = engine.register(LEVELS)
    query.subscribe(lambda result: None)
    random = Random(1)
    sizes = []
    for second in range(600):
        made = random.choice(
            (lambda s: reading(s, random.randrange(10**6)), lambda s: threshold(s, random.randrange(9)), reset)
        )
        each = made(second)
        engine.push(str(each.stream), list(each.triples), time=each.time)
        sizes.append(query.nbytes)
    assert min(sizes) > 0
    assert len(set(sizes[50:])) == 1


def test_memory_counts_elements_that_wait_for_the_watermark():
    sizes = {}
    waiting = []
    for lateness in (0, 20):
        engine = cqels.Engine(lateness=lateness * SECOND)
        query = engine.register(LEVELS)
        query.subscribe(lambda result: None)
        before = query.nbytes
        random = Random(2)
        sizes[lateness] = []
        times = []
        for second in range(600):
            each = reading(second - random.randrange(1 + lateness // 2), random.randrange(10**6))
            engine.push(str(each.stream), list(each.triples), time=each.time)
            sizes[lateness].append(query.nbytes)
            times.append(each.time)
            waiting.append(sum(time > max(times) - lateness * SECOND for time in times))
        assert sizes[lateness][0] > before or not lateness
    # Elements that come one by one take a kilobyte each.
    assert [size - sizes[0][-1] for size in sizes[20][50:]] == [1024 * count for count in waiting[650:]]


def test_more_combinations_than_can_be_counted_end_the_run():
    blocks = " ".join(f"EVENT ON :s {{ ?x{i} :n ?n{i} }}" for i in range(8))
    engine = cqels.Engine(batch=1000)
    engine.register(
        f"{PREFIX}SELECT (1 AS ?one) WHERE {{ EVENT ON :t AT ?z {{ ?y :n ?n }} {blocks[: blocks.rindex('EVENT')]} }}"
    )
    with pytest.raises(cqels.RunError, match=r"passed 2\^63 - 1"):
        for second in range(2000):
            engine.push(f"{EX}s", [(f"<{EX}e{second}>", f"<{EX}n>", '"1"')], time=START + second)


PAIR = "EVENT ON :s AT ?i { ?x :n ?a ; :k ?k } EVENT ON :t AT ?j { ?y :n ?b FILTER(?b IN (1, 2, 3)) } FILTER(?i > ?j)"
FORMS = [
    f"ASK {{ {PAIR} }}",
    f"CONSTRUCT {{ ?x :was ?b }} WHERE {{ {PAIR} }}",
    f"SELECT REDUCED ?b WHERE {{ {PAIR} }}",
    f"SELECT DISTINCT ?b WHERE {{ {PAIR} }} LIMIT 2",
    f"SELECT ?b ?name WHERE {{ {PAIR} {{ ?k :name ?name }} UNION {{ ?k :limit ?name }} }}",
    f"SELECT ?b ?l WHERE {{ {PAIR} ?k (:limit/^:limit)* ?l }}",
    f"SELECT ?b ?n WHERE {{ {{ SELECT ?b (COUNT(*) AS ?n) WHERE {{ {PAIR} }} GROUP BY ?b }} }}",
    f"SELECT ?b (COUNT(*) AS ?n) WHERE {{ {PAIR} }} GROUP BY ?b ORDER BY DESC(?n) LIMIT 1",
    f"SELECT ?b WHERE {{ {PAIR} FILTER(?a + ?b > 4) }}",
    f"SELECT ?b WHERE {{ {PAIR} FILTER(?a > 3 || ?b > 2) }}",
    f"SELECT ?b WHERE {{ {PAIR} FILTER(!BOUND(?nothing)) }}",
    f"SELECT ?b WHERE {{ {PAIR} FILTER(false) }}",
    f"SELECT ?m WHERE {{ {PAIR} BIND(?b * 2 AS ?m) FILTER(?m > 2) }}",
    "SELECT ?b WHERE { EVENT ON :s { } EVENT ON :t { ?y :n ?b FILTER(?b = 1) } }",
    "SELECT ?p WHERE { EVENT ON :s AT ?i { ?x ?p ?b } EVENT ON :t AT ?i { ?y :n ?b } }",
]


@pytest.mark.parametrize("form", FORMS)
def test_forms_against_the_oracle(form):
    text = PREFIX + form
    streams = compile_query(text).plan.streams
    elements = [each for each in drawn_elements(Random(3), 30) if str(each.stream) in streams]
    assert_engine_right(text, elements, STATIC, output=None, batches=(1, 3, None))
    assert cqels.analyse(text).memory.kind == "bounded"


def number(second, stream, value):
    return element(second, stream, ("n", Literal(value)))


ANY = f"""{PREFIX}SELECT DISTINCT (1 AS ?one) WHERE {{
  EVENT ON :s {{ ?x :n ?a FILTER({INTEGER.format("a")}) }} EVENT ON :t AT ?j {{ ?y :n ?b }} EVENT ON :u AT ?k {{ ?z :n ?c }}
  FILTER(?j > ?k && ?a < ?c)
}}"""


def test_distinct_needs_only_the_best_values():
    assert str(cqels.analyse(ANY).memory).startswith(
        "bounded: at most 4 counters: 1 for {s} by the least ?a, 1 for {u} by"
    )
    # The greater number at :u is not followed by an element of :t.
    elements = [number(0, "u", 5), number(1, "t", 0), number(2, "u", 10), number(3, "s", 7)]
    assert told(ANY, elements) == []
    assert told(ANY, [*elements, number(4, "t", 0), number(5, "s", 1)]) == [(4, ["1"])]
    random = Random(3)
    many = [number(second, random.choice("stu"), random.randrange(10**6)) for second in range(400)]
    assert [scan.counters for scan in scans_after(ANY, many)] == [4]


def test_distinct_of_two_best_values_that_depend_on_each_other_is_not_shown_to_be_bounded():
    text = ANY.replace(
        "FILTER(?j > ?k", f"EVENT ON :v {{ ?w :n ?d FILTER({INTEGER.format('d')}) }} FILTER(?d < ?b && ?j > ?k"
    )
    verdict = cqels.analyse(text).memory
    assert verdict.kind == "not shown to be bounded"
    assert "?b is kept beside ?c, both without bounds" in verdict.blame[0]


def test_match_in_strict_time_gives_the_same():
    a, b = (
        "EVENT ON :s AT ?i { ?x :n ?n0 ; :k ?k FILTER(?k = :k1) }",
        "EVENT ON :t AT ?j { ?y :n ?n1 ; :k ?k FILTER(?k = :k1) }",
    )
    joined = f"{PREFIX}SELECT ?k ?n1 WHERE {{ {a} {b} FILTER(?i < ?j) }}"
    matched = f"{PREFIX}SELECT ?k ?n1 WHERE {{ MATCH WITHIN 9d STRICT TIME {{ {a} SEQ {b} }} }}"
    elements = [e for e in drawn_elements(Random(5), 60) if str(e.stream) in (f"{EX}s", f"{EX}t")]
    assert counted(joined)
    assert sorted(told(joined, elements)) == sorted(told(matched, elements)) != []


def day(text):
    return Literal(text, datatype=XSD.date, normalize=False)


FIRST, LAST = f"{day('2024-01-02').n3()}", f"{day('2024-01-04').n3()}"
BETWEEN = f"?d >= {FIRST} && ?d < {LAST}"


def days(condition, shown="?d"):
    return (
        f"{PREFIX}SELECT {shown} ?n WHERE {{ EVENT ON :s AT ?i {{ ?x :day ?d FILTER({condition}) }} "
        "EVENT ON :t AT ?j { ?y :n ?n } FILTER(?j > ?i) }"
    )


@pytest.mark.parametrize("batch", [1, None])
def test_dates_between_two_others_are_boundedly_many(batch):
    text = days(f"DATATYPE(?d) = <{XSD.date}> && {BETWEEN}")
    assert counted(text)
    verdict = cqels.analyse(text).memory
    assert verdict.kind == "bounded"
    written = ("2024-01-01", "2024-01-02", "2024-01-03", "2024-01-03Z", "2024-01-03+01:00", "2024-01-04", "2024-01-99")
    elements = [element(n, "s", ("day", day(each))) for n, each in enumerate(written)]
    elements += [element(8, "s", ("day", Literal("2024-01-03"))), element(9, "t", ("n", Literal(1)))]
    found = told(text, elements, batch)
    assert sorted(values[1] for _, values in found) == ["2024-01-02", "2024-01-03", "2024-01-03+01:00", "2024-01-03Z"]
    assert_engine_right(text, elements)


@pytest.mark.parametrize(
    ("condition", "repair"),
    [
        (BETWEEN, "FILTER(DATATYPE(?d) = xsd:date)"),
        (f"DATATYPE(?d) = <{XSD.date}> && ?d >= {FIRST}", "bounds for ?d"),
        (f"DATATYPE(?d) = <{XSD.dateTime}> && {BETWEEN}", "FILTER(DATATYPE(?d) = xsd:date)"),
        (f"DATATYPE(?d) = <{XSD.date}> && ?d >= {day('2024-02-30').n3()} && ?d < {LAST}", "bounds for ?d"),
        (f"DATATYPE(?d) = <{XSD.date}> && (?d >= {FIRST} || ?d < {LAST})", "bounds for ?d"),
    ],
)
def test_dates_without_both_limits_or_of_any_type_are_not(condition, repair):
    verdict = cqels.analyse(days(condition)).memory
    assert verdict.kind == "not bounded"
    assert repair in verdict.repair


def test_a_cast_to_a_date_has_bounds():
    text = (
        f"{PREFIX}SELECT ?d ?n WHERE {{ EVENT ON :s AT ?i {{ ?x :at ?t BIND(xsd:date(?t) AS ?d) FILTER({BETWEEN}) }} "
        "EVENT ON :t AT ?j { ?y :n ?n } FILTER(?j > ?i) }"
    )
    assert cqels.analyse(text).memory.kind == "bounded"


def test_what_exists_in_static_data_is_a_subselect():
    block = "EVENT ON :s AT ?i { ?x :k ?k } EVENT ON :t AT ?j { ?y :n ?n } FILTER(?j > ?i)"
    text = f"{PREFIX}SELECT ?n WHERE {{ {block} {{ SELECT DISTINCT ?k {{ ?k :near ?other }} }} }}"
    near = [(URIRef(f"{EX}k1"), URIRef(f"{EX}near"), URIRef(f"{EX}k{n}")) for n in range(3)]
    engine = cqels.Engine()
    query = engine.register(text, static=[near])
    for each in (
        element(1, "s", ("k", URIRef(f"{EX}k1"))),
        element(2, "s", ("k", URIRef(f"{EX}k2"))),
        element(3, "t", ("n", Literal(7))),
    ):
        engine.push(str(each.stream), list(each.triples), time=each.time)
    engine.finish()
    assert len(list(query.results())) == 1


BEFORE = "EVENT ON :s AT ?i { ?x :n ?v }"
REFUSED = [
    (f"{BEFORE} EVENT ON :t {{ ?y :n ?w }} FILTER(?i > ?w)", (2, 19), "?i is a time: times are compared with times"),
    (f"{BEFORE} OPTIONAL {{ EVENT ON :t {{ ?y :n ?w }} }}", (2, 19), "in a group with EVENT stand EVENT blocks"),
    (f"{BEFORE} MINUS {{ EVENT ON :t {{ ?y :n ?w }} }}", (2, 19), "results of events never go"),
    (f"{BEFORE} STREAM :t [RANGE 5s] {{ ?x :n ?w }}", (2, 19), "give this block a window"),
    ("EVENT ON :s [RANGE 5s] { ?x :n ?v }", (2, 31), "for a window write STREAM :s [RANGE 10m]"),
    (f"?x :n ?v FILTER NOT EXISTS {{\n{BEFORE} }}", (3, 1), "EVENT inside of EXISTS"),
    (
        f"{BEFORE} FILTER EXISTS {{ ?x :k ?k }}",
        (2, 19),
        "write { SELECT DISTINCT ?x { … } }, with its pattern over static",
    ),
    (f"{BEFORE} FILTER NOT EXISTS {{ ?x :k ?k }}", (2, 19), "NOT EXISTS stands in there behind a static pattern"),
    (
        f"{BEFORE} EVENT ON :t AT ?j {{ ?y :n ?w }} FILTER(?j > ?i && ?j - ?i < 'PT10M')",
        (2, 19),
        "?i is a time: distances of times are not compared",
    ),
    (f"{BEFORE} FILTER(NOW() > ?v)", (2, 19), "NOW() beside EVENT"),
    (f"{BEFORE} EVENT ON :t {{ ?y :n ?w }}", (2, 19), "is in the result, and <http://ex.org/s> may wait for"),
]


@pytest.mark.parametrize(("pattern", "place", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refusals_have_a_place_and_a_way_out(pattern, place, message):
    with pytest.raises(cqels.UnsupportedQuery) as caught:
        cqels.Engine().register(f"PREFIX : <{EX}>\nSELECT ?v WHERE {{ {pattern} }}")
    assert message in str(caught.value)
    assert (caught.value.place.line, caught.value.place.column) == place


def test_a_growing_query_is_refused_with_its_verdict_unless_the_blocks_say_all():
    delays, complaints = "EVENT ON :delays AT ?i { ?x :bus ?bus }", "EVENT ON :complaints AT ?j { ?y :at ?p }"
    text = f"{PREFIX}SELECT ?bus WHERE {{ {delays} {complaints} FILTER(?i < ?j) }}"
    verdict = cqels.analyse(text).memory
    assert verdict.kind == "not bounded"
    with pytest.raises(cqels.UnsupportedQuery) as caught:
        cqels.Engine().register(text)
    assert f"memory: {verdict}" in str(caught.value)
    assert "EVENT ON <http://ex.org/delays> [ALL]" in str(caught.value)
    accepted = text.replace("ON :delays", "ON :delays [ALL]")
    assert cqels.analyse(accepted).memory.kind == "not bounded"
    elements = [element(0, "delays", ("bus", Literal(1))), element(1, "complaints", ("at", Literal(2)))]
    assert told(accepted, elements) == [(1, ["1"])]


S, T, AFTER = "EVENT ON :s AT ?i { ?x :n ?a }", "EVENT ON :t AT ?j { ?y :n ?k ", "FILTER(?i > ?j)"
VERDICTS = [
    (f"{S} {T} FILTER(?k IN (:a, :b)) }} {AFTER}", "bounded: at most 2 counters: 2 for {t} by ?k"),
    (f"{S} {T} }} {AFTER} VALUES ?k {{ 1 2 3 1 }}", "bounded: at most 3 counters"),
    (f"{S} {T} FILTER(?k > 0 && ?k < 5) }} {AFTER}", "not bounded, "),
    (
        f'{S} {T} }} {AFTER} FILTER(?j < "2024-01-01T00:00:00Z"^^xsd:dateTime)',
        "bounded by what comes before 2024-01-01T00:00:00Z",
    ),
    (f"{S} {T} }} {AFTER} FILTER(?i < ?j)", "bounded: keeps nothing"),
    (f"{{ {S} {T} }} }} UNION {{ {S} }}", "not bounded, "),
]


@pytest.mark.parametrize(("pattern", "words"), VERDICTS, ids=lambda value: value[-40:])
def test_verdicts(pattern, words):
    assert str(cqels.analyse(f"{PREFIX}SELECT ?k WHERE {{ {pattern} }}").memory).startswith(words)


def test_a_bound_on_numbers_that_are_no_integers_says_what_is_missing():
    text = f"{PREFIX}SELECT ?k WHERE {{ {S} {T} FILTER(?k > 0 && ?k < 5) }} {AFTER} }}"
    assert "FILTER(DATATYPE(?k) = xsd:integer)" in cqels.analyse(text).memory.repair
    repaired = text.replace("?k < 5", f"?k < 5 && {INTEGER.format('k')}")
    assert str(cqels.analyse(repaired).memory).startswith("bounded: at most 4 counters")


def test_a_variable_that_only_a_condition_reads_is_not_told_to_be_in_the_result():
    text = f"{PREFIX}SELECT (COUNT(*) AS ?n) WHERE {{ {S} {T} }} {AFTER} FILTER(?a > ?k) }}"
    (blame,) = cqels.analyse(text).memory.blame
    assert "?k is read by a FILTER over whole results" in blame


def test_static_data_of_such_a_query_is_not_replaced():
    engine = cqels.Engine()
    query = engine.register(
        f"{PREFIX}SELECT ?v WHERE {{ EVENT ON :s {{ ?x :n ?v }} ?x :name ?name }}", static=[list(STATIC.default)]
    )
    with pytest.raises(cqels.UsageError, match="cannot be replaced"):
        query.update_static(static=[])
