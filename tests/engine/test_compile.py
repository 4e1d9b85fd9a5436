"""A query is compiled once, from text to plan; engines, Spark and the command line take what was compiled."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import cqels_py
from cqels_py.cli.main import main
from cqels_py.engine import compile as compile_module
from cqels_py.engine.compile import CompiledQuery, compile_query
from cqels_py.errors import UsageError

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
QUERY = PREFIX + "SELECT ?a ?c { STREAM :s [COUNT 1] { ?a :p ?b } GRAPH :g { ?b :q ?c } }"
TYPES = PREFIX + "SELECT ?x { STREAM :s [COUNT 1] { ?x a :Upper } }"
ONTOLOGY = f"<{EX}Lower> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <{EX}Upper> .\n".encode()
ELEMENT = [(f"<{EX}a>", f"<{EX}p>", f"<{EX}b>")]
STATIC = {f"{EX}g": f"<{EX}b> <{EX}q> <{EX}c> .\n".encode()}


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that have been parsed."""
    texts: list[str] = []
    parse = compile_module.parse
    compile_module._kept.cache_clear()

    def counting(text: str, **options: Any) -> Any:
        texts.append(text)
        return parse(text, **options)

    monkeypatch.setattr(compile_module, "parse", counting)
    return texts


def results(query: str | CompiledQuery, triples: list[Any], **options: Any) -> list[tuple[int, dict[str, str]]]:
    engine = cqels_py.Engine()
    registered = engine.register(query, **options)
    for time in (1_000_000, 2_000_000):
        engine.push(f"{EX}s", triples, time=time)
    return [(each.sign, {k: str(v) for k, v in each.bindings.items()}) for each in registered.results()]


def test_a_compiled_query_runs_in_any_process(parsed: list[str]) -> None:
    compiled = compile_query(QUERY)
    copy = pickle.loads(pickle.dumps(compiled))
    assert copy == compiled
    assert results(copy, ELEMENT, static_graphs=STATIC) == results(QUERY, ELEMENT, static_graphs=STATIC)
    # The copy is not parsed again, nor is the text, as it is equal.
    assert parsed == [QUERY]


def test_it_is_compiled_again_without_being_parsed_again(parsed: list[str]) -> None:
    compiled = compile_query(QUERY)
    changes = compile_query(compiled, changelog=True)
    assert compile_query(compiled) is compiled
    assert compile_query(changes, changelog=True) is changes
    assert (compiled.plan.output, changes.plan.output) == ("ISTREAM", "CHANGELOG")
    signs = [sign for sign, _ in results(compiled, ELEMENT, static_graphs=STATIC, changelog=True)]
    assert signs == [sign for sign, _ in results(changes, ELEMENT, static_graphs=STATIC)]
    assert parsed == [QUERY]


def test_entailment_is_part_of_what_was_compiled(parsed: list[str]) -> None:
    element = [(f"<{EX}a>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", f"<{EX}Lower>")]
    engine = cqels_py.Engine()
    entailed = engine.register(TYPES, static=ONTOLOGY, entailment="rdfs").compiled
    assert entailed.ontology is not None
    assert results(entailed, element, static=ONTOLOGY) == [(1, {"x": f"{EX}a"})]
    assert results(TYPES, element, static=ONTOLOGY) == []
    # Two registrations of one text.
    assert parsed == [TYPES]


def test_it_names_its_static_data_and_has_its_warnings() -> None:
    text = PREFIX + "SELECT ?a ?typo FROM :d FROM NAMED :g { STREAM :s [COUNT 1] { ?a :p ?type } }"
    compiled = compile_query(text)
    assert compiled.static_graphs == (f"{EX}d", f"{EX}g")
    assert compiled.warnings == ("nothing in the query binds ?typo: is ?type meant?",)


@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_command_parses_its_query_once(command: str, parsed: list[str], tmp_path: Path) -> None:
    graph = tmp_path / "g.nt"
    graph.write_bytes(STATIC[f"{EX}g"])
    stream = tmp_path / "s.nq"
    stream.write_text("")
    streams = [f"--stream={EX}s={stream}"] if command == "run" else []
    assert main([command, "-q", QUERY, *streams, f"--static-graph={EX}g={graph}"]) == 0
    assert parsed == [QUERY]


def test_only_texts_and_compiled_queries_are_compiled() -> None:
    with pytest.raises(UsageError, match="a query is a text, not 7"):
        compile_query(7)  # type: ignore[arg-type]
