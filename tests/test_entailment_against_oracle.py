"""RDFS entailment: the engine's rewritten queries have the oracle's answers over graphs saturated by the rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import RDF, RDFS, BNode, Literal, URIRef

import cqels_py
from cqels_py.algebra import nodes
from cqels_py.errors import UnsupportedQuery, UsageError
from tests.oracle import naive
from tests.oracle.naive import Static
from tests.support.harness import Element, _result, check_equal, parse

EX = "http://ex.org/"
STREAM = URIRef(EX + "s")
Triple = tuple


def ex(name: str) -> URIRef:
    return URIRef(EX + name)


SCHEMA = [
    (ex("Robin"), RDFS.subClassOf, ex("Bird")),
    (ex("Bird"), RDFS.subClassOf, ex("Animal")),
    (ex("Animal"), RDFS.subClassOf, ex("Being")),
    (ex("Being"), RDFS.subClassOf, ex("Animal")),
    (ex("hasEgg"), RDFS.subPropertyOf, ex("has")),
    (ex("has"), RDFS.subPropertyOf, ex("relatesTo")),
    (ex("has"), RDFS.domain, ex("Animal")),
    (ex("hasEgg"), RDFS.range, ex("Egg")),
    (ex("Egg"), RDFS.subClassOf, ex("Thing")),
    (ex("label"), RDFS.subPropertyOf, ex("relatesTo")),
    (ex("label"), RDFS.range, ex("Text")),
]

QUERIES = {
    "class": "?x a :Animal",
    "class of a constant": ":a a ?c",
    "any class": "?x a ?c",
    "property": "?x :relatesTo ?y",
    "any property": "?x ?p ?y",
    "any property of one": ":a ?p ?y",
    "class by any property": "?x ?p :Animal",
    "joined": "?x a :Bird . ?x :has ?y . ?y a :Egg",
    "class as subject": "?x :relatesTo ?x",
    "the property and class": "?x ?p ?c . ?y a ?c",
    "optional": "?x :has ?y OPTIONAL { ?y a ?c }",
    "negated": "?x :relatesTo ?y FILTER NOT EXISTS { ?x a :Bird }",
    "path": "?x :relatesTo+ ?y",
}


def saturated(triples: Iterable[Triple], schema: Sequence[Triple], *, hierarchy: bool) -> list[Triple]:  # type: ignore[type-arg]
    """rdfs2, 3, 7 and 9, again and again; with `hierarchy` rdfs5 and 11 as well."""
    found = dict.fromkeys(triples)
    while True:
        new: list[Triple] = []  # type: ignore[type-arg]
        for s, p, o in found:
            for a, rule, b in schema:
                if rule == RDFS.subPropertyOf and p == a:
                    new.append((s, b, o))
                if rule == RDFS.domain and p == a:
                    new.append((s, RDF.type, b))
                if rule == RDFS.range and p == a and not isinstance(o, Literal):
                    new.append((o, RDF.type, b))
                if rule == RDFS.subClassOf and p == RDF.type and o == a:
                    new.append((s, RDF.type, b))
                if hierarchy and rule == p and p in (RDFS.subClassOf, RDFS.subPropertyOf) and o == a:
                    new.append((s, p, b))
        if all(triple in found for triple in new):
            return list(found)
        found |= dict.fromkeys(new)


def entailed(content: naive.Content, static: Sequence[Triple]) -> naive.Content:  # type: ignore[type-arg]
    """The content of a window and all entailed triples, also within each graph."""
    named = {name: saturated(triples, static, hierarchy=False) for name, triples in content.named.items()}
    return naive.Content(saturated(content.triples, static, hierarchy=False), named)


def expected(text: str, elements: Sequence[Element], static: Sequence[Triple]) -> list[naive.Change]:  # type: ignore[type-arg]
    query = replace(parse(text), bag_windows=False, output=nodes.Output.CHANGELOG)
    plain = naive.content
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(naive, "content", lambda *given: entailed(plain(*given), static))
        default = saturated(static, static, hierarchy=True)
        return naive.output(query, naive.ticks(query, elements, Static(default)))


def check(text: str, elements: Sequence[Element], static: Sequence[Triple]) -> None:  # type: ignore[type-arg]
    for batch in (1, 3, 1000):
        engine = cqels_py.Engine(batch=batch)
        query = engine.register(text, static=[static], changelog=True, entailment="rdfs")
        results: list[object] = []
        query.subscribe(lambda result, results=results: results.append(_result(result)))
        for element in elements:
            engine.push(str(element.stream), list(element.triples), time=element.time, graph=element.graph)
        engine.finish()
        check_equal(expected(text, elements, static), results, f"batch {batch}")


TRIPLES = st.one_of(
    st.tuples(
        st.sampled_from([ex("a"), ex("b")]), st.just(RDF.type), st.sampled_from([ex("Robin"), ex("Bird"), ex("Egg")])
    ),
    st.tuples(
        st.sampled_from([ex("a"), ex("b")]),
        st.sampled_from([ex("hasEgg"), ex("has"), ex("relatesTo"), ex("likes")]),
        st.sampled_from([ex("a"), ex("b"), ex("e")]),
    ),
    st.tuples(st.sampled_from([ex("a"), ex("b")]), st.just(ex("label")), st.sampled_from([Literal("x"), ex("e")])),
)
ELEMENTS = st.lists(
    st.tuples(st.sampled_from([0, 1, 1, 2, 4]), st.lists(TRIPLES, min_size=1, max_size=3, unique=True)), max_size=6
)


def elements_of(drawn: Sequence[tuple[int, Sequence[Triple]]]) -> list[Element]:  # type: ignore[type-arg]
    time, found = 0, []
    for gap, triples in drawn:
        time += gap * 1_000_000
        found.append(Element(time, STREAM, tuple(triples), ex(["f", "g"][len(found) % 2])))
    return found


@pytest.mark.parametrize("pattern", QUERIES.values(), ids=QUERIES)
@settings(max_examples=6)
@given(drawn=ELEMENTS)
def test_windows(pattern: str, drawn: list[tuple[int, list[Triple]]]) -> None:  # type: ignore[type-arg]
    text = f"PREFIX : <{EX}> SELECT * WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ {pattern} }} }}"
    check(text, elements_of(drawn), SCHEMA)


@pytest.mark.parametrize("pattern", ["?x a ?c", "?x :has ?y", "?x a :Being", "?x ?p ?y"])
@settings(max_examples=6)
@given(drawn=ELEMENTS)
def test_graphs_of_windows(pattern: str, drawn: list[tuple[int, list[Triple]]]) -> None:  # type: ignore[type-arg]
    text = f"PREFIX : <{EX}> SELECT * WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ GRAPH ?g {{ {pattern} }} }} }}"
    check(text, elements_of(drawn), SCHEMA)


@pytest.mark.parametrize(
    "pattern",
    [
        "?x :relatesTo ?y . STATIC ?y a ?c",
        "?x a ?c . STATIC ?c <http://www.w3.org/2000/01/rdf-schema#subClassOf> ?d",
        "?x :has ?y . STATIC ?y ?p ?z",
        "?x a ?c . STATIC ?c rdfs:subClassOf? ?d",
        "?x a ?c . STATIC ?c (rdfs:subClassOf/rdfs:subClassOf)+ ?d",
        "?x ?p ?y . STATIC ?p (rdfs:subPropertyOf|:likes)? ?q",
    ],
)
def test_static_data(pattern: str) -> None:
    stream, static = pattern.split("STATIC")
    prefixes = f"PREFIX : <{EX}> PREFIX rdfs: <{RDFS}> "
    text = prefixes + f"SELECT * WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ {stream.strip(' .')} }} {static} }}"
    data = [*SCHEMA, (ex("e"), RDF.type, ex("Robin")), (ex("b"), ex("hasEgg"), ex("e"))]
    drawn = [
        (1, [(ex("a"), ex("has"), ex("e"))]),
        (1, [(ex("b"), ex("hasEgg"), ex("b"))]),
        (4, [(ex("a"), RDF.type, ex("Egg"))]),
    ]
    check(text, elements_of(drawn), data)


@pytest.mark.parametrize(
    "path",
    [
        "rdfs:subClassOf?",
        "rdfs:subClassOf*",
        "rdfs:subClassOf+",
        "^(rdfs:subClassOf?)",
        "(rdfs:subClassOf|:kind)?",
        "(rdfs:subClassOf|:kind)+",
        "(rdfs:subClassOf|^rdfs:subClassOf)?",
        "(rdfs:subClassOf/rdfs:subClassOf)+",
        "(^:kind/rdfs:subClassOf)?",
        "(rdfs:subClassOf/rdfs:subClassOf)?/:kind",
        "(rdfs:subClassOf?)+",
        "((rdfs:subClassOf+)|:kind)?",
        "rdfs:subPropertyOf?",
        "(rdfs:subPropertyOf/rdfs:subPropertyOf)+",
    ],
)
def test_paths_along_the_hierarchies(path: str) -> None:
    text = (
        f"PREFIX : <{EX}> PREFIX rdfs: <{RDFS}> "
        f"SELECT * WHERE {{ STREAM <{STREAM}> [RANGE 9s] {{ ?x :of ?k }} ?k {path} ?d FILTER(!ISBLANK(?d)) }}"
    )
    kinds = [(ex("Bird"), ex("kind"), ex("word")), (ex("word"), ex("kind"), ex("Robin"))]
    # Also steps through a class without a name, and a circle of one.
    below = [(ex("Wren"), RDFS.subClassOf, BNode("m")), (BNode("m"), RDFS.subClassOf, ex("Bird"))]
    loop = [(ex("Thing"), RDFS.subClassOf, ex("Thing"))]
    known = ["Robin", "Bird", "Animal", "Being", "Wren", "Thing", "word", "hasEgg", "has", "relatesTo", "none"]
    check(text, elements_of([(1, [(ex("x"), ex("of"), ex(name)) for name in known])]), [*SCHEMA, *kinds, *below, *loop])


@pytest.mark.parametrize("path", ["rdfs:subClassOf?", "(rdfs:subClassOf|:p)?", "(:p/rdfs:subPropertyOf)*"])
def test_hierarchies_of_static_data_alone_are_transitive(path: str) -> None:
    """Where windows and static data form one graph, a path would also follow statements about classes in the windows."""
    text = (
        f"REGISTER QUERY q AS PREFIX : <{EX}> PREFIX rdfs: <{RDFS}> SELECT ?k ?d FROM STREAM <{STREAM}> [RANGE 9s STEP 1s] "
        f"WHERE {{ ?x :of ?k . ?k %s ?d }}"
    )
    with pytest.raises(UnsupportedQuery, match="only the static data's hierarchies"):
        cqels_py.Engine().register(text % path, static=[SCHEMA], entailment="rdfs")
    for right in ("rdfs:subClassOf*", "(:p|^rdfs:subClassOf)+"):
        cqels_py.Engine().register(text % right, static=[SCHEMA], entailment="rdfs")


def test_an_entailed_triple_is_there_once() -> None:
    text = f"PREFIX : <{EX}> SELECT (COUNT(*) AS ?n) WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ ?x a :Animal }} }}"
    drawn = [
        (1, [(ex("a"), RDF.type, ex("Robin")), (ex("a"), ex("hasEgg"), ex("e"))]),
        (1, [(ex("a"), ex("has"), ex("b"))]),
    ]
    check(text, elements_of(drawn), SCHEMA)


def test_a_schema_that_changes_needs_a_new_query() -> None:
    engine = cqels_py.Engine()
    text = f"PREFIX : <{EX}> SELECT ?x WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ ?x a :Animal }} }}"
    query = engine.register(text, static=[SCHEMA], entailment="rdfs")
    query.update_static(static=[[*SCHEMA, (ex("a"), ex("b"), ex("c"))]])
    with pytest.raises(UsageError, match="register the query anew"):
        query.update_static(static=[SCHEMA[1:]])


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("?x (a|:p)+ ?y", "rdf:type inside"),
        ("?x !(:p) ?y", "negated property"),
        ("?x :p* ?y", "may have no length"),
        ("?x a ?c . ?c (^:p)? ?y", "may have no length"),
        ("?x a/:p* ?y", "may have no length"),
        ("[] :p* ?x", "may have no length"),
        ("?x :p*/:q* ?y", "may have no length"),
        ("?x :p*/:q* :Animal", "may have no length"),
        ("?x ((:p/:q)|(:p*/:q*))/:r* ?y", "may have no length"),
        ("VALUES ?y { :a UNDEF } ?y :likes* ?z", "may have no length"),
        ("VALUES ?y { :a :Animal } ?y :likes* ?z", "may have no length"),
        ("?y :has ?x . { ?x :has ?z OPTIONAL { ?y :likes* ?w } }", "may have no length"),
        ("?x :has ?y . { SELECT ?y { ?y :likes* ?z } LIMIT 1 }", "may have no length"),
        ("?x :has ?y . { SELECT ?x { ?x :has ?z . ?w :likes* ?y } }", "may have no length"),
        ("?x :has ?y MINUS { ?y :likes* ?z }", "may have no length"),
        ("?x a ?c FILTER EXISTS { ?c :p*/:q* ?d }", "may have no length"),
    ],
)
def test_what_is_refused(pattern: str, word: str) -> None:
    text = f"PREFIX : <{EX}> SELECT ?x WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ {pattern} }} }}"
    with pytest.raises(UnsupportedQuery, match=word):
        cqels_py.Engine().register(text, static=[SCHEMA], entailment="rdfs")
    with pytest.raises(UsageError, match="'rdfs' or None"):
        cqels_py.Engine().register(text, entailment="owl")


@pytest.mark.parametrize(
    "pattern",
    [
        "?x :has/:likes*/:has* ?y",
        ":Animal :likes* ?x",
        "?x :likes* :Animal",
        ":a :likes*/:has* ?x",
        "?x a ?c . ?c :likes* :Animal",
        "?x :has ?y . ?y :likes* ?z",
        "?x :has ?y OPTIONAL { ?y :likes* ?z }",
        "?x :has ?y OPTIONAL { ?y :likes* ?z FILTER EXISTS { ?z :likes? ?w } }",
        "?x :has ?y . { ?y :likes* ?z FILTER(?y != ?z) }",
        "?x :has ?y . { ?y :likes* ?z BIND(?z AS ?w) }",
        "?x :has ?y . { SELECT DISTINCT ?y { ?y :likes* ?z } }",
        "?x :has ?y FILTER NOT EXISTS { ?y :likes*/:has ?z . ?y :likes? ?w }",
        "VALUES ?y { :a :e } ?y :likes* ?z",
        "?x :has ?y . { ?y :likes* ?z MINUS { ?y :has :a } }",
    ],
)
def test_paths_that_see_all_nodes(pattern: str) -> None:
    text = f"PREFIX : <{EX}> SELECT * WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ {pattern} }} }}"
    drawn = [
        (1, [(ex("a"), RDF.type, ex("Robin")), (ex("a"), ex("has"), ex("e"))]),
        (1, [(ex("e"), ex("likes"), ex("b"))]),
    ]
    check(text, elements_of(drawn), SCHEMA)


@pytest.mark.parametrize(
    "statement",
    [
        (ex("p"), RDFS.subPropertyOf, RDF.type),
        (RDF.type, RDFS.subPropertyOf, ex("rel")),
        (RDFS.subClassOf, RDFS.subPropertyOf, ex("rel")),
        (RDF.type, RDFS.range, RDFS.Class),
        (RDF.type, RDFS.domain, ex("Res")),
    ],
)
def test_triples_about_the_vocabulary_of_schemas(statement: tuple[URIRef, URIRef, URIRef]) -> None:
    text = f"PREFIX : <{EX}> SELECT ?x WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ ?x a ?y }} }}"
    with pytest.raises(UnsupportedQuery, match="about the RDFS vocabulary by which all else is entailed"):
        cqels_py.Engine().register(text, static=[[*SCHEMA, statement]], entailment="rdfs")


def test_instances_of_classes_without_a_name() -> None:
    text = f"PREFIX : <{EX}> SELECT ?z WHERE {{ STREAM <{STREAM}> [RANGE 3s] {{ ?x :p ?y }} ?x a ?z }}"
    below = (BNode("m"), RDFS.subClassOf, ex("D"))
    cqels_py.Engine().register(text, static=[[below]], entailment="rdfs")
    instance = (ex("x"), RDF.type, BNode("m"))
    # Statements about classes in a named graph entail nothing.
    in_graph = f"_:m <{RDFS.subClassOf}> <{EX}D> <{EX}g> .\n<{EX}x> <{RDF.type}> _:m .\n".encode()
    cqels_py.Engine().register(text, static=[in_graph], entailment="rdfs")
    with pytest.raises(UnsupportedQuery, match="a class without a name"):
        cqels_py.Engine().register(text, static=[[below, instance]], entailment="rdfs")
