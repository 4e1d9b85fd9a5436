"""Lists of thousands of terms and paths of a thousand steps: read as short ones are, with work in proportion to their length."""

from __future__ import annotations

from itertools import cycle, islice

import pytest

import cqels_py as cqels
from cqels_py.algebra import variables
from cqels_py.engine.compile import compile_query
from cqels_py.parser import grammar, long_lists, parse

PREFIX = "PREFIX : <http://ex.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
BLOCK = "STREAM :s [RANGE 10s] { ?a :p ?b }"
TERMS = [
    "<http://ex.org/x>", ":y", "7", "-3", "2.50", "1e3", "true", "FALSE", '"text"', "'other'", '"Wort"@de-AT', '"5"^^xsd:byte',
    '"s"^^xsd:string', '"a, } ) b"',
]  # fmt: skip
MANY = list(islice(cycle(TERMS), 200))
ROWS = [f"({one} {other})" for one, other in zip(MANY, ["UNDEF", *MANY], strict=False)]


@pytest.mark.parametrize(
    "clause",
    [
        f"FILTER(?b IN ({', '.join(MANY)}))",
        f"FILTER(?b NOT IN ({','.join(MANY)}) || ?a = :x)",
        f"VALUES ?b {{ {' '.join(MANY)} }}",
        f"VALUES (?b ?c) {{ {' '.join(ROWS)} }}",
        f"VALUES ($b) {{ {' '.join(f'({term})' for term in MANY)} }}",
        f"FILTER(?b IN (?a, {', '.join(MANY)}))",
        f"VALUES ?b {{ {' '.join(MANY)} 'it\\'s' }}",
    ],
)
def test_a_long_list_is_read_as_the_grammar_reads_it(clause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{PREFIX} SELECT * {{ {BLOCK} {clause} }}"
    found = parse(text)
    monkeypatch.setattr(long_lists, "_LEAST", 1 << 30)
    assert found == parse(text)


def test_the_grammar_does_not_see_long_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    parse_tree = grammar.parse_tree
    monkeypatch.setattr(grammar, "parse_tree", lambda text: lengths.append(len(text)) or parse_tree(text))
    terms = [f":t{i}" for i in range(20_000)]
    for clause in (
        f"FILTER(?b IN ({', '.join(terms)}))",
        f"VALUES (?b ?c) {{ ({') ('.join(f'{t} {t}' for t in terms)}) }}",
    ):
        parse(f"{PREFIX} SELECT * {{ {BLOCK} {clause} }}")
    assert max(lengths) < 500


def test_what_is_wrong_behind_or_within_a_long_list_has_its_place() -> None:
    many = " ".join(MANY)
    for wrong in (f"VALUES ?b {{ {many} }} ?x }}", f"VALUES ?b {{ {many} ?x }} }}"):
        text = f"{PREFIX} SELECT * {{ {BLOCK}\n{wrong}"
        with pytest.raises(cqels.QuerySyntaxError) as raised:
            parse(text)
        places = (wrong.index("?x }") + 1, wrong.rindex("}") + 1)
        assert any(f":2:{column}: " in str(raised.value) for column in places)


def test_a_long_list_filters() -> None:
    engine = cqels.Engine()
    terms = ", ".join(f":t{i}" for i in range(3000))
    query = engine.register(f"{PREFIX} SELECT ?a {{ {BLOCK} FILTER(?b IN ({terms})) }}")
    for name in ("t2999", "t3000"):
        engine.push(
            "http://ex.org/s", [(f"<http://ex.org/{name}>", "<http://ex.org/p>", f"<http://ex.org/{name}>")], time=1
        )
    assert [str(result.bindings["a"])[-5:] for result in query.results()] == ["t2999"]


@pytest.mark.parametrize("between", ["/", "|"])
def test_planning_a_path_takes_work_in_proportion_to_its_length(between: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = variables._variables
    work: list[int] = []

    def counted(*arguments: object, **named: object) -> object:
        work.append(1)
        return asked(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(variables, "_variables", counted)
    counts = []
    for steps in (100, 1000):
        work.clear()
        path = between.join(f":p{i}" for i in range(steps))
        compile_query(f"{PREFIX} SELECT * {{ STREAM :s [RANGE 10s] {{ ?a {path} ?b }} }}")
        counts.append(len(work))
    assert counts[1] <= 12 * counts[0]


def test_a_path_of_a_thousand_steps_is_followed() -> None:
    engine = cqels.Engine()
    query = engine.register(f"{PREFIX} SELECT ?b {{ STREAM :s [RANGE 10s] {{ :n0 {'/'.join([':p'] * 1000)} ?b }} }}")
    edges = [(f"<http://ex.org/n{i}>", "<http://ex.org/p>", f"<http://ex.org/n{i + 1}>") for i in range(1000)]
    engine.push("http://ex.org/s", edges, time=1)
    assert [str(result.bindings["b"]) for result in query.results()] == ["http://ex.org/n1000"]
