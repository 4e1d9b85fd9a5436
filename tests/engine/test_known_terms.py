"""Terms of results are looked up once, and are those of their ids whatever the dictionary releases meanwhile."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from rdflib import URIRef

import cqels_py as cqels
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.engine import result as results
from cqels_py.engine.result import KnownTerms
from cqels_py.runners import local

EX, BEGIN = "http://ex.org/", 1_700_000_000_000_000


def test_an_id_that_another_term_gets_later_is_that_term() -> None:
    dictionary = Dictionary(hash_bits=8)
    known = KnownTerms(dictionary)
    texts = [f"<{EX}{number}>" for number in range(2_000)]
    first = dictionary.encode_one(texts[0])
    assert known.of([[first]])[first] == URIRef(f"{EX}0")
    dictionary.collect([])
    with pytest.raises(cqels.errors.UsageError, match="has been released"):
        known.of([[first]])
    again = next(text for text in texts[1:] if dictionary.encode_one(text) == first)
    assert known.of([[first]])[first] == URIRef(again[1:-1])


def test_a_term_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    dictionary = Dictionary()
    looked_up: list[int] = []
    decode = Dictionary.decode

    def noted(self: Dictionary, ids: np.ndarray) -> list[str | None]:
        looked_up.extend(ids.tolist())
        return decode(self, ids)

    monkeypatch.setattr(Dictionary, "decode", noted)
    monkeypatch.setattr(results, "_MOST_KNOWN", 5)
    known = KnownTerms(dictionary)
    a, b, *others = dictionary.encode([f"<{EX}{number}>" for number in range(9)]).tolist()
    for columns in ([[a, a], [b, 0]], [[b], [a]], [[0], [0]]):
        known.of(columns)
    assert sorted(looked_up) == sorted([a, b])
    known.of([others[:4]])
    # There are too many: the next ones begin anew.
    known.of([[a]])
    assert looked_up.count(a) == 2


def test_results_keep_their_terms_when_the_dictionary_releases_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_COLLECT_FROM", 50)
    engine = cqels.Engine()
    query = engine.register(
        f"PREFIX : <{EX}> SELECT ?k ?x WHERE {{ STREAM :a [RANGE 2us] {{ ?k :p ?x }} OPTIONAL {{ ?k :q ?y }} }}"
    )
    found: list[cqels.Result] = []
    query.subscribe(found.append)
    sizes = []
    for at in range(500):
        engine.push(f"{EX}a", [(f"<{EX}k{at % 200}>", f"<{EX}p>", f'"text {at}"')], time=BEGIN + at)
        sizes.append(len(engine.dictionary))
    # 700 come in all; after 64 elements at most they are looked through.
    assert max(sizes) < 400, "terms have been released"
    assert [(str(each.bindings["k"]), str(each.bindings["x"])) for each in found] == [
        (f"{EX}k{at % 200}", f"text {at}") for at in range(500)
    ]
    assert all(each.bindings.keys() == {"k", "x"} for each in found)


@pytest.mark.parametrize("way", ["batches", "from a number", "sink"])
def test_results_that_waited_keep_their_terms_while_they_are_given(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads push, and the dictionary releases terms, while a new subscriber gets the results that waited."""
    monkeypatch.setattr(local, "_COLLECT_FROM", 20)
    engine = cqels.Engine()
    query = engine.register(f"PREFIX : <{EX}> SELECT ?x WHERE {{ STREAM :a [RANGE 2us] {{ ?k :p ?x }} }}")

    def push(numbers: range) -> None:
        for at in numbers:
            engine.push(f"{EX}a", [(f"<{EX}k>", f"<{EX}p>", f'"text {at}"')], time=BEGIN + at)

    push(range(3))
    found: list[str | None] = []

    def push_beside() -> None:
        if len(found) < 3:
            other = threading.Thread(target=push, args=(range(len(found) * 200 + 3, len(found) * 200 + 203),))
            other.start()
            other.join()

    def give(batch: ResultBatch) -> None:
        push_beside()
        found.extend(engine.dictionary.decode(batch.columns[0]))

    def give_one(result: cqels.Result) -> None:
        push_beside()
        found.append(f'"{result.bindings["x"]}"')

    if way == "sink":
        query.write_to(SimpleNamespace(write=give, flush=lambda: None, commit=lambda: None))
    elif way == "batches":
        query.subscribe_batches(give, ids=True)
    else:
        query.subscribe(give_one, from_number=1)
    assert found == [f'"text {at}"' for at in range(603)]
    assert query.waiting == 0
